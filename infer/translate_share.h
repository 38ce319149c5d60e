/* SPDX-License-Identifier: MIT */
/* Translations of sentences as they are put together: batch by batch, by one process or by several. */
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

/* The hypotheses of a batch, which was translated here, for the other processes. */
void results_pack(const struct results *r, const struct sentence *batch, int64_t count, const struct wf_translations *all,
                  struct wf_share *share);
/* Those of batch number `item`, which another has translated. */
wf_status results_unpack(struct results *r, const struct sentence *batch, int64_t count, int64_t item, struct wf_share *share,
                         struct wf_translations *all, wf_error *error);

#endif
