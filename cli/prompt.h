/* SPDX-License-Identifier: MIT */
/* The prompt of `weft generate`: an argument, a file, or standard input. */
#ifndef WEFT_CLI_PROMPT_H
#define WEFT_CLI_PROMPT_H

#include <weft/error.h>

struct prompt {
    const char *text; /* UTF-8 without NUL */
    int64_t length;
    bool given; /* false: there is none, and the model begins a text */
    char *memory;
};
/* Takes the prompt from `text`, or from `file` if that is given; "-" is standard input, read to its end. A byte order mark and one final
 * line end of a file or of standard input are dropped. Both NULL: no prompt. Free it with prompt_free, also after an error. */
wf_status prompt_read(const char *text, const char *file, struct prompt *prompt, wf_error *error) WF_CHECKED;
void prompt_free(struct prompt *prompt);
/* Whether standard input is a pipe or a file with something in it. Does not wait: a pipe into which nothing was written has nothing. */
bool input_waits(void);

#endif
