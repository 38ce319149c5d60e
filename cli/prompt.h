/* SPDX-License-Identifier: MIT */
/* The prompt of `weft generate`: an argument, a file, or standard input. */
#ifndef WEFT_CLI_PROMPT_H
#define WEFT_CLI_PROMPT_H

#include <weft/error.h>

struct prompt {
    const char *text; /* UTF-8 without NUL; "" without a prompt */
    int64_t length;   /* bytes */
    bool given;       /* false: there is no prompt, and the model begins a text */
    char *memory;     /* holds what was read from a file or standard input; else NULL */
};
/* Takes the prompt from the file named `file`, or if `file` is NULL from `text`. "-" for `file` or `text` stands for standard input, which
 * is read to its end. A byte order mark and one final line end of a file or of standard input are dropped. If both are NULL, there is no
 * prompt. Free it with prompt_free, also after an error. */
wf_status prompt_read(const char *text, const char *file, struct prompt *prompt, wf_error *error) WF_CHECKED;
void prompt_free(struct prompt *prompt);
/* Whether standard input is a file or a pipe with unread bytes. Does not wait for bytes that a pipe may get later. */
bool input_waits(void);

#endif
