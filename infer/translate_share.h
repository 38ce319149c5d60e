/* SPDX-License-Identifier: MIT */
/* Collects the translations of batches from one process or several. */
#ifndef WEFT_INFER_TRANSLATE_SHARE_H
#define WEFT_INFER_TRANSLATE_SHARE_H

#include <weft/internal/dist.h>

#include "search.h"

/* Ids of all hypotheses, end to end; they may move, so `start` says where each begins until all are there. */
struct results {
    int32_t *id;
    int64_t *start; /* [sentences * n_best] */
    int64_t count, room;
};

/* Packs the hypotheses of a batch that this process translated, for the other processes. */
void results_pack(const struct results *r, const struct sentence *batch, int64_t count, const struct wf_translations *all,
                  struct wf_share *share);
/* Unpacks the hypotheses of batch `item`, which another process translated. */
wf_status results_unpack(struct results *r, const struct sentence *batch, int64_t count, int64_t item, struct wf_share *share,
                         struct wf_translations *all, wf_error *error);

#endif
