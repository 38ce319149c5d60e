/* SPDX-License-Identifier: MIT */
/* Continues a prompt token by token. */
#include <string.h>

#include <weft/generate.h>
#include <weft/internal/needs.h>
#include <weft/memory.h>
#include <weft/runtime.h>
#include <weft/search.h>

#include <weft/internal/family.h>
#include <weft/internal/minmax.h>

#include "search.h"

/* The ids that the model sees, at most `context` of them, and the memory that is needed to choose the next one. */
struct window {
    struct wf_cache cache;
    int32_t *ids;    /* [context] */
    int32_t *order;  /* scratch memory of wf_sample */
    int64_t count;   /* number of ids */
    int64_t context; /* capacity of ids */
    int64_t cached;  /* number of ids that are in the cache: the first `cached` ones */
};

/* Appends an id. If the window is full, first drops its oldest quarter. The other ids then have new positions, so the cache is emptied. */
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

wf_status take_logits(const char *from, const wf_tape *tape, wf_tensor *logits, int64_t rows, int64_t types, const struct wf_cache *cache,
                      int64_t held, wf_array *out, wf_error *error)
{
    const wf_shape wanted = {2, {rows, types}};
    char text[96];
    if (!logits)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s returned NULL, not logits", from);
    if (wf_tape_of(logits) != tape)
        return wf_error_set(error, WF_ERR_STATE, "%s returned logits that are not on the tape of its ids: use wf_tape_of(ids)", from);
    wf_shape shape = wf_shape_of(logits);
    if (!wf_is_poison(logits) && wf_dtype_of(logits) != WF_REAL)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s returned ids or a mask, not logits", from);
    if (!wf_is_poison(logits) && !wf_shape_equal(&shape, &wanted))
        return wf_error_set(error, WF_ERR_SHAPE, "%s returned logits %s, not [%lld,%lld]", from, wf_shape_text(&shape, text, sizeof text),
                            (long long)rows, (long long)types);
    if (wf_view(wf_contiguous(logits), out) != WF_OK)
        return wf_tape_status(tape, error);
    for (int64_t i = 0; cache && i < rows; i++)
        if (cache->length[i] != held)
            return wf_error_set(error, WF_ERR_STATE, "%s did not advance the cache: it holds %d ids, not %lld: call wf_cache_advance", from,
                                cache->length[i], (long long)held);
    return WF_OK;
}

/* Computes the logits of the window's next token and chooses its id. */
static wf_status next_id(const struct wf_next *model, wf_tape *tape, struct window *w, struct wf_cache *cache,
                         const struct wf_generate_options *o, int64_t position, int32_t *id, wf_error *error)
{
    wf_array logits;
    wf_tensor *ids = wf_ids(tape, w->ids + w->cached, 1, w->count - w->cached);
    wf_status status =
        take_logits("next", tape, model->next(model->ctx, ids, cache), 1, model->vocab_size, cache, w->count, &logits, error);
    const int64_t types = o->types > 0 ? WF_MIN(o->types, model->vocab_size) : model->vocab_size;
    return status == WF_OK ? wf_sample(&o->sampler, logits.data, types, (uint64_t)position, w->order, id, error) : status;
}

static bool is_end(const struct wf_generate_options *o, int32_t id)
{
    bool found = false;
    for (int i = 0; o->end && i < WF_MAX(o->ends, 1); i++)
        found |= o->end[i] == id;
    return found;
}

/* Writes the result if the caller wants it. */
static void finish(const struct wf_generate_options *o, int64_t tokens, enum wf_generate_end end)
{
    if (o->result)
        *o->result = (struct wf_generate_result){tokens, end};
}

/* Generates ids after the window. `place` is the position of the first new id, counted from the start of the prompt. */
static wf_status run(const struct wf_next *model, wf_tape *tape, struct window *w, int64_t place, const struct wf_generate_options *o,
                     int32_t *out, int64_t *count, wf_error *error)
{
    struct wf_cache *cache = w->cache.layer ? &w->cache : NULL;
    wf_tape_reset(tape, WF_INFER, .precision = model->precision);
    wf_tape_mark mark = wf_tape_here(tape);
    enum wf_generate_end end = WF_GENERATE_MAX_TOKENS;
    while (*count < o->max_tokens) {
        int32_t id;
        wf_status status = next_id(model, tape, w, cache, o, place + *count, &id, error);
        wf_tape_rewind(tape, mark, NULL);
        if (cache)
            w->cached = w->count;
        if (status != WF_OK)
            return status;
        if (is_end(o, id)) {
            end = WF_GENERATE_END_TOKEN;
            break;
        }
        if (out)
            out[*count] = id;
        ++*count;
        if (o->token && !o->token(o->ctx, id)) {
            end = WF_GENERATE_STOPPED;
            break;
        }
        push(w, cache != NULL, id);
    }
    finish(o, *count, end);
    return WF_OK;
}

/* Checks a prompt and the fields of struct wf_next. */
wf_status check_prompt(const struct wf_next *model, const int32_t *prompt, int64_t length, int64_t max_tokens, wf_error *error)
{
    if (!model->next)
        return wf_error_set(error, WF_ERR_ARGUMENT, "there is no model to generate with: set struct wf_next's .next");
    if (model->vocab_size < 1 || model->vocab_size > INT32_MAX || model->context < 1 || model->context > INT32_MAX)
        return wf_error_set(error, WF_ERR_ARGUMENT, "vocab_size = %lld or context = %lld is out of range: 1 to 2147483647",
                            (long long)model->vocab_size, (long long)model->context);
    if (!prompt || length < 1)
        return wf_error_set(error, WF_ERR_ARGUMENT, "the prompt is empty: give at least one token to continue");
    if (max_tokens < 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "max_tokens: %lld is out of range: at least 0", (long long)max_tokens);
    for (int64_t i = 0; i < length; i++) /* check all ids, because the embedding checks only those within the context */
        if (prompt[i] < 0 || prompt[i] >= model->vocab_size)
            return wf_error_set(error, WF_ERR_ARGUMENT, "id %d at %lld of the prompt is not in the vocabulary of %lld", prompt[i],
                                (long long)i, (long long)model->vocab_size);
    return WF_OK;
}

wf_status wf_generate_next(const struct wf_next *model, wf_tape *tape, const int32_t *prompt, int64_t length,
                           const struct wf_generate_options *options, int32_t *out, int64_t *count, wf_error *error)
{
    if (wf_needs(error, "model, tape, prompt, options, count", model, tape, prompt, options, count))
        return WF_ERR_ARGUMENT;
    *count = 0;
    if (check_prompt(model, prompt, length, options->max_tokens, error) != WF_OK)
        return WF_ERR_ARGUMENT;
    int64_t first = length > model->context ? length - model->context : 0;
    struct window w = {.ids = wf_alloc((size_t)model->context * sizeof *w.ids),
                       .order = wf_alloc((size_t)model->vocab_size * sizeof *w.order),
                       .count = length - first,
                       .context = model->context};
    wf_status status = WF_OK;
    if (!w.ids || !w.order)
        status = wf_error_set(error, WF_ERR_MEMORY, "no memory to generate with");
    else if (model->cache && !options->no_cache) /* with room for the whole text, but not for more than a context */
        status =
            model->cache(model->ctx, &w.cache, 1, WF_MIN(model->context, w.count + WF_MIN(options->max_tokens, model->context)), error);
    if (status == WF_OK) {
        memcpy(w.ids, prompt + first, (size_t)w.count * sizeof *w.ids);
        status = run(model, tape, &w, length, options, out, count, error);
    }
    /* The tape's records point into the cache, which is freed next. */
    wf_tape_reset(tape, WF_INFER);
    wf_cache_free(&w.cache);
    wf_free(w.ids);
    wf_free(w.order);
    return status;
}

/* --- language models ----------------------------------------------------------------------------------------------- */

static wf_tensor *model_next(void *ctx, wf_tensor *ids, struct wf_cache *cache)
{
    return wf_model_next(ctx, ids, cache);
}

static wf_status model_cache(void *ctx, struct wf_cache *cache, int64_t rows, int64_t capacity, wf_error *error)
{
    return wf_model_cache_with(ctx, cache, rows, &(struct wf_model_cache_options){.capacity = capacity}, error);
}

struct wf_next wf_next_of(const wf_model *model)
{
    const struct wf_model_shape *c = wf_model_shape_of(model);
    return (struct wf_next){.next = model_next,
                            .precision = wf_model_precision(model),
                            .cache = model->family->no_cache || model->family->kind != WF_MODEL_LANGUAGE ? NULL : model_cache,
                            .ctx = (void *)model,
                            .vocab_size = c->vocab_size,
                            .context = c->context};
}

wf_status wf_generate_with(const wf_model *model, wf_tape *tape, const int32_t *prompt, int64_t length,
                           const struct wf_generate_options *options, int32_t *out, int64_t *count, wf_error *error)
{
    if (wf_needs(error, "model, tape, prompt, options, count", model, tape, prompt, options, count))
        return WF_ERR_ARGUMENT;
    *count = 0;
    if (model->family->kind != WF_MODEL_LANGUAGE)
        return wf_error_set(error, WF_ERR_STATE, "%s is not a language model: it cannot continue a text", model->config.model);
    const struct wf_next next = wf_next_of(model);
    return wf_generate_next(&next, tape, prompt, length, options, out, count, error);
}

/* --- text ---------------------------------------------------------------------------------------------------------- */

/* Decodes ids and gives the text to the caller. */
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

/* The id that replaces an empty prompt: a line end if the tokenizer can encode it, else the end-of-text token, else BOS, else 0. */
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
    return WF_MAX(0, id);
}

static wf_status write_text(struct writer *w, const wf_model *model, const wf_tokenizer *tokenizer, wf_tape *tape, const int32_t *prompt,
                            int64_t length, const struct wf_generate_options *options, wf_error *error)
{
    struct wf_generate_options o = *options;
    int32_t start = first_id(tokenizer), end = wf_tokenizer_special(tokenizer, WF_SPECIAL_EOS);
    const char *rest;
    int64_t count;
    finish(options, 0, WF_GENERATE_STOPPED);
    for (int64_t i = 0; i < length; i++)
        if (!write_token(w, prompt[i]))
            return w->status;
    o.token = write_token;
    o.ctx = w;
    o.types = wf_tokenizer_vocab_size(tokenizer);
    if (!o.end && end >= 0) {
        o.end = &end;
        o.ends = 1;
    }
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
    if (wf_needs(error, "model, tokenizer, tape, options, text", model, tokenizer, tape, options, text))
        return WF_ERR_ARGUMENT;
    if (!wf_config_fits(wf_model_config(model), wf_tokenizer_vocab_size(tokenizer)))
        return wf_error_set(error, WF_ERR_ARGUMENT, "vocabulary size mismatch: tokenizer %lld, model %lld",
                            (long long)wf_tokenizer_vocab_size(tokenizer), (long long)wf_model_shape_of(model)->vocab_size);
    struct writer w = {.decoder = wf_decoder_new(tokenizer, NULL, error), .text = text, .ctx = ctx, .error = error};
    if (!w.decoder)
        return WF_ERR_MEMORY;
    wf_status status = write_text(&w, model, tokenizer, tape, prompt, length, options, error);
    wf_decoder_free(w.decoder);
    return status;
}
