/* SPDX-License-Identifier: MIT */
/* JSON lines: a file to which events are appended, one event a line, such as metrics.jsonl of a run. */
#ifndef WEFT_INTERNAL_JSONL_H
#define WEFT_INTERNAL_JSONL_H

#include <jansson.h>

#include <weft/error.h>

typedef struct append_file wf_jsonl;

/* Opens the file for appending, and creates it if it is missing. First removes the lines that a resume writes again: those whose member
 * "step" is an integer above `last`, and an incomplete last line, which a killed process left. Lines without that member stay. Returns NULL
 * and sets *error on failure. WF_ERR_FORMAT, with file:line:column: a line is not a JSON object. WF_ERR_IO: the path is a folder, a device
 * or a pipe. */
wf_jsonl *wf_jsonl_open(const char *path, int64_t last, wf_error *error) WF_CHECKED;

/* Appends a value as one line with one write, so that the line survives a crash of the process. On a full disk the file stays unchanged
 * (WF_ERR_IO). */
wf_status wf_jsonl_append(wf_jsonl *file, const json_t *event, wf_error *error) WF_CHECKED;

/* Waits until all lines are on the disk. */
wf_status wf_jsonl_sync(wf_jsonl *file, wf_error *error) WF_CHECKED;

void wf_jsonl_close(wf_jsonl *file); /* `file` may be NULL */

#endif
