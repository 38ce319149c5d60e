/* SPDX-License-Identifier: MIT */
/* Packed rows: sequences of any lengths end to end, without padding. */
#ifndef WEFT_PACKED_H
#define WEFT_PACKED_H

#include <weft/error.h>

WF_BEGIN_DECLS

/* Of rows [N, ...], sequence i is rows offsets[i] .. offsets[i+1]-1; it may be empty. Options take one as .packed; zeroed, the rows are not
 * packed. The array is read, and copied where it must last: it is the caller's again after the call. */
struct wf_packed {
    const int32_t *offsets; /* [count + 1]: begins with 0, never falls, ends with N */
    int count;              /* of sequences */
};

/* Whether rows are said to be packed. */
static inline bool wf_is_packed(struct wf_packed packed)
{
    return packed.offsets || packed.count != 0;
}
/* The rows of the longest sequence; 0 of none. */
WF_API int64_t wf_packed_longest(struct wf_packed packed);
/* WF_ERR_ARGUMENT unless the offsets are as above for N = rows. `what` names them in the message: "attention: k_packed". */
WF_API wf_status wf_packed_check(struct wf_packed packed, int64_t rows, const char *what, wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
