/* SPDX-License-Identifier: MIT */
/* JSON lines: a file to which one event a line is appended, such as metrics.jsonl of a run. */
#ifndef WEFT_INTERNAL_JSONL_H
#define WEFT_INTERNAL_JSONL_H

#include <jansson.h>

#include <weft/error.h>

typedef struct wf_jsonl wf_jsonl;

/* Opens the file for appending and makes it where it is missing. A last line without its newline, which a killed process left, is
 * cut off. NULL on failure. */
wf_jsonl *wf_jsonl_open(const char *path, wf_error *error) WF_CHECKED;

/* Appends a value as one line with one write: it is in the system's hands when this returns, and survives the death of the process.
 * When the disk is full the part that was written is cut off again and the file is as before. */
wf_status wf_jsonl_append(wf_jsonl *file, const json_t *event, wf_error *error) WF_CHECKED;

/* Waits until all lines are on the disk. */
wf_status wf_jsonl_sync(wf_jsonl *file, wf_error *error) WF_CHECKED;

void wf_jsonl_close(wf_jsonl *file); /* NULL is allowed */

/* For a resume: removes, atomically, every line whose member `key` (such as "step") is an integer above `last`, and a torn last
 * line. Lines without that member stay. A file that is missing, or in which nothing is to be removed, is left alone. A line that is
 * no JSON object is WF_ERR_FORMAT, as file:line:column. Not while the file is open with wf_jsonl_open: that handle would go on
 * writing to the old file. */
wf_status wf_jsonl_drop_after(const char *path, const char *key, int64_t last, wf_error *error) WF_CHECKED;

#endif
