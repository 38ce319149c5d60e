/* SPDX-License-Identifier: MIT */
/* Inside the room: the files of a text, opened and looked through. */
#ifndef WEFT_DATA_SOURCES_H
#define WEFT_DATA_SOURCES_H

#include "text_ids.h"

struct sources {
    struct text_file *file;
    struct text_scan *scan; /* of the caller's scans, or of `own` */
    struct text_part *part; /* each whole, without a byte order mark */
    int64_t files;
    int64_t characters, bytes;
    struct wf_scans own;
};

/* WF_ERR_ARGUMENT without files; `pipes` and other errors as in text_file_open. Close it on an error too. */
wf_status sources_open(struct sources *s, const char *const *paths, int64_t files, bool pipes, wf_error *error) WF_CHECKED;
/* scans: of other calls, which must stay until it is closed; NULL: none. */
wf_status sources_scan(struct sources *s, struct wf_scans *scans, struct text_progress *progress, wf_error *error) WF_CHECKED;
void sources_close(struct sources *s); /* also of {0} */

#endif
