/* SPDX-License-Identifier: MIT */
/* Plans an epoch of sentence pairs: shuffles the pairs, sorts them by length within windows, and cuts each window into batches. */
#include <inttypes.h>
#include <string.h>

#include <weft/internal/minmax.h>
#include <weft/memory.h>
#include <weft/random.h>

#include "bitext_internal.h"

static int64_t cost(const struct pair_plan *plan, int64_t pairs, const int64_t length[2])
{
    int64_t one = !plan->side ? length[0] + length[1] : WF_MAX(length[0], length[1]);
    return pairs * one;
}

wf_status pair_plan_new(const struct wf_bitext *bitext, const struct wf_pair_batches_options *o, struct pair_plan *plan, wf_error *error)
{
    int64_t pairs = bitext->survey.used, most = INT64_MAX / 4;
    *plan = (struct pair_plan){.pair = bitext->pair, .pairs = pairs, .side = o->side, .in_order = o->in_order, .seed = o->seed};
    plan->window = o->window > 0 && o->tokens > 0 ? WF_MIN(o->window, pairs) : pairs;
    plan->limit = o->tokens > 0 ? WF_MIN(o->tokens, most) + WF_MIN(o->tolerance, most) : 2 * most;
    for (int k = 0; k < 2; k++) {
        plan->shortest[k] = INT32_MAX;
        for (int64_t i = 0; i < pairs; i++) {
            int64_t n = bitext->pair[i].ids[k];
            plan->longest[k] = WF_MAX(n, plan->longest[k]);
            plan->shortest[k] = WF_MIN(n, plan->shortest[k]);
        }
    }
    /* An upper bound on the number of batches. `least` pairs fit into a batch even if all are as long as the longest, so every batch has at
     * least that many, except for the last batch of each window. */
    int64_t least = WF_MIN(plan->limit / cost(plan, 1, plan->longest), plan->window), windows = (pairs - 1) / plan->window + 1;
    plan->most_runs = pairs / WF_MAX(least, 1) + windows;
    plan->most_pairs = WF_MAX(1, WF_MIN(plan->limit / cost(plan, 1, plan->shortest), plan->window));
    plan->order = wf_alloc((size_t)pairs * sizeof *plan->order);
    plan->spare = wf_alloc((size_t)plan->window * sizeof *plan->spare);
    plan->run = wf_alloc((size_t)plan->most_runs * sizeof *plan->run);
    if (plan->order && plan->spare && plan->run)
        return WF_OK;
    pair_plan_free(plan);
    return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for the order of %" PRId64 " pairs", bitext->side[0].file.path, pairs);
}

void pair_plan_free(struct pair_plan *plan)
{
    wf_free(plan->order);
    wf_free(plan->spare);
    wf_free(plan->run);
    *plan = (struct pair_plan){0};
}

/* Fisher-Yates shuffle of elements of up to 8 bytes. */
static inline void shuffle(void *data, int64_t n, size_t size, wf_rng rng)
{
    char *x = data, t[8];
    for (int64_t i = n - 1; i > 0; i--) {
        char *one = x + i * (int64_t)size, *other = x + (int64_t)wf_rng_below(&rng, (uint64_t)i + 1) * (int64_t)size;
        memcpy(t, one, size);
        memmove(one, other, size);
        memcpy(other, t, size);
    }
}

/* Sorts by target length, and pairs of equal target length by source length. A radix sort takes the less significant key first, so the
 * source comes first. If the cost counts only the longer side, it sorts by target length alone. Since the sort is stable, pairs of equal
 * target length then stay in shuffled order, so that batches of different epochs mix different pairs. */
static void sort_window(const struct pair_plan *plan, uint32_t *order, int64_t n)
{
    enum { BITS = 11, DIGITS = 1 << BITS };
    uint32_t *from = order, *to = plan->spare;
    for (int k = plan->side ? 1 : 0; k < 2; k++)
        for (int shift = 0; plan->longest[k] >> shift > 0; shift += BITS) {
            uint32_t place[DIGITS] = {0}, sum = 0;
            for (int64_t i = 0; i < n; i++)
                place[plan->pair[from[i]].ids[k] >> shift & (DIGITS - 1)]++;
            for (int d = 0; d < DIGITS; d++) {
                uint32_t count = place[d];
                place[d] = sum;
                sum += count;
            }
            for (int64_t i = 0; i < n; i++)
                to[place[plan->pair[from[i]].ids[k] >> shift & (DIGITS - 1)]++] = from[i];
            uint32_t *t = from;
            from = to;
            to = t;
        }
    if (from != order)
        for (int64_t i = 0; i < n; i++)
            order[i] = from[i];
}

static void cut_window(struct pair_plan *plan, int64_t first, int64_t end)
{
    while (first < end) {
        int64_t count = 0, length[2] = {0, 0};
        for (; first + count < end; count++) {
            const struct pair *pair = plan->pair + plan->order[first + count];
            for (int k = 0; k < 2; k++)
                length[k] = WF_MAX(pair->ids[k], length[k]);
            if (count > 0 && cost(plan, count + 1, length) > plan->limit)
                break;
        }
        plan->run[plan->runs++] = (struct pair_run){(uint32_t)first, (uint32_t)count};
        first += count;
    }
}

void pair_plan_epoch(struct pair_plan *plan, int64_t epoch)
{
    for (int64_t i = 0; i < plan->pairs; i++)
        plan->order[i] = (uint32_t)i;
    if (!plan->in_order)
        shuffle(plan->order, plan->pairs, sizeof *plan->order, wf_rng_new(plan->seed, wf_stream_of("pairs of an epoch") ^ (uint64_t)epoch));
    plan->runs = 0;
    for (int64_t first = 0; first < plan->pairs; first += plan->window) {
        int64_t n = WF_MIN(plan->window, plan->pairs - first);
        sort_window(plan, plan->order + first, n);
        cut_window(plan, first, first + n);
    }
    if (!plan->in_order)
        shuffle(plan->run, plan->runs, sizeof *plan->run, wf_rng_new(plan->seed, wf_stream_of("batches of an epoch") ^ (uint64_t)epoch));
}
