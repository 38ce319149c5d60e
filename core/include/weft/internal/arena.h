/* SPDX-License-Identifier: MIT */
/* Arenas on top of the one allocator. */
#ifndef WEFT_INTERNAL_ARENA_H
#define WEFT_INTERNAL_ARENA_H

#include <weft/base.h>

/* An arena hands out memory that is given back all at once. It grows by chunks of at least 2 MiB, 2 MiB aligned and
 * marked for huge pages, and keeps them, or larger ones in their place, so that from its high-water mark on there is neither
 * an allocation nor a page fault. Under AddressSanitizer what is not handed out is poisoned, with red zones between. */
typedef struct wf_arena wf_arena;
typedef struct wf_arena_mark {
    int64_t chunk;
    size_t used;
    size_t total;
} wf_arena_mark;

wf_arena *wf_arena_new(void); /* NULL without memory */
void wf_arena_free(wf_arena *arena);
/* 64-byte aligned, not cleared; NULL without memory. The block lives until the arena is reset or rewound past it. */
void *wf_arena_get(wf_arena *arena, size_t bytes);
wf_arena_mark wf_arena_here(const wf_arena *arena);
void wf_arena_rewind(wf_arena *arena, wf_arena_mark mark);
/* Whether the block lies before the mark, so that it survives a rewind to it. */
bool wf_arena_before(const wf_arena *arena, wf_arena_mark mark, const void *block);
/* Rewinds, and moves `bytes` at `data` to the place of the mark; returns their new address. What was taken from the arena since the mark
 * always fits there; for other data NULL without memory. */
void *wf_arena_rewind_with(wf_arena *arena, wf_arena_mark mark, const void *data, size_t bytes);
void wf_arena_reset(wf_arena *arena);
struct wf_arena_stats {
    size_t used, peak, reserved; /* bytes handed out now, at most so far, and of all chunks */
};
struct wf_arena_stats wf_arena_stats(const wf_arena *arena);

#endif
