/* SPDX-License-Identifier: MIT */
/* Chooses the names of runs for the legend of a plot. */
#include <string.h>

#include <weft/memory.h>

#include "labels.h"
#include "plot_runs.h"

/* The columns of the character that begins at this byte; 0 if the byte continues a character. East Asian letters and emoji take two. */
static int width_of(const char *c)
{
    unsigned char lead = (unsigned char)*c;
    return (lead & 0xc0) == 0x80 ? 0 : lead >= 0xe3 && lead != 0xef ? 2 : 1;
}

int text_columns(const char *text)
{
    int columns = 0;
    for (; *text; text++)
        columns += width_of(text);
    return columns;
}

/* Shortens a long name in the middle, because names of runs usually differ at the beginning or at the end. NULL without memory. */
static char *shorten(const char *name)
{
    if (text_columns(name) <= NAME_COLUMNS)
        return wf_strdup(name);
    const char *head = name, *tail = name + strlen(name);
    for (int columns = 0; columns + width_of(head) <= NAME_COLUMNS / 3; head++)
        columns += width_of(head);
    for (int columns = 0; columns < NAME_COLUMNS - NAME_COLUMNS / 3 - 2;)
        columns += width_of(--tail);
    return wf_format("%.*s\xe2\x80\xa6%s", (int)(head - name), name, tail);
}

static size_t trimmed(const char *path)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    return length;
}

wf_status plot_name_runs(struct plot *p, const char *const *runs, wf_error *error)
{
    size_t shared = trimmed(runs[0]);
    for (int64_t i = 1; i < p->count; i++)
        while (strncmp(runs[i], runs[0], shared) != 0)
            shared--;
    while (shared > 0 && runs[0][shared - 1] != '/')
        shared--;
    for (int64_t i = 0; i < p->count; i++) {
        struct wf_string name = {0};
        size_t length = trimmed(runs[i]), from = shared < length ? shared : 0;
        label_clean(&name, runs[i] + from, (int64_t)(length - from), false);
        p->run[i].name = name.failed ? NULL : shorten(name.data);
        wf_string_free(&name);
        if (!p->run[i].name)
            return wf_error_set(error, WF_ERR_MEMORY, "no memory for a run's name");
    }
    return WF_OK;
}
