/* SPDX-License-Identifier: MIT */
/* The public functions of <weft/encoder.h>: they check a call, so that families need not, and run the family's encoder. */
#include <weft/encoder.h>
#include <weft/internal/tape_needs.h>

#include <weft/internal/family.h>
#include <weft/internal/weights_end.h>

/* The check_... functions return NULL if the call is correct. Otherwise they set an error on the tape and return poison. */

static wf_tensor *check_packed(const wf_model *model, wf_tape *tape, const wf_tensor *ids, const struct wf_encoder_call *call)
{
    const char *name = model->config.model;
    const struct wf_packed packed = call->packed;
    wf_error error = {0};
    if (call->lengths || call->mask)
        return wf_tape_fail(tape, WF_ERR_ARGUMENT, "%s: packed sentences cannot be combined with lengths or a mask", name);
    if (call->weights)
        return wf_tape_fail(tape, WF_ERR_ARGUMENT,
                            "%s: attention weights are not available for packed sentences: give ids [B,T] and lengths instead of packed",
                            name);
    if (wf_ndim(ids) != 1)
        return wf_tape_fail(tape, WF_ERR_SHAPE, "%s: the ids '%s' are not [N], as packed sentences are", name, wf_name_of(ids));
    if (wf_packed_check(packed, wf_dim(ids, 0), "packed", &error) != WF_OK)
        return wf_tape_fail(tape, error.code, "%s: %s", name, error.message);
    for (int i = 0; i < packed.count; i++)
        if (packed.offsets[i + 1] - packed.offsets[i] > model->shape.context)
            return wf_tape_fail(tape, WF_ERR_SHAPE, "%s: sentence %d has %d ids, but the context is %lld: shorten it", name, i,
                                packed.offsets[i + 1] - packed.offsets[i], (long long)model->shape.context);
    return NULL;
}

static wf_tensor *check_rows(const wf_model *model, wf_tape *tape, const wf_tensor *ids, const struct wf_encoder_call *call)
{
    const char *name = model->config.model;
    if (wf_ndim(ids) != 2)
        return wf_tape_fail(tape, WF_ERR_SHAPE, "%s: the ids '%s' are not [B,T]", name, wf_name_of(ids));
    if (wf_dim(ids, 1) > model->shape.context)
        return wf_tape_fail(tape, WF_ERR_SHAPE, "%s: a row has %lld ids, but the context is %lld: shorten it", name,
                            (long long)wf_dim(ids, 1), (long long)model->shape.context);
    for (int64_t b = 0; call->lengths && b < wf_dim(ids, 0); b++)
        if (call->lengths[b] < 0 || call->lengths[b] > wf_dim(ids, 1))
            return wf_tape_fail(tape, WF_ERR_ARGUMENT, "%s: the length of row %lld is %d, not in 0 .. %lld", name, (long long)b,
                                call->lengths[b], (long long)wf_dim(ids, 1));
    return NULL;
}

static wf_tensor *check_segments(const wf_model *model, wf_tape *tape, int64_t count, const int32_t *segments)
{
    if (!segments)
        return NULL;
    if (model->shape.segments == 0)
        return wf_tape_fail(tape, WF_ERR_ARGUMENT, "%s: the model has no segment embedding: set segments to NULL", model->config.model);
    for (int64_t i = 0; i < count; i++)
        if (segments[i] < 0 || segments[i] >= model->shape.segments)
            return wf_tape_fail(tape, WF_ERR_ARGUMENT, "%s: segment %d of token %lld is not in 0 .. %lld", model->config.model, segments[i],
                                (long long)i, (long long)model->shape.segments - 1);
    return NULL;
}

static int64_t count_of(const wf_tensor *ids)
{
    wf_shape shape = wf_shape_of(ids);
    return wf_shape_count(&shape);
}

static wf_tensor *hidden(const wf_model *model, wf_tensor *ids, const struct wf_encoder_call *call)
{
    static const struct wf_encoder_call whole_rows = {0};
    wf_tape *tape = wf_tape_of(ids);
    if (wf_is_poison(ids) || !tape)
        return ids;
    if (model->family->kind != WF_MODEL_ENCODER)
        return wf_tape_fail(tape, WF_ERR_STATE, "%s is not an encoder: use the functions of weft/%s.h", model->config.model,
                            model->family->kind == WF_MODEL_PAIRS ? "seq2seq" : "models");
    call = call ? call : &whole_rows;
    wf_tensor *wrong = wf_is_packed(call->packed) ? check_packed(model, tape, ids, call) : check_rows(model, tape, ids, call);
    if (!wrong)
        wrong = check_segments(model, tape, count_of(ids), call->segments);
    if (wrong)
        return wrong;
    struct wf_blocks_pass pass;
    wf_blocks_begin(&pass, model, tape);
    struct wf_encoder_call c = *call;
    if (pass.recompute) {
        c.lengths = wf_blocks_copy(tape, c.lengths, (size_t)wf_dim(ids, 0) * sizeof *c.lengths);
        c.packed.offsets = wf_blocks_copy(tape, c.packed.offsets, ((size_t)c.packed.count + 1) * sizeof *c.packed.offsets);
        call = wf_blocks_copy(tape, &c, sizeof c);
    }
    wf_tensor *x = call ? model->family->hidden(model->body, ids, call) : wf_tape_fail(tape, WF_ERR_MEMORY, "no memory for a call");
    return wf_model_intact(model, wf_blocks_end(&pass, tape, x));
}

wf_tensor *wf_encoder_forward_with(const wf_model *model, wf_tensor *ids, const struct wf_encoder_call *call)
{
    wf_tensor *refused = wf_tape_needs(wf_tape_of(ids), "model, ids", model, ids);
    if (refused)
        return refused;
    wf_tensor *x = hidden(model, ids, call);
    wf_weights_end(x, call ? call->weights : NULL, model->shape.layers);
    return x;
}

wf_tensor *wf_encoder_logits_with(const wf_model *model, wf_tensor *ids, const struct wf_encoder_call *call)
{
    wf_tensor *refused = wf_tape_needs(wf_tape_of(ids), "model, ids", model, ids);
    if (refused)
        return refused;
    return wf_head_logits(model, wf_encoder_forward_with(model, ids, call));
}

wf_tensor *wf_encoder_loss_with(const wf_model *model, wf_tensor *ids, const struct wf_encoder_call *call, const int32_t *places,
                                const int32_t *targets, int64_t count, const struct wf_cross_entropy_options *options)
{
    wf_tensor *refused =
        wf_tape_needs(wf_tape_of(ids), "model, ids, places, targets", model, ids, wf_some(places, count), wf_some(targets, count));
    if (refused)
        return refused;
    static const int32_t none[1];
    wf_tensor *x = wf_encoder_forward_with(model, ids, call); /* [B,T,d] or [N,d] */
    wf_tape *tape = wf_tape_of(x);
    if (wf_is_poison(x) || !tape)
        return x;
    int64_t tokens = count_of(ids);
    if (count < 0 || count > INT32_MAX)
        return wf_tape_fail(tape, WF_ERR_ARGUMENT, "%s: count = %lld is out of range", model->config.model, (long long)count);
    for (int64_t i = 0; i < count; i++)
        if (places[i] < 0 || places[i] >= tokens)
            return wf_tape_fail(tape, WF_ERR_ARGUMENT, "%s: place %d is not the index of one of %lld tokens", model->config.model,
                                places[i], (long long)tokens);
    /* Only the masked tokens go through the output layer. wf_embedding gathers their rows of x, and its backward adds the gradients to
     * these rows. */
    x = wf_reshape(x, tokens, model->shape.width);
    x = wf_embedding(x, wf_ids_of(tape, count ? places : none, WF_SHAPE(count))); /* [count,d] */
    return wf_head_loss(model, x, wf_ids_of(tape, count ? targets : none, WF_SHAPE(count)), options);
}
