/* SPDX-License-Identifier: MIT */
/* The base of all headers: the scalar type, visibility and the version.
 *
 * Weft is built twice from the same sources. libweft computes in float, libweft-f64 in double; compile with -DWF_DOUBLE
 * (`pkg-config --cflags weft-f64` says so) for the second. The two cannot be mixed: wf_tape_new and wf_registry_new take
 * the ABI word of the caller's headers and refuse that of another library. */
#ifndef WEFT_BASE_H
#define WEFT_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define WF_BEGIN_DECLS extern "C" {
#define WF_END_DECLS }
#else
#define WF_BEGIN_DECLS
#define WF_END_DECLS
#endif

#define WF_API __attribute__((visibility("default")))
/* The caller must look at the result. */
#define WF_CHECKED __attribute__((warn_unused_result))
#define WF_PRINTF(at, first) __attribute__((__format__(__printf__, at, first)))

#define WF_VERSION_MAJOR 0
#define WF_VERSION_MINOR 1
#define WF_VERSION_PATCH 0
#define WF_VERSION "0.1.0"

#ifdef WF_DOUBLE
typedef double wf_real;
#else
typedef float wf_real;
#endif

/* Version and precision in a word, passed by macros so that a program cannot run with the wrong library. */
#define WF_ABI ((uint32_t)(WF_VERSION_MAJOR << 24 | WF_VERSION_MINOR << 16 | (int)sizeof(wf_real)))

WF_BEGIN_DECLS

/* The version of the library that is linked, "0.1.0"; WF_VERSION is that of the headers. */
WF_API const char *wf_version(void);

WF_END_DECLS

#endif
