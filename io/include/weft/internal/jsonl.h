/* SPDX-License-Identifier: MIT */
/* JSON lines: a file to which one event a line is appended, such as metrics.jsonl of a run. */
#ifndef WEFT_INTERNAL_JSONL_H
#define WEFT_INTERNAL_JSONL_H

#include <jansson.h>

#include <weft/error.h>

typedef struct append_file wf_jsonl;

/* Opens the file for appending and creates it if it is missing. What a resume writes again is removed first: an incomplete last line, which
 * a killed process left, and every line whose member "step" is an integer above `last`. Lines without that member stay. A line that is not
 * a JSON object is WF_ERR_FORMAT, as file:line:column; a folder, a device or a pipe WF_ERR_IO. NULL on failure. */
wf_jsonl *wf_jsonl_open(const char *path, int64_t last, wf_error *error) WF_CHECKED;

/* Appends a value as one line with one write, so that it survives a crash of the process. On a full disk the file is unchanged (WF_ERR_IO).
 */
wf_status wf_jsonl_append(wf_jsonl *file, const json_t *event, wf_error *error) WF_CHECKED;

/* Waits until all lines are on the disk. */
wf_status wf_jsonl_sync(wf_jsonl *file, wf_error *error) WF_CHECKED;

void wf_jsonl_close(wf_jsonl *file); /* NULL is allowed */

#endif
