/* SPDX-License-Identifier: MIT */
/* The allocator (weft/memory.h), with the counters and the simulated failures of weft/internal/testing.h. */
#include <malloc.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <weft/internal/minmax.h>
#include <weft/internal/testing.h>
#include <weft/memory.h>

enum { LINE = 64, HUGE_PAGE = 2 << 20 };

static _Atomic int64_t allocations, living;
static _Atomic int64_t fail_in = -1;

/* Whether a test wants this allocation to fail. The counter fail_in is counted down only after a test has set it, so that usual
 * allocations only read it. */
static bool must_fail(void)
{
    return atomic_load_explicit(&fail_in, memory_order_relaxed) >= 0 && atomic_fetch_sub(&fail_in, 1) == 0;
}

void *wf_alloc(size_t bytes)
{
    if (must_fail() || bytes > (size_t)PTRDIFF_MAX - HUGE_PAGE)
        return NULL;
    /* Large blocks use huge pages: each training step walks through all parameters and gradients, and the processor must look up the
     * address of each page that it enters. With huge pages it enters fewer pages. */
    bool large = bytes >= HUGE_PAGE;
    void *block = NULL;
    if (posix_memalign(&block, large ? HUGE_PAGE : LINE, bytes ? bytes : 1) != 0)
        return NULL;
    if (large)
        madvise(block, bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE); /* some systems refuse this, which is no error */
    atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&living, 1, memory_order_relaxed);
    return block;
}

void *wf_alloc_zero(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return NULL;
    void *block = wf_alloc(bytes);
    if (block)
        memset(block, 0, bytes);
    return block;
}

void *wf_realloc(void *old, size_t bytes)
{
    /* Not realloc(), which would lose the alignment. */
    void *block = wf_alloc(bytes);
    if (!block || !old)
        return block;
    size_t had = malloc_usable_size(old);
    memcpy(block, old, WF_MIN(had, bytes));
    wf_free(old);
    return block;
}

void wf_free(void *block)
{
    if (!block)
        return;
    atomic_fetch_sub_explicit(&living, 1, memory_order_relaxed);
    free(block);
}

char *wf_strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = wf_alloc(bytes);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

char *wf_format(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int length = vsnprintf(NULL, 0, format, list);
    va_end(list);
    char *text = length < 0 ? NULL : wf_alloc((size_t)length + 1);
    if (!text)
        return NULL;
    va_start(list, format);
    vsnprintf(text, (size_t)length + 1, format, list);
    va_end(list);
    return text;
}

int64_t wf_alloc_count(void)
{
    return atomic_load_explicit(&allocations, memory_order_relaxed);
}

int64_t wf_alloc_live(void)
{
    return atomic_load_explicit(&living, memory_order_relaxed);
}

void wf_alloc_fail_after(int64_t n)
{
    atomic_store(&fail_in, n < 0 ? -1 : n);
}
