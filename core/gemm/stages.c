/* SPDX-License-Identifier: MIT */
/* Runs the tasks of a product's one or two stages on the team. */
#include <stdatomic.h>

#include <weft/compute.h>
#include <weft/internal/shares.h>
#include <weft/internal/wait.h>
#include <weft/runtime.h>

#include "private.h"

struct team {
    const struct stages *stages;
    int shares;
    struct wf_share share[2][WF_MAX_THREADS];
    _Alignas(64) struct wf_countdown first; /* counts the tasks of the first stage that have not ended */
    _Atomic bool failed;
};

static void work(void *ctx, int64_t thread)
{
    struct team *t = ctx;
    const bool ordered = t->stages->count > 1 && !t->stages->independent;
    for (int i = 0; i < t->stages->count; i++) {
        const struct stage *stage = &t->stages->stage[i];
        int at = (int)thread, left = t->shares;
        if (i > 0 && ordered)
            wf_countdown_wait(&t->first);
        for (int64_t task; (task = wf_shares_take(t->share[i], t->shares, &at, &left)) >= 0;) {
            /* A failed or skipped task is counted too, because other threads may wait for the end of the first stage. */
            if (!atomic_load_explicit(&t->failed, memory_order_relaxed) && !stage->run(stage->ctx, task))
                atomic_store_explicit(&t->failed, true, memory_order_relaxed);
            if (i == 0 && ordered)
                wf_countdown_add(&t->first, -1);
        }
    }
}

bool wf_gemm_stages(const struct stages *w, double cost, bool serial)
{
    if (serial) {
        for (const struct stage *stage = w->stage; stage < w->stage + w->count; stage++)
            for (int64_t task = 0; task < stage->tasks; task++)
                if (!stage->run(stage->ctx, task))
                    return false;
        return true;
    }
    struct team t;
    t.stages = w;
    t.shares = wf_threads();
    for (int i = 0; i < w->count; i++)
        wf_shares_divide(t.share[i], t.shares, w->stage[i].tasks);
    t.first = (struct wf_countdown){.left = (uint32_t)w->stage[0].tasks};
    atomic_init(&t.failed, false);
    wf_parallel(t.shares, cost, work, &t);
    return !atomic_load_explicit(&t.failed, memory_order_relaxed);
}
