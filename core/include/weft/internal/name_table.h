/* SPDX-License-Identifier: MIT */
/* A table from names to numbers: the one way to look names up where there may be many. */
#ifndef WEFT_INTERNAL_NAME_TABLE_H
#define WEFT_INTERNAL_NAME_TABLE_H

#include <weft/base.h>

/* All zero at first. */
struct wf_name_table {
    struct wf_name_slot {
        const char *name; /* NULL: free */
        uint64_t hash;
        int64_t number;
    } * slot;     /* open addressing; at most half of them are used */
    int64_t room; /* a power of two, or 0 */
    int64_t count;
    uint64_t key; /* of the hash: names may come from others' files */
};

/* Enters a name with a number >= 0. The name must not be in the table yet, and has to outlive it. false without memory, with the table as
 * it was. */
bool wf_name_table_add(struct wf_name_table *table, const char *name, int64_t number) WF_CHECKED;
/* The number of a name of `length` bytes; -1 if it is not in the table. */
int64_t wf_name_table_find(const struct wf_name_table *table, const char *name, size_t length);
void wf_name_table_free(struct wf_name_table *table); /* all zero afterwards */

#endif
