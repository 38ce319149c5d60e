/* SPDX-License-Identifier: MIT */
#ifndef WEFT_GEMM_PHASES_H
#define WEFT_GEMM_PHASES_H

#include <stdatomic.h>

#include <weft/base.h>

/* Work in one region: the items of the first phase, then those of the second, which wait until the first is done. Items are
 * taken in order, so whoever waits waits for somebody who works. */
struct phases {
    int count;
    int64_t items[2];
    bool (*run[2])(void *ctx, int64_t item); /* false without memory: items not yet begun are then left out */
    void *ctx;
    _Alignas(64) _Atomic int64_t next;
    _Alignas(64) _Atomic int64_t done; /* items of the first phase */
    _Atomic bool failed;
};

/* `cost` as for wf_parallel; `serial`: on the calling thread. Fill in all but next, done and failed. False when an item had no memory. */
bool wf_gemm_phases(struct phases *w, double cost, bool serial) WF_CHECKED;

#endif
