/* SPDX-License-Identifier: MIT */
/* Finds the likeliest continuations of rows of logits. Does not sort the logits, because only about ten of 10,000 are needed. */
#include <math.h>

#include <weft/compute.h>
#include <weft/internal/kernels.h>
#include <weft/internal/minmax.h>

#include "search.h"

enum {
    MOST_BLOCKS = 256, /* maximum number of blocks of a row */
    LEAST_BLOCK = 64   /* minimum number of logits in a block, except the last one */
};

/* Returns the k-th largest of the n values, k <= n. Afterwards values[0 .. k-1] holds the k largest of them in descending order. */
static wf_real kth_largest(wf_real *values, int64_t n, int64_t k)
{
    for (int64_t i = 1; i < n; i++) {
        wf_real value = values[i];
        int64_t at = WF_MIN(i, k);
        if (at == k && value <= values[k - 1])
            continue;
        for (at = at == k ? k - 1 : at; at > 0 && values[at - 1] < value; at--)
            values[at] = values[at - 1];
        values[at] = value;
    }
    return values[k - 1];
}

/* Merges the logits of a block into out[0 .. *count-1], which holds the largest logits of the row so far, at most k of them. Their `total`
 * is the logit until top_of_row turns it into a log-probability. Logits below `floor` are ignored. Blocks come in ascending order of ids,
 * so an equal logit goes behind those that are already there. */
static void take_block(const wf_real *logits, int64_t begin, int64_t end, wf_real floor, int64_t k, struct candidate *out, int64_t *count)
{
    double least = *count == k ? out[k - 1].total : -INFINITY;
    for (int64_t i = begin; i < end; i++) {
        if (logits[i] < floor || (*count == k && (double)logits[i] <= least))
            continue;
        int64_t at = *count < k ? (*count)++ : k - 1;
        for (; at > 0 && out[at - 1].total < (double)logits[i]; at--)
            out[at] = out[at - 1];
        out[at] = (struct candidate){.total = (double)logits[i], .id = (int32_t)i};
        least = out[*count - 1].total;
    }
}

/* Finds the k largest logits of a row. First computes the maximum of each block. If there are at least k blocks, the k-th largest
 * maximum is a floor for the k largest logits, because at least k logits reach it. Then searches only the blocks whose maximum reaches the
 * floor. Returns false if the logits give no probabilities. */
static bool top_of_row(const wf_real *logits, int64_t types, double total, int64_t k, struct candidate *out)
{
    int64_t block = (types + MOST_BLOCKS - 1) / MOST_BLOCKS, count = 0;
    block = WF_MAX(LEAST_BLOCK, (block + LEAST_BLOCK - 1) / LEAST_BLOCK * LEAST_BLOCK);
    int64_t blocks = (types + block - 1) / block;
    wf_real most[MOST_BLOCKS], ordered[MOST_BLOCKS], floor = -(wf_real)INFINITY;
    for (int64_t b = 0; b < blocks; b++) {
        most[b] = ordered[b] = wf_kernel->max(WF_MIN(block, types - b * block), logits + b * block);
        if (isnan(most[b]))
            return false;
    }
    if (k <= blocks)
        floor = kth_largest(ordered, blocks, k);
    for (int64_t b = 0; b < blocks; b++)
        if (most[b] >= floor)
            take_block(logits, b * block, WF_MIN((b + 1) * block, types), floor, k, out, &count);

    /* The log-probability of a token is logit - log_sum, where log_sum is the logarithm of the sum of all e^logit. The cross-entropy of the
     * best token is minus its log-probability, so log_sum is this cross-entropy plus the token's logit. */
    double loss, best = out[0].total;
    wf_kernel->cross_entropy(1, types, logits, &out[0].id, -1, 0, 0, &loss, NULL, NULL);
    double log_sum = loss + best;
    if (!isfinite(log_sum))
        return false;
    for (int64_t i = 0; i < k; i++)
        out[i].total = total + (out[i].total - log_sum);
    return true;
}

struct rows {
    const wf_real *logits;
    const double *total;
    struct candidate *out;
    int64_t types, most;
};

static void top_of_rows(void *ctx, int64_t row)
{
    const struct rows *r = ctx;
    struct candidate *out = r->out + row * r->most;
    if (!top_of_row(r->logits + row * r->types, r->types, r->total[row], r->most, out))
        out[0] = (struct candidate){.total = NAN};
}

int64_t top_continuations(const wf_real *logits, int64_t rows, int64_t types, const double *total, int64_t most, struct candidate *out)
{
    struct rows r = {.logits = logits, .total = total, .out = out, .types = types, .most = most};
    wf_parallel(rows, (double)rows * ((double)types * 0.4 + 500), top_of_rows, &r);
    for (int64_t i = 0; i < rows; i++)
        if (isnan(out[i * most].total))
            return i;
    return -1;
}
