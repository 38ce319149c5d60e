/* SPDX-License-Identifier: MIT */
/* Items of work, divided among the threads of a team: each takes the items of its own share first, neighbours in memory mostly, and then
 * helps the others. The caches see the same items each time, and a thread that the system has set aside holds nobody up for long. */
#ifndef WEFT_INTERNAL_SHARES_H
#define WEFT_INTERNAL_SHARES_H

#include <stdatomic.h>

#include <weft/base.h>

enum { WF_MAX_THREADS = 256 };

struct wf_share {
    _Alignas(64) _Atomic int64_t next;
    int64_t end;
};

/* `shares` even parts of items 0 to items - 1. Before the threads begin. */
static inline void wf_shares_divide(struct wf_share *share, int shares, int64_t items)
{
    for (int i = 0; i < shares; i++) {
        atomic_init(&share[i].next, items * i / shares);
        share[i].end = items * (i + 1) / shares;
    }
}

/* The next item for one who began with `*at`, his own share; he goes on with the share after it where one has no more, `*left` of them.
 * -1: none is left. */
static inline int64_t wf_shares_take(struct wf_share *share, int shares, int *at, int *left)
{
    for (; *left > 0; --*left, *at = *at + 1 == shares ? 0 : *at + 1) {
        struct wf_share *s = &share[*at];
        if (atomic_load_explicit(&s->next, memory_order_relaxed) >= s->end)
            continue;
        const int64_t item = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed);
        if (item < s->end)
            return item;
    }
    return -1;
}

#endif
