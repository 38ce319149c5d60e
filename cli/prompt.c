/* SPDX-License-Identifier: MIT */
/* Reads the prompt of `weft generate` and checks that it is UTF-8. */
#include "prompt.h"

#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weft/internal/files.h>
#include <weft/internal/lines.h>
#include <weft/memory.h>

enum { MOST_PROMPT = 1 << 26 }; /* maximum bytes of a prompt */

static wf_status check(const char *name, const char *text, int64_t length, wf_error *error)
{
    int64_t fault = wf_text_fault(text, length), begin = fault;
    if (fault < 0)
        return WF_OK;
    while (begin > 0 && text[begin - 1] != '\n')
        begin--;
    return wf_text_refuse(name, 1 + wf_line_ends(text, fault), fault - begin + 1, text + fault, length - fault, error);
}

wf_status prompt_read(const char *text, const char *file, struct prompt *prompt, wf_error *error)
{
    *prompt = (struct prompt){.text = text ? text : "", .length = text ? (int64_t)strlen(text) : 0, .given = text || file};
    const bool input = strcmp(file ? file : prompt->text, "-") == 0;
    const char *name = input ? "standard input" : file;
    int64_t bytes;
    if (!input && !file)
        return WF_OK;
    prompt->memory =
        input ? wf_file_load_open(STDIN_FILENO, name, MOST_PROMPT, &bytes, error) : wf_file_load(file, MOST_PROMPT, &bytes, error);
    if (!prompt->memory)
        return error->code;
    wf_status status = check(name, prompt->memory, bytes, error);
    const int64_t mark = wf_line_first(prompt->memory, bytes);
    if (bytes > mark && prompt->memory[bytes - 1] == '\n')
        bytes--;
    if (bytes > mark && prompt->memory[bytes - 1] == '\r')
        bytes--;
    prompt->text = prompt->memory + mark;
    prompt->length = bytes - mark;
    return status;
}

void prompt_free(struct prompt *prompt)
{
    wf_free(prompt->memory);
}

bool input_waits(void)
{
    struct stat info;
    int bytes = 0;
    if (fstat(STDIN_FILENO, &info) != 0)
        return false;
    if (S_ISREG(info.st_mode)) {
        const off_t at = lseek(STDIN_FILENO, 0, SEEK_CUR);
        return at >= 0 && at < info.st_size;
    }
    return S_ISFIFO(info.st_mode) && ioctl(STDIN_FILENO, FIONREAD, &bytes) == 0 && bytes > 0;
}
