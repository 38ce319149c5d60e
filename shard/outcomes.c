/* SPDX-License-Identifier: MIT */
/* Outcomes: at the end of a phase each rank tells the others its status, its leaves, and which parameters have gradients. */
#include <string.h>

#include <weft/memory.h>

#include "private.h"

static size_t valid_bytes(const struct wf_ranks *ranks)
{
    size_t bytes = 0;
    for (int k = 0; k < ranks->count; k++)
        bytes += (size_t)ranks->grads[k]->parameters;
    return bytes;
}

/* A rank's leaves (wf_ranks.leaf), and their size in bytes. */
static char *leaves_of(const struct wf_ranks *ranks, int rank, size_t *bytes)
{
    const struct wf_range l = own_leaves(ranks, rank);
    *bytes = (size_t)(l.end - l.begin) * ranks->leaf_size;
    return ranks->leaf + (size_t)l.begin * ranks->leaf_size;
}

/* Computes the byte offset of each rank's outcome, x->at, and returns the size of all outcomes together. An outcome is a status (int64_t),
 * the rank's leaves, and one byte for each parameter, which says whether the rank has a gradient of the parameter. */
static size_t place_outcomes(struct wf_ranks *ranks)
{
    struct ranks_reduction *x = ranks->reduction;
    for (int r = 0; r < ranks->size; r++) {
        const struct wf_range l = own_leaves(ranks, r);
        x->at[r + 1] = x->at[r] + (int64_t)(sizeof(int64_t) + (size_t)(l.end - l.begin) * ranks->leaf_size + valid_bytes(ranks));
    }
    return (size_t)x->at[ranks->size];
}

static void write_outcome(struct wf_ranks *ranks)
{
    const struct ranks_reduction *x = ranks->reduction;
    char *to = x->outcome + x->at[ranks->rank];
    size_t bytes;
    const void *leaves = leaves_of(ranks, ranks->rank, &bytes);
    const int64_t code = ranks->error->code;
    memcpy(to, &code, sizeof code);
    memcpy(to + sizeof code, leaves, bytes);
    to += sizeof code + bytes;
    for (int k = 0; k < ranks->count; k++)
        for (int p = 0; p < ranks->grads[k]->parameters; p++) {
            *to = 0;
            for (int i = 0; i < x->own; i++)
                *to |= (char)reduction_has(ranks, i, k, p);
            to++;
        }
}

/* Copies all leaves, and marks each parameter that has a gradient on any rank. Sets an error if a rank has failed. */
static wf_status read_outcomes(struct wf_ranks *ranks)
{
    const struct ranks_reduction *x = ranks->reduction;
    bool failed = false;
    for (int r = 0; r < ranks->size; r++) {
        const char *at = x->outcome + x->at[r];
        size_t bytes;
        char *leaves = leaves_of(ranks, r, &bytes);
        int64_t code;
        memcpy(&code, at, sizeof code);
        failed |= code != WF_OK;
        memcpy(leaves, at + sizeof code, bytes);
        at += sizeof code + bytes;
        for (int k = 0; k < ranks->count; k++)
            for (int p = 0; p < ranks->grads[k]->parameters; p++)
                ranks->grads[k]->valid[p] |= *at++ != 0;
    }
    for (int k = 0; k < ranks->count; k++)
        ranks->grads[k]->finite = false; /* the sums are not known to be finite */
    if (!failed || ranks->error->code)
        return ranks->error->code;
    ranks->follows = true; /* so that wf_ranks_agree prefers the error of the rank that failed */
    return wf_error_set(ranks->error, WF_ERR_STATE, "another process has failed");
}

wf_status outcomes_gather(struct wf_ranks *ranks)
{
    struct ranks_reduction *x = ranks->reduction;
    const size_t bytes = place_outcomes(ranks);
    if (bytes > x->outcome_room) {
        wf_free(x->outcome);
        x->outcome = wf_alloc_zero(bytes, 1);
        x->outcome_room = x->outcome ? bytes : 0;
        if (!x->outcome)
            return ranks_no_memory(ranks);
    }
    write_outcome(ranks);
    wf_error why = {0};
    return wf_dist_gather_parts(ranks->dist, x->outcome, x->at, &why) == WF_OK ? read_outcomes(ranks) : ranks_failed(ranks, &why);
}
