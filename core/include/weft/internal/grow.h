/* SPDX-License-Identifier: MIT */
/* The growing array: the one place where arrays are made larger. */
#ifndef WEFT_INTERNAL_GROW_H
#define WEFT_INTERNAL_GROW_H

#include <weft/base.h>

/* Makes room for `need` elements of `size` bytes in *array (a T ** with *capacity elements, both 0 at first; freed with wf_free). The
 * contents stay; the capacity at least doubles, so that appending costs O(1) an element. false without memory, with the array as it was.
 *
 *     if (!wf_grow(&list->id, &list->capacity, list->count + 1, sizeof *list->id))
 *         return wf_error_set(error, WF_ERR_MEMORY, "no memory for %lld ids", ...);
 *     list->id[list->count++] = id; */
bool wf_grow(void *array, int64_t *capacity, int64_t need, size_t size) WF_CHECKED;

#endif
