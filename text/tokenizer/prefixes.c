/* SPDX-License-Identifier: MIT */
/* Binary search for the longest string of a sorted set that a text begins with. */
#include <stdlib.h>
#include <string.h>

#include <weft/internal/minmax.h>

#include "prefixes.h"

static int compare(const void *a, const void *b)
{
    const struct prefix *x = a, *y = b;
    int order = memcmp(x->data, y->data, (size_t)WF_MIN(x->length, y->length));
    if (order == 0)
        order = x->length < y->length ? -1 : x->length > y->length;
    return order ? order : x->value < y->value ? -1 : x->value > y->value;
}

void prefixes_sort(struct prefixes *set)
{
    if (set->count > 0)
        qsort(set->prefix, (size_t)set->count, sizeof *set->prefix, compare);
    for (int64_t byte = 0, i = 0; byte <= 256; byte++) {
        while (i < set->count && (unsigned char)set->prefix[i].data[0] < byte)
            i++;
        set->first[byte] = (int32_t)i;
    }
}

static inline int byte_of(const struct prefixes *set, int64_t i, int64_t depth)
{
    return (unsigned char)set->prefix[i].data[depth];
}

/* The first index in low .. high-1 whose byte at `depth` is at least `limit`; high if there is none. Searches from both ends, because the
 * index is mostly near one end. */
static int64_t bound(const struct prefixes *set, int64_t low, int64_t high, int64_t depth, int limit)
{
    for (int64_t step = 1; low < high; step *= 2) {
        int64_t from = low + step - 1 < high ? low + step - 1 : high - 1, to = WF_MAX(high - step, low);
        if (byte_of(set, from, depth) >= limit) {
            high = from;
            break;
        }
        if (byte_of(set, to, depth) < limit) {
            low = to + 1;
            break;
        }
        low = from + 1;
        high = to;
    }
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (byte_of(set, middle, depth) < limit)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct prefix *prefixes_find(const struct prefixes *set, const char *text, int64_t length)
{
    const struct prefix *best = NULL;
    int64_t low = set->first[(unsigned char)text[0]], high = set->first[(unsigned char)text[0] + 1];
    for (int64_t depth = 1; low < high; depth++) {
        if (set->prefix[low].length == depth) {
            best = set->prefix + low;
            while (low < high && set->prefix[low].length == depth)
                low++;
        }
        if (low == high || depth == length)
            break;
        int byte = (unsigned char)text[depth];
        if (byte_of(set, low, depth) != byte)
            low = bound(set, low, high, depth, byte);
        if (low < high && byte_of(set, high - 1, depth) != byte)
            high = bound(set, low, high, depth, byte + 1);
    }
    return best;
}
