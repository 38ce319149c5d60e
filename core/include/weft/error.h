/* SPDX-License-Identifier: MIT */
/* Errors outside the tape: functions that can fail take a wf_error last and return a wf_status.
 * The message is one line that says what, where and what to do, as "file:line:byte: ..." where a file is at fault.
 *
 * A pointer that must be given and is NULL is WF_ERR_ARGUMENT, "FUNCTION: ARGUMENT is NULL"; functions without an error do nothing then and
 * return 0, NULL or false, and ..._free and ..._close take NULL. Options may be NULL where a zeroed struct would do. */
#ifndef WEFT_ERROR_H
#define WEFT_ERROR_H

#include <weft/base.h>

WF_BEGIN_DECLS

typedef enum wf_status {
    WF_OK = 0,
    WF_ERR_ARGUMENT,  /* an argument or a setting is out of its range */
    WF_ERR_SHAPE,     /* incompatible shapes */
    WF_ERR_STATE,     /* an invalid call in this state: a stale tensor, a second backward */
    WF_ERR_MEMORY,    /* no memory */
    WF_ERR_IO,        /* a system call failed to read or write */
    WF_ERR_FORMAT,    /* invalid contents of a file */
    WF_ERR_EXISTS,    /* an existing file or folder would be overwritten */
    WF_ERR_BUSY,      /* another process or thread holds it */
    WF_ERR_NUMERIC,   /* a NaN or an infinity where it is invalid */
    WF_ERR_CANCELLED, /* cancelled by the caller */
    WF_ERR_TIME       /* a time limit that the caller set */
} wf_status;

/* Set it to zero before its first use: wf_error error = {0}. In one that was not, rubbish that is no status with a line of text counts as
 * WF_OK. */
typedef struct wf_error {
    wf_status code;
    char message[1024]; /* one line, no newline, cut at a whole character when too long */
} wf_error;

/* Records a failure in *error, unless it holds one already: the first error wins. error may be NULL.
 * Returns code, so that `return wf_error_set(error, WF_ERR_IO, "...")` is the usual form. */
WF_API wf_status wf_error_set(wf_error *error, wf_status code, const char *format, ...) WF_PRINTF(3, 4);

/* Prepends "prefix: " to the message, to add context while an error is returned. Does nothing on WF_OK, nor where the message begins so. */
WF_API void wf_error_prefix(wf_error *error, const char *format, ...) WF_PRINTF(2, 3);

/* Clears *error. */
WF_API void wf_error_clear(wf_error *error);

/* "argument", "shape", ...: a word for programs. */
WF_API const char *wf_status_name(wf_status status);

WF_END_DECLS

#endif
