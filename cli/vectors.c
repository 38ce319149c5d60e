/* SPDX-License-Identifier: MIT */
#include "vectors.h"

#include <math.h>
#include <stdio.h>

#include <weft/internal/gemm.h>

#include "float_text.h"

static void print_row(const float *x, int64_t count, enum vectors_format format)
{
    char text[FLOAT_TEXT + 2];
    if (format == VECTORS_JSON)
        putchar('[');
    for (int64_t i = 0; i < count; i++) {
        int length = float_text(x[i], text);
        if (i + 1 < count) {
            if (format == VECTORS_JSON)
                text[length++] = ',';
            text[length++] = ' ';
        }
        fwrite(text, 1, (size_t)length, stdout);
    }
    fputs(format == VECTORS_JSON ? "]\n" : "\n", stdout);
}

wf_status vectors_print(const float *x, int64_t rows, int64_t columns, enum vectors_format format, wf_error *error)
{
    if (format == VECTORS_NPY) {
        wf_array array = wf_array_dense((void *)x, WF_F32, &(wf_shape){2, {rows, columns}});
        return wf_npy_save("/dev/stdout", &array, error);
    }
    for (int64_t i = 0; i < rows && !ferror(stdout); i++)
        print_row(x + i * columns, columns, format);
    if (fflush(stdout) != 0 || ferror(stdout))
        return wf_error_set(error, WF_ERR_IO, "standard output can't be written");
    return WF_OK;
}

/* --- cosines ------------------------------------------------------------------------------------------------------- */

enum { ROWS = 64 /* of the matrix at once */ };

static void normalize(float *x, int64_t n, int64_t d)
{
    for (int64_t i = 0; i < n; i++, x += d) {
        double squares = 0;
        for (int64_t j = 0; j < d; j++)
            squares += (double)x[j] * (double)x[j];
        for (int64_t j = 0; j < d; j++)
            x[j] = squares > 0 ? (float)((double)x[j] / sqrt(squares)) : 0;
    }
}

/* Rows `from` .. from+count-1 of x x^T. The vectors' lengths of 1 are rounded ones, but a cosine is at most 1, and that of a vector with
 * itself is 1. */
static void cosines(const float *x, int64_t n, int64_t d, int64_t from, int64_t count, float *out)
{
    wf_gemm(&(struct wf_gemm){.m = count,
                              .n = n,
                              .k = d,
                              .alpha = 1,
                              .a = x + from * d,
                              .a_rs = d,
                              .a_cs = 1,
                              .b = x,
                              .b_rs = 1,
                              .b_cs = d,
                              .c = out,
                              .c_rs = n,
                              .c_cs = 1,
                              .rows_alone = true});
    for (int64_t i = 0; i < count * n; i++)
        out[i] = out[i] > 1 ? 1 : out[i] < -1 ? -1 : out[i];
    for (int64_t i = 0; i < count; i++)
        if (out[i * n + from + i] > 0) /* a vector of zeros has no direction */
            out[i * n + from + i] = 1;
}

wf_status vectors_cosines(float *x, int64_t n, int64_t d, enum vectors_format format, struct display *display, wf_error *error)
{
    wf_status status = WF_OK;
    int64_t rows = format == VECTORS_NPY || n < ROWS ? n : ROWS;
    float *out = rows == 0 || n < INT64_MAX / 8 / rows ? wf_alloc((size_t)(rows * n) * sizeof *out) : NULL;
    if (!out && n > 0)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for the cosines of %lld lines%s", (long long)n,
                            format == VECTORS_NPY ? ": --format text and json need less" : "");
    normalize(x, n, d);
    for (int64_t i = 0; i < n && status == WF_OK; i += ROWS) {
        int64_t count = n - i < ROWS ? n - i : ROWS;
        float *block = format == VECTORS_NPY ? out + i * n : out;
        display_show(display, (double)i / (double)n, false, "%lld/%lld lines compared", (long long)i, (long long)n);
        cosines(x, n, d, i, count, block);
        if (format != VECTORS_NPY) {
            display_make_way(display);
            status = vectors_print(block, count, n, format, error);
        }
        if (status == WF_OK && interrupted(NULL))
            status = wf_error_set(error, WF_ERR_CANCELLED, "interrupted after %lld of %lld rows", (long long)(i + count), (long long)n);
    }
    display_clear(display);
    if (status == WF_OK && format == VECTORS_NPY)
        status = vectors_print(out, n, n, format, error);
    wf_free(out);
    return status;
}
