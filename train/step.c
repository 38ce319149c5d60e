/* SPDX-License-Identifier: MIT */
/* One update: batch, forward, backward, Adam; and what to say when a number goes bad. */
#include <math.h>

#include <weft/internal/kernels.h>

#include "trainer.h"

/* Forward of micro-batch `micro` of update `step` -> the loss on the tape; *plain is the mean without smoothing, also divided by
 * the tokens of the whole batch, so that micro-batches add up. */
static wf_tensor *forward(struct trainer *t, int64_t step, int64_t micro, wf_tensor **plain)
{
    int64_t batch = t->config.batch, parts = t->config.accumulate, context = t->config.context;
    int64_t first = batch * micro / parts, rows = batch * (micro + 1) / parts - first;
    wf_crops_fill(&t->crops, step, first, rows, t->x, t->y);
    wf_tape_reset(t->tape, WF_TRAIN, .seed = t->options->seed, .step = (uint64_t)step, .first_row = (uint64_t)first);
    return wf_model_loss(t->model, wf_ids(t->tape, t->x, rows, context), wf_ids(t->tape, t->y, rows, context),
                         .label_smoothing = t->config.label_smoothing, .normalizer = (double)(t->config.batch * context), .plain = plain);
}

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

/* Runs the step again with a look at every result, and names the first tensor that is not finite. The weights are as they were:
 * no update was made. */
static wf_status explain(struct trainer *t, const char *what)
{
    const char *advice = "nothing of it was saved; lower lr, or set clip";
    const char *weight = first_bad(t, wf_registry_values(t->registry));
    if (weight)
        return wf_error_set(t->error, WF_ERR_NUMERIC, "step %lld: %s is not finite; the parameter %s went bad in an earlier step: %s",
                            (long long)t->step + 1, what, weight, advice);
    const char *gradient = t->adam.grads->broken ? NULL : first_bad(t, t->adam.grads->slab);
    wf_tape_check_finite(t->tape, true);
    for (int64_t micro = 0; micro < t->config.accumulate; micro++) {
        double value;
        wf_tensor *plain;
        wf_status status = wf_item(forward(t, t->step, micro, &plain), &value);
        if (status == WF_ERR_NUMERIC)
            wf_error_set(t->error, WF_ERR_NUMERIC, "step %lld: %s is not finite; the first tensor that went bad: %s: %s",
                         (long long)t->step + 1, what, wf_tape_error(t->tape)->message, advice);
    }
    wf_tape_check_finite(t->tape, false);
    return wf_error_set(t->error, WF_ERR_NUMERIC, "step %lld: %s is not finite; the forward is, the first gradient that went bad is that of %s: %s",
                        (long long)t->step + 1, what, gradient ? gradient : "an inner tensor", advice);
}

static wf_status tape_status(struct trainer *t)
{
    const wf_error *e = wf_tape_error(t->tape);
    return wf_error_set(t->error, e->code != WF_OK ? e->code : WF_ERR_STATE, "step %lld: %s", (long long)t->step + 1, e->message);
}

wf_status train_step(struct trainer *t)
{
    double sum = 0;
    for (int64_t micro = 0; micro < t->config.accumulate; micro++) {
        wf_tensor *plain = NULL, *loss = forward(t, t->step, micro, &plain);
        double value;
        if (wf_item(plain ? plain : loss, &value) != WF_OK)
            return tape_status(t);
        if (!isfinite(value))
            return explain(t, "the loss");
        if (wf_backward(loss) != WF_OK)
            return tape_status(t);
        sum += value;
    }
    t->adam.lr = wf_schedule_lr(&t->schedule, t->step);
    wf_error error = {0};
    wf_status status = wf_adam_step(&t->adam, t->config.clip, &error);
    if (status == WF_ERR_NUMERIC)
        return explain(t, "the gradient's norm");
    if (status != WF_OK)
        return wf_error_set(t->error, status, "step %lld: %s", (long long)t->step + 1, error.message);
    t->step++;
    t->loss = sum;
    t->saved = false;
    return WF_OK;
}
