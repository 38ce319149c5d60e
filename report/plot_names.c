/* SPDX-License-Identifier: MIT */
/* What runs are called in a legend. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <weft/internal/utf8.h>
#include <weft/memory.h>

#include "plot_runs.h"

/* Where the last `parts` parts of the path begin; its beginning when it has no more. */
static const char *last_parts(const char *path, int parts)
{
    const char *at = path[0] == '/' && !path[1] ? path : path + strlen(path);
    while (at > path && !(at[-1] == '/' && --parts == 0))
        at--;
    return at;
}

/* The folder's name without what would not be text in a terminal or an SVG. NULL without memory. */
static char *clean(const char *path)
{
    int64_t bytes = (int64_t)strlen(path), used = 0;
    char *out = wf_alloc((sizeof SCRIPT_REPLACEMENT - 1) * (size_t)bytes + 1);
    if (!out)
        return NULL;
    for (int64_t i = 0; i < bytes;) {
        uint32_t c;
        int length = wf_utf8_decode(path + i, bytes - i, &c);
        bool shown = length > 0 && script_shows(c);
        size_t size = shown ? (size_t)length : sizeof SCRIPT_REPLACEMENT - 1;
        memcpy(out + used, shown ? path + i : SCRIPT_REPLACEMENT, size);
        used += (int64_t)size;
        i += length ? length : 1;
    }
    out[used] = 0;
    return out;
}

/* The path without slashes and "." at its end; of "..", "." and "/" what they stand for; clean. NULL without memory. */
static char *plain_path(const char *path)
{
    size_t length = strlen(path);
    while (length > 1 && (path[length - 1] == '/' || (path[length - 1] == '.' && path[length - 2] == '/')))
        length--;
    char *copy = wf_format("%.*s", (int)length, path), real[PATH_MAX];
    if (!copy)
        return NULL;
    const char *last = last_parts(copy, 1);
    if ((strcmp(last, ".") == 0 || strcmp(last, "..") == 0) && realpath(path, real)) {
        wf_free(copy);
        copy = wf_strdup(real);
    }
    char *out = copy ? clean(copy) : NULL;
    wf_free(copy);
    return out;
}

static bool begins_character(const char *c)
{
    return ((unsigned char)*c & 0xc0) != 0x80;
}

/* Letters of East Asia, and pictures, are twice as wide. */
static int width_of(const char *c)
{
    unsigned char lead = (unsigned char)*c;
    return !begins_character(c) ? 0 : lead >= 0xe3 && lead != 0xef ? 2 : 1;
}

int text_columns(const char *text)
{
    int columns = 0;
    for (; *text; text++)
        columns += width_of(text);
    return columns;
}

/* The middle of a long name goes: what tells runs apart stands at either end. */
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

static wf_status choose(char *const *path, int64_t count, char **name, wf_error *error)
{
    for (int64_t i = 0; i < count; i++) {
        const char *end = path[i];
        int parts = 1;
        for (bool alone = false; !alone; parts++) {
            end = last_parts(path[i], parts);
            alone = true;
            for (int64_t j = 0; j < count && end > path[i]; j++)
                alone = alone && (strcmp(path[i], path[j]) == 0 || strcmp(end, last_parts(path[j], parts)) != 0);
        }
        if (!(name[i] = shorten(end)))
            return wf_error_set(error, WF_ERR_MEMORY, "no memory for a run's name");
    }
    return WF_OK;
}

wf_status plot_names(const char *const *runs, int64_t count, char **name, wf_error *error)
{
    char **path = wf_alloc_zero((size_t)count, sizeof *path);
    bool fine = path != NULL;
    for (int64_t i = 0; i < count; i++)
        name[i] = NULL;
    for (int64_t i = 0; i < count && fine; i++)
        fine = (path[i] = plain_path(runs[i])) != NULL;
    wf_status status = fine ? choose(path, count, name, error) : wf_error_set(error, WF_ERR_MEMORY, "no memory for names of runs");
    for (int64_t i = 0; i < count && path; i++)
        wf_free(path[i]);
    wf_free(path);
    return status;
}
