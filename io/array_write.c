/* SPDX-License-Identifier: MIT */
/* Writes the elements of arrays, for npy.c and safetensors_write.c. */
#include <weft/internal/shape.h>

#include "array_write.h"

bool wf_array_writable(const wf_array *a, bool elsewhere, int64_t *bytes)
{
    wf_shape shape = wf_array_shape(a);
    size_t size = 0;
    bool valid = wf_shape_bytes(a->dtype, &shape, &size);
    *bytes = (int64_t)size;
    return valid && (size == 0 || a->data || elsewhere);
}

void wf_array_write(wf_file_writer *out, const wf_array *a)
{
    int64_t size = (int64_t)wf_dtype_size(a->dtype), index[WF_MAX_DIMS] = {0}, total = wf_array_count(a);
    if (wf_array_is_contiguous(a)) {
        wf_file_append(out, a->data, total * size);
        return;
    }
    int last = a->ndim - 1; /* a scalar is contiguous, so there is at least one dimension */
    for (int64_t done = 0; done < total; done += a->dim[last]) {
        const char *row = a->data;
        for (int d = 0; d < last; d++)
            row += index[d] * a->stride[d] * size;
        for (int64_t i = 0; i < a->dim[last]; i++)
            wf_file_append(out, row + i * a->stride[last] * size, size);
        for (int d = last - 1; d >= 0 && ++index[d] == a->dim[d]; d--)
            index[d] = 0;
    }
}
