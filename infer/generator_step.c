/* SPDX-License-Identifier: MIT */
/* The steps of a generator. Texts whose prompt is computed stand in the first rows of the cache, so that one pass takes the next token of
 * all of them; of the others, one text's prompt is computed in each step, a chunk at a time. */
#include <weft/internal/minmax.h>
#include <weft/internal/needs.h>

#include "generator.h"
#include "search.h"

/* --- passes -------------------------------------------------------------------------------------------------------- */

wf_status generator_pass(wf_generator *g, struct side *side, struct wf_cache *cache, const int32_t *ids, int64_t rows, int64_t T, bool all,
                         wf_array *logits, wf_error *error)
{
    const struct wf_next *m = &side->model;
    const char *from = all ? "all" : "next";
    for (int64_t i = 0; cache && i < rows; i++)
        g->from[i] = cache->length[i];
    wf_tensor *given = wf_ids(g->tape, ids, rows, T);
    wf_tensor *out = all ? m->all(m->ctx, given, cache) : m->next(m->ctx, given, cache);
    if (all && out && wf_ndim(out) == 3)
        out = wf_reshape(out, wf_dim(out, 0) * wf_dim(out, 1), wf_dim(out, 2));
    if (take_logits(from, g->tape, out, all ? rows * T : rows, m->vocab_size, logits, error) != WF_OK)
        return error->code;
    for (int64_t i = 0; cache && i < rows; i++)
        if (check_advanced(from, cache, i, g->from[i] + T, error) != WF_OK)
            return error->code;
    return WF_OK;
}

/* Number of ids of a text's window that are not in the cache. */
static int64_t pending(const struct text *t)
{
    return t->active ? t->count - t->first - t->cached : 0;
}

/* Chooses and gives out the next id of the text in row `row`. */
static wf_status advance(wf_generator *g, int64_t row, const wf_real *logits, wf_error *error)
{
    struct text *t = &g->text[row];
    int32_t id;
    wf_error failed = {0};
    if (choose(g, t, logits, &id, error) != WF_OK)
        return error->code;
    const int64_t first = t->first;
    if (!accept(g, t, logits, id, &failed) && failed.code != WF_OK)
        return wf_error_set(error, failed.code, "%s", failed.message);
    if (t->first != first) /* the window has slid */
        generator_truncate(g, row, 0);
    return WF_OK;
}

/* Computes `T` ids of the text in row `row`; after the last one, its next id is chosen. */
static wf_status compute_row(wf_generator *g, int64_t row, int64_t T, wf_error *error)
{
    struct text *t = &g->text[row];
    struct wf_cache *view = g->no_cache ? NULL : &g->main.view;
    wf_array logits;
    if (view && wf_cache_view(view, g->main.cache, row, 1, error) != WF_OK)
        return error->code;
    wf_status status = generator_pass(g, &g->main, view, t->ids + t->first + t->cached, 1, T, false, &logits, error);
    const bool last = T == pending(t);
    g->counts.prompt += t->count == t->prompt ? T : 0;
    g->counts.passes += last;
    if (view)
        t->cached += T;
    if (status == WF_OK && last)
        status = advance(g, row, logits.data, error);
    wf_tape_rewind(g->tape, g->mark, NULL);
    return status;
}

/* Computes the last id of the texts in the rows 0 to rows - 1, and chooses their next ids. */
static wf_status compute_ready(wf_generator *g, int64_t rows, wf_error *error)
{
    wf_array logits;
    for (int64_t i = 0; i < rows; i++)
        g->last[i] = g->text[i].ids[g->text[i].count - 1];
    wf_status status = wf_cache_view(&g->main.view, g->main.cache, 0, rows, error);
    if (status == WF_OK)
        status = generator_pass(g, &g->main, &g->main.view, g->last, rows, 1, false, &logits, error);
    g->counts.passes++;
    for (int64_t i = 0; status == WF_OK && i < rows; i++) {
        g->text[i].cached++;
        g->counts.prompt += g->text[i].count == g->text[i].prompt;
        status = advance(g, i, (const wf_real *)logits.data + i * g->main.model.vocab_size, error);
    }
    wf_tape_rewind(g->tape, g->mark, NULL);
    return status;
}

/* --- a step -------------------------------------------------------------------------------------------------------- */

static bool is_ready(const struct text *t)
{
    return t->active && pending(t) == 1;
}

/* Moves the texts of which one id is not computed to the first rows, and returns their number in *ready. A row that one of them leaves gets
 * what was in its new row: a text whose prompt is not computed yet, or nothing. */
static wf_status arrange(wf_generator *g, int64_t *ready, wf_error *error)
{
    int64_t last = g->rows;
    bool moved = false;
    *ready = 0;
    for (int64_t i = 0; i < g->rows; i++) {
        *ready += is_ready(&g->text[i]);
        g->from[i] = (int32_t)i;
    }
    for (int64_t i = 0; i < *ready; i++) {
        if (is_ready(&g->text[i]))
            continue;
        do
            last--;
        while (!is_ready(&g->text[last]));
        if (!g->text[i].active) /* what is not moved need not be copied */
            generator_truncate(g, i, 0);
        const struct text other = g->text[i];
        g->text[i] = g->text[last];
        g->text[last] = other;
        g->from[i] = (int32_t)last;
        g->from[last] = (int32_t)i;
        moved = true;
    }
    return moved ? wf_cache_select(g->main.cache, g->from, g->rows, error) : WF_OK;
}

/* Copies to row `row` what another row has of its ids already: texts that share a prompt compute it once. */
static wf_status share(wf_generator *g, int64_t row, wf_error *error)
{
    struct text *t = &g->text[row];
    int64_t from = -1, most = t->cached;
    for (int64_t i = 0; i < g->rows && !g->main.cache->states; i++) {
        const int64_t have = i == row ? 0 : generator_known(g, i, t->ids, t->count, t->first);
        if (have > most) {
            from = i;
            most = have;
        }
    }
    if (from < 0)
        return WF_OK;
    g->counts.reused += most - t->cached;
    t->cached = most;
    return wf_cache_copy_row(g->main.cache, row, from, (int32_t)most, error);
}

/* The row of the text whose prompt is computed next: of those with more than one id to compute the one that was added first; -1: none. */
static int64_t next_prompt(const wf_generator *g)
{
    int64_t best = -1;
    for (int64_t i = 0; i < g->rows; i++)
        if (pending(&g->text[i]) > 1 && (best < 0 || g->text[i].number < g->text[best].number))
            best = i;
    return best;
}

static wf_status step(wf_generator *g, wf_error *error)
{
    int64_t ready = 0, row;
    for (int64_t i = 0; i < g->rows; i++)
        if (g->text[i].active && g->text[i].options.max_tokens == 0)
            finish(g, &g->text[i], WF_GENERATE_MAX_TOKENS);
    wf_status status = WF_OK;
    if (g->no_cache) {
        for (int64_t i = 0; status == WF_OK && i < g->rows; i++)
            if (g->text[i].active)
                status = compute_row(g, i, pending(&g->text[i]), error);
        return status;
    }
    if (g->active > 0 && (row = next_prompt(g)) >= 0) {
        status = share(g, row, error);
        if (status == WF_OK)
            status = compute_row(g, row, WF_MIN(g->chunk, pending(&g->text[row])), error);
    }
    if (status == WF_OK && g->active > 0)
        status = arrange(g, &ready, error);
    if (status == WF_OK && ready > 0)
        status = g->draft.model.next ? speculate(g, error) : compute_ready(g, ready, error);
    return status;
}

wf_status wf_generator_step(wf_generator *g, wf_error *error)
{
    if (wf_needs(error, "generator", g))
        return WF_ERR_ARGUMENT;
    if (g->stepping)
        return wf_error_set(error, WF_ERR_STATE, "wf_generator_step was called from a callback of a step");
    g->stepping = true;
    if (g->error.code == WF_OK)
        (void)!step(g, &g->error); /* a stream may have set an error, too */
    g->stepping = false;
    if (g->error.code == WF_OK)
        return WF_OK;
    return wf_error_set(error, g->error.code, "%s", g->error.message);
}
