/* SPDX-License-Identifier: MIT */
/* Beam search over a batch of sentences. Each active hypothesis is a row. The rows of a sentence are consecutive, the likeliest first. The
 * result of a sentence depends only on its own rows, and the bits of a row do not depend on other rows. */
#include <math.h>
#include <string.h>

#include <weft/runtime.h>

#include "search.h"

/* Takes memory for `count` elements from the arena; on failure sets s->failed. */
static void *get(struct search *s, size_t count, size_t size)
{
    void *memory = s->arena ? wf_arena_get(s->arena, count * size) : NULL;
    s->failed |= !memory;
    return memory;
}

wf_status search_make(struct search *s, wf_error *error)
{
    size_t rows = (size_t)(s->batch * s->beam);
    s->arena = wf_arena_new();
    s->kv = get(s, (size_t)s->layers, sizeof *s->kv);
    s->nodes = get(s, rows * (size_t)s->limit, sizeof *s->nodes);
    s->endings = get(s, rows, sizeof *s->endings);
    s->source = get(s, (size_t)s->source_ids, sizeof *s->source);
    s->source_offsets = get(s, (size_t)s->batch + 1, sizeof *s->source_offsets);
    s->row_offsets = get(s, (size_t)s->batch + 1, sizeof *s->row_offsets);
    s->candidate = get(s, rows * (size_t)s->most, sizeof *s->candidate);
    s->head = get(s, (size_t)s->beam, sizeof *s->head);
    int32_t **row[] = {&s->id, &s->node, &s->from, &s->next_id, &s->next_node};
    for (int i = 0; i < 5; i++)
        *row[i] = get(s, rows, sizeof **row[i]);
    s->total = get(s, rows, sizeof *s->total);
    s->next_total = get(s, rows, sizeof *s->next_total);
    if (s->failed)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory to translate %lld sentences at a time with a beam of %lld: take fewer",
                            (long long)s->batch, (long long)s->beam);
    if (s->next)
        return s->next->cache(s->next->ctx, &s->cache, s->beam, s->prompt_length + s->limit, error);
    return wf_model_cache_with(s->model, &s->cache, s->batch * s->beam, &(struct wf_model_cache_options){.capacity = s->limit}, error);
}

void search_free(struct search *s)
{
    wf_cache_free(&s->cache);
    wf_arena_free(s->arena);
}

/* The length penalty ((5 + length) / 6)^A. */
static double penalty(const struct search *s, int32_t length)
{
    return pow((5 + (double)length) / 6, s->length_penalty);
}

/* Inserts a hypothesis into the list of the best ended hypotheses of its sentence. If scores are equal, the earlier one comes first. */
static void keep(const struct search *s, struct sentence *t, struct ending e)
{
    e.score = e.log_probability / penalty(s, e.length);
    int64_t at = t->kept;
    if (at == s->beam && !(e.score > t->ending[at - 1].score))
        return;
    at = at == s->beam ? at - 1 : t->kept++;
    /* an unfinished hypothesis stays last: it is inserted when the search has ended, and finished ones come first whatever their scores */
    for (; at > 0 && e.finished && t->ending[at - 1].score < e.score; at--)
        t->ending[at] = t->ending[at - 1];
    t->ending[at] = e;
}

/* True if `beam` hypotheses are finished and no active one can still reach a better score than the best of them. best_live is the largest
 * log-probability of an active hypothesis. It can only fall, and divided by the largest penalty, that of the maximum length, it gives the
 * best score that is still possible. */
static bool settled(const struct search *s, const struct sentence *t, double best_live)
{
    return t->ended >= s->beam && t->ending[0].score >= best_live / penalty(s, t->limit);
}

/* Takes the best remaining candidate of a sentence's rows. Among equal candidates it takes the one in the smaller row, and within a
 * row the one with the smaller id. The candidates of each row are sorted, and head[i] is the index of row i's next candidate. Returns the
 * row, or -1 if no candidate remains. */
static int32_t take(const struct search *s, const struct sentence *t, const struct candidate *candidates, struct candidate *out)
{
    int32_t row = -1;
    for (int32_t i = 0; i < t->rows; i++) {
        if (s->head[i] == s->most)
            continue;
        const struct candidate *c = candidates + i * s->most + s->head[i];
        if (isfinite(c->total) && (row < 0 || c->total > out->total)) {
            *out = *c;
            row = i;
        }
    }
    if (row >= 0)
        s->head[row]++;
    return row;
}

/* Does one step for one sentence. Its rows before the step begin at `first`. The rows that remain active are written to s->next_* and
 * s->from, from index `next` on. `length` is the length of hypotheses after the step. Returns the sentence's number of active rows; 0: its
 * search has ended. */
static int32_t step_sentence(struct search *s, struct sentence *t, int64_t first, int64_t next, int32_t length)
{
    struct candidate c;
    int32_t live = 0, row;
    memset(s->head, 0, (size_t)t->rows * sizeof *s->head);
    for (int64_t i = 0; i < s->picks && (row = take(s, t, s->candidate + first * s->most, &c)) >= 0; i++) {
        int32_t before = s->node[first + row];
        if (c.id == s->eos) {
            t->ended++;
            keep(s, t, (struct ending){.log_probability = c.total, .node = before, .length = length, .finished = true});
        } else if (live < s->beam) {
            t->node[t->used] = (struct node){.before = before, .id = c.id};
            s->next_node[next + live] = t->used++;
            s->next_id[next + live] = c.id;
            s->next_total[next + live] = c.total;
            s->from[next + live++] = (int32_t)(first + row);
        }
    }
    if (live > 0 && length < t->limit && !settled(s, t, s->next_total[next]))
        return live;
    for (int32_t i = 0; i < live && t->kept < s->n_best; i++)
        keep(s, t, (struct ending){.log_probability = s->next_total[next + i], .node = s->next_node[next + i], .length = length});
    return 0;
}

static void swap(int32_t **a, int32_t **b)
{
    int32_t *c = *a;
    *a = *b;
    *b = c;
}

/* Does one step for all sentences. Returns the number of active rows. */
static int64_t step_batch(struct search *s, int64_t count, int32_t length)
{
    int64_t first = 0, next = 0;
    for (int64_t i = 0; i < count; i++) {
        struct sentence *t = &s->sentence[i];
        int32_t rows = t->rows;
        if (rows > 0)
            t->rows = step_sentence(s, t, first, next, length);
        s->row_offsets[i] = (int32_t)next;
        first += rows;
        next += t->rows;
    }
    s->row_offsets[count] = (int32_t)next;
    double *total = s->total;
    s->total = s->next_total;
    s->next_total = total;
    swap(&s->id, &s->next_id);
    swap(&s->node, &s->next_node);
    return next;
}

/* Moves the rows of the cache to match the active hypotheses. In greedy search they already match while all sentences are active. */
static wf_status follow(struct search *s, int64_t rows, wf_error *error)
{
    bool same = rows == s->cache.rows;
    for (int64_t i = 0; same && i < rows; i++)
        same = s->from[i] == i;
    return same ? WF_OK : wf_cache_select(&s->cache, s->from, rows, error);
}

/* Starts a search. Each sentence has one row, whose first input is BOS or the prompt. */
static wf_status begin(struct search *s, int64_t count, wf_error *error)
{
    s->source_offsets[0] = s->row_offsets[0] = 0;
    int64_t nodes = 0;
    for (int64_t i = 0; i < count; i++) {
        struct sentence *t = &s->sentence[i];
        if (t->length > 0)
            memcpy(s->source + s->source_offsets[i], t->ids, (size_t)t->length * sizeof *s->source);
        s->source_offsets[i + 1] = s->source_offsets[i] + t->length;
        s->row_offsets[i + 1] = (int32_t)i + 1;
        t->rows = 1;
        t->used = 0;
        t->ended = t->kept = 0;
        t->node = s->nodes + nodes;
        t->ending = s->endings + i * s->beam;
        nodes += t->limit * s->beam;
        s->id[i] = s->bos;
        s->node[i] = -1;
        s->total[i] = 0;
        s->from[i] = 0;
    }
    for (int64_t i = 0; i < s->cache.rows; i++)
        wf_cache_rewind(&s->cache, i, 0);
    return wf_cache_select(&s->cache, s->from, count, error);
}

/* Computes the logits of each row's next token. `step` counts from 1. */
static wf_status next_logits(struct search *s, int64_t rows, int32_t step, int64_t count, wf_array *out, wf_error *error)
{
    wf_tensor *ids = s->next && step == 1 ? wf_ids(s->tape, s->prompt, 1, s->prompt_length) : wf_ids(s->tape, s->id, rows, 1);
    wf_tensor *logits = s->next ? s->next->next(s->next->ctx, ids, &s->cache)
                                : wf_model_decode(s->model, ids, &s->cache, s->kv, (struct wf_packed){s->row_offsets, (int)count},
                                                  (struct wf_packed){s->source_offsets, (int)count});
    wf_status status = take_logits(s->next ? "next" : wf_model_config(s->model)->model, s->tape, logits, rows, s->types, out, error);
    for (int64_t i = 0; status == WF_OK && s->next && i < rows; i++)
        status = check_advanced("next", &s->cache, i, s->prompt_length + step - 1, error);
    return status;
}

wf_status search_batch(struct search *s, int64_t count, wf_error *error)
{
    wf_tape *tape = s->tape;
    wf_status status = begin(s, count, error);
    if (status != WF_OK)
        return status;
    wf_tape_reset(tape, WF_INFER, .precision = s->model ? wf_model_precision(s->model) : s->next->precision);
    if (s->model) {
        wf_tensor *memory = wf_model_encode(s->model, tape, s->source, (struct wf_packed){s->source_offsets, (int)count}); /* [M,d] */
        wf_model_memory(s->model, memory, s->kv);
    }
    wf_tape_mark mark = wf_tape_here(tape);
    int64_t rows = count;
    for (int32_t length = 1; rows > 0; length++) {
        wf_array logits; /* [rows,types] */
        if ((status = next_logits(s, rows, length, count, &logits, error)) != WF_OK)
            return status;
        if (top_continuations(logits.data, rows, s->types, s->total, s->most, s->candidate) >= 0)
            return wf_error_set(error, WF_ERR_NUMERIC,
                                "the model's logits are not finite: the weights are damaged, or the training diverged");
        wf_tape_rewind(tape, mark, NULL);
        rows = step_batch(s, count, length);
        if (s->cancelled && s->cancelled(s->ctx))
            return wf_error_set(error, WF_ERR_CANCELLED, "the %s was cancelled", s->next ? "search" : "translation");
        if (rows > 0 && (status = follow(s, rows, error)) != WF_OK)
            return status;
    }
    return WF_OK;
}
