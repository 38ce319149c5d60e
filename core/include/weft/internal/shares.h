/* SPDX-License-Identifier: MIT */
/* Items of work for the threads of a team. A thread takes the items of its own share first: most are neighbours in memory and the same in
 * each call, so that its caches hold them. Then it takes items from the other shares: a thread that the system has suspended delays no
 * other for long. */
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

/* The next item for a thread; -1: none is left. `*at` is the share it takes from, at first its own; `*left` counts the shares it has not
 * yet found empty, at first all. */
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
