/* SPDX-License-Identifier: MIT */
/* Divides items of work among the threads of a team. Each thread takes the items of its own share first. These items are neighbours in
 * memory and mostly the same in each call, so that the thread's caches contain their data. Then the thread takes items from other
 * shares, so that a thread that the system has suspended does not delay the others for long. */
#ifndef WEFT_INTERNAL_SHARES_H
#define WEFT_INTERNAL_SHARES_H

#include <stdatomic.h>

#include <weft/base.h>

enum { WF_MAX_THREADS = 256 };

struct wf_share {
    _Alignas(64) _Atomic int64_t next;
    int64_t end;
};

/* Divides items 0 .. items - 1 into `shares` even shares. Call it before the threads begin. */
static inline void wf_shares_divide(struct wf_share *share, int shares, int64_t items)
{
    for (int i = 0; i < shares; i++) {
        atomic_init(&share[i].next, items * i / shares);
        share[i].end = items * (i + 1) / shares;
    }
}

/* Returns the next item for a thread, or -1 if no item is left. `*at` is the share from which the thread takes items; at first it is the
 * thread's own. `*left` counts the shares that the thread has not yet found empty; at first it is `shares`. */
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
