/* SPDX-License-Identifier: MIT */
/* Running another program with a text as its standard input and its output in memory. */
#ifndef WEFT_REPORT_PROGRAM_H
#define WEFT_REPORT_PROGRAM_H

#include <weft/tokenizer.h>

enum { PROGRAM_COMPLAINT = 4096 };
struct program_end {
    bool known;                            /* false where the caller ignores SIGCHLD: nobody learns how children end */
    int status;                            /* as of waitpid */
    char complaint[PROGRAM_COMPLAINT + 1]; /* the beginning of what it wrote to standard error */
};
/* Finds the program on PATH, gives it `input` (NULL: nothing) and appends what it prints to *out, until it has ended. Its environment is
 * ours less `drop` (beginnings such as "TERM=", ended by NULL), in a locale that knows UTF-8. No signal reaches the caller, no process, no
 * descriptor is left. WF_OK whatever the program made of it: see *end; after an error *out holds a part. WF_ERR_EXISTS: there is no such program. */
wf_status program_run(const char *const *arguments, const char *const *drop, const struct wf_string *input, struct wf_string *out,
                      struct program_end *end, wf_error *error) WF_CHECKED;

#endif
