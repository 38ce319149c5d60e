/* SPDX-License-Identifier: MIT */
/* Running another program with a text as its standard input and its output in memory. */
#ifndef WEFT_REPORT_PROGRAM_H
#define WEFT_REPORT_PROGRAM_H

#include <weft/error.h>
#include <weft/strings.h>

enum { PROGRAM_COMPLAINT = 4096, PROGRAM_MISSING = 127 << 8 };
/* Finds the program on PATH, in a locale with UTF-8, gives it `input` and appends what it prints to *out. *status is as of waitpid
 * (PROGRAM_MISSING: there is no such program; 0 where the caller ignores SIGCHLD, and nobody learns how children end), `complaint` the
 * beginning of what it wrote to standard error. WF_OK whatever the program made of it; after an error *out may hold a part. */
wf_status program_run(const char *const *arguments, const struct wf_string *input, struct wf_string *out, int *status,
                      char complaint[PROGRAM_COMPLAINT + 1], wf_error *error) WF_CHECKED;

#endif
