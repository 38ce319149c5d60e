/* SPDX-License-Identifier: MIT */
#include "check_weft.h"

#include <math.h>

static wf_shape shape_of(int ndim, const int64_t *dim)
{
    wf_shape shape = {.ndim = ndim};
    for (int d = 0; d < ndim; d++)
        shape.dim[d] = dim[d];
    return shape;
}
#define SHAPE(...) shape_of((int)(sizeof((int64_t[]){__VA_ARGS__}) / 8), (int64_t[]){__VA_ARGS__})

START_TEST(shapes)
{
    wf_shape scalar = {0}, a = SHAPE(2, 3, 8), big = SHAPE(INT64_MAX, 2), zero = SHAPE(INT64_MAX, 2, 0), bad = SHAPE(2, -1);
    ck_assert_int_eq(wf_shape_count(&scalar), 1);
    ck_assert_int_eq(wf_shape_count(&a), 48);
    ck_assert_int_eq(wf_shape_count(&big), -1);
    ck_assert_int_eq(wf_shape_count(&zero), 0);
    ck_assert_int_eq(wf_shape_count(&bad), -1);
    ck_assert_int_eq(wf_shape_count(&(wf_shape){.ndim = -1}), -1);
    ck_assert_int_eq(wf_shape_count(&(wf_shape){.ndim = WF_MAX_DIMS + 1, .dim = {1, 1, 1, 1, 1, 1}}), -1);
    char text[96];
    ck_assert_str_eq(wf_shape_text(&a, text, sizeof text), "[2,3,8]");
    ck_assert_str_eq(wf_shape_text(&scalar, text, sizeof text), "[]");
    wf_shape six = SHAPE(9999999999999, 9999999999999, 9999999999999, 9999999999999, 9999999999999, 9999999999999);
    ck_assert_uint_eq(strlen(wf_shape_text(&six, text, sizeof text)), 6 * 13 + 7);
    ck_assert_uint_lt(strlen(wf_shape_text(&six, text, 10)), 10);
    wf_shape b = SHAPE(2, 3, 8), c = SHAPE(2, 3);
    ck_assert(wf_shape_equal(&a, &b) && !wf_shape_equal(&a, &c));
    ck_assert_str_eq(wf_dtype_name(WF_BF16), "BF16");
    static const size_t sizes[] = {4, 8, 2, 2, 1, 1, 1, 1, 2, 2, 4, 4, 8, 8, 1};
    for (int i = 0; i < WF_DTYPE_COUNT; i++)
        ck_assert_uint_eq(wf_dtype_size((wf_dtype)i), sizes[i]);
}
END_TEST

START_TEST(broadcasting)
{
    wf_shape a = SHAPE(4, 1, 3), b = SHAPE(5, 1), scalar = {0}, out, expected = SHAPE(4, 5, 3), bad = SHAPE(2, 3), zero = SHAPE(0, 1);
    ck_assert(wf_shape_broadcast(&a, &b, &out) && wf_shape_equal(&out, &expected));
    ck_assert(wf_shape_broadcast(&b, &a, &out) && wf_shape_equal(&out, &expected));
    ck_assert(wf_shape_broadcast(&a, &scalar, &out) && wf_shape_equal(&out, &a));
    ck_assert(!wf_shape_broadcast(&expected, &bad, &out));
    expected = SHAPE(4, 0, 3);
    ck_assert(wf_shape_broadcast(&zero, &a, &out) && wf_shape_equal(&out, &expected));
    expected = SHAPE(4, 1, 3);
    ck_assert(wf_shape_broadcast(&a, &a, &a) && wf_shape_equal(&a, &expected)); /* out may be an operand */
    wf_real x[5] = {0};
    wf_array v = wf_array_contiguous(x, WF_REAL, &b);
    expected = SHAPE(4, 5, 3);
    wf_array e = wf_array_expand(&v, &expected);
    ck_assert(e.stride[0] == 0 && e.stride[1] == 1 && e.stride[2] == 0 && e.dim[0] == 4 && e.data == x);
}
END_TEST

static int64_t offset_of(const wf_array *a, int64_t index)
{
    int64_t offset = 0;
    for (int d = a->ndim - 1; d >= 0; d--) {
        offset += index % a->dim[d] * a->stride[d];
        index /= a->dim[d];
    }
    return offset;
}

/* A random view into a block: dims permuted, cut, some repeated (if allowed) or walked backwards. */
static wf_array random_view(wf_rng *rng, char *data, wf_dtype dtype, int ndim, const int64_t *dim, bool repeat)
{
    int order[WF_MAX_DIMS];
    for (int d = 0; d < ndim; d++)
        order[d] = d;
    for (int d = ndim - 1; d > 0; d--) {
        int other = (int)wf_rng_below(rng, (uint64_t)d + 1), keep = order[d];
        order[d] = order[other];
        order[other] = keep;
    }
    if (wf_rng_below(rng, 3) == 0)
        for (int d = 0; d < ndim; d++)
            order[d] = d;
    wf_array a = {.data = data, .dtype = dtype, .ndim = ndim};
    int64_t step = wf_rng_below(rng, 4) == 0 ? 2 : 1;
    for (int d = ndim - 1; d >= 0; d--) {
        int at = order[d];
        a.dim[at] = dim[at];
        a.stride[at] = repeat && wf_rng_below(rng, 5) == 0 ? 0 : step;
        step *= dim[at] + (wf_rng_below(rng, 4) == 0);
        if (a.stride[at] && wf_rng_below(rng, 6) == 0 && dim[at] > 0) {
            a.data = (char *)a.data + (dim[at] - 1) * a.stride[at] * (int64_t)wf_dtype_size(dtype);
            a.stride[at] = -a.stride[at];
        }
    }
    return a;
}

/* A reshape without a copy is possible just when the offsets of the elements in order are linear in the new indices. */
START_TEST(reshapes)
{
    wf_rng rng = wf_rng_new(1, 1);
    static const int64_t dims[][4] = {{2, 3, 4, 1}, {6, 4, 1, 1}, {4, 6, 1, 1},  {24, 1, 1, 1}, {2, 12, 1, 1}, {12, 2, 1, 1},
                                      {3, 8, 1, 1}, {2, 2, 6, 1}, {1, 24, 1, 1}, {2, 2, 2, 3},  {4, 1, 3, 2},  {3, 2, 2, 2}};
    enum { SHAPES = sizeof dims / sizeof *dims };
    int possible = 0, refused = 0;
    char block[1];
    for (int trial = 0; trial < 4000; trial++) {
        wf_array a = random_view(&rng, block, WF_I32, 4, dims[wf_rng_below(&rng, SHAPES)], true), out;
        wf_shape to = shape_of(4, dims[wf_rng_below(&rng, SHAPES)]);
        wf_array linear = wf_array_contiguous(a.data, WF_I32, &to);
        int64_t step = 1;
        for (int d = 3; d >= 0; step *= to.dim[d--])
            linear.stride[d] = to.dim[d] > 1 ? offset_of(&a, step) - offset_of(&a, 0) : 0;
        bool can = true;
        for (int64_t i = 0; i < 24; i++)
            can &= offset_of(&linear, i) == offset_of(&a, i);
        bool did = wf_array_reshape(&a, &to, &out);
        ck_assert_int_eq(did, can);
        possible += can;
        refused += !can;
        if (did) {
            wf_shape shape = wf_array_shape(&out);
            ck_assert(wf_shape_equal(&shape, &to));
            for (int64_t i = 0; i < 24; i++)
                ck_assert_int_eq(offset_of(&out, i), offset_of(&a, i));
        }
    }
    ck_assert(possible > 500 && refused > 500);
    wf_shape five = SHAPE(5), none = SHAPE(0, 7), other = SHAPE(3, 0);
    wf_array a = wf_array_contiguous(block, WF_I32, &none), out;
    ck_assert(!wf_array_reshape(&a, &five, &out));
    ck_assert(wf_array_reshape(&a, &other, &out));
}
END_TEST

START_TEST(views)
{
    int32_t x[24];
    wf_shape shape = SHAPE(2, 3, 4);
    wf_array a = wf_array_contiguous(x, WF_I32, &shape), t = wf_array_transpose(a, 0, 2), s = wf_array_slice(a, 1, 1, 2);
    ck_assert(wf_array_is_contiguous(&a) && !wf_array_is_contiguous(&t) && !wf_array_is_contiguous(&s));
    ck_assert(t.dim[0] == 4 && t.stride[0] == 1 && t.dim[2] == 2 && t.stride[2] == 12);
    ck_assert(s.data == x + 4 && s.dim[1] == 2 && s.stride[1] == 4);
    ck_assert_int_eq(wf_array_count(&s), 16);
    wf_array front = wf_array_slice(a, 0, 1, 1);
    ck_assert(wf_array_is_contiguous(&front) && front.data == x + 12);
    front.stride[0] = 999; /* of a dim of size 1 */
    ck_assert(wf_array_is_contiguous(&front));
}
END_TEST

/* Copies between random views against the plain loop. Memory between the elements of dst stays unchanged. */
static void check_copy(wf_rng *rng, wf_dtype dtype, int ndim, const int64_t *dim)
{
    int64_t size = (int64_t)wf_dtype_size(dtype), room = 2;
    for (int d = 0; d < ndim; d++)
        room *= dim[d] + 1;
    size_t bytes = (size_t)(room * size);
    unsigned char *block = wf_alloc(3 * bytes), *dst = block, *expected = block + bytes, *from = block + 2 * bytes;
    for (size_t i = 0; i < bytes; i++) {
        dst[i] = expected[i] = 0xee;
        from[i] = (unsigned char)(i * 37 + i / 256 * 11);
    }
    wf_array d = random_view(rng, (char *)dst, dtype, ndim, dim, false), s = random_view(rng, (char *)from, dtype, ndim, dim, true);
    int64_t count = wf_array_count(&d), shift = (int64_t)bytes;
    for (int64_t i = 0; i < count; i++)
        memcpy((char *)d.data + shift + offset_of(&d, i) * size, (char *)s.data + offset_of(&s, i) * size, (size_t)size);
    wf_array_copy(&d, &s);
    if (memcmp(dst, expected, bytes) != 0) {
        wf_shape shape = wf_array_shape(&d);
        char text[96];
        ck_abort_msg("wrong copy of %s %s", wf_dtype_name(dtype), wf_shape_text(&shape, text, sizeof text));
    }
    wf_free(block);
}

START_TEST(copies)
{
    static const wf_dtype dtypes[] = {WF_F32, WF_F64, WF_U8, WF_BF16};
    wf_rng rng = wf_rng_new(2, 2);
    ck_ok(wf_set_threads(2, error));
    for (int trial = 0; trial < 6000; trial++) {
        int64_t dim[WF_MAX_DIMS];
        int ndim = (int)wf_rng_below(&rng, WF_MAX_DIMS + 1);
        static const int64_t most[] = {1, 300, 60, 20, 9, 5, 4};
        for (int d = 0; d < ndim; d++)
            dim[d] = (int64_t)wf_rng_below(&rng, (uint64_t)most[ndim] + 1);
        check_copy(&rng, dtypes[trial % 4], ndim, dim);
    }
}
END_TEST

/* Above the cutoff, with several strips and planes. */
START_TEST(large_copies)
{
    static const struct {
        int ndim;
        int64_t dim[4];
    } cases[] = {{1, {300001}},      {2, {700, 501}},      {2, {3, 100003}},     {2, {100003, 3}},
                 {3, {40, 33, 129}}, {4, {16, 4, 65, 64}}, {4, {200, 8, 8, 16}}, {3, {2, 1, 70000}}};
    wf_rng rng = wf_rng_new(3, 3);
    for (int threads = 1; threads <= 3; threads++) {
        ck_ok(wf_set_threads(threads, error));
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            for (int trial = 0; trial < 4; trial++)
                check_copy(&rng, trial % 2 ? WF_F64 : WF_F32, cases[i].ndim, cases[i].dim);
    }
}
END_TEST

static double value_of_half(unsigned h)
{
    int exponent = h >> 10 & 31, mantissa = h & 1023;
    double x = exponent == 31 ? (mantissa ? NAN : INFINITY) : exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
    return h & 0x8000 ? -x : x;
}

static double value_of_bfloat(unsigned b)
{
    int exponent = b >> 7 & 255, mantissa = b & 127;
    double x = exponent == 255 ? (mantissa ? NAN : INFINITY) : exponent ? ldexp(128 + mantissa, exponent - 134) : ldexp(mantissa, -133);
    return b & 0x8000 ? -x : x;
}

/* Every 16-bit float widens to its value and comes back; what lies between two goes to the nearest, ties to the even one. */
START_TEST(sixteen_bits)
{
    enum { ALL = 65536 };
    uint16_t *in = wf_alloc(ALL * 2), *back = wf_alloc(ALL * 2);
    float *f = wf_alloc(ALL * sizeof *f);
    double *d = wf_alloc(ALL * sizeof *d);
    for (int i = 0; i < ALL; i++)
        in[i] = (uint16_t)i;
    for (int kind = 0; kind < 2; kind++) {
        wf_dtype dtype = kind ? WF_BF16 : WF_F16;
        double (*value_of)(unsigned) = kind ? value_of_bfloat : value_of_half;
        unsigned infinity = kind ? 0x7f80 : 0x7c00;
        ck_assert(wf_convert(WF_F32, f, dtype, in, ALL) && wf_convert(WF_F64, d, dtype, in, ALL));
        for (unsigned i = 0; i < ALL; i++) {
            double v = value_of(i);
            ck_assert(isnan(v) ? isnan(f[i]) && isnan(d[i]) : f[i] == (float)v && d[i] == v && !signbit(f[i]) == !signbit(v));
        }
        for (int wide = 0; wide < 2; wide++) {
            ck_assert(wide ? wf_convert(dtype, back, WF_F64, d, ALL) : wf_convert(dtype, back, WF_F32, f, ALL));
            for (unsigned i = 0; i < ALL; i++)
                ck_assert((i & 0x7fff) > infinity ? (back[i] & 0x7fff) > infinity : back[i] == i);
        }
        for (unsigned i = 0; i < infinity; i++) {
            double low = value_of(i), step = i + 1 < infinity ? value_of(i + 1) - low : low - value_of(i - 1);
            double between[] = {low + step / 2, low + step * 0.499999, low + step * 0.500001, -(low + step / 2)};
            uint16_t out[4];
            unsigned even = i & 1 ? i + 1 : i;
            ck_assert(wf_convert(dtype, out, WF_F64, between, 4));
            ck_assert(out[0] == even && out[1] == i && out[2] == i + 1 && out[3] == (even | 0x8000));
        }
    }
    double outside[] = {1e300, -1e300, 1e-300, -1e-300, 5e-324, INFINITY};
    uint16_t out[6];
    ck_assert(wf_convert(WF_F16, out, WF_F64, outside, 6));
    ck_assert(out[0] == 0x7c00 && out[1] == 0xfc00 && out[2] == 0 && out[3] == 0x8000 && out[4] == 0 && out[5] == 0x7c00);
    wf_free(in);
    wf_free(back);
    wf_free(f);
    wf_free(d);
}
END_TEST

START_TEST(conversions)
{
    int64_t wide[] = {-1, 5, 300, INT64_MIN, 0}, back[5];
    int32_t narrow[5];
    int8_t tiny[5];
    uint8_t truth[5];
    ck_assert(wf_convert(WF_I32, narrow, WF_I64, wide, 3) && narrow[0] == -1 && narrow[1] == 5 && narrow[2] == 300);
    ck_assert(wf_convert(WF_I64, back, WF_I32, narrow, 3) && back[0] == -1 && back[2] == 300);
    ck_assert(wf_convert(WF_I8, tiny, WF_I64, wide, 2) && tiny[0] == -1 && tiny[1] == 5);
    ck_assert(wf_convert(WF_I64, back, WF_I8, tiny, 2) && back[0] == -1);
    ck_assert(wf_convert(WF_I64, back, WF_U8, tiny, 1) && back[0] == 255);
    ck_assert(wf_convert(WF_BOOL, truth, WF_I64, wide, 5) && truth[0] == 1 && truth[3] == 1 && truth[4] == 0);
    ck_assert(wf_convert(WF_I64, back, WF_I64, wide, 5) && memcmp(back, wide, sizeof wide) == 0);
    double x[3] = {1.5, -2.25, 1e-50};
    float y[3];
    ck_assert(wf_convert(WF_F32, y, WF_F64, x, 3) && y[0] == 1.5f && y[1] == -2.25f && y[2] == 0);
    ck_assert(!wf_convert(WF_I32, narrow, WF_F32, y, 3));
    ck_assert(!wf_convert(WF_F16, narrow, WF_I32, narrow, 3));
    ck_assert(!wf_convert(WF_F32, y, WF_F8_E4M3, tiny, 2));
    ck_assert(wf_convert(WF_F32, NULL, WF_F64, NULL, 0));
}
END_TEST

START_TEST(integers_to_floats)
{
    /* -1 of each width, and what it is without a sign */
    static const struct {
        wf_dtype dtype;
        double value;
    } each[] = {{WF_I8, -1},  {WF_U8, 255},     {WF_I16, -1}, {WF_U16, 65535}, {WF_I32, -1}, {WF_U32, 4294967295.0},
                {WF_I64, -1}, {WF_U64, 0x1p64}, {WF_BOOL, 1}};
    const int64_t bits[] = {-1, -1};
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        double d[2] = {0};
        float f[2] = {0};
        ck_assert(wf_convert(WF_F64, d, each[i].dtype, bits, 2) && d[0] == each[i].value && d[1] == each[i].value);
        ck_assert(wf_convert(WF_F32, f, each[i].dtype, bits, 2) && f[0] == (float)each[i].value && f[1] == f[0]);
    }
    const int64_t odd[] = {16777217, -16777219, INT64_MIN}; /* to the nearest, ties to even */
    float f[3];
    ck_assert(wf_convert(WF_F32, f, WF_I64, odd, 3) && f[0] == 16777216.0f && f[1] == -16777220.0f && f[2] == -0x1p63f);
}
END_TEST

WF_TEST_MAIN("array", shapes, broadcasting, reshapes, views, copies, large_copies, sixteen_bits, conversions, integers_to_floats)
