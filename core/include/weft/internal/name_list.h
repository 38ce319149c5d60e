/* SPDX-License-Identifier: MIT */
/* Names for a message: the first few, and how many there are. */
#ifndef WEFT_INTERNAL_NAME_LIST_H
#define WEFT_INTERNAL_NAME_LIST_H

#include <weft/base.h>

/* All zero at first. */
struct wf_name_list {
    char text[400];
    size_t used;
    int count;
};

void wf_name_list_add(struct wf_name_list *list, const char *name, const char *detail);
/* Appends "2 missing: a, b" to a message in text, with a semicolon where it is not the first; nothing if the list is empty. */
void wf_name_list_put(const struct wf_name_list *list, const char *what, char *text, size_t size);

#endif
