/* SPDX-License-Identifier: MIT */
/* The growing array: all code that enlarges an array uses this function. */
#ifndef WEFT_INTERNAL_GROW_H
#define WEFT_INTERNAL_GROW_H

#include <weft/base.h>

/* Makes *array large enough for `need` elements of `size` bytes. `array` is the address of a pointer to *capacity elements; the
 * pointer is NULL and *capacity is 0 at first, and the caller frees the array with wf_free. The contents stay. The capacity at least
 * doubles, so that appending costs O(1) per element. Returns false if out of memory, and the array is then unchanged.
 *
 *     if (!wf_grow(&list->id, &list->capacity, list->count + 1, sizeof *list->id))
 *         return wf_error_set(error, WF_ERR_MEMORY, "no memory for %lld ids", ...);
 *     list->id[list->count++] = id; */
bool wf_grow(void *array, int64_t *capacity, int64_t need, size_t size) WF_CHECKED;

#endif
