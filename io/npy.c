/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <weft/internal/string.h>
#include <weft/npy.h>

#include <string.h>

#include <weft/file.h>
#include <weft/memory.h>

#include "array_write.h"

static const char *descr_of(wf_dtype dtype)
{
    switch (dtype) {
    case WF_F32:
        return "<f4";
    case WF_F64:
        return "<f8";
    case WF_I32:
        return "<i4";
    case WF_BOOL:
        return "|b1";
    default:
        return NULL;
    }
}

/* The data begin at a multiple of 64. numpy.save also leaves room for the first dimension to grow, which within six dimensions changes no
 * byte. */
static void make_header(struct wf_string *out, const wf_array *a, const char *descr)
{
    enum { PREAMBLE = 10, ALIGN = 64 };
    static const char spaces[] = "                                                                ";
    wf_string_add(out, "\x93NUMPY\1\0\0\0", PREAMBLE);
    wf_string_text(out, "{'descr': '");
    wf_string_text(out, descr);
    wf_string_text(out, "', 'fortran_order': False, 'shape': (");
    for (int d = 0; d < a->ndim; d++) {
        wf_string_text(out, d ? ", " : "");
        wf_string_format(out, "%" PRId64, a->dim[d]);
    }
    wf_string_text(out, a->ndim == 1 ? ",), }" : "), }");
    wf_string_add(out, spaces, ALIGN - (out->length + 1) % ALIGN);
    wf_string_add(out, "\n", 1);
    if (out->failed)
        return;
    out->data[8] = (char)((out->length - PREAMBLE) & 0xff);
    out->data[9] = (char)((out->length - PREAMBLE) >> 8);
}

static wf_status write_file(const char *path, const struct wf_string *header, const wf_array *array, char *piece, wf_error *error)
{
    wf_error failure = {0}; /* the caller's may hold an older one, or be NULL */
    wf_file_writer *out = wf_file_begin(path, &failure);
    wf_file_append(out, header->data, header->length);
    wf_array_write(out, array, piece);
    wf_status status = wf_file_commit(out, &failure);
    return status == WF_OK ? WF_OK : wf_error_set(error, status, "%s", failure.message);
}

wf_status wf_npy_save(const char *path, const wf_array *array, wf_error *error)
{
    const char *descr = descr_of(array->dtype);
    if (!descr)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s: an array of dtype %s can't be written as .npy: F32, F64, I32 and BOOL can", path,
                            array->dtype < WF_DTYPE_COUNT ? wf_dtype_name(array->dtype) : "?");
    int64_t count = array->ndim >= 0 && array->ndim <= WF_MAX_DIMS ? wf_array_count(array) : -1, bytes;
    if (count < 0 || (count > 0 && !array->data) || __builtin_mul_overflow(count, (int64_t)wf_dtype_size(array->dtype), &bytes))
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s: the array's shape or data are not valid", path);
    struct wf_string header = {0};
    make_header(&header, array, descr);
    char *piece = wf_alloc(ARRAY_PIECE);
    wf_status status = header.failed || !piece ? wf_error_set(error, WF_ERR_MEMORY, "%s: no memory to write it", path)
                                               : write_file(path, &header, array, piece, error);
    wf_free(header.data);
    wf_free(piece);
    return status;
}
