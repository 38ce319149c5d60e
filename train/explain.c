/* SPDX-License-Identifier: MIT */
/* Errors for numbers that are not finite. Each names the first tensor that has such a number, and gives advice. */
#include <inttypes.h>
#include <math.h>

#include <weft/internal/finite.h>
#include <weft/internal/kernels.h>

#include "loop.h"

enum { ADVICE = 160 }; /* size of the text with the advice */

/* Whether numbers in bf16 have one that is not finite: its exponent is all ones. */
static bool any_nonfinite(const uint16_t *x, int64_t n)
{
    bool any = false;
    for (int64_t i = 0; i < n; i++)
        any |= (x[i] & 0x7f80) == 0x7f80;
    return any;
}

/* The name of the first parameter whose value (or gradient, if `gradient`) is not finite, with its registry's prefix, written to `text`.
 * NULL: all are finite. */
static const char *first_bad(const struct fit *f, bool gradient, char text[], size_t size)
{
    for (int k = 0; k < f->o.registries; k++)
        for (int i = 0; i < wf_registry_count(f->o.registry[k].registry); i++) {
            const wf_tensor *p = wf_registry_at(f->o.registry[k].registry, i);
            const struct wf_parameter_info *info = wf_parameter_info(p);
            const wf_real *x = !gradient ? info->value.data : info->grads ? wf_grads_at(info->grads, p) : NULL;
            char prefix[PREFIX];
            if (!gradient && info->value.dtype == WF_BF16 ? !any_nonfinite(info->value.data, wf_array_count(&info->value))
                                                          : !x || wf_kernel->find_nonfinite(wf_array_count(&info->value), x) < 0)
                continue;
            snprintf(text, size, "%s%s", registry_prefix(f, k, "", prefix), info->name);
            return text;
        }
    return NULL;
}

/* Advice to the user about a number that is not finite. Before the first update the learning rate cannot be the cause. */
static const char *numeric_advice(const struct fit *f, char text[ADVICE])
{
    const bool program = f->owner->any, clips = f->o.clip > 0 || f->o.clip_value > 0;
    const char *saved = f->o.out ? "this step was not saved; " : "", *rate = program ? "learning rate" : "lr";
    if (f->step == 0 && !f->stepped)
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
    /* Ask the tape whether this rank has met the bad number. The returned status does not tell: a task may change it, or return the error
     * of another rank. */
    const bool here = wf_tape_error(f->tape)->code == WF_ERR_NUMERIC;
    if (here)
        wf_error_set(f->error, WF_ERR_NUMERIC, "step %" PRId64 ": the validation %s is %g; the first bad tensor: %s: %s", f->step, by->name,
                     shown, wf_tape_error(f->tape)->message,
                     wf_tape_bad_input(f->tape) ? "look at the data of the validation" : numeric_advice(f, advice));
    if (wf_ranks_agree(&f->ranks))
        return f->error->code;
    if (status == WF_ERR_NUMERIC && why.message[0])
        return wf_error_set(f->error, WF_ERR_NUMERIC, "step %" PRId64 ": the validation %s is %g: %s", f->step, by->name, shown,
                            why.message);
    return wf_error_set(f->error, WF_ERR_NUMERIC,
                        "step %" PRId64 ": the validation %s is %g, though all weights are finite%s; look at the data of the validation, "
                        "and at how it is computed",
                        f->step, by->name, shown, status == WF_OK ? ", and a second one with a look at each result found no bad one" : "");
}

/* Repeats forward and backward of all micro-batches. The forwards are known to be finite, so the tape's check names the first op whose
 * gradient is not. */
static void explain_backward(struct fit *f, int phase, const char *what, const char *advice)
{
    fit_zero_gradients(f);
    for (int64_t i = 0; i < f->o.accumulate && !f->error->code; i++) {
        struct wf_micro_batch b;
        wf_tensor *loss = fit_forward(f, &b, phase, i);
        if (loss && wf_tape_of(loss) == f->tape && wf_backward(loss) == WF_ERR_NUMERIC)
            wf_error_set(f->error, WF_ERR_NUMERIC, "step %" PRId64 ": %s is not finite; the forward pass is, and %s: %s", f->step + 1, what,
                         wf_tape_error(f->tape)->message, advice);
    }
}

/* Repeats the phase, checks every result, and sets an error that names the first tensor that is not finite. The repetition computes the
 * same because no optimiser of the phase has stepped. `backwards`: all backwards of the phase have run. `gradient`: the name of the first
 * parameter whose gradient is not finite; NULL: explain searches for it. */
static wf_status explain(struct fit *f, int phase, const char *what, bool backwards, const char *gradient)
{
    char advice_text[ADVICE];
    const char *advice = numeric_advice(f, advice_text);
    if (wf_ranks_settle(&f->ranks))
        return f->error->code;
    char name[512], gradient_name[512];
    if (first_bad(f, false, name, sizeof name))
        return wf_error_set(f->error, WF_ERR_NUMERIC, "step %" PRId64 ": %s is not finite; the parameter %s was bad before this step: %s",
                            f->step + 1, what, name, advice);
    gradient = gradient ? gradient : first_bad(f, true, gradient_name, sizeof gradient_name);
    wf_tape_check_finite(f->tape, true);
    for (int64_t i = 0; i < f->o.accumulate; i++) {
        double value = 0;
        struct wf_micro_batch b;
        wf_tensor *loss = fit_forward(f, &b, phase, i);
        if (loss)
            (void)!wf_item(loss, &value);
        if (wf_tape_error(f->tape)->code == WF_ERR_NUMERIC) /* the task may have returned NULL after this error */
            wf_error_set(f->error, WF_ERR_NUMERIC, "step %" PRId64 ": %s is not finite; the first bad tensor: %s: %s", f->step + 1, what,
                         wf_tape_error(f->tape)->message, wf_tape_bad_input(f->tape) ? data_advice(f) : advice);
        else if (isinf(value)) /* the tape's check does not report an infinity that follows from -inf, because masks use -inf */
            wf_error_set(f->error, WF_ERR_NUMERIC,
                         "step %" PRId64 ": %s is not finite; it is %g, from -inf in an input or where a mask fills it in: %s", f->step + 1,
                         what, value, advice);
    }
    if (backwards && !f->error->code) /* not for a bad loss: it comes from the forward pass, which was checked above */
        explain_backward(f, phase, what, advice);
    wf_tape_check_finite(f->tape, false);
    return wf_error_set(f->error, WF_ERR_NUMERIC,
                        "step %" PRId64 ": %s is not finite; the forward pass is, and the first bad gradient is that of %s: %s",
                        f->step + 1, what, gradient ? gradient : "an inner tensor", advice);
}

wf_status explain_loss(struct fit *f, int phase)
{
    return explain(f, phase, "the loss", false, NULL);
}

wf_status explain_gradient(struct fit *f, int phase)
{
    char name[512], prefix[PREFIX];
    int parameter;
    const int k = wf_ranks_bad(&f->ranks, &parameter);
    if (k >= 0)
        snprintf(name, sizeof name, "%s%s", registry_prefix(f, k, "", prefix),
                 wf_name_of(wf_registry_at(f->o.registry[k].registry, parameter)));
    return explain(f, phase, "the gradient's norm", true, k >= 0 ? name : NULL);
}
