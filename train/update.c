/* SPDX-License-Identifier: MIT */
/* One update: takes a batch, and for each phase computes the gradients of its micro-batches, clips them and steps the optimisers. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "loop.h"

/* Sets the error to *why, an error of an op or an optimiser, with the number of the step in front. */
static wf_status failed(struct fit *f, const wf_error *why)
{
    return wf_error_set(f->error, why->code != WF_OK ? why->code : WF_ERR_STATE, "step %" PRId64 ": %s", f->step + 1, why->message);
}

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

/* --- gradients ----------------------------------------------------------------------------------------------------- */

wf_tensor *fit_forward(struct fit *f, struct wf_micro_batch *b, int phase, int64_t i)
{
    *b = (struct wf_micro_batch){
        .tape = f->tape, .step = f->step, .phase = phase, .index = i, .count = f->o.accumulate, .weight = f->weight};
    /* first_row makes the dropout masks of the micro-batches differ, even if the task does not call wf_tape_first_row. `exact`:
     * the masks do not depend on earlier passes, so that a repeated micro-batch gets the same ones. */
    wf_tape_reset(f->tape, WF_TRAIN, .seed = f->o.seed, .step = (uint64_t)(f->step * f->phases + phase), .first_row = (uint64_t)i << 32,
                  .exact = true, .precision = f->o.precision);
    return f->task.loss(f->o.ctx, b);
}

/* Adds the value of the scalar x to *sum. x NULL: adds nothing. */
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

/* Computes loss and gradients of micro-batch i, and adds its scalars to those of its leaf. */
static wf_status micro_batch(struct fit *f, int phase, int64_t i)
{
    struct scalars *sum = wf_ranks_leaf(&f->ranks, i);
    struct wf_micro_batch b;
    wf_tensor *loss = fit_forward(f, &b, phase, i);
    double shown = 0, minimized = 0;
    if (!loss && wf_tape_error(f->tape)->code != WF_OK)
        return failed(f, wf_tape_error(f->tape));
    if (!loss)
        return WF_OK;
    sum->losses++;
    if (wf_tape_of(loss) != f->tape)
        return wf_error_set(f->error, WF_ERR_ARGUMENT, "step %" PRId64 ": the task's loss is on another tape than its micro-batch",
                            f->step + 1);
    if (add(f, loss, &minimized) || add(f, b.shown ? b.shown : loss, &shown))
        return f->error->code;
    if (!isfinite(shown) || !isfinite(minimized))
        return explain_loss(f, phase);
    for (int k = 0; k < f->reports; k++)
        if (add(f, b.report[k], &sum->report[k]))
            return f->error->code;
    if (wf_ranks_backward(&f->ranks, i, loss))
        return failed(f, wf_tape_error(f->tape));
    sum->shows |= b.shown != NULL;
    sum->loss += shown;
    sum->minimized += minimized;
    return WF_OK;
}

/* Lists the gradients of the registries that the optimisers of a phase update, each once. Returns their number. */
static int grads_of(const struct fit *f, int phase, wf_grads *grads[WF_FIT_REGISTRIES])
{
    int count = 0;
    for (int k = 0; k < f->o.registries; k++) {
        bool used = false;
        for (int i = 0; i < f->o.optimizers && !used; i++)
            for (int64_t j = 0; j < f->o.optimizer[i].optimizer->parts && f->o.optimizer[i].phase == phase; j++)
                used |= f->o.optimizer[i].optimizer->part[j].registry == f->o.registry[k].registry;
        if (used)
            grads[count++] = wf_registry_grads(f->o.registry[k].registry);
    }
    return count;
}

void fit_zero_gradients(const struct fit *f)
{
    for (int k = 0; k < f->o.registries; k++)
        if (wf_registry_grads(f->o.registry[k].registry))
            wf_grads_zero(wf_registry_grads(f->o.registry[k].registry));
}

/* Computes the gradients of a phase over all micro-batches and all ranks. */
static wf_status gradients(struct fit *f, int phase)
{
    wf_grads *grads[WF_FIT_REGISTRIES];
    const int count = grads_of(f, phase, grads);
    const struct wf_range mine = wf_ranks_mine(&f->ranks);
    fit_zero_gradients(f); /* of all registries, because a loss may leave gradients in registries of other phases */
    wf_ranks_begin(&f->ranks, grads, count);
    for (int64_t i = mine.begin; i < mine.end && !f->error->code; i++)
        if (!micro_batch(f, phase, i))
            wf_ranks_add(&f->ranks, i);
    return wf_ranks_finish(&f->ranks);
}

/* Adds the scalars of all leaves, in order. */
static void sum_scalars(struct fit *f, int phase)
{
    bool shows = false;
    f->loss[phase] = f->minimized[phase] = 0;
    for (int64_t i = 0; i < f->o.leaves; i++) {
        const struct scalars *leaf = wf_ranks_leaf_at(&f->ranks, i);
        f->loss[phase] += leaf->loss;
        f->minimized[phase] += leaf->minimized;
        for (int k = 0; k < f->reports; k++)
            f->report[k] += leaf->report[k];
        f->losses += leaf->losses;
        shows |= leaf->shows;
    }
    if (!shows) /* the logged loss is the minimised loss */
        f->minimized[phase] = NAN;
}

/* One phase of several may have no loss in an update. It is an error if no phase has a loss although the batch's weight is above 0; this is
 * known only after the last phase. */
static wf_status check_losses(struct fit *f, int phase)
{
    if (f->losses > 0 || !(f->weight > 0) || phase < f->phases - 1)
        return WF_OK;
    return wf_error_set(f->error, WF_ERR_ARGUMENT,
                        "step %" PRId64
                        ": the task's loss returned NULL for every micro-batch, though next gave the batch a weight of %g: return the "
                        "loss, and NULL for empty micro-batches only",
                        f->step + 1, f->weight);
}

/* --- optimisers ---------------------------------------------------------------------------------------------------- */

static void set_rate(struct fit *f, int i)
{
    const struct wf_fit_optimizer *o = &f->o.optimizer[i];
    struct wf_schedule schedule = o->schedule;
    schedule.steps = schedule.steps > 0 ? schedule.steps : f->o.steps;
    if (f->o.rate)
        o->optimizer->lr = f->o.rate(f->o.ctx, i, f->step);
    else if (schedule.peak > 0 || schedule.kind == WF_SCHEDULE_FUNCTION)
        o->optimizer->lr = wf_schedule_lr(&schedule, f->step);
    f->lr[i] = o->optimizer->lr;
}

/* Computes the norm of the gradients of a phase, and clips them. */
static wf_status clip(struct fit *f, int phase, wf_error *error)
{
    const bool by_value = f->o.clip_value > 0;
    wf_status status = wf_clip_norm_of(f->ranks.grads, f->ranks.count, by_value ? 0 : f->o.clip, &f->grad_norm[phase], error);
    for (int k = 0; by_value && k < f->ranks.count && status == WF_OK; k++)
        status = wf_clip_value(f->ranks.grads[k], f->o.clip_value, error);
    return by_value && f->o.clip > 0 && status == WF_OK ? wf_clip_norm_of(f->ranks.grads, f->ranks.count, f->o.clip, NULL, error) : status;
}

/* Clips the gradients of a phase, steps its optimisers, and publishes the new weights. */
static void optimize(struct fit *f, int phase)
{
    wf_error why = {0};
    wf_status status = clip(f, phase, &why);
    for (int i = 0; i < f->o.optimizers && status == WF_OK; i++)
        if (f->o.optimizer[i].phase == phase) {
            set_rate(f, i);
            status = wf_optimizer_step(f->o.optimizer[i].optimizer, &why);
            f->stepped = true;
        }
    if (status != WF_OK && status != WF_ERR_NUMERIC)
        failed(f, &why);
    if (f->stepped && phase == f->phases - 1) /* even after an error, because the other ranks wait for this rank in fit_agree_ahead */
        fit_agree_ahead(f);
    wf_ranks_publish(&f->ranks, f->stepped);
    if (status == WF_ERR_NUMERIC)
        explain_gradient(f, phase);
}

/* --- the update ---------------------------------------------------------------------------------------------------- */

static wf_status run_phases(struct fit *f)
{
    for (int i = 0; i < f->reports; i++)
        f->report[i] = 0;
    f->losses = 0;
    /* If a phase fails after its gradients, the other ranks go on to the next phase and wait there. So this rank enters the next phase with
     * its error, and all ranks stop. */
    for (int phase = 0; phase < f->phases && !gradients(f, phase); phase++) {
        sum_scalars(f, phase);
        if (!check_losses(f, phase))
            optimize(f, phase);
    }
    return f->error->code;
}

wf_status fit_update(struct fit *f)
{
    double loss[WF_FIT_PHASES];
    memcpy(loss, f->loss, sizeof loss);
    take_batch(f); /* call it even after an error: all ranks begin this update, and a task's `next` may exchange messages */
    const wf_status status = run_phases(f);
    f->stepped = false;
    if (status != WF_OK) { /* restore the losses of the last complete update */
        memcpy(f->loss, loss, sizeof loss);
        return status;
    }
    f->step++;
    f->total += f->weight;
    f->saved = false;
    return WF_OK;
}
