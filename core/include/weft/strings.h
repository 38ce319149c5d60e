/* SPDX-License-Identifier: MIT */
/* Text that grows. */
#ifndef WEFT_STRINGS_H
#define WEFT_STRINGS_H

#include <weft/base.h>

WF_BEGIN_DECLS

/* Start it as {0}, free it with wf_string_free. */
struct wf_string {
    char *data; /* a NUL follows at data[length] once something was appended */
    int64_t length, capacity;
    bool failed; /* an append found no memory; everything after it was dropped */
};
WF_API void wf_string_free(struct wf_string *string); /* leaves it empty; NULL and empty strings are fine */

WF_END_DECLS

#endif
