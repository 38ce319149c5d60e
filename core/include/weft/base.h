/* SPDX-License-Identifier: MIT */
/* The definitions that all headers share: the type of real numbers, wf_real, the attributes of functions, and the version.
 *
 * Weft is built twice from the same sources. libweft computes in float. libweft-f64 computes in double; compile programs for it with
 * -DWF_DOUBLE, which `pkg-config --cflags weft-f64` prints. A program cannot mix the two libraries: the macros wf_tape_new and
 * wf_registry_new pass WF_ABI to the library, which returns an error if its own WF_ABI is another. */
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
/* Marks a function whose result the caller must use; the compiler warns otherwise. */
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

/* The version and the precision in one number. Macros of the headers pass it to the library, so that a program cannot run with the wrong
 * library. */
#define WF_ABI ((uint32_t)(WF_VERSION_MAJOR << 24 | WF_VERSION_MINOR << 16 | (int)sizeof(wf_real)))

WF_BEGIN_DECLS

/* The version of the linked library, such as "0.1.0". WF_VERSION is the version of the headers. */
WF_API const char *wf_version(void);

WF_END_DECLS

#endif
