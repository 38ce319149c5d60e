/* SPDX-License-Identifier: MIT */
/* A hash table from names to numbers, for lookups among many names. */
#ifndef WEFT_INTERNAL_NAME_TABLE_H
#define WEFT_INTERNAL_NAME_TABLE_H

#include <weft/base.h>

/* Initialise it with zeros. */
struct wf_name_table {
    struct wf_name_slot {
        const char *name; /* NULL: the slot is free */
        uint64_t hash;
        int64_t number;
    } * slot;     /* open addressing; at most half of the slots are used */
    int64_t room; /* number of slots: a power of two, or 0 */
    int64_t count;
    uint64_t key; /* random seed of the hash, because names may come from foreign files */
};

/* Adds a name with a number >= 0. The name must not be in the table yet, and must outlive the table. Returns false if out of memory, and
 * the table is then unchanged. */
bool wf_name_table_add(struct wf_name_table *table, const char *name, int64_t number) WF_CHECKED;
/* The number of a name of `length` bytes; -1 if it is not in the table. */
int64_t wf_name_table_find(const struct wf_name_table *table, const char *name, size_t length);
void wf_name_table_free(struct wf_name_table *table); /* the table is zeroed afterwards */

#endif
