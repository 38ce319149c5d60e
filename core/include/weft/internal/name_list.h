/* SPDX-License-Identifier: MIT */
/* A list of names for a message: it keeps the first names and counts all. */
#ifndef WEFT_INTERNAL_NAME_LIST_H
#define WEFT_INTERNAL_NAME_LIST_H

#include <weft/base.h>

/* Initialise it with zeros. */
struct wf_name_list {
    char text[400];
    size_t used;
    int count;
};

/* Adds the name and `detail`, such as " [2] instead of [3]" or "", to the text. If the two no longer fit, the name is only counted. */
void wf_name_list_add(struct wf_name_list *list, const char *name, const char *detail);
/* Appends "2 missing: a, b" to the message in `text`, after a semicolon if the message is not empty. An empty list appends nothing.
 * `what` says what the names have in common, such as "missing". */
void wf_name_list_put(const struct wf_name_list *list, const char *what, char *text, size_t size);

#endif
