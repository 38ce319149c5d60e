/* SPDX-License-Identifier: MIT */
/* Radix sort of a row, least significant digit first. Each of its sorts by a digit is stable, so equal values stay in the order of their
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

static inline int digit_of(wf_real x, int digit)
{
    return (int)(key_of(x) >> (DIGIT * digit)) & (BUCKETS - 1);
}

void sort_row(int64_t n, const wf_real *x, struct item *to, struct item *other)
{
    int32_t start[DIGITS][BUCKETS] = {{0}};
    struct item *from = other, *next = to;
    for (int64_t i = 0; i < n; i++) {
        const key k = key_of(x[i]);
        from[i] = (struct item){x[i], (int32_t)i};
        for (int d = 0; d < DIGITS; d++)
            start[d][(k >> (DIGIT * d)) & (BUCKETS - 1)]++;
    }
    for (int d = 0; d < DIGITS; d++) {
        if (n == 0 || start[d][digit_of(from[0].value, d)] == n) /* all elements have the same digit */
            continue;
        int32_t sum = 0;
        for (int b = 0; b < BUCKETS; b++) {
            const int32_t count = start[d][b];
            start[d][b] = sum;
            sum += count;
        }
        for (int64_t i = 0; i < n; i++)
            next[start[d][digit_of(from[i].value, d)]++] = from[i];
        struct item *const done = next;
        next = from;
        from = done;
    }
    if (from != to)
        memcpy(to, from, (size_t)n * sizeof *to);
}
