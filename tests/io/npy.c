/* SPDX-License-Identifier: MIT */
/* .npy: byte for byte the files of numpy.save (tests/golden/make_events.py). */
#include "io_test.h"

static void assert_same_as_numpy(const wf_array *a, const char *name)
{
    ck_ok(wf_npy_save(in_folder("a.npy"), a, error));
    assert_same_files(in_folder("a.npy"), golden(name));
}

START_TEST(bytes_are_those_of_numpy)
{
    float f[24];
    double d[24];
    bool b[24];
    int32_t i[7] = {-3, -2, -1, 0, 1, 2, 3};
    for (int k = 0; k < 24; k++) {
        f[k] = (float)k;
        d[k] = k;
        b[k] = k % 3 == 0;
    }
    const wf_shape whole = {3, {2, 3, 4}};
    wf_array a = wf_array_contiguous(f, WF_F32, &whole);
    assert_same_as_numpy(&a, "f4.npy");
    a = wf_array_contiguous(d, WF_F64, &whole);
    a = wf_array_transpose(a, 0, 2); /* [4,3,2] */
    a = wf_array_transpose(a, 1, 2); /* [4,2,3] */
    assert_same_as_numpy(&a, "f8_transposed.npy");
    a = wf_array_contiguous(i, WF_I32, &(wf_shape){1, {7}});
    assert_same_as_numpy(&a, "i4.npy");
    a = wf_array_contiguous(b, WF_BOOL, &whole);
    assert_same_as_numpy(&a, "b1.npy");
    f[0] = 2.5f;
    a = wf_array_contiguous(f, WF_F32, &(wf_shape){0});
    assert_same_as_numpy(&a, "scalar.npy");
    a = wf_array_contiguous(NULL, WF_F32, &(wf_shape){2, {0, 12345}});
    assert_same_as_numpy(&a, "empty.npy");
    ck_assert_int_eq(wf_alloc_live(), 0);
}
END_TEST

/* A slice, a broadcast and more elements than are gathered at once. */
START_TEST(strides)
{
    enum { ROWS = 300, COLUMNS = 301 };
    static float f[ROWS * COLUMNS], read[ROWS * COLUMNS];
    for (int k = 0; k < ROWS * COLUMNS; k++)
        f[k] = (float)k;
    wf_array a = wf_array_contiguous(f, WF_F32, &(wf_shape){2, {ROWS, COLUMNS}}), t = wf_array_transpose(a, 0, 1);
    wf_array s = wf_array_slice(t, 1, 2, 3), row = wf_array_slice(a, 0, 5, 1), wide = wf_array_expand(&row, &(wf_shape){2, {4, COLUMNS}});
    const wf_array *views[] = {&t, &s, &wide};
    for (int v = 0; v < 3; v++) {
        const wf_array *x = views[v];
        ck_ok(wf_npy_save(in_folder("s.npy"), x, error));
        FILE *in = fopen(in_folder("s.npy"), "rb");
        size_t count = (size_t)wf_array_count(x);
        ck_assert_int_eq(fseek(in, 128, SEEK_SET), 0);
        ck_assert_uint_eq(fread(read, sizeof *read, ROWS * COLUMNS, in), count);
        fclose(in);
        for (int64_t i = 0, k = 0; i < x->dim[0]; i++)
            for (int64_t j = 0; j < x->dim[1]; j++, k++)
                ck_assert_float_eq(read[k], ((float *)x->data)[i * x->stride[0] + j * x->stride[1]]);
    }
}
END_TEST

START_TEST(what_cant_be_written)
{
    float f[2] = {1, 2};
    wf_array a = wf_array_contiguous(f, WF_F16, &(wf_shape){1, {2}});
    ck_fails(wf_npy_save(in_folder("x.npy"), &a, error), WF_ERR_ARGUMENT, "F16");
    a = wf_array_contiguous(NULL, WF_F32, &(wf_shape){1, {2}});
    ck_fails(wf_npy_save(in_folder("x.npy"), &a, error), WF_ERR_ARGUMENT, "x.npy");
    a = wf_array_contiguous(f, WF_F32, &(wf_shape){1, {2}});
    ck_fails(wf_npy_save(in_folder("missing/x.npy"), &a, error), WF_ERR_IO, "missing");
    ck_assert(!wf_file_exists(in_folder("x.npy")));
}
END_TEST

START_TEST(standard_output)
{
    float f[2] = {1, 2};
    wf_array a = wf_array_contiguous(f, WF_F32, &(wf_shape){1, {2}});
    const char *want = in_folder("want.npy");
    ck_ok(wf_npy_save(want, &a, error));
    int there = dup(STDOUT_FILENO), ends[2];
    char read_back[512];
    ck_assert_int_eq(pipe(ends), 0);
    dup2(ends[1], STDOUT_FILENO);
    wf_status status = wf_npy_save("/dev/stdout", &a, NULL);
    dup2(there, STDOUT_FILENO);
    close(there);
    close(ends[1]);
    ssize_t bytes = read(ends[0], read_back, sizeof read_back);
    close(ends[0]);
    ck_assert_int_eq(status, WF_OK);
    ck_assert_int_eq(bytes, 128 + 8);
    assert_file_is(want, read_back, bytes);
}
END_TEST

static wf_status save_transposed(wf_error *error)
{
    static float f[6];
    wf_array a = wf_array_contiguous(f, WF_F32, &(wf_shape){2, {2, 3}}), t = wf_array_transpose(a, 0, 1);
    return wf_npy_save(in_folder("m.npy"), &t, error);
}

START_TEST(memory_may_be_short)
{
    ck_assert_int_ge(sweep_allocations(save_transposed), 3);
}
END_TEST

WF_TEST_MAIN("npy", bytes_are_those_of_numpy, strides, what_cant_be_written, standard_output, memory_may_be_short)
