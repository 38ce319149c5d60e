/* SPDX-License-Identifier: MIT */
/* Writes NumPy's array files. */
#include <weft/internal/needs.h>
#include <weft/npy.h>

#include <inttypes.h>

#include <weft/internal/string.h>

#include "array_write.h"

static const char *const descrs[WF_DTYPE_COUNT] = {[WF_F32] = "<f4", [WF_F64] = "<f8", [WF_I32] = "<i4", [WF_BOOL] = "|b1"};

/* Makes the header, with blanks at its end, so that the data begin at a multiple of 64. numpy.save also leaves room for the first dimension
 * to grow. With at most WF_MAX_DIMS = 6 dimensions that room lies within the blanks, so the file is the same as numpy.save's. */
static void make_header(struct wf_string *out, const wf_array *a, const char *descr)
{
    enum { PREAMBLE = 10, ALIGN = 64 };
    wf_string_add(out, "\x93NUMPY\1\0\0\0", PREAMBLE);
    wf_string_format(out, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int d = 0; d < a->ndim; d++)
        wf_string_format(out, "%s%" PRId64, d ? ", " : "", a->dim[d]);
    wf_string_text(out, a->ndim == 1 ? ",), }" : "), }");
    wf_string_format(out, "%*s\n", (int)(ALIGN - (out->length + 1) % ALIGN), "");
    if (out->failed)
        return;
    out->data[8] = (char)((out->length - PREAMBLE) & 0xff);
    out->data[9] = (char)((out->length - PREAMBLE) >> 8);
}

wf_status wf_npy_save(const char *path, const wf_array *array, wf_error *error)
{
    if (wf_needs(error, "path, array", path, array))
        return WF_ERR_ARGUMENT;
    const char *descr = array->dtype < WF_DTYPE_COUNT ? descrs[array->dtype] : NULL;
    int64_t bytes;
    if (!descr)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s: an array of dtype %s cannot be written as .npy, only F32, F64, I32 and BOOL", path,
                            array->dtype < WF_DTYPE_COUNT ? wf_dtype_name(array->dtype) : "?");
    if (!wf_array_writable(array, false, &bytes))
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s: the array's shape or data are not valid", path);
    struct wf_string header = {0};
    wf_error failure = {0}; /* `error` may be NULL or hold an older error */
    make_header(&header, array, descr);
    if (header.failed)
        wf_error_set(&failure, WF_ERR_MEMORY, "%s: no memory to write it", path);
    wf_file_writer *out = header.failed ? NULL : wf_file_begin(path, &failure);
    wf_file_append(out, header.data, header.length);
    if (out)
        wf_array_write(out, array);
    wf_status status = wf_file_commit(out, &failure);
    wf_string_free(&header);
    return status == WF_OK ? WF_OK : wf_error_set(error, status, "%s", failure.message);
}
