/* SPDX-License-Identifier: MIT */
/* Functions for struct wf_packed, and the check of offsets that all functions with packed sequences use. */
#include <stdio.h>

#include <weft/internal/minmax.h>
#include <weft/packed.h>

int64_t wf_packed_longest(struct wf_packed packed)
{
    int64_t longest = 0;
    for (int i = 0; packed.offsets && i < packed.count; i++) {
        const int64_t rows = (int64_t)packed.offsets[i + 1] - packed.offsets[i];
        longest = WF_MAX(rows, longest);
    }
    return longest;
}

wf_status wf_packed_check(struct wf_packed packed, int64_t rows, const char *what, wf_error *error)
{
    if (packed.count < 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s: count = %d sequences is negative", what, packed.count);
    if (!packed.offsets)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s: the offsets of %d sequences are NULL", what, packed.count);
    const int32_t *offsets = packed.offsets;
    int bad = offsets[0] == 0 ? 1 : 0;
    while (bad > 0 && bad <= packed.count && offsets[bad] >= offsets[bad - 1])
        bad++;
    if (bad > packed.count && offsets[packed.count] != rows)
        bad = packed.count;
    if (bad > packed.count)
        return WF_OK;
    char after[24] = "";
    if (bad > 0)
        snprintf(after, sizeof after, " after %d", offsets[bad - 1]);
    return wf_error_set(error, WF_ERR_ARGUMENT,
                        "%s: offsets[%d] = %d%s, but offsets of %d sequences must begin with 0, never fall, and end with the number of "
                        "rows, %lld",
                        what, bad, offsets[bad], after, packed.count, (long long)rows);
}
