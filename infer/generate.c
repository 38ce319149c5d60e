/* SPDX-License-Identifier: MIT */
/* Continuing a prompt, token by token. */
#include <string.h>

#include <weft/generate.h>
#include <weft/memory.h>

#include <weft/internal/families.h>

struct window {
    int32_t *ids;
    int64_t count, context;
    int64_t cached; /* the first so many are in the cache */
};

/* Takes one more id; of a full window the oldest quarter goes first. What is left has moved to other positions, so nothing
 * that is cached of it holds any more. */
static void window_push(struct window *w, struct wf_cache *cache, int32_t id)
{
    if (w->count == w->context) {
        int64_t drop = w->context >= 4 ? w->context / 4 : 1;
        w->count -= drop;
        memmove(w->ids, w->ids + drop, (size_t)w->count * sizeof *w->ids);
        w->cached = 0;
        if (cache)
            wf_cache_rewind(cache, 0, 0);
    }
    w->ids[w->count++] = id;
}

struct scratch {
    struct wf_cache cache;
    int32_t *ids, *order;
    wf_real *logits;
};

static void scratch_free(struct scratch *s)
{
    wf_cache_free(&s->cache);
    wf_free(s->ids);
    wf_free(s->order);
    wf_free(s->logits);
}

static wf_status scratch_make(struct scratch *s, const wf_model *model, bool cache, wf_error *error)
{
    const struct wf_config *c = wf_model_config(model);
    *s = (struct scratch){.ids = wf_alloc((size_t)c->context * sizeof *s->ids),
                          .order = wf_alloc((size_t)c->vocab_size * sizeof *s->order),
                          .logits = wf_alloc((size_t)c->vocab_size * sizeof *s->logits)};
    wf_status status = WF_OK;
    if (!s->ids || !s->order || !s->logits)
        status = wf_error_set(error, WF_ERR_MEMORY, "no memory to generate with");
    else if (cache)
        status = wf_model_cache(model, &s->cache, 1, error);
    if (status != WF_OK)
        scratch_free(s);
    return status;
}

static wf_status run(const wf_model *model, wf_tape *tape, struct scratch *s, struct window *w, int64_t place,
                     const struct wf_generate_options *o, int32_t *out, int64_t *count, wf_error *error)
{
    struct wf_cache *cache = o->no_cache ? NULL : &s->cache;
    int64_t types = wf_model_config(model)->vocab_size;
    wf_tape_mark mark = wf_tape_here(tape);
    while (*count < o->max_tokens) {
        wf_tensor *ids = wf_ids(tape, w->ids + w->cached, 1, w->count - w->cached);
        if (wf_read(wf_model_next(model, ids, cache), s->logits, types) != WF_OK)
            return wf_tape_status(tape, error);
        wf_tape_rewind(tape, mark, NULL);
        if (cache)
            w->cached = w->count;
        int32_t id;
        wf_status status = wf_sample(&o->sampler, s->logits, types, (uint64_t)(place + *count), s->order, &id, error);
        if (status != WF_OK)
            return status;
        if (out)
            out[*count] = id;
        ++*count;
        if (o->token && !o->token(o->ctx, id))
            break;
        window_push(w, cache, id);
    }
    return WF_OK;
}

wf_status wf_generate_with(const wf_model *model, wf_tape *tape, const int32_t *prompt, int64_t length,
                           const struct wf_generate_options *options, int32_t *out, int64_t *count, wf_error *error)
{
    struct scratch scratch;
    const struct wf_config *c = wf_model_config(model);
    *count = 0;
    if (model->family->kind != WF_MODEL_LANGUAGE)
        return wf_error_set(error, WF_ERR_STATE, "%s is no language model: it continues no text", c->model);
    if (length < 1)
        return wf_error_set(error, WF_ERR_ARGUMENT, "the prompt is empty: give at least one token to continue");
    if (options->max_tokens < 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "max_tokens: %lld is out of range: at least 0", (long long)options->max_tokens);
    for (int64_t i = 0; i < length; i++) /* the embedding would see only those that are in the context */
        if (prompt[i] < 0 || prompt[i] >= c->vocab_size)
            return wf_error_set(error, WF_ERR_ARGUMENT, "id %d at %lld of the prompt is not in the vocabulary of %lld", prompt[i],
                                (long long)i, (long long)c->vocab_size);
    wf_status status = scratch_make(&scratch, model, !options->no_cache, error);
    if (status != WF_OK)
        return status;
    wf_tape_reset(tape, WF_INFER);
    int64_t first = length > c->context ? length - c->context : 0;
    struct window window = {.ids = scratch.ids, .count = length - first, .context = c->context};
    memcpy(window.ids, prompt + first, (size_t)window.count * sizeof *window.ids);
    status = run(model, tape, &scratch, &window, length, options, out, count, error);
    /* The record points into the cache, which goes now. */
    wf_tape_reset(tape, WF_INFER);
    scratch_free(&scratch);
    return status;
}
