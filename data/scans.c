/* SPDX-License-Identifier: MIT */
/* A list of scans, so that calls that share it scan each file once. */
#include <string.h>

#include <weft/memory.h>

#include "text_file.h"

struct scanned {
    struct scanned *next;
    struct stat info; /* fstat of the file when it was opened */
    bool regular;     /* not a pipe or a device */
    struct text_scan scan;
};

/* Whether `s` is a scan of this file and the file has not changed since. */
static bool is_of(const struct scanned *s, const struct text_file *file)
{
    const struct stat *a = &s->info, *b = &file->info;
    return s->regular && !file->memory && a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           !memcmp(&a->st_mtim, &b->st_mtim, sizeof a->st_mtim) && !memcmp(&a->st_ctim, &b->st_ctim, sizeof a->st_ctim);
}

wf_status text_file_scan_once(const struct text_file *file, struct wf_scans *scans, struct text_progress *progress, struct text_scan *out,
                              wf_error *error)
{
    struct scanned *s = scans->first;
    while (s && !is_of(s, file))
        s = s->next;
    if (!s) {
        if (!(s = wf_alloc_zero(1, sizeof *s)))
            return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory to look through it", file->path);
        wf_status status = text_file_scan(file, progress, &s->scan, error);
        if (status != WF_OK) {
            wf_free(s);
            return status;
        }
        s->info = file->info;
        s->regular = !file->memory;
        s->next = scans->first;
        scans->first = s;
    }
    *out = s->scan;
    return WF_OK;
}

void text_scans_clear(struct wf_scans *scans)
{
    for (struct scanned *s = scans->first, *next; s; s = next) {
        next = s->next;
        text_scan_free(&s->scan);
        wf_free(s);
    }
    scans->first = NULL;
}

wf_scans *wf_scans_new(void)
{
    return wf_alloc_zero(1, sizeof(wf_scans));
}

void wf_scans_free(wf_scans *scans)
{
    if (!scans)
        return;
    text_scans_clear(scans);
    wf_free(scans);
}
