/* SPDX-License-Identifier: MIT */
/* Radix sort of a row, least significant digit first; short rows by insertion. Both are stable, so equal values stay in the order of their
 * indices. */
#include <string.h>

#include "sort.h"

#ifdef WF_DOUBLE
typedef uint64_t key;
#else
typedef uint32_t key;
#endif
enum { BITS = 8 * sizeof(key), DIGIT = 11, BUCKETS = 1 << DIGIT, DIGITS = (BITS + DIGIT - 1) / DIGIT };

/* The key by which elements are sorted: smaller keys come first. NaN has the key 0, and 0 and -0 have the same key. */
static inline key key_of(wf_real x)
{
    const key sign = (key)1 << (BITS - 1);
    key bits;
    if (x != x)
        return 0;
    x += 0; /* -0 becomes 0 */
    memcpy(&bits, &x, sizeof bits);
    return bits & sign ? bits : ~bits & ~sign; /* the complement of a positive number's bits, so that larger numbers come first */
}

static inline int digit_of(key k, int digit)
{
    return (int)(k >> (DIGIT * digit)) & (BUCKETS - 1);
}

/* Rows of at most SHORT elements: each element is inserted before the first one that is not smaller by its key. */
enum { SHORT = 32 };
static void insert_row(int64_t n, const wf_real *x, key flip, struct item *to)
{
    for (int64_t i = 0; i < n; i++) {
        const key k = key_of(x[i]) ^ flip;
        int64_t at = i;
        for (; at > 0 && (key_of(to[at - 1].value) ^ flip) > k; at--)
            to[at] = to[at - 1];
        to[at] = (struct item){x[i], (int32_t)i};
    }
}

void sort_row(int64_t n, const wf_real *x, bool ascending, struct item *to, struct item *other)
{
    const key flip = ascending ? ~(key)0 : 0; /* the complement of the keys reverses the order of different keys only */
    if (n <= SHORT) {
        insert_row(n, x, flip, to);
        return;
    }
    int32_t start[DIGITS][BUCKETS] = {{0}};
    struct item *from = other, *next = to;
    for (int64_t i = 0; i < n; i++) {
        const key k = key_of(x[i]) ^ flip;
        from[i] = (struct item){x[i], (int32_t)i};
        for (int d = 0; d < DIGITS; d++)
            start[d][digit_of(k, d)]++;
    }
    for (int d = 0; d < DIGITS; d++) {
        if (start[d][digit_of(key_of(from[0].value) ^ flip, d)] == n) /* all elements have the same digit */
            continue;
        int32_t sum = 0;
        for (int b = 0; b < BUCKETS; b++) {
            const int32_t count = start[d][b];
            start[d][b] = sum;
            sum += count;
        }
        for (int64_t i = 0; i < n; i++)
            next[start[d][digit_of(key_of(from[i].value) ^ flip, d)]++] = from[i];
        struct item *const done = next;
        next = from;
        from = done;
    }
    if (from != to)
        memcpy(to, from, (size_t)n * sizeof *to);
}
