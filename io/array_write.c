/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "array_write.h"

/* The elements of a strided tensor in row-major order, gathered piece by piece. */
static void put_strided(wf_file_writer *out, const wf_array *a, char *piece)
{
    int64_t size = (int64_t)wf_dtype_size(a->dtype), index[WF_MAX_DIMS] = {0}, used = 0, total = wf_array_count(a);
    int last = a->ndim - 1; /* at least one dimension: a scalar is dense */
    int64_t step = a->stride[last] * size;
    for (int64_t done = 0; done < total; done += a->dim[last]) {
        const char *row = a->data;
        for (int d = 0; d < last; d++)
            row += index[d] * a->stride[d] * size;
        for (int64_t i = 0; i < a->dim[last]; i++) {
            if (used == ARRAY_PIECE) {
                if (wf_file_append(out, piece, used) != WF_OK)
                    return;
                used = 0;
            }
            memcpy(piece + used, row + i * step, (size_t)size); /* ARRAY_PIECE is a multiple of every size */
            used += size;
        }
        for (int d = last - 1; d >= 0 && ++index[d] == a->dim[d]; d--)
            index[d] = 0;
    }
    wf_file_append(out, piece, used);
}

void wf_array_write(wf_file_writer *out, const wf_array *a, char *piece)
{
    if (wf_array_is_dense(a))
        wf_file_append(out, a->data, wf_array_count(a) * (int64_t)wf_dtype_size(a->dtype));
    else
        put_strided(out, a, piece);
}
