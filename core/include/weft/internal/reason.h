/* SPDX-License-Identifier: MIT */
/* The system's text for an errno number. With glibc 2.32 or later the text is always in English, and several threads may call the function
 * at once. */
#ifndef WEFT_INTERNAL_REASON_H
#define WEFT_INTERNAL_REASON_H

#include <string.h>

static inline const char *wf_reason(int number)
{
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 32)
    const char *text = strerrordesc_np(number);
    return text ? text : "unknown error";
#else
    return strerror(number);
#endif
}

#endif
