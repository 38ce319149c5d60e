/* SPDX-License-Identifier: MIT */
#ifndef WEFT_GEMM_PHASES_H
#define WEFT_GEMM_PHASES_H

#include <weft/base.h>

/* Work in one region: the items of the first phase, then those of the second, which wait until the first is done unless they are apart,
 * which is to say independent. Each thread begins with its share of either phase's items, in order, and then helps the others: what it
 * packed in the first is in its own cache for the second where shares of both are the same part of the product. */
struct phases {
    int count;
    bool apart;
    int64_t items[2];
    bool (*run[2])(void *ctx, int64_t item); /* false without memory: items not yet begun are then left out */
    void *ctx[2];
};

/* `cost` as for wf_parallel; `serial`: on the calling thread. False when an item had no memory. */
bool wf_gemm_phases(const struct phases *w, double cost, bool serial) WF_CHECKED;

#endif
