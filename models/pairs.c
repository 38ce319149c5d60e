/* SPDX-License-Identifier: MIT */
/* The public functions of <weft/seq2seq.h>: logits and losses of packed sentence pairs, and decoding step by step. */
#include <weft/internal/tape_needs.h>
#include <weft/seq2seq.h>

#include <weft/internal/family.h>
#include <weft/internal/weights_end.h>

/* Returns NULL for an encoder-decoder. For any other model sets an error on the tape and returns poison. */
static wf_tensor *refuse(const wf_model *model, wf_tape *tape)
{
    if (model->family->kind == WF_MODEL_PAIRS)
        return NULL;
    return wf_tape_fail(tape, WF_ERR_STATE, "%s is not an encoder-decoder: use the functions of weft/models.h or weft/encoder.h",
                        model->config.model);
}

/* Makes a tensor of the packed ids [N]; *out becomes `packed`. With `alone` the ids of the only sentence become [1,T], and *out has no
 * offsets. Poison if the offsets are invalid. */
static wf_tensor *packed_ids(const wf_model *model, wf_tape *tape, const char *side, const int32_t *ids, struct wf_packed packed,
                             bool alone, struct wf_packed *out)
{
    wf_error error = {0};
    if (wf_packed_check(packed, packed.count >= 0 && packed.offsets ? packed.offsets[packed.count] : 0, side, &error) != WF_OK)
        return wf_tape_fail(tape, error.code, "%s: %s", model->config.model, error.message);
    *out = alone ? (struct wf_packed){0} : packed;
    return alone ? wf_ids(tape, ids, 1, packed.offsets[1]) : wf_ids_of(tape, ids, WF_SHAPE(packed.offsets[packed.count]));
}

/* Input of the output layer for all targets: [N,d], or [1,T,d] if attention weights are asked for. wf_tape_first_row is called for the
 * source ids and again for the target ids, because the first ids of both have different indices in the global batch. */
static wf_tensor *hidden(const wf_model *model, wf_tape *tape, const struct wf_pairs *p, const struct wf_seq2seq_weights *weights)
{
    const struct wf_family *family = model->family;
    const struct wf_seq2seq_weights w = weights ? *weights : (struct wf_seq2seq_weights){0};
    bool alone = w.encoder || w.decoder || w.cross;
    struct wf_decoding own = {.weights = w.decoder, .cross_weights = w.cross}, *d = &own;
    wf_tensor *refused = refuse(model, tape);
    if (refused)
        return refused;
    if (p->count < 0 || p->count >= INT32_MAX)
        return wf_tape_fail(tape, WF_ERR_ARGUMENT, "%s: count = %lld sentences is out of range", model->config.model, (long long)p->count);
    if (alone && p->count != 1)
        return wf_tape_fail(tape, WF_ERR_ARGUMENT, "%s: attention weights require exactly one pair, not %lld", model->config.model,
                            (long long)p->count);
    const int count = (int)p->count;
    wf_tensor *source = packed_ids(model, tape, "source", p->source, (struct wf_packed){p->source_offsets, count}, alone, &d->source);
    wf_tensor *input = packed_ids(model, tape, "target", p->input, (struct wf_packed){p->target_offsets, count}, alone, &d->target);
    if (wf_is_poison(source) || wf_is_poison(input))
        return wf_is_poison(source) ? source : input;
    struct wf_blocks_pass pass;
    wf_blocks_begin(&pass, model, tape);
    pass.recompute &= !alone;
    if (pass.recompute) {
        own.source.offsets = wf_blocks_copy(tape, own.source.offsets, ((size_t)count + 1) * sizeof(int32_t));
        own.target.offsets = wf_blocks_copy(tape, own.target.offsets, ((size_t)count + 1) * sizeof(int32_t));
        d = wf_blocks_copy(tape, &own, sizeof own);
    }
    if (!d)
        return wf_blocks_end(&pass, tape, wf_tape_fail(tape, WF_ERR_MEMORY, "no memory for a call"));
    wf_tape_first_row(tape, (uint64_t)p->first_source);
    wf_loss_terms_of_source(tape, true);
    d->memory = family->encode(model->body, source, &d->source, w.encoder);
    wf_loss_terms_of_source(tape, false);
    wf_tape_first_row(tape, (uint64_t)p->first_target);
    return wf_blocks_end(&pass, tape, family->decode(model->body, input, d));
}

wf_tensor *wf_pairs_logits(const wf_model *model, wf_tape *tape, const struct wf_pairs *pairs, const struct wf_seq2seq_weights *weights)
{
    wf_tensor *refused = wf_tape_needs(tape, "model, pairs", model, pairs);
    if (refused)
        return refused;
    wf_tensor *x = hidden(model, tape, pairs, weights);
    if (weights) {
        wf_weights_end(x, weights->encoder, model->shape.encoder_layers);
        wf_weights_end(x, weights->decoder, model->shape.layers);
        wf_weights_end(x, weights->cross, model->shape.layers);
    }
    if (!wf_is_poison(x) && wf_ndim(x) == 3)
        x = wf_reshape(x, wf_dim(x, 1), wf_dim(x, 2)); /* [1,T,d] -> [T,d] */
    return wf_head_logits(model, x);
}

wf_tensor *wf_pairs_loss_with(const wf_model *model, wf_tape *tape, const struct wf_pairs *pairs,
                              const struct wf_cross_entropy_options *options)
{
    wf_tensor *refused = wf_tape_needs(tape, "model, pairs", model, pairs);
    if (refused)
        return refused;
    wf_tensor *x = hidden(model, tape, pairs, NULL); /* [N,d] */
    if (wf_is_poison(x))
        return x;
    return wf_head_loss(model, x, wf_ids_of(tape, pairs->target, WF_SHAPE(pairs->target_offsets[pairs->count])), options);
}

/* --- decoding ------------------------------------------------------------------------------------------------------ */

wf_tensor *wf_model_encode(const wf_model *model, wf_tape *tape, const int32_t *ids, struct wf_packed source)
{
    wf_tensor *refused = wf_tape_needs(tape, "model, ids, source.offsets", model, ids, source.offsets);
    if (refused)
        return refused;
    refused = refuse(model, tape);
    if (refused)
        return refused;
    wf_tensor *from = packed_ids(model, tape, "source", ids, source, false, &source);
    return wf_is_poison(from) ? from : wf_model_intact(model, model->family->encode(model->body, from, &source, NULL));
}

void wf_model_memory(const wf_model *model, wf_tensor *memory, wf_tensor *kv[])
{
    if (wf_tape_needs(wf_tape_of(memory), "model, memory, kv", model, memory, kv))
        return;
    for (int64_t i = 0; i < model->shape.layers; i++)
        kv[i] = model->family->memory(model->body, i, memory);
}

wf_tensor *wf_model_decode(const wf_model *model, wf_tensor *ids, struct wf_cache *cache, wf_tensor *const kv[],
                           struct wf_packed translations, struct wf_packed source)
{
    wf_tensor *refused = wf_tape_needs(wf_tape_of(ids), "model, ids, cache, kv, translations.offsets, source.offsets", model, ids, cache,
                                       kv, translations.offsets, source.offsets);
    if (refused)
        return refused;
    wf_tape *tape = wf_tape_of(ids);
    if (wf_is_poison(ids) || !tape)
        return ids;
    const char *name = model->config.model;
    refused = refuse(model, tape);
    if (refused)
        return refused;
    int64_t rows = wf_dim(ids, 0), length = wf_dim(ids, 1);
    if (wf_ndim(ids) != 2 || rows < 1 || length < 1)
        return wf_tape_fail(tape, WF_ERR_SHAPE, "%s: the ids '%s' must be [R,T] with T of at least 1", name, wf_name_of(ids));
    if ((!model->family->cache && cache->layers != model->shape.layers) || cache->rows != rows)
        return wf_tape_fail(tape, WF_ERR_SHAPE,
                            "%s: the cache has %d layers and %lld rows, but the model has %lld layers and the ids have %lld rows", name,
                            cache->layers, (long long)cache->rows, (long long)model->shape.layers, (long long)rows);
    if (rows * length > INT32_MAX)
        return wf_tape_fail(tape, WF_ERR_ARGUMENT, "%s: out of range: %lld rows of %lld ids", name, (long long)rows, (long long)length);
    wf_error error = {0};
    if (wf_packed_check(translations, rows, "translations", &error) != WF_OK)
        return wf_tape_fail(tape, error.code, "%s: %s", name, error.message);
    int32_t *offsets = wf_tape_memory(tape, (size_t)(translations.count + 1) * sizeof *offsets);
    if (!offsets)
        return wf_tape_fail(tape, WF_ERR_MEMORY, "%s: no memory for offsets", name);
    for (int i = 0; i <= translations.count; i++)
        offsets[i] = translations.offsets[i] * (int32_t)length;
    struct wf_decoding d = {.target = {offsets, translations.count}, .source = source, .kv = kv, .cache = cache};
    const int32_t before = cache->length[0];
    wf_tensor *x = wf_cache_untouched(model, model->family->decode(model->body, ids, &d), "decode", cache, before); /* [R T,d] */
    if (wf_is_poison(x))
        return x;
    wf_cache_advance(cache, length);
    if (length > 1)
        x = wf_reshape(wf_slice(wf_reshape(x, rows, length, -1), 1, -1, 1), rows, -1); /* [R,d] */
    return wf_head_logits(model, x);
}
