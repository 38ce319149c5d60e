/* SPDX-License-Identifier: MIT */
/* A list of names for a message (weft/internal/name_list.h). */
#include <stdio.h>
#include <string.h>

#include <weft/internal/name_list.h>

void wf_name_list_add(struct wf_name_list *list, const char *name, const char *detail)
{
    list->count++;
    if (list->used + strlen(name) + strlen(detail) + 4 < sizeof list->text)
        list->used +=
            (size_t)snprintf(list->text + list->used, sizeof list->text - list->used, "%s%s%s", list->used ? ", " : "", name, detail);
}

void wf_name_list_put(const struct wf_name_list *list, const char *what, char *text, size_t size)
{
    size_t used = strlen(text);
    if (list->count > 0)
        snprintf(text + used, size - used, "%s%d %s: %s", used ? "; " : "", list->count, what, list->text);
}
