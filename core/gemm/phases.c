/* SPDX-License-Identifier: MIT */
#include <stdatomic.h>

#include <weft/compute.h>
#include <weft/internal/shares.h>
#include <weft/internal/wait.h>
#include <weft/runtime.h>

#include "phases.h"

struct team {
    const struct phases *work;
    int shares;
    struct wf_share share[2][WF_MAX_THREADS];
    _Alignas(64) struct wf_countdown first; /* items of the first phase */
    _Atomic bool failed;
};

static void member(void *ctx, int64_t thread)
{
    struct team *t = ctx;
    for (int phase = 0; phase < t->work->count; phase++) {
        int at = (int)thread, left = t->shares;
        if (phase > 0 && !t->work->apart)
            wf_countdown_wait(&t->first);
        for (int64_t item; (item = wf_shares_take(t->share[phase], t->shares, &at, &left)) >= 0;) {
            /* After a failure items are still counted: somebody may wait for those of the first phase. */
            if (!atomic_load_explicit(&t->failed, memory_order_relaxed) && !t->work->run[phase](t->work->ctx[phase], item))
                atomic_store_explicit(&t->failed, true, memory_order_relaxed);
            if (phase == 0 && t->work->count > 1 && !t->work->apart)
                wf_countdown_add(&t->first, -1);
        }
    }
}

bool wf_gemm_phases(const struct phases *w, double cost, bool serial)
{
    if (serial) {
        for (int phase = 0; phase < w->count; phase++)
            for (int64_t item = 0; item < w->items[phase]; item++)
                if (!w->run[phase](w->ctx[phase], item))
                    return false;
        return true;
    }
    struct team t;
    t.work = w;
    t.shares = wf_threads();
    for (int phase = 0; phase < w->count; phase++)
        wf_shares_divide(t.share[phase], t.shares, w->items[phase]);
    t.first = (struct wf_countdown){.left = (uint32_t)w->items[0]};
    atomic_init(&t.failed, false);
    wf_parallel(t.shares, cost, member, &t);
    return !atomic_load_explicit(&t.failed, memory_order_relaxed);
}
