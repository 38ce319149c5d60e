/* SPDX-License-Identifier: MIT */
/* Continuing a prompt, token by token. */
#include <string.h>

#include <weft/generate.h>
#include <weft/memory.h>

#include <weft/internal/family.h>

struct window {
    struct wf_cache cache;
    int32_t *ids, *order; /* order: scratch memory of wf_sample */
    wf_real *logits;
    int64_t count, context;
    int64_t cached; /* the first so many are in the cache */
};

/* Takes one more id; of a full window the oldest quarter goes first. What is left has moved to other positions, so nothing
 * that is cached of it holds any more. */
static void push(struct window *w, bool cache, int32_t id)
{
    if (w->count == w->context) {
        int64_t drop = w->context >= 4 ? w->context / 4 : 1;
        w->count -= drop;
        memmove(w->ids, w->ids + drop, (size_t)w->count * sizeof *w->ids);
        w->cached = 0;
        if (cache)
            wf_cache_rewind(&w->cache, 0, 0);
    }
    w->ids[w->count++] = id;
}

static wf_status run(const wf_model *model, wf_tape *tape, struct window *w, int64_t place, const struct wf_generate_options *o,
                     int32_t *out, int64_t *count, wf_error *error)
{
    int64_t entries = wf_model_shape_of(model)->vocab_size;
    wf_tape_reset(tape, WF_INFER);
    wf_tape_mark mark = wf_tape_here(tape);
    while (*count < o->max_tokens) {
        wf_tensor *ids = wf_ids(tape, w->ids + w->cached, 1, w->count - w->cached);
        if (wf_read(wf_model_next(model, ids, o->no_cache ? NULL : &w->cache), w->logits, entries) != WF_OK)
            return wf_tape_status(tape, error);
        wf_tape_rewind(tape, mark, NULL);
        if (!o->no_cache)
            w->cached = w->count;
        int32_t id;
        wf_status status = wf_sample(&o->sampler, w->logits, entries, (uint64_t)(place + *count), w->order, &id, error);
        if (status != WF_OK)
            return status;
        if (o->end && id == *o->end)
            break;
        if (out)
            out[*count] = id;
        ++*count;
        if (o->token && !o->token(o->ctx, id))
            break;
        push(w, !o->no_cache, id);
    }
    return WF_OK;
}

wf_status wf_generate_with(const wf_model *model, wf_tape *tape, const int32_t *prompt, int64_t length,
                           const struct wf_generate_options *options, int32_t *out, int64_t *count, wf_error *error)
{
    const struct wf_model_shape *c = wf_model_shape_of(model);
    *count = 0;
    if (model->family->kind != WF_MODEL_LANGUAGE)
        return wf_error_set(error, WF_ERR_STATE, "%s is not a language model: it cannot continue a text", model->config.model);
    if (length < 1)
        return wf_error_set(error, WF_ERR_ARGUMENT, "the prompt is empty: give at least one token to continue");
    if (options->max_tokens < 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "max_tokens: %lld is out of range: at least 0", (long long)options->max_tokens);
    for (int64_t i = 0; i < length; i++) /* the embedding would see only those that are in the context */
        if (prompt[i] < 0 || prompt[i] >= c->vocab_size)
            return wf_error_set(error, WF_ERR_ARGUMENT, "id %d at %lld of the prompt is not in the vocabulary of %lld", prompt[i],
                                (long long)i, (long long)c->vocab_size);
    struct wf_generate_options o = *options;
    o.no_cache = o.no_cache || model->family->no_cache;
    int64_t first = length > c->context ? length - c->context : 0;
    struct window w = {.ids = wf_alloc((size_t)c->context * sizeof *w.ids),
                       .order = wf_alloc((size_t)c->vocab_size * sizeof *w.order),
                       .logits = wf_alloc((size_t)c->vocab_size * sizeof *w.logits),
                       .count = length - first,
                       .context = c->context};
    wf_status status = WF_OK;
    if (!w.ids || !w.order || !w.logits)
        status = wf_error_set(error, WF_ERR_MEMORY, "no memory to generate with");
    else if (!o.no_cache)
        status = wf_model_cache(model, &w.cache, 1, error);
    if (status == WF_OK) {
        memcpy(w.ids, prompt + first, (size_t)w.count * sizeof *w.ids);
        status = run(model, tape, &w, length, &o, out, count, error);
    }
    /* The record points into the cache, which goes now. */
    wf_tape_reset(tape, WF_INFER);
    wf_cache_free(&w.cache);
    wf_free(w.ids);
    wf_free(w.order);
    wf_free(w.logits);
    return status;
}

struct writer {
    wf_decoder *decoder;
    bool (*text)(void *ctx, const char *text, int64_t length);
    void *ctx;
    bool stopped;
    wf_status status;
    wf_error *error;
};

static bool write_token(void *ctx, int32_t id)
{
    struct writer *w = ctx;
    const char *text;
    int64_t length;
    w->status = wf_decoder_push(w->decoder, id, &text, &length, w->error);
    if (w->status == WF_OK)
        w->stopped = !w->text(w->ctx, text, length);
    return w->status == WF_OK && !w->stopped;
}

/* What stands before a text: a line end, if the tokenizer has one; else the end of the text before. */
static int32_t first_id(const wf_tokenizer *tokenizer)
{
    static const enum wf_special specials[] = {WF_SPECIAL_EOS, WF_SPECIAL_BOS};
    wf_error ignored = {0};
    struct wf_tokens ids = {0};
    int64_t unknown = 0;
    const struct wf_encode_options o = {.whole = true, .unknown = &unknown};
    bool known = wf_tokenizer_encode_with(tokenizer, "\n", 1, &o, &ids, &ignored) == WF_OK && ids.count > 0 && unknown == 0;
    int32_t id = known ? ids.id[ids.count - 1] : -1;
    wf_tokens_free(&ids);
    for (int i = 0; id < 0 && i < 2; i++)
        id = wf_tokenizer_special(tokenizer, specials[i]);
    return id < 0 ? 0 : id;
}

static wf_status write_text(struct writer *w, const wf_model *model, const wf_tokenizer *tokenizer, wf_tape *tape, const int32_t *prompt,
                            int64_t length, const struct wf_generate_options *options, wf_error *error)
{
    struct wf_generate_options o = *options;
    int32_t start = first_id(tokenizer), end = wf_tokenizer_special(tokenizer, WF_SPECIAL_EOS);
    const char *rest;
    int64_t count;
    for (int64_t i = 0; i < length; i++)
        if (!write_token(w, prompt[i]))
            return w->status;
    o.token = write_token;
    o.ctx = w;
    o.end = end >= 0 ? &end : NULL;
    wf_status status = wf_generate_with(model, tape, length > 0 ? prompt : &start, length > 0 ? length : 1, &o, NULL, &count, error);
    if (status == WF_OK)
        status = w->status;
    if (status == WF_OK && !w->stopped && (status = wf_decoder_finish(w->decoder, &rest, &count, error)) == WF_OK)
        w->text(w->ctx, rest, count);
    return status;
}

wf_status wf_generate_text(const wf_model *model, const wf_tokenizer *tokenizer, wf_tape *tape, const int32_t *prompt, int64_t length,
                           const struct wf_generate_options *options, bool (*text)(void *ctx, const char *text, int64_t length), void *ctx,
                           wf_error *error)
{
    if (wf_tokenizer_vocab_size(tokenizer) != wf_model_shape_of(model)->vocab_size)
        return wf_error_set(error, WF_ERR_ARGUMENT, "vocabulary size mismatch: tokenizer %lld, model %lld",
                            (long long)wf_tokenizer_vocab_size(tokenizer), (long long)wf_model_shape_of(model)->vocab_size);
    struct writer w = {.decoder = wf_decoder_new(tokenizer, NULL, error), .text = text, .ctx = ctx, .error = error};
    if (!w.decoder)
        return WF_ERR_MEMORY;
    wf_status status = write_text(&w, model, tokenizer, tape, prompt, length, options, error);
    wf_decoder_free(w.decoder);
    return status;
}
