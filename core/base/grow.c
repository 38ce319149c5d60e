/* SPDX-License-Identifier: MIT */
/* The growing array (weft/internal/grow.h). */
#include <string.h>

#include <weft/internal/grow.h>
#include <weft/internal/minmax.h>
#include <weft/memory.h>

bool wf_grow(void *array, int64_t *capacity, int64_t need, size_t size)
{
    void *block;
    if (need <= *capacity)
        return true;
    int64_t room = *capacity > INT64_MAX / 2 ? need : WF_MAX(WF_MAX(need, 2 * *capacity), 16);
    if ((uint64_t)room > (uint64_t)PTRDIFF_MAX / size)
        return false;
    memcpy(&block, array, sizeof block); /* memcpy, because reading a T * through a void ** would break the rules of aliasing */
    if (!(block = wf_realloc(block, (size_t)room * size)))
        return false;
    memcpy(array, &block, sizeof block);
    *capacity = room;
    return true;
}
