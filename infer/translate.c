/* SPDX-License-Identifier: MIT */
/* Translates any number of sentences: sorts them by length, divides them into batches, and restores the caller's order. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weft/internal/grow.h>
#include <weft/internal/minmax.h>
#include <weft/internal/needs.h>
#include <weft/internal/several.h>
#include <weft/memory.h>

#include "search.h"
#include "translate_share.h"

enum { BATCH = 64, MOST_BATCH = 65536, MOST_BEAM = 1024 };
/* Limit in bytes for the caches of a batch, if the caller sets no batch size. */
static const double cache_bytes = (double)((int64_t)1 << 29);

/* --- options ------------------------------------------------------------------------------------------------------- */

static wf_status check_range(const char *name, int64_t value, int64_t most, wf_error *error)
{
    if (value >= 0 && value <= most)
        return WF_OK;
    return wf_error_set(error, WF_ERR_ARGUMENT, "%s: %lld is out of range: 0 to %lld", name, (long long)value, (long long)most);
}

static wf_status check_options(const wf_model *model, const struct wf_translate_options *o, int32_t bos, int32_t eos, struct search *s,
                               wf_error *error)
{
    const struct wf_config *c = wf_model_config(model);
    int64_t types = wf_model_shape_of(model)->vocab_size;
    if (wf_model_kind_of(model) != WF_MODEL_PAIRS)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s is %s and does not translate: an encoder-decoder is required", c->model,
                            wf_model_kind_of(model) == WF_MODEL_ENCODER ? "an encoder" : "a language model");
    if (check_range("beam", o->beam, MOST_BEAM, error) || check_range("batch", o->batch, MOST_BATCH, error) ||
        check_range("max_tokens", o->max_tokens, INT64_MAX, error))
        return WF_ERR_ARGUMENT;
    double length_penalty = o->has_length_penalty ? o->length_penalty : c->generation.length_penalty;
    if (!(length_penalty >= 0 && length_penalty <= 100)) /* the range of the configuration key length_penalty */
        return wf_error_set(error, WF_ERR_ARGUMENT, "length_penalty: %g is out of range: 0 to 100", length_penalty);
    int64_t beam = o->beam > 0 ? o->beam : c->generation.beam > 0 ? c->generation.beam : 1, n_best = o->n_best > 0 ? o->n_best : 1;
    if (o->n_best < 0 || n_best > beam)
        return wf_error_set(error, WF_ERR_ARGUMENT, "n_best: %lld is out of range: at most the beam, which is %lld", (long long)o->n_best,
                            (long long)beam);
    for (int i = 0; i < 2; i++)
        if ((i ? eos : bos) < 0 || (i ? eos : bos) >= types)
            return wf_error_set(error, WF_ERR_ARGUMENT, "%s: id %d is not in the vocabulary of %lld", i ? "eos" : "bos", i ? eos : bos,
                                (long long)types);
    int64_t picks = beam > 1 ? 2 * beam : 1;
    *s = (struct search){.model = model,
                         .beam = beam,
                         .n_best = n_best,
                         .types = types,
                         .picks = picks,
                         .most = WF_MIN(picks, types),
                         .layers = wf_model_shape_of(model)->layers,
                         .length_penalty = length_penalty,
                         .bos = bos,
                         .eos = eos,
                         .cancelled = o->cancelled,
                         .ctx = o->ctx};
    return WF_OK;
}

static wf_status check_sentence(const struct wf_model_shape *c, const int32_t *ids, int64_t length, int64_t place, wf_error *error)
{
    if (length < 1)
        return wf_error_set(error, WF_ERR_ARGUMENT, "sentence %lld has no ids: leave it out", (long long)place);
    if (length > c->context)
        return wf_error_set(error, WF_ERR_ARGUMENT, "sentence %lld has %lld ids, more than the maximum of %lld: shorten it",
                            (long long)place, (long long)length, (long long)c->context);
    int64_t types = c->source_vocab_size;
    for (int64_t i = 0; i < length; i++)
        if (ids[i] < 0 || ids[i] >= types)
            return wf_error_set(error, WF_ERR_ARGUMENT, "sentence %lld: id %d at %lld is not in the vocabulary of %lld", (long long)place,
                                ids[i], (long long)i, (long long)types);
    return WF_OK;
}

/* The maximum length of a translation, EOS included. `length` is the length of the source with its special tokens, which are subtracted
 * before extra_tokens is added. */
static int64_t limit_of(const struct wf_config *c, const struct wf_translate_options *o, int64_t length)
{
    struct wf_model_shape shape = wf_config_shape(c);
    int64_t limit = shape.context, asked = o->max_tokens > 0 ? o->max_tokens : c->generation.max_tokens;
    int64_t bare = length - shape.source_bos - shape.source_eos;
    if (asked > 0 && asked < limit)
        limit = asked;
    if (c->generation.extra_tokens > 0 && WF_MAX(bare, 0) + c->generation.extra_tokens < limit)
        limit = WF_MAX(bare, 0) + c->generation.extra_tokens;
    return limit;
}

/* --- order and batches --------------------------------------------------------------------------------------------- */

/* Orders sentences by length, the longest first. Each batch then has sentences of similar length, and memory for the first batch is enough
 * for all batches. */
static int longer(const void *a, const void *b)
{
    const struct sentence *x = a, *y = b;
    return x->length != y->length ? (x->length < y->length ? 1 : -1) : x->place < y->place ? -1 : 1;
}

/* Lowers the batch size so that, as far as the number of sentences allows, all processes get the same number of batches, and all batches
 * have about the same number of sentences. */
static int64_t batch_of_each(int64_t batch, int64_t count, int64_t processes)
{
    const int64_t rounds = (count + batch * processes - 1) / (batch * processes), batches = rounds * processes;
    return processes > 1 ? (count + batches - 1) / batches : WF_MIN(batch, count);
}

static wf_status choose_batch(struct search *s, const struct wf_translate_options *o, int64_t count, int processes, wf_error *error)
{
    s->batch = o->batch;
    if (s->batch == 0) {
        struct wf_cache one; /* a cache with one row, to learn how much memory a row takes */
        wf_status status = wf_model_cache_with(s->model, &one, 1, &(struct wf_model_cache_options){.capacity = s->limit}, error);
        if (status != WF_OK)
            return status;
        double each =
            (double)sizeof(wf_real) * (double)(one.key_width + one.value_width) * one.layers * (double)(one.states ? 1 : one.capacity);
        double fit = cache_bytes / (each * (double)s->beam);
        wf_cache_free(&one);
        s->batch = (int64_t)WF_MIN(WF_MAX(fit, 1), BATCH);
    }
    s->batch = batch_of_each(s->batch, count, processes);
    return WF_OK;
}

/* --- results ------------------------------------------------------------------------------------------------------- */

/* Appends the ids of a hypothesis to the results. */
static void add_ids(struct results *r, const struct sentence *t, const struct ending *e, struct wf_hypothesis *h, int64_t place)
{
    int64_t length = e->length - e->finished;
    int32_t node = e->node;
    for (int64_t i = length; i-- > 0; node = t->node[node].before)
        r->id[r->count + i] = t->node[node].id;
    r->start[place] = r->count;
    r->count += length;
    *h = (struct wf_hypothesis){.length = length, .score = e->score, .log_probability = e->log_probability, .finished = e->finished};
}

/* Appends the hypotheses of a batch to the results. */
static wf_status add_batch(struct results *r, const struct search *s, int64_t count, struct wf_translations *out, wf_error *error)
{
    int64_t ids = r->count;
    for (int64_t i = 0; i < count; i++)
        for (int64_t k = 0; k < s->n_best && k < s->sentence[i].kept; k++)
            ids += s->sentence[i].ending[k].length;
    if (!wf_grow(&r->id, &r->room, ids, sizeof *r->id))
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for translations");
    for (int64_t i = 0; i < count; i++) {
        const struct sentence *t = &s->sentence[i];
        for (int64_t k = 0; k < s->n_best; k++) {
            int64_t place = t->place * s->n_best + k;
            if (k < t->kept)
                add_ids(r, t, &t->ending[k], &out->hypothesis[place], place);
            else /* the vocabulary is too small for so many hypotheses */
                out->hypothesis[place] = (struct wf_hypothesis){.score = -INFINITY, .log_probability = -INFINITY};
        }
    }
    return WF_OK;
}

/* --- translation --------------------------------------------------------------------------------------------------- */

/* Translates the batches of this process. Afterwards take_others adds the translations of other processes. */
static wf_status run(struct search *s, struct sentence *all, int64_t count, const struct wf_translate_options *o, struct wf_share *share,
                     struct results *r, struct wf_translations *out, wf_error *error)
{
    const int processes = wf_dist_size(share->dist);
    wf_status status = search_make(s, error);
    for (int64_t done = 0, batch = 0; status == WF_OK && done < count; done += s->batch, batch++) {
        int64_t n = WF_MIN(count - done, s->batch);
        if (!wf_share_mine(share, batch))
            continue;
        s->sentence = all + done;
        status = search_batch(s, n, error);
        if (status == WF_OK)
            status = add_batch(r, s, n, out, error);
        if (status == WF_OK && processes > 1)
            results_pack(r, s->sentence, n, out, share);
        if (status == WF_OK && o->progress) { /* assume that the other processes have done as many batches */
            int64_t passed = (batch / processes + 1) * processes * s->batch;
            o->progress(o->ctx, WF_MIN(passed, count), count);
        }
    }
    /* The tape's records point into the cache, which is freed next. */
    wf_tape_reset(s->tape, WF_INFER);
    search_free(s);
    return status;
}

/* Takes the translations of the batches that other processes have translated. */
static wf_status take_others(const struct search *s, const struct sentence *all, int64_t count, struct wf_share *share, struct results *r,
                             struct wf_translations *out, wf_error *error)
{
    wf_status status = WF_OK;
    for (int64_t done = 0, batch = 0; status == WF_OK && done < count; done += s->batch, batch++)
        if (!wf_share_mine(share, batch))
            status = results_unpack(r, all + done, WF_MIN(count - done, s->batch), batch, share, out, error);
    return status;
}

wf_status wf_translate_with(const wf_model *model, wf_tape *tape, const int32_t *ids, const int32_t *offsets, int64_t count, int32_t bos,
                            int32_t eos, const struct wf_translate_options *options, struct wf_translations *out, wf_error *error)
{
    if (wf_needs(error, "out", out))
        return WF_ERR_ARGUMENT;
    *out = (struct wf_translations){0};
    if (wf_needs(error, "model, tape, ids, offsets", model, tape, wf_some(ids, count), wf_some(offsets, count)))
        return WF_ERR_ARGUMENT;
    return wf_translate_on(NULL, model, tape, ids, offsets, count, bos, eos, options, out, error);
}

wf_status wf_translate_on(wf_dist *dist, const wf_model *model, wf_tape *tape, const int32_t *ids, const int32_t *offsets, int64_t count,
                          int32_t bos, int32_t eos, const struct wf_translate_options *options, struct wf_translations *out,
                          wf_error *error)
{
    *out = (struct wf_translations){0};
    options = options ? options : &(const struct wf_translate_options){0};
    struct search search;
    wf_status status = check_options(model, options, bos, eos, &search, error);
    if (status == WF_OK && count < 0)
        status = wf_error_set(error, WF_ERR_ARGUMENT, "count = %lld sentences is negative", (long long)count);
    for (int64_t i = 0; status == WF_OK && i < count; i++)
        status = check_sentence(wf_model_shape_of(model), ids + offsets[i], (int64_t)offsets[i + 1] - offsets[i], i, error);
    if (status != WF_OK)
        return status;
    out->n_best = search.n_best;
    if (count == 0)
        return WF_OK;

    size_t all = (size_t)count * (size_t)search.n_best;
    struct wf_share share = {.dist = dist};
    struct results results = {.start = wf_alloc_zero(all, sizeof *results.start)};
    struct sentence *sentence = wf_alloc_zero((size_t)count, sizeof *sentence);
    out->hypothesis = wf_alloc_zero(all, sizeof *out->hypothesis);
    if (!results.start || !sentence || !out->hypothesis) {
        status = wf_error_set(error, WF_ERR_MEMORY, "no memory for translations of %lld sentences", (long long)count);
    } else {
        for (int64_t i = 0; i < count; i++) {
            int32_t length = offsets[i + 1] - offsets[i], limit = (int32_t)limit_of(wf_model_config(model), options, length);
            sentence[i] = (struct sentence){.place = i, .ids = ids + offsets[i], .length = length, .limit = limit};
        }
        qsort(sentence, (size_t)count, sizeof *sentence, longer);
        search.tape = tape;
        search.limit = sentence[0].limit;
        status = choose_batch(&search, options, count, wf_dist_size(dist), error);
        search.source_ids = search.batch * sentence[0].length;
        if (status == WF_OK)
            status = run(&search, sentence, count, options, &share, &results, out, error);
    }
    status = wf_share_gather(&share, status, error);
    if (status == WF_OK && wf_dist_size(dist) > 1)
        status = take_others(&search, sentence, count, &share, &results, out, error);
    wf_share_free(&share);
    for (size_t i = 0; status == WF_OK && i < all; i++)
        out->hypothesis[i].ids = results.id ? results.id + results.start[i] : NULL;
    out->count = count;
    out->memory = results.id;
    wf_free(results.start);
    wf_free(sentence);
    if (status != WF_OK)
        wf_translations_free(out);
    return status;
}

void wf_translations_free(struct wf_translations *translations)
{
    if (!translations)
        return;
    wf_free(translations->hypothesis);
    wf_free(translations->memory);
    *translations = (struct wf_translations){0};
}
