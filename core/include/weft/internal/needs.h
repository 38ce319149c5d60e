/* SPDX-License-Identifier: MIT */
/* Checks at the start of a public function that required arguments are not NULL. */
#ifndef WEFT_INTERNAL_NEEDS_H
#define WEFT_INTERNAL_NEEDS_H

#include <weft/error.h>

/* Returns WF_ERR_ARGUMENT, with the message "FUNCTION: NAME is NULL", if a pointer is NULL (NAME is that of the first such pointer); else
 * WF_OK. `names` lists the names of the pointers as in the prototype.
 *
 *     if (wf_needs(error, "tokenizer, text", t, wf_some(text, length)))
 *         return WF_ERR_ARGUMENT; */
#define wf_needs(error, names, ...)                                                                                                        \
    wf_refuse_null(error, __func__, names, (int)(sizeof((const void *const[]){__VA_ARGS__}) / sizeof(void *)),                             \
                   (const void *const[]){__VA_ARGS__})
/* An argument of wf_needs for an array that may be NULL if it has no elements. */
#define wf_some(array, count) ((array) || (count) <= 0 ? (const void *)"" : NULL)
wf_status wf_refuse_null(wf_error *error, const char *function, const char *names, int count, const void *const *given);

#endif
