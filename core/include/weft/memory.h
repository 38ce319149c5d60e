/* SPDX-License-Identifier: MIT */
/* The one allocator, and arenas on top of it. */
#ifndef WEFT_MEMORY_H
#define WEFT_MEMORY_H

#include <weft/base.h>

WF_BEGIN_DECLS

/* All memory of the library comes from here, 64-byte aligned; NULL when there is none. wf_free(NULL) does nothing. */
WF_API void *wf_alloc(size_t bytes);
WF_API void *wf_alloc_zero(size_t count, size_t size); /* checks count * size for overflow */
WF_API void *wf_realloc(void *old, size_t bytes);      /* the old block stays when NULL comes back */
WF_API void wf_free(void *block);
WF_API char *wf_strdup(const char *text);
/* A formatted string, freed with wf_free; NULL without memory. */
WF_API char *wf_format(const char *format, ...) WF_PRINTF(1, 2);

/* For tests. Calls that allocated since the start, and blocks that live now. */
WF_API int64_t wf_alloc_count(void);
WF_API int64_t wf_alloc_live(void);
/* For tests: the n-th allocation from now fails (0: the next one), once; a negative n lets all succeed. */
WF_API void wf_alloc_fail_after(int64_t n);

/* An arena hands out memory that is given back all at once. It grows by chunks of at least 2 MiB, 2 MiB aligned and
 * marked for huge pages; nothing is unmapped before wf_arena_free, so that from its high-water mark on there is neither
 * an allocation nor a page fault. Under AddressSanitizer what is not handed out is poisoned, with red zones between. */
typedef struct wf_arena wf_arena;
typedef struct wf_arena_mark {
    int32_t chunk;
    size_t used;
    size_t total;
} wf_arena_mark;

WF_API wf_arena *wf_arena_new(void);       /* NULL without memory */
WF_API void wf_arena_free(wf_arena *arena);
/* 64-byte aligned, not cleared; NULL without memory. The block lives until the arena is reset or rewound past it. */
WF_API void *wf_arena_get(wf_arena *arena, size_t bytes);
WF_API wf_arena_mark wf_arena_here(const wf_arena *arena);
WF_API void wf_arena_rewind(wf_arena *arena, wf_arena_mark mark);
WF_API void wf_arena_reset(wf_arena *arena);
WF_API size_t wf_arena_used(const wf_arena *arena);     /* bytes handed out now */
WF_API size_t wf_arena_peak(const wf_arena *arena);     /* the most that ever was handed out */
WF_API size_t wf_arena_reserved(const wf_arena *arena); /* bytes of all chunks */

WF_END_DECLS

#endif
