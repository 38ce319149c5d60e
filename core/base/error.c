/* SPDX-License-Identifier: MIT */
/* Sets, extends and clears a wf_error (weft/error.h), and refuses arguments that are NULL (weft/internal/needs.h). */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <weft/error.h>
#include <weft/internal/needs.h>

/* Replaces control characters by spaces, because they would break the lines of a log or a terminal. */
static void one_line(char *text)
{
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = ' ';
}

/* Removes the last UTF-8 character if snprintf has cut it. `size` is the size of the buffer, and `wanted` is the length that snprintf
 * returned. */
static void cut_whole(char *text, size_t size, size_t wanted)
{
    if (wanted < size)
        return;
    size_t end = size - 1, start = end;
    while (start > 0 && end - start < 4 && ((unsigned char)text[start - 1] & 0xc0) == 0x80)
        start--;
    if (start == 0)
        return;
    unsigned char lead = (unsigned char)text[start - 1];
    size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    if (length > end - start + 1)
        text[start - 1] = 0;
}

/* Whether *error holds an error, that is, a status other than WF_OK and a text that a message can have. If the caller forgot to set the
 * struct to zero, its bytes are probably neither, and it counts as holding no error. */
static bool holds_error(const wf_error *error)
{
    return (unsigned)error->code - 1 < WF_ERR_TIME && memchr(error->message, 0, sizeof error->message) &&
           (error->message[0] == 0 || (unsigned char)error->message[0] >= 0x20);
}

wf_status wf_error_set(wf_error *error, wf_status code, const char *format, ...)
{
    if (!error || holds_error(error))
        return code;
    error->code = code;
    va_list list;
    va_start(list, format);
    int wanted = vsnprintf(error->message, sizeof error->message, format, list);
    va_end(list);
    if (wanted < 0)
        error->message[0] = 0;
    else
        cut_whole(error->message, sizeof error->message, (size_t)wanted);
    one_line(error->message);
    return code;
}

void wf_error_prefix(wf_error *error, const char *format, ...)
{
    if (!error || !holds_error(error))
        return;
    const wf_error old = *error;
    char prefix[sizeof old.message];
    va_list list;
    va_start(list, format);
    if (vsnprintf(prefix, sizeof prefix, format, list) < 0)
        prefix[0] = 0;
    va_end(list);
    const size_t length = strlen(prefix);
    if (strncmp(old.message, prefix, length) == 0 && old.message[length] == ':')
        return;
    error->code = WF_OK;
    wf_error_set(error, old.code, "%s: %s", prefix, old.message);
}

wf_status wf_refuse_null(wf_error *error, const char *function, const char *names, int count, const void *const *given)
{
    for (int i = 0; i < count; i++) {
        const int length = (int)strcspn(names, ",");
        if (!given[i])
            return wf_error_set(error, WF_ERR_ARGUMENT, "%s: %.*s is NULL", function, length, names);
        names += length + strspn(names + length, ", ");
    }
    return WF_OK;
}

void wf_error_clear(wf_error *error)
{
    if (!error)
        return;
    error->code = WF_OK;
    error->message[0] = 0;
}

const char *wf_status_name(wf_status status)
{
    static const char *const names[] = {
        [WF_OK] = "ok",
        [WF_ERR_ARGUMENT] = "argument",
        [WF_ERR_SHAPE] = "shape",
        [WF_ERR_STATE] = "state",
        [WF_ERR_MEMORY] = "memory",
        [WF_ERR_IO] = "io",
        [WF_ERR_FORMAT] = "format",
        [WF_ERR_EXISTS] = "exists",
        [WF_ERR_BUSY] = "busy",
        [WF_ERR_NUMERIC] = "numeric",
        [WF_ERR_CANCELLED] = "cancelled",
        [WF_ERR_TIME] = "time",
    };
    return (size_t)status < sizeof names / sizeof *names ? names[status] : "unknown";
}
