/* SPDX-License-Identifier: MIT */
#include <sched.h>

#include <weft/compute.h>
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

static void run(struct phases *w, int phase, int64_t item)
{
    if (!atomic_load_explicit(&w->failed, memory_order_relaxed) && !w->run[phase](w->ctx, item))
        atomic_store_explicit(&w->failed, true, memory_order_relaxed);
}

static void work(void *ctx, int64_t block)
{
    struct phases *w = ctx;
    (void)block;
    const int64_t all = w->items[0] + (w->count > 1 ? w->items[1] : 0);
    bool waited = false;
    /* After a failure items are still counted: somebody may wait for those of the first phase. */
    for (int64_t item; (item = atomic_fetch_add_explicit(&w->next, 1, memory_order_relaxed)) < all;) {
        if (item < w->items[0]) {
            run(w, 0, item);
            if (w->count > 1)
                atomic_fetch_add_explicit(&w->done, 1, memory_order_release);
            continue;
        }
        if (!waited)
            wait_for(w);
        waited = true;
        run(w, 1, item - w->items[0]);
    }
}

bool wf_gemm_phases(struct phases *w, double cost, bool serial)
{
    if (serial) {
        for (int phase = 0; phase < w->count; phase++)
            for (int64_t item = 0; item < w->items[phase]; item++)
                if (!w->run[phase](w->ctx, item))
                    return false;
        return true;
    }
    atomic_init(&w->next, 0);
    atomic_init(&w->done, 0);
    atomic_init(&w->failed, false);
    wf_parallel(wf_threads(), cost, work, w);
    return !atomic_load_explicit(&w->failed, memory_order_relaxed);
}
