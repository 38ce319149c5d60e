/* SPDX-License-Identifier: MIT */
/* Arrays as text: the values as PyTorch prints them (tests/golden/make_print.py). */
#include "../golden/print.h"

#include "arrays.h"

/* A value that the format has, with `man` bits of mantissa and this bias. */
static uint8_t eight_bits(double value, int man, int bias)
{
    int exponent;
    const double size = fabs(value), mantissa = frexp(size, &exponent); /* size = mantissa 2^exponent, mantissa in 0.5 .. 1 */
    const int place = exponent - 1 + bias;
    const double bits = size == 0 ? 0 : place > 0 ? (place - 1 + 2 * mantissa) * (1 << man) : ldexp(size, bias - 1 + man);
    return (uint8_t)((int)bits | (value < 0 ? 0x80 : 0));
}

static void put(wf_dtype dtype, void *to, double value)
{
    const int64_t whole = dtype <= WF_F8_E5M2 ? 0 : (int64_t)value;
    if (dtype == WF_BOOL)
        *(bool *)to = value != 0;
    else if (dtype == WF_F8_E4M3 || dtype == WF_F8_E5M2)
        *(uint8_t *)to = eight_bits(value, dtype == WF_F8_E4M3 ? 3 : 2, dtype == WF_F8_E4M3 ? 7 : 15);
    else if (dtype <= WF_F8_E5M2)
        ck_assert(wf_convert(dtype, to, WF_F64, &value, 1));
    else
        ck_assert(wf_convert(dtype, to, WF_I64, &whole, 1));
}

static wf_array make(const struct print_case *c)
{
    const int64_t count = wf_shape_count(&c->shape);
    const size_t size = wf_dtype_size(c->dtype);
    char *data = malloc((size_t)count * size + 1);
    for (int64_t i = 0; i < count; i++)
        put(c->dtype, data + (size_t)i * size,
            c->first_value >= 0 ? print_values[c->first_value + i] : (double)(i * c->step % c->modulus) + c->first);
    return wf_array_contiguous(data, c->dtype, &c->shape);
}

START_TEST(values_are_printed_as_by_pytorch)
{
    for (size_t i = 0; i < sizeof print_cases / sizeof *print_cases; i++) {
        const struct print_case *c = &print_cases[i];
        char want[4096], shape[96];
        struct wf_string text = {0};
        wf_array a = make(c);
        const size_t length = strlen(c->text);
        char *all = malloc(length + 256);
        ck_assert_int_eq(wf_array_print_text(&text, "x", &a), WF_OK);
        snprintf(want, sizeof want, "x %s %s\n", wf_shape_text(&c->shape, shape, sizeof shape), wf_dtype_name(c->dtype));
        sprintf(all, "%s%s\n", want, c->text);
        ck_assert_msg(strcmp(text.data, all) == 0, "case %zu:\n%s\nnot\n%s", i, text.data, all);
        free(all);
        free(a.data);
        wf_string_free(&text);
    }
}
END_TEST

/* The text appended to what is there. */
static void prints(const wf_array *a, const char *want)
{
    struct wf_string text = {0};
    ck_assert_int_eq(wf_array_print_text(&text, NULL, a), WF_OK);
    ck_assert_str_eq(text.data, want);
    ck_assert_int_eq(wf_array_print_text(&text, "again", a), WF_OK);
    ck_assert_str_eq(text.data + strlen(want) + strlen("again "), want);
    wf_string_free(&text);
}

START_TEST(views_are_printed_by_their_shape)
{
    float x[12];
    for (int i = 0; i < 12; i++)
        x[i] = (float)i;
    const wf_array a = wf_array_contiguous(x, WF_F32, WF_SHAPE(3, 4));
    wf_array t = wf_array_transpose(a, 0, 1), part = wf_array_slice(t, 0, 1, 2), row = wf_array_slice(a, 0, 2, 1);
    prints(&part, "[2,3] F32\n[[ 1.,  5.,  9.],\n [ 2.,  6., 10.]]\n");
    const wf_array wide = wf_array_expand(&row, WF_SHAPE(2, 4));
    prints(&wide, "[2,4] F32\n[[ 8.,  9., 10., 11.],\n [ 8.,  9., 10., 11.]]\n");
    wf_array back = wf_array_contiguous(x + 3, WF_F32, WF_SHAPE(4));
    back.stride[0] = -1;
    prints(&back, "[4] F32\n[3., 2., 1., 0.]\n");
    const uint64_t great[2] = {UINT64_MAX, 1};
    const wf_array whole = wf_array_contiguous((void *)(uintptr_t)great, WF_U64, WF_SHAPE(2));
    prints(&whole, "[2] U64\n[18446744073709551615,                    1]\n");
    x[1] = NAN, x[2] = -INFINITY; /* aligned, also where numbers are narrower */
    const wf_array bad = wf_array_slice(a, 0, 0, 2);
    prints(&bad, "[2,4] F32\n[[  0.,  nan, -inf,   3.],\n [  4.,   5.,   6.,   7.]]\n");
}
END_TEST

START_TEST(what_cannot_be_printed_is_refused)
{
    struct wf_string text = {0};
    float x = 1;
    wf_array a = wf_array_contiguous(&x, WF_F32, &(wf_shape){0}), none = wf_array_contiguous(NULL, WF_F32, WF_SHAPE(2));
    wf_array invalid = wf_array_contiguous(&x, WF_F32, &(wf_shape){.ndim = 9}), odd = a;
    odd.dtype = (wf_dtype)77;
    ck_assert_int_eq(wf_array_print_text(&text, "x", NULL), WF_ERR_ARGUMENT);
    ck_assert_int_eq(wf_array_print_text(NULL, "x", &a), WF_ERR_ARGUMENT);
    ck_assert_int_eq(wf_array_print_text(&text, "x", &none), WF_ERR_ARGUMENT);
    ck_assert_int_eq(wf_array_print_text(&text, "x", &invalid), WF_ERR_ARGUMENT);
    ck_assert_int_eq(wf_array_print_text(&text, "x", &odd), WF_ERR_ARGUMENT);
    ck_assert_int_eq(wf_array_print(NULL, "x", &a), WF_ERR_ARGUMENT);
    ck_assert_ptr_null(text.data);
    FILE *full = fopen("/dev/full", "w");
    if (full) {
        setvbuf(full, NULL, _IONBF, 0);
        ck_assert_int_eq(wf_array_print(full, "x", &a), WF_ERR_IO);
        fclose(full);
    }
    char page[64] = "";
    FILE *to = fmemopen(page, sizeof page, "w");
    ck_assert_int_eq(wf_array_print(to, "x", &a), WF_OK);
    fclose(to);
    ck_assert_str_eq(page, "x [] F32\n1.\n");
}
END_TEST

WF_TEST_MAIN("print", values_are_printed_as_by_pytorch, views_are_printed_by_their_shape, what_cannot_be_printed_is_refused)
