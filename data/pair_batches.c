/* SPDX-License-Identifier: MIT */
/* Batches of sentence pairs: encodes the pairs that pair_batches_plan.c has assigned to a batch, on all threads, and divides a batch
 * into micro-batches. */
#include <inttypes.h>
#include <string.h>

#include <weft/internal/minmax.h>
#include <weft/internal/needs.h>
#include <weft/internal/pair_parts.h>
#include <weft/memory.h>
#include <weft/runtime.h>

#include "bitext_internal.h"

enum { AT_ONCE = 8 }; /* pairs that a thread encodes before it takes the next ones */

struct wf_pair_batches {
    wf_bitext *bitext;
    struct pair_plan plan;
    int64_t epoch; /* the epoch that `plan` holds */
    int64_t index; /* the next batch of that epoch */
    int workers;
    struct encoder *encoder; /* [workers] */
    int64_t *chosen;         /* [most_pairs]: indices of the last batch's pairs */
    int32_t *source;         /* ids of the last batch's source sentences; the arrays below lie in the same block of memory */
    int32_t *input;
    int32_t *target;
    struct offsets {
        int32_t *source; /* [most_pairs + 1] */
        int32_t *target; /* [most_pairs + 1] */
    } whole, part;       /* `whole`: offsets of the last batch; `part`: offsets of one of its micro-batches */
    struct wf_pairs last;
};

/* The most ids of one side that a batch can hold. For a batch of several pairs, plan->limit bounds the batch's size (padded ids of both
 * sides, or of the longer side), and a batch never has more ids on one side than this size. A batch of a single pair may have more than
 * plan->limit ids, but at most plan->longest[side]. */
static int64_t most_ids(const struct pair_plan *plan, int side, int64_t total)
{
    int64_t most = WF_MAX(plan->limit, plan->longest[side]);
    return WF_MIN(most, total);
}

static wf_status make(struct wf_pair_batches *b, const struct wf_pair_batches_options *o, wf_error *error)
{
    const struct wf_bitext *bitext = b->bitext;
    wf_status status = pair_plan_new(bitext, o, &b->plan, error);
    if (status != WF_OK)
        return status;
    int64_t source = most_ids(&b->plan, 0, bitext->survey.source_tokens), target = most_ids(&b->plan, 1, bitext->survey.target_tokens);
    if (source > INT32_MAX || target > INT32_MAX)
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "batches of up to %" PRId64 " + %" PRId64 " tokens, more than the maximum of 2,147,483,647 per side", source,
                            target);
    int64_t offsets = b->plan.most_pairs + 1;
    b->chosen = wf_alloc((size_t)b->plan.most_pairs * sizeof *b->chosen);
    b->source = wf_alloc((size_t)(source + 2 * target + 4 * offsets) * sizeof *b->source);
    if (!b->chosen || !b->source)
        return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for batches of %" PRId64 " + %" PRId64 " tokens",
                            bitext->side[0].file.path, source, target);
    b->input = b->source + source;
    b->target = b->input + target;
    b->whole.source = b->target + target;
    b->whole.target = b->whole.source + offsets;
    b->part.source = b->whole.target + offsets;
    b->part.target = b->part.source + offsets;
    b->workers = wf_threads();
    status = encoders_new(bitext, b->workers, &b->encoder, error);
    if (status == WF_OK)
        status = encoders_warm(bitext, b->workers, b->encoder, error);
    if (status != WF_OK)
        return status;
    pair_plan_epoch(&b->plan, 0);
    return WF_OK;
}

wf_status wf_pair_batches_new(wf_bitext *bitext, const struct wf_pair_batches_options *options, wf_pair_batches **out, wf_error *error)
{
    if (wf_needs(error, "out", out))
        return WF_ERR_ARGUMENT;
    *out = NULL;
    if (wf_needs(error, "bitext", bitext))
        return WF_ERR_ARGUMENT;
    options = options ? options : &(const struct wf_pair_batches_options){0};
    if (options->tokens < 0 || options->tolerance < 0 || options->window < 0)
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "batches of %" PRId64 " tokens, tolerance %" PRId64 ", window %" PRId64 " pairs: none of them may be negative",
                            options->tokens, options->tolerance, options->window);
    struct wf_pair_batches *b = wf_alloc_zero(1, sizeof *b);
    if (!b)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for batches of pairs");
    b->bitext = bitext;
    wf_status status = make(b, options, error);
    if (status == WF_OK)
        *out = b;
    else
        wf_pair_batches_free(b);
    return status;
}

void wf_pair_batches_free(wf_pair_batches *b)
{
    if (!b)
        return;
    wf_free(b->chosen);
    wf_free(b->source);
    encoders_free(b->encoder, b->workers);
    pair_plan_free(&b->plan);
    wf_free(b);
}

void wf_pair_batches_place(const wf_pair_batches *b, int64_t *epoch, int64_t *index)
{
    if (!b || !epoch || !index)
        return;
    bool end = b->index == b->plan.runs;
    *epoch = b->epoch + end;
    *index = end ? 0 : b->index;
}

int64_t wf_pair_batches_count(const wf_pair_batches *b)
{
    if (!b)
        return 0;
    return b->plan.runs;
}

const int64_t *wf_pair_batches_index(const wf_pair_batches *b)
{
    if (!b)
        return NULL;
    return b->chosen;
}

static void go_to(wf_pair_batches *b, int64_t epoch)
{
    if (epoch != b->epoch && !b->plan.in_order)
        pair_plan_epoch(&b->plan, epoch);
    b->epoch = epoch;
}

wf_status wf_pair_batches_seek(wf_pair_batches *b, int64_t epoch, int64_t index, wf_error *error)
{
    if (wf_needs(error, "batches", b))
        return WF_ERR_ARGUMENT;
    int64_t before = b->epoch;
    bool possible = epoch >= 0 && epoch < INT64_MAX && index >= 0;
    if (possible)
        go_to(b, epoch);
    int64_t count = b->plan.runs;
    if (possible && index <= count) {
        b->index = index;
        return WF_OK;
    }
    go_to(b, before);
    return wf_error_set(error, WF_ERR_ARGUMENT,
                        "epoch %" PRId64 ", batch %" PRId64 ": no such position in the data; an epoch has about %" PRId64 " batches", epoch,
                        index, count);
}

/* --- encoding --- */

/* Encodes side k of the batch's pair i. */
static wf_status encode(const wf_pair_batches *b, struct encoder *encoder, int64_t i, int k, wf_error *error)
{
    const struct bitext_side *side = b->bitext->side + k;
    const struct pair *pair = b->bitext->pair + b->chosen[i];
    struct wf_tokens *ids = &encoder->ids;
    ids->count = 0;
    const struct wf_encode_options options = {.cache = encoder->cache[k]};
    wf_status status = bitext_sentence(side, pair->at[k], &encoder->text, error);
    if (status == WF_OK)
        status = wf_tokenizer_encode_with(side->tokenizer, encoder->text.data, encoder->text.length, &options, ids, error);
    if (status == WF_OK && ids->count + side->bos + side->eos != pair->ids[k])
        status =
            wf_error_set(error, WF_ERR_FORMAT, "%" PRId64 " tokens instead of %d", ids->count + side->bos + side->eos, (int)pair->ids[k]);
    if (status == WF_ERR_FORMAT)
        wf_error_prefix(error, "%s: pair %" PRId64 " does not match the survey: delete the cache of surveys", side->file.path,
                        b->chosen[i] + 1);
    if (status != WF_OK)
        return status;
    size_t bytes = (size_t)ids->count * sizeof *ids->id;
    if (k == 0) {
        int32_t *out = b->source + b->whole.source[i];
        if (side->bos)
            *out++ = side->bos_id;
        memcpy(out, ids->id, bytes);
        if (side->eos)
            out[ids->count] = side->eos_id;
    } else {
        int64_t at = b->whole.target[i];
        b->input[at] = side->bos_id;
        memcpy(b->input + at + 1, ids->id, bytes);
        memcpy(b->target + at, ids->id, bytes);
        b->target[at + ids->count] = side->eos_id;
    }
    return WF_OK;
}

/* The first pair of micro-batch `part`. The ids of the batch are divided, in order, into `parts` equal shares. A pair belongs to the share
 * in which its middle lies. */
static int64_t part_begin(const struct wf_pairs *all, int64_t part, int64_t parts)
{
    int64_t n = all->count, total = (int64_t)all->source_offsets[n] + all->target_offsets[n], low = 0, high = n;
    while (low < high) {
        int64_t i = low + (high - low) / 2;
        int64_t twice = (int64_t)all->source_offsets[i] + all->source_offsets[i + 1] + all->target_offsets[i] + all->target_offsets[i + 1];
        if ((__int128)twice * parts < (__int128)2 * total * part)
            low = i + 1;
        else
            high = i;
    }
    return low;
}

struct pairs_of {
    wf_pair_batches *b;
    int64_t begin, end;
};

static wf_status encode_some(void *ctx, int64_t worker, int64_t item, wf_error *error)
{
    const struct pairs_of *p = ctx;
    const int64_t first = p->begin + item * AT_ONCE;
    wf_status status = WF_OK;
    for (int64_t i = first; i < p->end && i < first + AT_ONCE; i++)
        for (int k = 0; k < 2 && status == WF_OK; k++)
            status = encode(p->b, p->b->encoder + worker, i, k, error);
    return status;
}

wf_status wf_pair_batches_encode_parts(wf_pair_batches *b, int64_t begin, int64_t end, int64_t parts, wf_error *error)
{
    struct pairs_of p = {b, part_begin(&b->last, begin, parts), part_begin(&b->last, end, parts)};
    const double ids = (double)(b->whole.source[p.end] - b->whole.source[p.begin]) + b->whole.target[p.end] - b->whole.target[p.begin];
    wf_error failure = {0};
    wf_status status = share_out(b->workers, 0, (p.end - p.begin + AT_ONCE - 1) / AT_ONCE, 60 * ids, encode_some, &p, &failure);
    /* The survey has encoded these lines before, so an error of format means that the files have changed or that the cached survey is
     * wrong. */
    if (status == WF_OK || status == WF_ERR_FORMAT)
        status = bitext_verify(b->bitext, error);
    if (status == WF_OK && failure.code)
        status = failure.code;
    if (status == WF_OK)
        return WF_OK;
    b->last = (struct wf_pairs){0};
    return wf_error_set(error, status, "%s", failure.message);
}

wf_status wf_pair_batches_next(wf_pair_batches *b, struct wf_pairs *pairs, wf_error *error)
{
    if (wf_needs(error, "batches, pairs", b, pairs))
        return WF_ERR_ARGUMENT;
    return wf_pair_batches_next_parts(b, 0, 1, 1, pairs, error);
}

wf_status wf_pair_batches_next_parts(wf_pair_batches *b, int64_t begin, int64_t end, int64_t parts, struct wf_pairs *pairs, wf_error *error)
{
    *pairs = (struct wf_pairs){0};
    wf_status status = bitext_verify(b->bitext, error);
    if (status != WF_OK)
        return status;
    if (b->index == b->plan.runs) {
        go_to(b, b->epoch + 1);
        b->index = 0;
    }
    const struct pair_run *run = b->plan.run + b->index;
    b->whole.source[0] = b->whole.target[0] = 0;
    for (int64_t i = 0; i < run->count; i++) {
        const struct pair *pair = b->bitext->pair + (b->chosen[i] = b->plan.order[run->first + i]);
        b->whole.source[i + 1] = b->whole.source[i] + (int32_t)pair->ids[0];
        b->whole.target[i + 1] = b->whole.target[i] + (int32_t)pair->ids[1];
    }
    b->last = (struct wf_pairs){.count = run->count,
                                .source = b->source,
                                .source_offsets = b->whole.source,
                                .input = b->input,
                                .target = b->target,
                                .target_offsets = b->whole.target};
    if ((status = wf_pair_batches_encode_parts(b, begin, end, parts, error)) != WF_OK)
        return status;
    b->index++;
    *pairs = b->last;
    return WF_OK;
}

/* --- micro-batches --- */

void wf_pair_batches_part(wf_pair_batches *b, int64_t part, int64_t parts, struct wf_pairs *pairs)
{
    if (!b || !pairs)
        return;
    const struct wf_pairs *all = &b->last;
    *pairs = (struct wf_pairs){.source_offsets = b->part.source, .target_offsets = b->part.target};
    b->part.source[0] = b->part.target[0] = 0;
    if (all->count == 0 || part < 0 || part >= parts)
        return;
    int64_t begin = part_begin(all, part, parts), end = part_begin(all, part + 1, parts);
    pairs->count = end - begin;
    pairs->first_source = all->source_offsets[begin];
    pairs->first_target = all->target_offsets[begin];
    pairs->source = all->source + pairs->first_source;
    pairs->input = all->input + pairs->first_target;
    pairs->target = all->target + pairs->first_target;
    for (int64_t i = 0; i <= pairs->count; i++) {
        b->part.source[i] = all->source_offsets[begin + i] - all->source_offsets[begin];
        b->part.target[i] = all->target_offsets[begin + i] - all->target_offsets[begin];
    }
}
