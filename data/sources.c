/* SPDX-License-Identifier: MIT */
/* Opens and scans the text files that a call encodes. */
#include <inttypes.h>

#include <weft/memory.h>

#include "sources.h"

void sources_close(struct sources *s)
{
    for (int64_t i = 0; s->file && i < s->files; i++)
        text_file_close(s->file + i);
    text_scans_clear(&s->own);
    wf_free(s->file);
    wf_free(s->scan);
    wf_free(s->part);
    *s = (struct sources){0};
}

wf_status sources_open(struct sources *s, const char *const *paths, int64_t files, bool pipes, wf_error *error)
{
    *s = (struct sources){.files = files};
    if (files < 1)
        return wf_error_set(error, WF_ERR_ARGUMENT, "no text file given; name at least one");
    s->file = wf_alloc_zero((size_t)files, sizeof *s->file);
    s->scan = wf_alloc_zero((size_t)files, sizeof *s->scan);
    s->part = wf_alloc_zero((size_t)files, sizeof *s->part);
    if (!s->file || !s->scan || !s->part)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for %" PRId64 " files", files);
    for (int64_t i = 0; i < files; i++) {
        wf_status status = text_file_open(s->file + i, paths[i], pipes, error);
        if (status != WF_OK)
            return status;
        s->bytes += s->file[i].bytes;
    }
    return WF_OK;
}

wf_status sources_scan(struct sources *s, struct wf_scans *scans, struct text_progress *progress, wf_error *error)
{
    for (int64_t i = 0; i < s->files; i++) {
        wf_status status = text_file_scan_once(s->file + i, scans ? scans : &s->own, progress, s->scan + i, error);
        if (status != WF_OK)
            return status;
        s->part[i] = (struct text_part){s->file + i, s->scan[i].content, s->scan[i].first, s->file[i].bytes};
        s->characters += s->scan[i].points[s->scan[i].pieces];
    }
    return WF_OK;
}
