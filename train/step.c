/* SPDX-License-Identifier: MIT */
/* One update: batch, forward, backward, Adam; and what to say when a number goes bad. */
#include <math.h>

#include <weft/internal/kernels.h>

#include "trainer.h"

const char *first_bad(const struct trainer *t, const wf_real *slab)
{
    for (int i = 0; i < wf_registry_count(t->registry); i++) {
        const struct wf_parameter_info *info = wf_parameter_info(wf_registry_at(t->registry, i));
        if (slab != wf_registry_values(t->registry) && !t->adam.grads->valid[i])
            continue;
        if (wf_kernel->find_nonfinite(wf_array_count(&info->value), slab + info->offset) >= 0)
            return info->name;
    }
    return NULL;
}

const char *numeric_advice(const struct trainer *t)
{
    return t->on_disk >= 0 ? "nothing of it was saved; --resume with a lower lr, or with clip, continues from the last save"
                           : "nothing of it was saved; lower lr, or set clip";
}

/* Runs the step again with a look at every result, and names the first tensor that is not finite. The weights are as they were:
 * no update was made. */
static wf_status explain(struct trainer *t, const char *what)
{
    const char *advice = numeric_advice(t);
    const char *weight = first_bad(t, wf_registry_values(t->registry));
    if (weight)
        return wf_error_set(t->error, WF_ERR_NUMERIC, "step %lld: %s is not finite; the parameter %s went bad in an earlier step: %s",
                            (long long)t->step + 1, what, weight, advice);
    const char *gradient = t->adam.grads->broken ? NULL : first_bad(t, t->adam.grads->slab);
    wf_tape_check_finite(t->tape, true);
    for (int64_t micro = 0; micro < t->config.training.accumulate; micro++) {
        double value;
        wf_tensor *plain, *loss = t->task->forward(t, micro, &plain);
        if (loss && wf_item(loss, &value) == WF_ERR_NUMERIC)
            wf_error_set(t->error, WF_ERR_NUMERIC, "step %lld: %s is not finite; the first tensor that went bad: %s: %s",
                         (long long)t->step + 1, what, wf_tape_error(t->tape)->message, advice);
    }
    wf_tape_check_finite(t->tape, false);
    return wf_error_set(t->error, WF_ERR_NUMERIC,
                        "step %lld: %s is not finite; the forward is, the first gradient that went bad is that of %s: %s",
                        (long long)t->step + 1, what, gradient ? gradient : "an inner tensor", advice);
}

/* What an op or the optimiser says, with the step. */
static wf_status failed(struct trainer *t, const wf_error *why)
{
    return wf_error_set(t->error, why->code != WF_OK ? why->code : WF_ERR_STATE, "step %lld: %s", (long long)t->step + 1, why->message);
}

wf_status train_step(struct trainer *t)
{
    double sum = 0, smoothed_sum = 0;
    t->dropped = true; /* unless it comes to its end */
    if (t->task->next(t))
        return t->error->code;
    for (int64_t micro = 0; micro < t->config.training.accumulate; micro++) {
        wf_tensor *plain = NULL, *loss = t->task->forward(t, micro, &plain);
        double value, smoothed;
        if (!loss)
            continue;
        if (wf_item(loss, &smoothed) || wf_item(plain ? plain : loss, &value))
            return failed(t, wf_tape_error(t->tape));
        if (!isfinite(value) || !isfinite(smoothed))
            return explain(t, "the loss");
        if (wf_backward(loss))
            return failed(t, wf_tape_error(t->tape));
        sum += value;
        smoothed_sum += smoothed;
    }
    t->adam.lr = wf_schedule_lr(&t->schedule, t->step);
    wf_error error = {0};
    wf_status status = wf_adam_step(&t->adam, t->config.training.clip, &error);
    if (status != WF_OK)
        return status == WF_ERR_NUMERIC ? explain(t, "the gradient's norm") : failed(t, &error);
    t->step++;
    t->loss = sum;
    t->smoothed = t->config.training.label_smoothing > 0 ? smoothed_sum : NAN;
    t->dropped = t->saved = false;
    return WF_OK;
}
