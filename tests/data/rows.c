/* SPDX-License-Identifier: MIT */
/* Rows of arrays by index, against a loop over elements. */
#include "data_test.h"
#include <weft/runtime.h>

/* Bytes that tell their place. */
static void fill(unsigned char *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        data[i] = (unsigned char)(i * 37 + i / 251);
}

/* Element (r, i, j) of an array of three dimensions lies at this byte. */
static const char *element(const wf_array *a, int64_t r, int64_t i, int64_t j)
{
    return (const char *)a->data + (r * a->stride[0] + i * a->stride[1] + j * a->stride[2]) * (int64_t)wf_dtype_size(a->dtype);
}

static void check(const wf_array *a, const int64_t *rows, int64_t count)
{
    const size_t size = wf_dtype_size(a->dtype), bytes = (size_t)(count * a->dim[1] * a->dim[2]) * size;
    char *out = wf_alloc(bytes + 1);
    out[bytes] = 'x';
    ck_ok(wf_rows_copy(a, rows, count, a->dtype, out, error));
    ck_assert_int_eq(out[bytes], 'x');
    const char *at = out;
    for (int64_t r = 0; r < count; r++)
        for (int64_t i = 0; i < a->dim[1]; i++)
            for (int64_t j = 0; j < a->dim[2]; j++, at += size)
                ck_assert_msg(memcmp(at, element(a, rows[r], i, j), size) == 0, "%s: row %d", wf_dtype_name(a->dtype), (int)r);
    wf_free(out);
}

enum { A = 12, B = 7, C = 10 };
static _Alignas(64) unsigned char data[A * B * C * 8];

START_TEST(any_dtype_and_strides)
{
    static const int64_t rows[] = {3, 0, 6, 6, 1, 5, 2, 6};
    fill(data, sizeof data);
    for (int dtype = 0; dtype < WF_DTYPE_COUNT; dtype++) {
        const wf_array whole = wf_array_contiguous(data, dtype, &(wf_shape){3, {A, B, C}});
        check(&whole, rows, 8);
        const wf_array views[] = {wf_array_transpose(whole, 0, 1), wf_array_transpose(whole, 0, 2), wf_array_transpose(whole, 1, 2),
                                  wf_array_slice(whole, 2, 3, 4), wf_array_slice(wf_array_slice(whole, 0, 2, 9), 1, 1, 5)};
        for (size_t v = 0; v < sizeof views / sizeof *views; v++)
            check(&views[v], rows, 8);
        wf_array repeated = whole;
        repeated.stride[1] = 0;
        check(&repeated, rows, 8);
        wf_array backward = whole; /* rows from the last on */
        backward.data = data + (A - 1) * B * C * wf_dtype_size(dtype);
        backward.stride[0] = -B * C;
        check(&backward, rows, 8);
    }
}
END_TEST

START_TEST(labels_and_nothing)
{
    const int32_t label[] = {10, 11, 12, 13};
    const wf_array one = wf_array_contiguous((void *)label, WF_I32, &(wf_shape){1, {4}});
    const int64_t rows[] = {3, 3, 0};
    int32_t out[3] = {0};
    ck_ok(wf_rows_copy(&one, rows, 3, WF_I32, out, error));
    ck_assert(out[0] == 13 && out[1] == 13 && out[2] == 10);
    ck_ok(wf_rows_copy(&one, NULL, 0, WF_I32, NULL, error));
    const wf_array empty = wf_array_contiguous(NULL, WF_F32, &(wf_shape){2, {4, 0}});
    ck_ok(wf_rows_copy(&empty, rows, 3, WF_F32, out, error));
}
END_TEST

/* Large batches are divided among the threads. */
START_TEST(threads_change_nothing)
{
    enum { ROWS = 2000, WIDTH = 500 };
    static float from[ROWS * WIDTH], out[3][ROWS * WIDTH];
    static int64_t rows[ROWS];
    struct wf_epochs e;
    ck_ok(wf_epochs_init(&e, ROWS, ROWS, 1, error));
    ck_assert_int_eq(wf_epochs_batch(&e, 0, rows), ROWS);
    fill((unsigned char *)from, sizeof from);
    wf_array a = wf_array_contiguous(from, WF_F32, &(wf_shape){3, {ROWS, 20, WIDTH / 20}});
    for (int strided = 0; strided < 2; strided++, a = wf_array_transpose(a, 1, 2)) {
        for (int threads = 1; threads <= 3; threads++) {
            ck_ok(wf_set_threads(threads, error));
            memset(out[threads - 1], 0, sizeof out[0]);
            ck_ok(wf_rows_copy(&a, rows, ROWS, WF_F32, out[threads - 1], error));
            ck_assert_mem_eq(out[0], out[threads - 1], sizeof out[0]);
        }
        for (int64_t r = 0; r < ROWS; r += 97)
            ck_assert_mem_eq(&out[0][r * WIDTH], element(&a, rows[r], 0, 0), sizeof(float));
    }
}
END_TEST

START_TEST(wrong_rows)
{
    float from[6] = {1, 2, 3, 4, 5, 6}, out[6] = {0};
    wf_array a = wf_array_contiguous(from, WF_F32, &(wf_shape){2, {3, 2}});
    ck_fails(wf_rows_copy(&a, (int64_t[]){0, 3}, 2, WF_F32, out, error), WF_ERR_ARGUMENT, "rows[1] is 3, not one of the 3 rows");
    ck_assert(out[0] == 0);
    ck_fails(wf_rows_copy(&a, (int64_t[]){-1}, 1, WF_F32, out, error), WF_ERR_ARGUMENT, "rows[0] is -1");
    wf_array scalar = wf_array_contiguous(from, WF_F32, &(wf_shape){0}), wrong = a, none = a;
    ck_fails(wf_rows_copy(&scalar, (int64_t[]){0}, 1, WF_F32, out, error), WF_ERR_SHAPE, "no rows");
    wrong.dtype = WF_DTYPE_COUNT;
    ck_fails(wf_rows_copy(&wrong, (int64_t[]){0}, 1, WF_F32, out, error), WF_ERR_SHAPE, "no rows");
    wrong = a;
    wrong.dim[1] = -2;
    ck_fails(wf_rows_copy(&wrong, (int64_t[]){0}, 1, WF_F32, out, error), WF_ERR_SHAPE, "no rows");
    none.data = NULL;
    ck_fails(wf_rows_copy(&none, (int64_t[]){0}, 1, WF_F32, out, error), WF_ERR_ARGUMENT, "the array has no data");
    ck_fails(wf_rows_copy(&a, (int64_t[]){0}, -1, WF_F32, out, error), WF_ERR_ARGUMENT, "-1 rows");
}
END_TEST

/* NumPy's files have F64 and I64, a batch wf_real and int32_t. */
START_TEST(converted)
{
    static const wf_dtype floats[] = {WF_F32, WF_F64, WF_F16, WF_BF16, WF_I8,  WF_U8,  WF_I16,
                                      WF_U16, WF_I32, WF_U32, WF_I64,  WF_U64, WF_BOOL};
    static const int64_t rows[] = {3, 0, 6, 6};
    enum { ROWS = 4 };
    static double wide[A * B * C], out[ROWS * A * C + 1];
    fill(data, sizeof data);
    for (size_t k = 0; k < sizeof floats / sizeof *floats; k++) {
        if (floats[k] == WF_BOOL)
            for (size_t i = 0; i < sizeof data; i++)
                data[i] &= 1;
        ck_assert(wf_convert(WF_F64, wide, floats[k], data, A * B * C));
        const wf_array whole = wf_array_contiguous(data, floats[k], &(wf_shape){3, {A, B, C}});
        const wf_array same = wf_array_contiguous(wide, WF_F64, &(wf_shape){3, {A, B, C}});
        for (int v = 0; v < 3; v++) {
            const wf_array a = v == 0 ? whole : wf_array_transpose(whole, v - 1, v), b = v == 0 ? same : wf_array_transpose(same, v - 1, v);
            const int64_t size = a.dim[1] * a.dim[2];
            out[ROWS * size] = 17;
            ck_ok(wf_rows_copy(&a, rows, ROWS, WF_F64, out, error));
            ck_assert(out[ROWS * size] == 17);
            for (int64_t r = 0; r < ROWS; r++)
                for (int64_t i = 0; i < size; i++)
                    ck_assert_mem_eq(&out[r * size + i], element(&b, rows[r], i / a.dim[2], i % a.dim[2]), sizeof *out);
        }
    }
}
END_TEST

START_TEST(numbers_that_do_not_fit)
{
    static int64_t label[4][300];
    static int32_t id[2][300];
    const uint64_t large[] = {UINT64_MAX, 1};
    const int8_t negative[] = {-1, 1};
    const int64_t rows[] = {1, 3};
    wf_array a = wf_array_contiguous(label, WF_I64, &(wf_shape){2, {4, 300}});
    label[0][0] = INT64_MAX; /* a row that is not asked for */
    label[1][299] = -INT64_C(2147483648);
    label[3][280] = 2147483647;
    ck_ok(wf_rows_copy(&a, rows, 2, WF_I32, id, error));
    ck_assert(id[0][299] == INT32_MIN && id[1][280] == INT32_MAX && id[1][0] == 0);
    label[3][280]++;
    id[0][299] = 5;
    ck_fails(wf_rows_copy(&a, rows, 2, WF_I32, id, error), WF_ERR_ARGUMENT,
             "wf_rows_copy: I64 to I32: row 3 has 2147483648, which I32 does not hold");
    ck_assert_int_eq(id[0][299], 5);
    ck_fails(wf_rows_copy(&a, rows, 2, WF_U64, id, error), WF_ERR_ARGUMENT, "row 1 has -2147483648, which U64 does not hold");
    ck_fails(wf_rows_copy(&a, rows + 1, 1, WF_F16, id, error), WF_ERR_ARGUMENT, "wf_rows_copy: I64 to F16: there is no such conversion");
    ck_fails(wf_rows_copy(&a, rows, 1, WF_DTYPE_COUNT, id, error), WF_ERR_ARGUMENT, "wf_rows_copy: I64 to unknown");
    wf_array other = wf_array_contiguous((void *)large, WF_U64, &(wf_shape){1, {2}});
    ck_fails(wf_rows_copy(&other, (int64_t[]){1, 0}, 2, WF_I64, id, error), WF_ERR_ARGUMENT, "row 0 has 18446744073709551615, which I64");
    ck_ok(wf_rows_copy(&other, rows, 1, WF_BOOL, id, error));
    other = wf_array_contiguous((void *)negative, WF_I8, &(wf_shape){1, {2}});
    ck_fails(wf_rows_copy(&other, (int64_t[]){0}, 1, WF_U32, id, error), WF_ERR_ARGUMENT, "row 0 has -1, which U32");
    float from[2] = {1.5f, 2};
    other = wf_array_contiguous(from, WF_F32, &(wf_shape){1, {2}});
    ck_fails(wf_rows_copy(&other, rows, 1, WF_I32, id, error), WF_ERR_ARGUMENT, "wf_rows_copy: F32 to I32: there is no such conversion");
}
END_TEST

WF_TEST_MAIN("rows", converted, numbers_that_do_not_fit, any_dtype_and_strides, labels_and_nothing, threads_change_nothing, wrong_rows)
