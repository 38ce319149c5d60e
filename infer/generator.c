/* SPDX-License-Identifier: MIT */
/* Makes a generator, and adds texts to it: each gets a row of the cache. */
#include <string.h>

#include <weft/internal/grow.h>
#include <weft/internal/minmax.h>
#include <weft/internal/needs.h>
#include <weft/memory.h>

#include "generator.h"
#include "search.h"

enum {
    MOST_ROWS = 4096,
    MOST_GUESSES = 64,
    GUESSES = 8,
    CHUNK = 512,
    ROOM = 1 << 16 /* ids for which a text has room from its beginning */
};

/* --- making a generator -------------------------------------------------------------------------------------------- */

static wf_status check(const struct wf_next *model, const struct wf_generator_options *o, wf_error *error)
{
    const struct wf_next *d = o->draft;
    if (o->rows < 0 || o->rows > MOST_ROWS)
        return wf_error_set(error, WF_ERR_ARGUMENT, "rows: %lld is out of range: 0 to %d", (long long)o->rows, MOST_ROWS);
    if (o->chunk < 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "chunk: %lld is out of range: at least 0", (long long)o->chunk);
    if (o->guesses < 0 || o->guesses > MOST_GUESSES)
        return wf_error_set(error, WF_ERR_ARGUMENT, "guesses: %lld is out of range: 0 to %d", (long long)o->guesses, MOST_GUESSES);
    if (check_model(model, error) != WF_OK || (d && check_model(d, error) != WF_OK))
        return WF_ERR_ARGUMENT;
    if (d && (o->rows > 1 || o->no_cache))
        return wf_error_set(error, WF_ERR_ARGUMENT, "a draft needs a cache, and one text at a time: set rows to 1, and not no_cache");
    if (d && (!model->all || !model->cache || !d->cache))
        return wf_error_set(error, WF_ERR_ARGUMENT, "a draft needs .cache of both models, and .all of the one that checks it");
    return WF_OK;
}

static wf_status make(wf_generator *g, wf_error *error)
{
    const size_t rows = (size_t)g->rows, types = (size_t)g->main.model.vocab_size;
    g->text = wf_alloc_zero(rows, sizeof *g->text);
    g->from = wf_alloc_zero(rows, sizeof *g->from);
    g->last = wf_alloc_zero(rows, sizeof *g->last);
    g->order = wf_alloc(types * sizeof *g->order);
    g->logits = wf_alloc(types * sizeof *g->logits);
    if (!g->text || !g->from || !g->last || !g->order || !g->logits)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory to generate with");
    wf_tape_reset(g->tape, WF_INFER, .precision = g->main.model.precision);
    g->mark = wf_tape_here(g->tape);
    return WF_OK;
}

wf_generator *wf_generator_new(const struct wf_next *model, wf_tape *tape, const struct wf_generator_options *options, wf_error *error)
{
    if (wf_needs(error, "model, tape", model, tape))
        return NULL;
    options = options ? options : &(const struct wf_generator_options){0};
    if (check(model, options, error) != WF_OK)
        return NULL;
    wf_generator *g = wf_alloc_zero(1, sizeof *g);
    if (!g) {
        wf_error_set(error, WF_ERR_MEMORY, "no memory to generate with");
        return NULL;
    }
    g->main.model = *model;
    if (options->draft)
        g->draft.model = *options->draft;
    g->tape = tape;
    g->rows = options->rows > 0 ? options->rows : 1;
    g->chunk = options->chunk > 0 ? options->chunk : CHUNK;
    g->most_guesses = options->guesses > 0 ? options->guesses : GUESSES;
    g->guess = WF_MIN(4, g->most_guesses);
    g->no_cache = options->no_cache || !model->cache;
    if (make(g, error) == WF_OK)
        return g;
    wf_generator_free(g);
    return NULL;
}

static void side_free(struct side *side)
{
    wf_cache_free(&side->view);
    if (side->cache)
        wf_cache_free(side->cache);
    wf_free(side->cache);
}

void wf_generator_free(wf_generator *g)
{
    if (!g)
        return;
    wf_tape_reset(g->tape, WF_INFER); /* its records point into the caches */
    side_free(&g->main);
    side_free(&g->draft);
    for (int64_t i = 0; g->text && i < g->rows; i++) {
        if (g->text[i].active && g->text[i].stream)
            stream_free(g->text[i].stream);
        wf_free(g->text[i].ids);
    }
    wf_free(g->text);
    wf_free(g->from);
    wf_free(g->last);
    wf_free(g->order);
    wf_free(g->logits);
    wf_free(g);
}

int64_t wf_generator_active(const wf_generator *generator)
{
    return generator ? generator->active : 0;
}

struct wf_generator_counts wf_generator_counts(const wf_generator *generator)
{
    return generator ? generator->counts : (struct wf_generator_counts){0};
}

/* --- texts come in ------------------------------------------------------------------------------------------------- */

/* Makes a cache of at least `need` ids a row, or replaces the cache by a larger one with the same contents. */
static wf_status reserve(struct side *side, int64_t rows, int64_t need, wf_error *error)
{
    const struct wf_next *m = &side->model;
    need = WF_MIN(need, m->context);
    if (side->cache && side->cache->capacity >= need)
        return WF_OK;
    const int64_t had = side->cache ? side->cache->capacity : 0;
    struct wf_cache *cache = wf_alloc_zero(1, sizeof *cache);
    if (!cache)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for a cache");
    const int64_t more = WF_MIN(m->context, had + had / 2);
    wf_error full = {0};
    wf_status status = m->cache(m->ctx, cache, rows, WF_MAX(need, more), &full);
    if (status == WF_ERR_MEMORY && more > need) /* then without room for later texts */
        status = m->cache(m->ctx, cache, rows, need, error);
    else if (status != WF_OK)
        wf_error_set(error, full.code, "%s", full.message);
    if (status == WF_OK && side->cache)
        status = wf_cache_copy(cache, side->cache, error);
    if (status != WF_OK) {
        wf_cache_free(cache);
        wf_free(cache);
        return status;
    }
    side_free(side);
    side->view = (struct wf_cache){0};
    side->cache = cache;
    return WF_OK;
}

int64_t generator_known(const wf_generator *g, int64_t row, const int32_t *prompt, int64_t length, int64_t first)
{
    const struct text *t = &g->text[row];
    const int64_t most = WF_MIN(t->cached, length - first - 1);
    int64_t same = 0;
    if (!g->main.cache || t->first != first)
        return 0;
    while (same < most && t->ids[first + same] == prompt[first + same])
        same++;
    return g->main.cache->states && same < t->cached ? 0 : same; /* a state cannot go back */
}

/* The free row that has most of the prompt's ids; -1: no row is free. */
static int64_t find_row(const wf_generator *g, const int32_t *prompt, int64_t length, int64_t first, int64_t *same)
{
    int64_t best = -1;
    for (int64_t i = 0; i < g->rows; i++) {
        const int64_t have = g->text[i].active ? -1 : generator_known(g, i, prompt, length, first);
        if (have >= 0 && (best < 0 || have > *same)) {
            best = i;
            *same = have;
        }
    }
    return best;
}

void generator_truncate(wf_generator *g, int64_t row, int64_t cached)
{
    g->text[row].cached = WF_MIN(g->text[row].cached, cached);
    if (g->main.cache)
        wf_cache_rewind(g->main.cache, row, (int32_t)g->text[row].cached);
    if (g->draft.cache) {
        g->draft_cached = WF_MIN(g->draft_cached, cached);
        wf_cache_rewind(g->draft.cache, row, (int32_t)g->draft_cached);
    }
}

/* A draft may have more or fewer rows than the model, but it must know all ids of the prompt and all that may be chosen. */
static wf_status check_draft(const wf_generator *g, const int32_t *prompt, int64_t length, const struct wf_generate_options *o,
                             wf_error *error)
{
    const int64_t have = g->draft.model.vocab_size, want = generator_types(g, o);
    bool known = want <= have;
    for (int64_t i = 0; known && i < length; i++)
        known = prompt[i] < have;
    return known ? WF_OK
                 : wf_error_set(error, WF_ERR_ARGUMENT, "the draft has a vocabulary of %lld, the model one of %lld: they must be the same",
                                (long long)have, (long long)g->main.model.vocab_size);
}

wf_status generator_add(wf_generator *g, const int32_t *prompt, int64_t length, const struct wf_generate_options *options,
                        struct stream *stream, wf_error *error)
{
    if (check_prompt(&g->main.model, prompt, length, options->max_tokens, error) != WF_OK ||
        (g->draft.model.next && check_draft(g, prompt, length, options, error) != WF_OK))
        return WF_ERR_ARGUMENT;
    if (g->stepping)
        return wf_error_set(error, WF_ERR_STATE, "wf_generator_add was called from a callback of a step: add texts between the steps");
    const int64_t context = g->main.model.context, first = WF_MAX(0, length - context);
    const int64_t more = WF_MIN(options->max_tokens, context);
    int64_t same = 0, row = find_row(g, prompt, length, first, &same);
    if (row < 0)
        return wf_error_set(error, WF_ERR_STATE, "all %lld rows of the generator are taken: call wf_generator_step until a text is done",
                            (long long)g->rows);
    struct text *t = &g->text[row];
    wf_status status = g->no_cache ? WF_OK : reserve(&g->main, g->rows, length - first + more, error);
    if (status == WF_OK && g->draft.model.next)
        status = reserve(&g->draft, 1, length - first + more, error);
    if (status == WF_OK && g->draft.model.next && (g->main.cache->states || g->draft.cache->states))
        status =
            wf_error_set(error, WF_ERR_ARGUMENT, "a draft needs caches of keys and values: the state of a recurrent model cannot go back");
    if (status != WF_OK)
        return status;
    if (!wf_grow(&t->ids, &t->capacity, length + WF_MIN(options->max_tokens, WF_MAX(context, ROOM)), sizeof *t->ids))
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for a prompt of %lld ids", (long long)length);
    if (g->draft.cache && t->first != first)
        g->draft_cached = 0;
    generator_truncate(g, row, same);
    memcpy(t->ids, prompt, (size_t)length * sizeof *prompt);
    t->options = *options;
    t->count = t->prompt = length;
    t->first = first;
    t->stream = stream;
    t->number = g->added++;
    t->active = true;
    g->active++;
    g->counts.reused += same;
    return WF_OK;
}

wf_status wf_generator_add(wf_generator *g, const int32_t *prompt, int64_t length, const struct wf_generate_options *options,
                           wf_error *error)
{
    if (wf_needs(error, "generator, prompt, options", g, wf_some(prompt, length), options))
        return WF_ERR_ARGUMENT;
    return generator_add(g, prompt, length, options, NULL, error);
}

/* --- one text ------------------------------------------------------------------------------------------------------ */

wf_status generator_alone(const struct wf_next *model, wf_tape *tape, const struct wf_generate_options *options, wf_generator **g,
                          wf_error *error)
{
    *g = NULL;
    if (options->generator && wf_generator_active(options->generator) > 0)
        return wf_error_set(error, WF_ERR_STATE, "the generator has texts that are not done: call wf_generator_step until they are");
    *g = options->generator;
    if (!*g)
        *g = wf_generator_new(model, tape, &(struct wf_generator_options){.no_cache = options->no_cache}, error);
    return *g ? WF_OK : WF_ERR_MEMORY; /* the callers checked all else */
}

wf_status generator_finish(wf_generator *g, const struct wf_generate_options *options, wf_status status, wf_error *error)
{
    while (status == WF_OK && wf_generator_active(g) > 0)
        status = wf_generator_step(g, error);
    if (!options->generator)
        wf_generator_free(g);
    return status;
}
