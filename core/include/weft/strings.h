/* SPDX-License-Identifier: MIT */
/* A string that grows as text is appended, such as by wf_print_text (weft/tape.h). */
#ifndef WEFT_STRINGS_H
#define WEFT_STRINGS_H

#include <weft/base.h>

WF_BEGIN_DECLS

/* Initialise it with {0}, free it with wf_string_free. */
struct wf_string {
    char *data; /* NUL-terminated at data[length] after the first append; NULL before */
    int64_t length, capacity;
    bool failed; /* an append ran out of memory; the string ignores that append and all later ones */
};
WF_API void wf_string_free(struct wf_string *string); /* leaves the string empty; NULL is allowed */

WF_END_DECLS

#endif
