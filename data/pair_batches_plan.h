/* SPDX-License-Identifier: MIT */
/* Inside the room: which pairs make which batch of an epoch. */
#ifndef WEFT_DATA_PAIR_BATCHES_PLAN_H
#define WEFT_DATA_PAIR_BATCHES_PLAN_H

#include "bitext_internal.h"

struct pair_plan {
    const struct pair *pair;
    int64_t pairs, window, limit; /* limit: of a batch's cost */
    bool side, in_order;
    uint64_t seed;
    int64_t longest[2], shortest[2]; /* ids of the pairs */
    uint32_t *order, *spare;         /* [pairs]: the pairs, batch by batch; [window] */
    struct pair_run {
        uint32_t first, count; /* in `order` */
    } * run;
    int64_t runs, most_runs;
    int64_t most_pairs; /* of a batch */
};

/* Allocates what any epoch can need. options->tokens and window as the user gave them. */
wf_status pair_plan_new(const struct wf_bitext *bitext, const struct wf_pair_batches_options *options, struct pair_plan *plan,
                        wf_error *error) WF_CHECKED;
void pair_plan_free(struct pair_plan *plan);
void pair_plan_epoch(struct pair_plan *plan, int64_t epoch);

#endif
