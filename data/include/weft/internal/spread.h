/* SPDX-License-Identifier: MIT */
/* Chooses pieces of a text to evaluate on: evenly spread over the text, and the same ones every time. */
#ifndef WEFT_INTERNAL_SPREAD_H
#define WEFT_INTERNAL_SPREAD_H

#include <weft/batches.h>

/* Chooses about `limit` of `count` elements, in pieces of *rows windows of `context` elements. Reduces *rows if there would be few pieces.
 * `chosen` is 0 if all elements are used: because limit is 0 or not below count, or because every piece would be chosen. */
struct wf_spread wf_spread_of(int64_t limit, int64_t count, int64_t context, int64_t *rows);
/* The index of chosen piece i, for 0 <= i < chosen. Indices ascend and are below total. */
int64_t wf_spread_at(const struct wf_spread *spread, int64_t i);

#endif
