/* SPDX-License-Identifier: MIT */
/* Packed sequences: sequences of any lengths that lie end to end in one array, without padding. */
#ifndef WEFT_PACKED_H
#define WEFT_PACKED_H

#include <weft/error.h>

WF_BEGIN_DECLS

/* The offsets of packed sequences in an array [N, ...]. Sequence i is rows offsets[i] .. offsets[i+1]-1, and may be empty. Functions
 * take the struct as the option .packed; a zeroed struct means that the rows are not packed. A function copies the offsets if it needs
 * them later, so the caller may change or free them after the call. */
struct wf_packed {
    const int32_t *offsets; /* [count + 1]: begin with 0, never decrease, end with N */
    int count;              /* number of sequences */
};

/* Whether the struct describes packed rows, that is, is not zeroed. */
static inline bool wf_is_packed(struct wf_packed packed)
{
    return packed.offsets || packed.count != 0;
}
/* The number of rows of the longest sequence; 0 if there are no sequences. */
WF_API int64_t wf_packed_longest(struct wf_packed packed);
/* WF_ERR_ARGUMENT unless the offsets are valid, as described above, for N = rows. `what` names the offsets in the message, for example
 * "attention: k_packed". */
WF_API wf_status wf_packed_check(struct wf_packed packed, int64_t rows, const char *what, wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
