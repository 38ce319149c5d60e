/* SPDX-License-Identifier: MIT */
/* One update: batch, forwards, backwards, optimisers, phase by phase; and the search for a number that is not finite. */
#include <inttypes.h>
#include <math.h>

#include <weft/internal/finite.h>
#include <weft/internal/kernels.h>
#include <weft/runtime.h>

#include "loop.h"

enum { ADVICE = 160 }; /* bytes of a text */

/* --- numbers that are not finite ----------------------------------------------------------------------------------- */

/* The first parameter whose value, or gradient, is not finite, with its registry's name; NULL if all are fine. */
static const char *first_bad(const struct fit *f, bool gradient, char text[], size_t size)
{
    for (int k = 0; k < f->o.registries; k++)
        for (int i = 0; i < wf_registry_count(f->o.registry[k].registry); i++) {
            const wf_tensor *p = wf_registry_at(f->o.registry[k].registry, i);
            const struct wf_parameter_info *info = wf_parameter_info(p);
            const wf_real *x = !gradient ? info->value.data : info->grads ? wf_grads_at(info->grads, p) : NULL;
            char prefix[PREFIX];
            if (!x || wf_kernel->find_nonfinite(wf_array_count(&info->value), x) < 0)
                continue;
            snprintf(text, size, "%s%s", registry_prefix(f, k, "", prefix), info->name);
            return text;
        }
    return NULL;
}

/* Advice after a number that is not finite. Before the first update the learning rate is not the cause. */
static const char *numeric_advice(const struct fit *f, char text[ADVICE])
{
    const bool program = f->owner->any, clips = f->o.clip > 0;
    const char *saved = f->o.out ? "this step was not saved; " : "", *rate = program ? "learning rate" : "lr";
    if (f->step == 0 && !f->committed)
        return "no update was made before it: look at the data and the initial weights";
    if (f->on_disk >= 0)
        snprintf(text, ADVICE, "%s%s with a lower %s%s continues from the last save", saved, fit_resume_name(f), rate,
                 clips     ? ""
                 : program ? ", or with .clip,"
                           : ", or with clip,");
    else
        snprintf(text, ADVICE, "%slower %s%s%s", saved, program ? "the " : "", rate,
                 clips     ? ""
                 : program ? ", or set .clip"
                           : ", or set clip");
    return text;
}

static const char *data_advice(const struct fit *f)
{
    return f->o.out ? "this step was not saved; look at the data of its batch" : "look at the data of its batch";
}

wf_status refuse_bad_weights(struct fit *f)
{
    char name[512], advice[ADVICE];
    if (!first_bad(f, false, name, sizeof name))
        return WF_OK;
    return wf_error_set(f->error, WF_ERR_NUMERIC, "step %" PRId64 ": the parameter %s is not finite%s; %s", f->step, name,
                        f->step > 0 ? " after the update" : "", numeric_advice(f, advice));
}

wf_status explain_validation(struct fit *f)
{
    const struct wf_metric *by = &f->task.metric[f->task.best];
    const double shown = f->value[f->task.best];
    double value[WF_FIT_METRICS];
    char advice[ADVICE];
    for (int i = 0; i < WF_FIT_METRICS; i++)
        value[i] = NAN;
    wf_error why = {0};
    wf_tape_check_finite(f->tape, true);
    const wf_status status = f->task.validate(f->o.ctx, f->tape, value, &why);
    wf_tape_check_finite(f->tape, false);
    /* A task may have changed the status; and the message may be that of another rank, which had the bad micro-batch. */
    const bool here = wf_tape_error(f->tape)->code == WF_ERR_NUMERIC;
    if (here)
        wf_error_set(f->error, WF_ERR_NUMERIC, "step %" PRId64 ": the validation %s is %g; the first bad tensor: %s: %s", f->step, by->name,
                     shown, wf_tape_error(f->tape)->message,
                     wf_tape_bad_input(f->tape) ? "look at the data of the validation" : numeric_advice(f, advice));
    if (together_agree(f))
        return f->error->code;
    if (status == WF_ERR_NUMERIC && why.message[0])
        return wf_error_set(f->error, WF_ERR_NUMERIC, "step %" PRId64 ": the validation %s is %g: %s", f->step, by->name, shown,
                            why.message);
    return wf_error_set(f->error, WF_ERR_NUMERIC,
                        "step %" PRId64 ": the validation %s is %g, though all weights are finite%s; look at the data of the validation, "
                        "and at how it is computed",
                        f->step, by->name, shown, status == WF_OK ? ", and a second one with a look at each result found no bad one" : "");
}

/* The loss of a micro-batch, on the tape; NULL: an empty one. */
static wf_tensor *forward(struct fit *f, struct wf_fit_part *p, int turn, int64_t part)
{
    *p = (struct wf_fit_part){.tape = f->tape, .step = f->step, .turn = turn, .part = part, .parts = f->o.accumulate, .weight = f->weight};
    /* Rows of different micro-batches differ, even if the task does not number them. */
    wf_tape_reset(f->tape, WF_TRAIN, .seed = f->o.seed, .step = (uint64_t)(f->step * f->turns + turn), .first_row = (uint64_t)part << 32,
                  .exact = true);
    return f->task.loss(f->o.ctx, p);
}

/* Zeroes gradients of another phase for parameters that its optimisers do not update. */
static void zero_gradients(const struct fit *f)
{
    for (int k = 0; k < f->o.registries; k++)
        if (wf_registry_grads(f->o.registry[k].registry))
            wf_grads_zero(wf_registry_grads(f->o.registry[k].registry));
}

/* Repeats the micro-batches, whose forwards are finite, with their backwards: finds the first op with a gradient that is not finite. */
static void explain_backward(struct fit *f, int turn, const char *what, const char *advice)
{
    zero_gradients(f);
    for (int64_t part = 0; part < f->o.accumulate && !f->error->code; part++) {
        struct wf_fit_part p;
        wf_tensor *loss = forward(f, &p, turn, part);
        if (loss && wf_tape_of(loss) == f->tape && wf_backward(loss) == WF_ERR_NUMERIC)
            wf_error_set(f->error, WF_ERR_NUMERIC, "step %" PRId64 ": %s is not finite; the forward pass is, and %s: %s", f->step + 1, what,
                         wf_tape_error(f->tape)->message, advice);
    }
}

/* Repeats the phase, checks every result, and names the first tensor that is not finite. The weights are unchanged: no optimiser of this
 * phase has stepped. `backwards`: all backwards of the phase have run. `gradient`: the parameter with the bad gradient; NULL: it is
 * searched for. */
static wf_status explain(struct fit *f, int turn, const char *what, bool backwards, const char *gradient)
{
    char advice_text[ADVICE];
    const char *advice = numeric_advice(f, advice_text);
    if (slices_settle(f))
        return f->error->code;
    char name[512], gradient_name[512];
    if (first_bad(f, false, name, sizeof name))
        return wf_error_set(f->error, WF_ERR_NUMERIC, "step %" PRId64 ": %s is not finite; the parameter %s was bad before this step: %s",
                            f->step + 1, what, name, advice);
    gradient = gradient ? gradient : first_bad(f, true, gradient_name, sizeof gradient_name);
    wf_tape_check_finite(f->tape, true);
    for (int64_t part = 0; part < f->o.accumulate; part++) {
        double value = 0;
        struct wf_fit_part p;
        wf_tensor *loss = forward(f, &p, turn, part);
        if (loss)
            (void)!wf_item(loss, &value);
        if (wf_tape_error(f->tape)->code == WF_ERR_NUMERIC) /* even if the task returned NULL */
            wf_error_set(f->error, WF_ERR_NUMERIC, "step %" PRId64 ": %s is not finite; the first bad tensor: %s: %s", f->step + 1, what,
                         wf_tape_error(f->tape)->message, wf_tape_bad_input(f->tape) ? data_advice(f) : advice);
        else if (isinf(value)) /* the check takes it for an infinity of a mask */
            wf_error_set(f->error, WF_ERR_NUMERIC,
                         "step %" PRId64 ": %s is not finite; it is %g, from -inf in an input or where a mask fills it in: %s", f->step + 1,
                         what, value, advice);
    }
    if (backwards && !f->error->code) /* otherwise messages may still read the slabs */
        explain_backward(f, turn, what, advice);
    wf_tape_check_finite(f->tape, false);
    return wf_error_set(f->error, WF_ERR_NUMERIC,
                        "step %" PRId64 ": %s is not finite; the forward pass is, and the first bad gradient is that of %s: %s",
                        f->step + 1, what, gradient ? gradient : "an inner tensor", advice);
}

/* Puts the step in front of an error of an op or an optimiser. */
static wf_status failed(struct fit *f, const wf_error *why)
{
    return wf_error_set(f->error, why->code != WF_OK ? why->code : WF_ERR_STATE, "step %" PRId64 ": %s", f->step + 1, why->message);
}

/* --- one update ---------------------------------------------------------------------------------------------------- */

static wf_status take_batch(struct fit *f)
{
    wf_error why = {0};
    double weight = 0;
    wf_status status = f->task.next(f->o.ctx, f->step, &weight, &why);
    if (status != WF_OK)
        return wf_error_set(f->error, status, "%s", why.message[0] ? why.message : "the task's next failed without a message");
    if (!(weight >= 0 && isfinite(weight)))
        return wf_error_set(f->error, WF_ERR_ARGUMENT,
                            "step %" PRId64 ": the task's next gave the batch a weight of %g: the number of its rows or tokens is wanted",
                            f->step + 1, weight);
    f->weight = weight;
    return WF_OK;
}

/* Adds a scalar that `loss` has set to its sum. */
static wf_status add(struct fit *f, const wf_tensor *x, double *sum)
{
    double value = 0;
    if (!x)
        return WF_OK;
    if (wf_item(x, &value))
        return failed(f, wf_tape_error(f->tape));
    *sum += value;
    return WF_OK;
}

/* Losses and gradients of one micro-batch of a leaf. `last`: nothing is added to the gradients after it. */
static wf_status run_part(struct fit *f, int turn, int64_t part, bool last, struct leaf *leaf)
{
    struct wf_fit_part p;
    wf_tensor *loss = forward(f, &p, turn, part);
    double shown = 0, minimized = 0;
    if (!loss && wf_tape_error(f->tape)->code != WF_OK)
        return failed(f, wf_tape_error(f->tape));
    if (!loss)
        return WF_OK;
    leaf->losses++;
    if (wf_tape_of(loss) != f->tape)
        return wf_error_set(f->error, WF_ERR_ARGUMENT, "step %" PRId64 ": the task's loss is on another tape than part->tape", f->step + 1);
    if (add(f, loss, &minimized) || add(f, p.shown ? p.shown : loss, &shown))
        return f->error->code;
    if (!isfinite(shown) || !isfinite(minimized))
        return explain(f, turn, "the loss", false, NULL);
    for (int i = 0; i < f->reports; i++)
        if (add(f, p.report[i], &leaf->report[i]))
            return f->error->code;
    if (last)
        exchange_listen(f, true);
    const wf_status status = wf_backward(loss);
    if (last)
        exchange_listen(f, false);
    if (status != WF_OK)
        return failed(f, wf_tape_error(f->tape));
    leaf->shows |= p.shown != NULL;
    leaf->loss += shown;
    leaf->minimized += minimized;
    return WF_OK;
}

/* The gradients that the optimisers of a phase use, each once. */
static int grads_of(const struct fit *f, int turn, wf_grads *grads[WF_FIT_REGISTRIES])
{
    int count = 0;
    for (int k = 0; k < f->o.registries; k++) {
        bool used = false;
        for (int i = 0; i < f->o.optimizers && !used; i++)
            for (int64_t j = 0; j < f->o.optimizer[i].optimizer->parts && f->o.optimizer[i].turn == turn; j++)
                used |= f->o.optimizer[i].optimizer->part[j].registry == f->o.registry[k].registry;
        if (used)
            grads[count++] = wf_registry_grads(f->o.registry[k].registry);
    }
    return count;
}

static void set_rate(struct fit *f, int i)
{
    const struct wf_fit_optimizer *o = &f->o.optimizer[i];
    struct wf_schedule schedule = o->schedule;
    schedule.steps = schedule.steps > 0 ? schedule.steps : f->o.steps;
    if (f->o.rate)
        o->optimizer->lr = f->o.rate(f->o.ctx, i, f->step);
    else if (schedule.peak > 0)
        o->optimizer->lr = wf_schedule_lr(&schedule, f->step);
    f->lr[i] = o->optimizer->lr;
}

/* Clipping, and the optimisers of a phase. */
static wf_status step(struct fit *f, int turn)
{
    wf_grads *grads[WF_FIT_REGISTRIES];
    int count = grads_of(f, turn, grads);
    wf_error why = {0};
    if (slices_settle(f)) /* values that the forward did not read may still be under way */
        return f->error->code;
    slices_activate(f, true);
    wf_status status = wf_clip_norm_of(grads, count, f->o.clip, &f->grad_norm[turn], &why);
    for (int i = 0; i < f->o.optimizers && status == WF_OK; i++)
        if (f->o.optimizer[i].turn == turn) {
            set_rate(f, i);
            status = wf_optimizer_step(f->o.optimizer[i].optimizer, &why);
            f->committed = true;
        }
    slices_activate(f, false);
    if (status != WF_OK && status != WF_ERR_NUMERIC)
        failed(f, &why);
    if (f->committed) { /* even after an error here: the other ranks come here, too */
        if (turn == f->turns - 1)
            fit_ask_ahead(f);
        slices_values(f, grads, count);
    }
    char name[512];
    if (status == WF_ERR_NUMERIC)
        explain(f, turn, "the gradient's norm", true, slices_bad(f, grads, count, name, sizeof name));
    return f->error->code;
}

/* The leaves of this process. */
static wf_status run_leaves(struct fit *f, int turn, wf_grads *const *grads, int count)
{
    const int64_t parts = f->o.accumulate / f->o.leaves;
    const struct leaves_of mine = together_leaves(f, f->rank);
    for (int64_t i = mine.begin; i < mine.end; i++) {
        const bool last = i == mine.end - 1;
        f->leaf[i] = (struct leaf){0};
        if (last)
            tree_last(&f->tree, i);
        for (int64_t part = i * parts; part < (i + 1) * parts; part++)
            if (run_part(f, turn, part, last && part == (i + 1) * parts - 1, &f->leaf[i]))
                return f->error->code;
        if (!last && tree_add(&f->tree, i, grads, count, f->error))
            return f->error->code;
    }
    for (int k = 0; k < count && f->processes == 1; k++)
        tree_join(&f->tree, k, grads[k], 0, grads[k]->blocks);
    if (f->processes == 1)
        tree_joined(&f->tree, grads, count);
    return WF_OK;
}

static void sum_leaves(struct fit *f, int turn)
{
    bool shows = false;
    f->loss[turn] = f->minimized[turn] = 0;
    for (int64_t i = 0; i < f->o.leaves; i++) {
        const struct leaf *leaf = &f->leaf[i];
        f->loss[turn] += leaf->loss;
        f->minimized[turn] += leaf->minimized;
        for (int k = 0; k < f->reports; k++)
            f->report[k] += leaf->report[k];
        f->losses += leaf->losses;
        shows |= leaf->shows;
    }
    if (!shows) /* the minimised loss is the loss shown */
        f->minimized[turn] = NAN;
}

/* A phase may skip an update. */
static wf_status check_losses(struct fit *f, int turn)
{
    if (f->losses > 0 || !(f->weight > 0) || turn < f->turns - 1)
        return WF_OK;
    return wf_error_set(f->error, WF_ERR_ARGUMENT,
                        "step %" PRId64
                        ": the task's loss returned NULL for every part, though next gave the batch a weight of %g: return the "
                        "loss, and NULL for empty parts only",
                        f->step + 1, f->weight);
}

/* Gradients of all micro-batches of a phase, on all ranks. */
static wf_status gather(struct fit *f, int turn)
{
    wf_grads *grads[WF_FIT_REGISTRIES];
    const int count = grads_of(f, turn, grads);
    zero_gradients(f);
    tree_begin(&f->tree);
    exchange_begin(f, grads, count);
    if (!f->error->code) /* otherwise the reduction spreads the error */
        run_leaves(f, turn, grads, count);
    return exchange_end(f);
}

static void run_turns(struct fit *f)
{
    for (int i = 0; i < f->reports; i++)
        f->report[i] = 0;
    f->losses = 0;
    /* If a phase fails after its gather, the other ranks already wait in the next gather: enter it with the error, so that all stop. */
    for (int turn = 0; turn < f->turns && !gather(f, turn); turn++) {
        sum_leaves(f, turn);
        if (!check_losses(f, turn))
            step(f, turn);
    }
}

wf_status fit_update(struct fit *f)
{
    f->dropped = true; /* until the update is complete */
    double loss[WF_FIT_TURNS];
    for (int i = 0; i < f->turns; i++)
        loss[i] = f->loss[i];
    if (!f->error->code) /* an error is spread in the phases, since all ranks have agreed to this update */
        take_batch(f);
    for (int k = 0; k < f->o.registries; k++) /* a registry may have got gradients since the last update */
        if (slices_make(f, k, f->o.registry[k].registry))
            together_lost(f);
    run_turns(f);
    const wf_status status = f->error->code;
    f->committed = false;
    for (int i = 0; status != WF_OK && i < f->turns; i++) /* back to the last complete update, as in the state */
        f->loss[i] = loss[i];
    if (status != WF_OK)
        return status;
    f->step++;
    f->total += f->weight;
    f->dropped = f->saved = false;
    return WF_OK;
}
