/* SPDX-License-Identifier: MIT */
/* Arenas (weft/internal/arena.h). An arena takes its blocks from a few large chunks of memory, one after the other. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include <weft/internal/arena.h>
#include <weft/internal/asan.h>
#include <weft/internal/grow.h>
#include <weft/internal/minmax.h>
#include <weft/memory.h>

/* Bytes after each block that are never handed out, so that AddressSanitizer reports an access past the end of the block. */
#if defined __SANITIZE_ADDRESS__
enum { RED_ZONE = 64 };
#else
enum { RED_ZONE = 0 };
#endif

enum {
    LINE = 64,
    HUGE_PAGE = 2 << 20,
    SMALL_BLOCKS = 1 << 16 /* bytes that a chunk has in addition to its first block, for the small blocks that follow */
};

struct chunk {
    char *data; /* 2 MiB aligned, as wf_alloc aligns blocks of this size */
    size_t size;
};

/* An arena takes blocks from chunk[current]. Chunks before it are full or were too small for a request, and chunks after it are empty. If a
 * request does not fit, the arena goes on to the first later chunk that is large enough. So after a reset the same sequence of requests
 * gets the same addresses again, and needs no new chunk. If no empty chunk is large enough, one new chunk replaces the empty chunks. */
struct wf_arena {
    struct chunk *chunk;
    int64_t count, capacity, current;
    size_t used;                 /* bytes used of chunk[current] */
    struct wf_arena_stats stats; /* includes red zones and rounding */
};

wf_arena *wf_arena_new(void)
{
    return wf_alloc_zero(1, sizeof(wf_arena));
}

void wf_arena_free(wf_arena *arena)
{
    if (!arena)
        return;
    for (int64_t i = 0; i < arena->count; i++) {
        WF_UNPOISON(arena->chunk[i].data, arena->chunk[i].size);
        wf_free(arena->chunk[i].data);
    }
    wf_free(arena->chunk);
    wf_free(arena);
}

/* Adds a chunk for at least `bytes` bytes. It is at least a quarter as large as all chunks before it together: with smaller chunks there
 * would be too many, and with larger ones too much memory could stay unused. The chunks from `empty` on are empty and too small; the new
 * chunk replaces them and is larger by their sizes. If they were kept, the requests after each rewind could leave chunks behind that are
 * too small for the requests after the next rewind, and the arena would grow without need. */
static bool add_chunk(wf_arena *arena, int64_t empty, size_t bytes)
{
    size_t joined = 0, size = bytes + SMALL_BLOCKS;
    for (int64_t i = empty; i < arena->count; i++)
        joined += arena->chunk[i].size;
    size_t rest = arena->stats.reserved - joined;
    size = joined + WF_MAX(size, rest / 4);
    size = (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    if (!wf_grow(&arena->chunk, &arena->capacity, empty + 1, sizeof *arena->chunk))
        return false;
    for (; arena->count > empty; arena->count--) {
        const struct chunk *c = &arena->chunk[arena->count - 1];
        WF_UNPOISON(c->data, c->size);
        wf_free(c->data);
    }
    arena->stats.reserved = rest;
    char *data = wf_alloc(size);
    if (!data)
        return false;
    WF_POISON(data, size);
    arena->chunk[arena->count++] = (struct chunk){data, size};
    arena->stats.reserved += size;
    return true;
}

void *wf_arena_get(wf_arena *arena, size_t bytes)
{
    if (bytes > (size_t)PTRDIFF_MAX / 2)
        return NULL;
    size_t take = ((bytes ? bytes : 1) + LINE - 1) / LINE * LINE + RED_ZONE;
    if (arena->current == arena->count || arena->chunk[arena->current].size - arena->used < take) {
        const int64_t empty = arena->used == 0 ? arena->current : arena->current + 1;
        int64_t next = empty;
        while (next < arena->count && arena->chunk[next].size < take)
            next++;
        if (next == arena->count) {
            if (!add_chunk(arena, empty, take))
                return NULL;
            next = empty;
        }
        arena->current = next;
        arena->used = 0;
    }
    char *block = arena->chunk[arena->current].data + arena->used;
    arena->used += take;
    arena->stats.used += take;
    if (arena->stats.used > arena->stats.peak)
        arena->stats.peak = arena->stats.used;
    WF_UNPOISON(block, bytes);
    return block;
}

wf_arena_mark wf_arena_here(const wf_arena *arena)
{
    return (wf_arena_mark){arena->current, arena->used, arena->stats.used};
}

void wf_arena_rewind(wf_arena *arena, wf_arena_mark mark)
{
    assert(mark.chunk < arena->current || (mark.chunk == arena->current && mark.used <= arena->used));
#if defined __SANITIZE_ADDRESS__
    for (int64_t i = mark.chunk; i <= arena->current && i < arena->count; i++) {
        size_t from = i == mark.chunk ? mark.used : 0;
        WF_POISON(arena->chunk[i].data + from, arena->chunk[i].size - from);
    }
#endif
    arena->current = mark.chunk;
    arena->used = mark.used;
    arena->stats.used = mark.total;
}

/* The index of the chunk that contains the address; -1 if no chunk of the arena contains it. */
static int64_t chunk_of(const wf_arena *arena, const void *block)
{
    for (int64_t i = 0; i < arena->count; i++)
        if ((uintptr_t)block >= (uintptr_t)arena->chunk[i].data &&
            (uintptr_t)block - (uintptr_t)arena->chunk[i].data < arena->chunk[i].size)
            return i;
    return -1;
}

bool wf_arena_before(const wf_arena *arena, wf_arena_mark mark, const void *block)
{
    int64_t chunk = chunk_of(arena, block);
    return chunk >= 0 &&
           (chunk < mark.chunk || (chunk == mark.chunk && (size_t)((const char *)block - arena->chunk[chunk].data) < mark.used));
}

void *wf_arena_rewind_with(wf_arena *arena, wf_arena_mark mark, const void *data, size_t bytes)
{
    /* `moves`: the data lies in memory that the rewind takes back. The new block is the first after the mark, and the data was handed out
     * after the mark too, so the new block lies at or before the data. For such a block no new chunk is made, and the data's chunk is not
     * freed. */
    const bool moves = chunk_of(arena, data) >= 0 && !wf_arena_before(arena, mark, data);
    wf_arena_rewind(arena, mark);
    char *to = wf_arena_get(arena, bytes), *from = (char *)data;
    if (!to || bytes == 0)
        return to;
    if (moves)
        WF_UNPOISON(from, bytes);
    memmove(to, from, bytes);
    if (moves) {
        char *end = from + bytes, *gone = to + bytes > from && to <= from ? to + bytes : from;
        if (gone < end)
            WF_POISON(gone, (size_t)(end - gone));
    }
    return to;
}

void wf_arena_reset(wf_arena *arena)
{
    wf_arena_rewind(arena, (wf_arena_mark){0});
}

struct wf_arena_stats wf_arena_stats(const wf_arena *arena)
{
    return arena->stats;
}
