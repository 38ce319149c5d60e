/* SPDX-License-Identifier: MIT */
/* The pool of a tape's buffers. New buffers come from the arena. A released buffer goes to the list of its size class, from which pool_take
 * takes it again. There are eight classes from one power of two to the next, and sizes are rounded up to that of a class, so that arrays of
 * similar size use the same buffers. */
#include <string.h>

#include <weft/internal/asan.h>

#include "engine.h"

static int class_of(size_t bytes, size_t *rounded)
{
    if (bytes < 512)
        bytes = 512;
    int e = 63 - __builtin_clzll(bytes);
    size_t step = (size_t)1 << (e - 3);
    size_t up = (bytes + step - 1) / step * step;
    e = 63 - __builtin_clzll(up);
    *rounded = up;
    return e * 8 + (int)((up - ((size_t)1 << e)) >> (e - 3));
}

enum { LARGER = 3 };

enum { NAN_BYTE = 0xFF }; /* a float or double in which all bytes have this value is NaN */

struct buffer *pool_take(wf_tape *tape, size_t bytes)
{
    size_t rounded;
    int class = class_of(bytes, &rounded);
    int from = class; /* a buffer that is up to LARGER classes too large serves before the arena grows */
    while (!tape->pool.free[from] && from < class + LARGER && from + 1 < POOL_CLASSES)
        from++;
    struct buffer *b = tape->pool.free[from];
    if (b) {
        tape->pool.free[from] = b->next;
    } else {
        b = wf_tape_memory(tape, sizeof *b);
        void *data = b ? wf_tape_memory(tape, rounded) : NULL;
        if (!data)
            return NULL;
        *b = (struct buffer){.data = data, .bytes = rounded, .class = class};
        WF_POISON(data, rounded);
    }
    WF_UNPOISON(b->data, bytes); /* AddressSanitizer still reports access to the bytes that rounding added */
    if (tape->erase)
        memset(b->data, NAN_BYTE, bytes);
    b->refs = 1;
    b->next = NULL;
    return b;
}

void pool_release(wf_tape *tape, struct buffer *b)
{
    if (!b || --b->refs > 0)
        return;
    if (tape->erase) {
        WF_UNPOISON(b->data, b->bytes);
        memset(b->data, NAN_BYTE, b->bytes);
    }
    WF_POISON(b->data, b->bytes);
    if (tape->erase)
        return;
    b->next = tape->pool.free[b->class];
    tape->pool.free[b->class] = b;
    tape->pool.filled[b->class / 64] |= (uint64_t)1 << b->class % 64;
}

void pool_rewind(wf_tape *tape, wf_arena_mark mark)
{
    /* Text generation rewinds at each sublayer of each token, so the many empty lists must cost no time here. */
    for (int word = 0; word < POOL_CLASSES / 64; word++)
        for (uint64_t *filled = &tape->pool.filled[word], left = *filled; left; left &= left - 1) {
            const int class = 64 * word + __builtin_ctzll(left);
            for (struct buffer **b = &tape->pool.free[class]; *b;) {
                if (wf_arena_before(tape->arena, mark, *b))
                    b = &(*b)->next;
                else
                    *b = (*b)->next;
            }
            if (!tape->pool.free[class])
                *filled &= ~((uint64_t)1 << class % 64);
        }
}
