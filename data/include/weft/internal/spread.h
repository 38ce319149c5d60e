/* SPDX-License-Identifier: MIT */
/* A part of a text to evaluate on: pieces that are evenly spread over it, the same each time. */
#ifndef WEFT_INTERNAL_SPREAD_H
#define WEFT_INTERNAL_SPREAD_H

#include <weft/batches.h>

/* About `limit` of `count` elements in pieces of *rows windows of `context`; *rows becomes smaller where pieces would be few. chosen 0: all
 * elements, since limit is 0 or covers them. */
struct wf_spread wf_spread_of(int64_t limit, int64_t count, int64_t context, int64_t *rows);
/* The index of piece i, 0 <= i < chosen: below total, ascending. */
int64_t wf_spread_at(const struct wf_spread *spread, int64_t i);

#endif
