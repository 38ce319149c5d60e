/* SPDX-License-Identifier: MIT */
/* Collects the translations of all batches, whether this process or another one has translated them. */
#ifndef WEFT_INFER_TRANSLATE_SHARE_H
#define WEFT_INFER_TRANSLATE_SHARE_H

#include <weft/internal/dist.h>

#include "search.h"

/* The ids of all hypotheses, one hypothesis after another in one array. The array moves when it grows, so hypotheses are found by their
 * index in `start` until the array is complete. */
struct results {
    int32_t *id;
    int64_t *start; /* [sentences * n_best]: index in `id` where each hypothesis begins */
    int64_t count;  /* number of ids */
    int64_t room;   /* capacity of `id` */
};

/* Packs the hypotheses of a batch that this process has translated, to be sent to the other processes. */
void results_pack(const struct results *r, const struct sentence *batch, int64_t count, const struct wf_translations *all,
                  struct wf_share *share);
/* Unpacks the hypotheses of batch number `item`, which another process has translated. */
wf_status results_unpack(struct results *r, const struct sentence *batch, int64_t count, int64_t item, struct wf_share *share,
                         struct wf_translations *all, wf_error *error);

#endif
