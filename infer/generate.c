/* SPDX-License-Identifier: MIT */
/* Continues a prompt token by token, and the checks that generation and beam search share. */
#include <string.h>

#include <weft/internal/needs.h>

#include <weft/internal/family.h>

#include "generator.h"
#include "search.h"

wf_status take_logits(const char *from, const wf_tape *tape, wf_tensor *logits, int64_t rows, int64_t types, wf_array *out, wf_error *error)
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
    return WF_OK;
}

wf_status check_advanced(const char *from, const struct wf_cache *cache, int64_t row, int64_t held, wf_error *error)
{
    if (cache->length[row] == held)
        return WF_OK;
    return wf_error_set(error, WF_ERR_STATE, "%s left %d ids in the cache, not %lld: call wf_cache_advance once, after all layers", from,
                        cache->length[row], (long long)held);
}

wf_status check_model(const struct wf_next *model, wf_error *error)
{
    if (!model->next)
        return wf_error_set(error, WF_ERR_ARGUMENT, "there is no model to generate with: set struct wf_next's .next");
    if (model->vocab_size < 1 || model->vocab_size > INT32_MAX || model->context < 1 || model->context > INT32_MAX)
        return wf_error_set(error, WF_ERR_ARGUMENT, "vocab_size = %lld or context = %lld is out of range: 1 to 2147483647",
                            (long long)model->vocab_size, (long long)model->context);
    return WF_OK;
}

wf_status check_prompt(const struct wf_next *model, const int32_t *prompt, int64_t length, int64_t max_tokens, wf_error *error)
{
    if (check_model(model, error) != WF_OK)
        return WF_ERR_ARGUMENT;
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

/* Passes new ids on to the caller of wf_generate_next. */
struct receiver {
    const struct wf_generate_options *options;
    int32_t *out;
    int64_t *count;
};

static bool receive(void *ctx, int32_t id)
{
    const struct receiver *r = ctx;
    if (r->out)
        r->out[*r->count] = id;
    ++*r->count;
    return !r->options->token || r->options->token(r->options->ctx, id);
}

wf_status wf_generate_next(const struct wf_next *model, wf_tape *tape, const int32_t *prompt, int64_t length,
                           const struct wf_generate_options *options, int32_t *out, int64_t *count, wf_error *error)
{
    if (wf_needs(error, "model, tape, prompt, options, count", model, tape, prompt, options, count))
        return WF_ERR_ARGUMENT;
    *count = 0;
    if (check_prompt(model, prompt, length, options->max_tokens, error) != WF_OK)
        return WF_ERR_ARGUMENT;
    struct receiver r = {options, out, count};
    struct wf_generate_options o = *options;
    o.token = receive;
    o.ctx = &r;
    o.done = NULL;
    wf_generator *g;
    wf_status status = generator_alone(model, tape, options, &g, error);
    if (status == WF_OK)
        status = wf_generator_add(g, prompt, length, &o, error);
    return generator_finish(g, options, status, error);
}

/* --- language models ----------------------------------------------------------------------------------------------- */

static wf_tensor *model_next(void *ctx, wf_tensor *ids, struct wf_cache *cache)
{
    return wf_model_next(ctx, ids, cache);
}

static wf_tensor *model_all(void *ctx, wf_tensor *ids, struct wf_cache *cache)
{
    return wf_model_logits(ctx, ids, cache);
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
                            .all = model_all,
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
