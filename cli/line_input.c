/* SPDX-License-Identifier: MIT */
/* Reads lines from a file, a pipe or a terminal. */
#include "line_input.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include <weft/internal/sentence.h>

enum {
    MOST_LINE = 1 << 26, /* maximum bytes of a line */
    PAUSE = 5,           /* milliseconds without input after which the lines that were read are processed */
    GLANCE = 500         /* milliseconds between two checks for an interruption while no line arrives. They are needed because a
                            signal that comes just before poll does not end that call */
};

static bool before_read(void *unused, int fd)
{
    (void)fd;
    fflush(stdout); /* an error stays visible in ferror(stdout) */
    return !interrupted(unused);
}

wf_status line_input_open(struct wf_lines *in, const char *path, wf_error *error)
{
    wf_status status = wf_lines_open(in, path, error);
    in->wait = before_read;
    in->longest = MOST_LINE;
    return status;
}

wf_status line_input_wait(struct wf_lines *in, int64_t most, int64_t bytes, int64_t *count, int64_t *length, wf_error *error)
{
    *count = *length = 0;
    for (int64_t scanned = 0;;) {
        int64_t held = in->end - in->begin;
        while (*count < most && scanned < held) {
            const char *text = in->data + in->begin, *end = memchr(text + scanned, '\n', (size_t)(held - scanned));
            scanned = end ? end + 1 - text : held;
            *length = end ? scanned : *length;
            *count += end != NULL;
        }
        if (*count < most && in->ended && held > *length) { /* the last line may lack its line feed */
            *length = held;
            ++*count;
        }
        if (*count == most || in->ended || (*count > 0 && held >= bytes))
            return WF_OK;
        if (*count == 0 && held > MOST_LINE) /* wf_lines_next reports that the line is too long */
            return wf_lines_next(in, error);
        int ready = poll(&(struct pollfd){.fd = in->fd, .events = POLLIN}, 1, *count > 0 ? PAUSE : GLANCE);
        if (interrupted(NULL))
            return wf_error_set(error, WF_ERR_CANCELLED, "interrupted");
        if (ready == 0 && *count > 0)
            return WF_OK;
        wf_status status = ready > 0 ? wf_lines_read(in, error) : WF_OK;
        if (status != WF_OK)
            return status;
    }
}

bool line_input_ready(const struct wf_lines *in)
{
    return in->ended || memchr(in->data + in->begin, '\n', (size_t)(in->end - in->begin)) ||
           poll(&(struct pollfd){.fd = in->fd, .events = POLLIN}, 1, 0) > 0;
}

double line_input_share(const struct wf_lines *in, double given)
{
    return in->size <= 0 ? -1 : given > (double)in->size ? 1 : given / (double)in->size;
}

wf_status line_input_encode(const struct wf_lines *in, const wf_tokenizer *tokenizer, const struct wf_encode_options *options,
                            struct wf_tokens *out, wf_error *error)
{
    wf_status status = wf_lines_check(in, error);
    /* start at the byte order mark, if there is one, because messages count it among the bytes of its line */
    return status != WF_OK ? status
                           : wf_line_encode(tokenizer, in->name, in->text - in->mark, in->line - 1, 0, in->mark, in->mark + in->length,
                                            options, out, error);
}
