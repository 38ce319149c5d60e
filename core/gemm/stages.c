/* SPDX-License-Identifier: MIT */
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
    _Alignas(64) struct wf_countdown first; /* tasks of the first stage */
    _Atomic bool failed;
};

static void work(void *ctx, int64_t thread)
{
    struct team *t = ctx;
    for (int stage = 0; stage < t->stages->count; stage++) {
        int at = (int)thread, left = t->shares;
        if (stage > 0 && !t->stages->independent)
            wf_countdown_wait(&t->first);
        for (int64_t task; (task = wf_shares_take(t->share[stage], t->shares, &at, &left)) >= 0;) {
            /* Tasks are counted after a failure too: a thread may wait for the first stage. */
            if (!atomic_load_explicit(&t->failed, memory_order_relaxed) && !t->stages->run[stage](t->stages->ctx[stage], task))
                atomic_store_explicit(&t->failed, true, memory_order_relaxed);
            if (stage == 0 && t->stages->count > 1 && !t->stages->independent)
                wf_countdown_add(&t->first, -1);
        }
    }
}

bool wf_gemm_stages(const struct stages *w, double cost, bool serial)
{
    if (serial) {
        for (int stage = 0; stage < w->count; stage++)
            for (int64_t task = 0; task < w->tasks[stage]; task++)
                if (!w->run[stage](w->ctx[stage], task))
                    return false;
        return true;
    }
    struct team t;
    t.stages = w;
    t.shares = wf_threads();
    for (int stage = 0; stage < w->count; stage++)
        wf_shares_divide(t.share[stage], t.shares, w->tasks[stage]);
    t.first = (struct wf_countdown){.left = (uint32_t)w->tasks[0]};
    atomic_init(&t.failed, false);
    wf_parallel(t.shares, cost, work, &t);
    return !atomic_load_explicit(&t.failed, memory_order_relaxed);
}
