/* SPDX-License-Identifier: MIT */
/* Reads everything of an array that may be damaged. A refusal gives a reason in one line. Also driven by tests/io/npy_read.c. */
#ifndef TESTS_FUZZ_NPY_H
#define TESTS_FUZZ_NPY_H

#include <stdlib.h>
#include <string.h>

#include <weft/npy.h>

static inline bool read_array(const void *data, size_t bytes)
{
    wf_error error = {0};
    void *copy = aligned_alloc(64, (bytes + 64) / 64 * 64); /* as a mapping is, and with an end that the sanitizer knows nearly */
    if (!copy)
        abort();
    memcpy(copy, data, bytes);
    wf_npy *file = wf_npy_view(copy, (int64_t)bytes, "fuzz", &error);
    if ((file != NULL) != (error.code == WF_OK) || strchr(error.message, '\n') || (!file && !error.message[0]))
        abort();
    if (file) {
        const wf_array *a = wf_npy_array(file);
        wf_shape shape = wf_array_shape(a);
        volatile unsigned char sum = 0;
        for (int64_t i = 0, n = wf_shape_count(&shape) * (int64_t)wf_dtype_size(a->dtype); i < n; i++)
            sum = (unsigned char)(sum + ((const unsigned char *)a->data)[i]);
    }
    bool read = file != NULL;
    wf_npy_close(file);
    free(copy);
    return read;
}

#endif
