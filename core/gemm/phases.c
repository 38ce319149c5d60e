/* SPDX-License-Identifier: MIT */
#include <sched.h>

#include <weft/internal/parallel.h>
#include <weft/runtime.h>

#include "phases.h"

static void wait_for(struct phases *w)
{
    for (int spins = 0; atomic_load_explicit(&w->done, memory_order_acquire) < w->items[0]; spins++) {
        if (spins > 2000)
            sched_yield();
#if defined __x86_64__
        __builtin_ia32_pause();
#endif
    }
}

static void work(void *ctx, int64_t block)
{
    struct phases *w = ctx;
    (void)block;
    const int64_t all = w->items[0] + (w->count > 1 ? w->items[1] : 0);
    bool waited = false;
    for (int64_t item; (item = atomic_fetch_add_explicit(&w->next, 1, memory_order_relaxed)) < all;) {
        if (item < w->items[0]) {
            w->run[0](w->ctx, item);
            if (w->count > 1)
                atomic_fetch_add_explicit(&w->done, 1, memory_order_release);
            continue;
        }
        if (!waited)
            wait_for(w);
        waited = true;
        w->run[1](w->ctx, item - w->items[0]);
    }
}

void wf_gemm_phases(struct phases *w, double cost, bool serial)
{
    if (serial) {
        for (int phase = 0; phase < w->count; phase++)
            for (int64_t item = 0; item < w->items[phase]; item++)
                w->run[phase](w->ctx, item);
        return;
    }
    atomic_init(&w->next, 0);
    atomic_init(&w->done, 0);
    wf_parallel(wf_threads(), cost, work, w);
}
