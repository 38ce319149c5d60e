/* SPDX-License-Identifier: MIT */
/* Arrays that grow and are kept from call to call. */
#ifndef WEFT_MODELS_ROOM_H
#define WEFT_MODELS_ROOM_H

#include <string.h>

#include <weft/memory.h>

/* Room for `need` elements of `each` bytes in *(T **)array, which has *room; what is there stays. false without memory. */
static inline bool room_for(void *array, int64_t *room, int64_t need, size_t each)
{
    void *old, *grown;
    if (need <= *room)
        return true;
    memcpy(&old, array, sizeof old);
    if (!(grown = wf_realloc(old, (size_t)(2 * need) * each)))
        return false;
    memcpy(array, &grown, sizeof grown);
    *room = 2 * need;
    return true;
}

#endif
