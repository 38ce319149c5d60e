/* SPDX-License-Identifier: MIT */
/* Errors of functions that are not ops; the errors of ops stay in the tape (weft/tape.h). A function that can fail takes a wf_error as its
 * last argument and returns a wf_status. The message is one line that says what is wrong, where, and what to do; it begins with
 * "file:line:byte: " if a file is at fault.
 *
 * If a required pointer is NULL, the function returns WF_ERR_ARGUMENT with the message "FUNCTION: ARGUMENT is NULL". A function that takes
 * no wf_error does nothing if a required pointer is NULL, and returns 0, NULL or false. Functions named ..._free and ..._close accept NULL.
 * A pointer to options may be NULL wherever a zeroed struct of options would be valid. */
#ifndef WEFT_ERROR_H
#define WEFT_ERROR_H

#include <weft/base.h>

WF_BEGIN_DECLS

typedef enum wf_status {
    WF_OK = 0,
    WF_ERR_ARGUMENT,  /* an argument or a setting is out of its range */
    WF_ERR_SHAPE,     /* incompatible shapes */
    WF_ERR_STATE,     /* the call is invalid in the current state: a tensor of an earlier pass, a second backward */
    WF_ERR_MEMORY,    /* no memory */
    WF_ERR_IO,        /* a system call failed to read or write */
    WF_ERR_FORMAT,    /* invalid contents of a file */
    WF_ERR_EXISTS,    /* an existing file or folder would be overwritten */
    WF_ERR_BUSY,      /* another process or thread holds the resource */
    WF_ERR_NUMERIC,   /* a NaN or an infinity where it is invalid */
    WF_ERR_CANCELLED, /* cancelled by the caller */
    WF_ERR_TIME       /* a time limit that the caller set has passed */
} wf_status;

/* Set a wf_error to zero before its first use: wf_error error = {0}. If it was not set to zero, its contents count as WF_OK unless they
 * look like a status with one line of text. A call leaves an error that is there already: after one that was handled, call wf_error_clear
 * before the struct is used again. */
typedef struct wf_error {
    wf_status code;
    char message[1024]; /* one line without a newline; a longer message is cut after a whole character */
} wf_error;

/* Records a failure in *error, unless *error already holds one: the first error wins. error may be NULL. Returns code, so that `return
 * wf_error_set(error, WF_ERR_IO, "...")` is the usual form. */
WF_API wf_status wf_error_set(wf_error *error, wf_status code, const char *format, ...) WF_PRINTF(3, 4);

/* Prepends "prefix: " to the message, to add context while an error is returned. Does nothing if *error is WF_OK or the message already
 * begins with this prefix. */
WF_API void wf_error_prefix(wf_error *error, const char *format, ...) WF_PRINTF(2, 3);

/* Clears *error. */
WF_API void wf_error_clear(wf_error *error);

/* A short name of the status, which programs can compare: "argument", "shape", ... */
WF_API const char *wf_status_name(wf_status status);

WF_END_DECLS

#endif
