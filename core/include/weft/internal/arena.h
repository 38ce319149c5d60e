/* SPDX-License-Identifier: MIT */
/* Arenas: memory for many blocks that are freed together. The memory comes from wf_alloc. */
#ifndef WEFT_INTERNAL_ARENA_H
#define WEFT_INTERNAL_ARENA_H

#include <weft/base.h>

/* An arena hands out blocks and takes all of them back at once. It reserves memory in chunks of at least 2 MiB that are 2 MiB aligned
 * and marked for huge pages. It keeps its chunks (or joins them to larger ones), so that it neither allocates nor causes page faults as
 * long as its use stays below the earlier peak. Under AddressSanitizer all memory that is not handed out is poisoned, with red zones
 * between blocks. */
typedef struct wf_arena wf_arena;
typedef struct wf_arena_mark {
    int64_t chunk;
    size_t used;
    size_t total;
} wf_arena_mark;

wf_arena *wf_arena_new(void); /* NULL if out of memory */
void wf_arena_free(wf_arena *arena);
/* Returns a block that is 64-byte aligned and not cleared; NULL if out of memory. The block is valid until the arena is reset, or
 * rewound to a mark that was taken before the call. */
void *wf_arena_get(wf_arena *arena, size_t bytes);
wf_arena_mark wf_arena_here(const wf_arena *arena);        /* takes a mark of what is handed out now */
void wf_arena_rewind(wf_arena *arena, wf_arena_mark mark); /* takes back all blocks that were handed out after the mark was taken */
/* Whether the block was handed out before the mark was taken, so that it survives a rewind to the mark. */
bool wf_arena_before(const wf_arena *arena, wf_arena_mark mark, const void *block);
/* Rewinds to the mark, then moves the `bytes` bytes at `data` into a new block, whose address it returns. If `data` lies in memory that
 * the arena handed out after the mark was taken, the block always fits. Otherwise the result is NULL if there is no memory. */
void *wf_arena_rewind_with(wf_arena *arena, wf_arena_mark mark, const void *data, size_t bytes);
void wf_arena_reset(wf_arena *arena);
struct wf_arena_stats {
    size_t used;     /* bytes that are handed out now */
    size_t peak;     /* the largest value of `used` so far */
    size_t reserved; /* bytes of all chunks */
};
struct wf_arena_stats wf_arena_stats(const wf_arena *arena);

#endif
