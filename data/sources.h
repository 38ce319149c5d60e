/* SPDX-License-Identifier: MIT */
/* Internal to data/: the text files that a call encodes, opened and scanned. */
#ifndef WEFT_DATA_SOURCES_H
#define WEFT_DATA_SOURCES_H

#include "text_ids.h"

struct sources {
    struct text_file *file;
    struct text_scan *scan; /* [files]; their memory belongs to the caller's scans or to `own` */
    struct text_part *part; /* [files]: each whole file without its byte order mark */
    int64_t files;
    int64_t characters;  /* number of characters of all files together */
    int64_t bytes;       /* number of bytes of all files together */
    struct wf_scans own; /* the scans, if the caller gives none */
};

/* Opens the files. `pipes` means the same as for text_file_open. WF_ERR_ARGUMENT if files < 1; WF_ERR_MEMORY; the errors of
 * text_file_open. Call sources_close after an error too. */
wf_status sources_open(struct sources *s, const char *const *paths, int64_t files, bool pipes, wf_error *error) WF_CHECKED;
/* Scans every file. `scans`: the caller's scans, which must stay valid until sources_close. NULL: uses s->own. */
wf_status sources_scan(struct sources *s, struct wf_scans *scans, struct text_progress *progress, wf_error *error) WF_CHECKED;
void sources_close(struct sources *s); /* {0} is allowed */

#endif
