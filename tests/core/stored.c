/* SPDX-License-Identifier: MIT */
/* Products whose B is stored as bf16 have the bits of the same products with B as floats: in both precisions, for each instruction set, for
 * any sizes, strides, scales and numbers, on any number of threads, and with BLIS. */
#include "any_products.h"

#include <weft/internal/gemm.h>
#include <weft/internal/runtime.h>
#include <weft/internal/testing.h>

static bool same(float x, float y)
{
    return memcmp(&x, &y, sizeof x) == 0 || (isnan(x) && isnan(y));
}

/* Rounds B to bf16; returns it, and the same numbers as floats in *floats. Both have B's strides; `room` elements from `memory` on. */
static uint16_t *stored(const float *memory, int64_t room, float **floats)
{
    uint16_t *b = (uint16_t *)room_of(room);
    *floats = room_of(room);
    ck_assert(wf_convert(WF_BF16, b, WF_F32, memory, room));
    ck_assert(wf_convert(WF_F32, *floats, WF_BF16, b, room));
    return b;
}

struct both {
    struct wf_gemm wide, narrow;
    float *c; /* memory of C */
    int64_t room;
};

static struct both random_both(int64_t m, int64_t n, int64_t k, enum kind kind)
{
    struct both p;
    p.wide = random_product(m, n, k, kind, &p.c, &p.room);
    const struct order order = operand_of(k, n);
    float *floats, *memory = some_numbers(order.room, kind);
    uint16_t *b = stored(memory, order.room, &floats);
    p.wide.b = floats + order.from;
    p.wide.b_rs = order.rs, p.wide.b_cs = order.cs;
    p.wide.rows_alone = below(2);
    p.narrow = p.wide;
    p.narrow.b = (const wf_real *)(b + order.from);
    p.narrow.b_stored = WF_BF16;
    return p;
}

static void check(struct both p)
{
    float *before = copy_of(p.c, p.room), *want = room_of(p.room);
    for (int precision = WF_PRECISION_REAL; precision <= WF_PRECISION_BF16; precision++) {
        p.wide.precision = p.narrow.precision = (enum wf_precision)precision;
        EACH_ISA
        {
            memcpy(p.c, before, (size_t)p.room * sizeof *before);
            ck_assert_int_eq(wf_gemm(&p.wide), WF_OK);
            memcpy(want, p.c, (size_t)p.room * sizeof *want);
            memcpy(p.c, before, (size_t)p.room * sizeof *before);
            ck_assert_int_eq(wf_gemm(&p.narrow), WF_OK);
            for (int64_t i = 0; i < p.room; i++)
                expect(same(p.c[i], want[i]), "number %lld of C is %a, not %a: precision %d, %s", (long long)i, (double)p.c[i],
                       (double)want[i], precision, describe(&p.narrow));
        }
    }
    free_case();
}

START_TEST(sizes)
{
    ck_ok(wf_init(error, .threads = 2));
    for (int count = sampled() ? 60 : 600; count > 0; count--)
        check(random_both(1 + below(below(2) ? 14 : 90), 1 + below(100), 1 + below(below(2) ? 70 : 700), (enum kind)below(KINDS)));
}
END_TEST

/* Shapes of each path: few rows, tasks, a shared B of several chunks, split-K, and BLIS for AVX2. A sample has one form of each. */
START_TEST(large)
{
    static const int64_t shapes[][3] = {{1, 3072, 768},  {4, 768, 3072}, {12, 1500, 1030}, {300, 500, 700},
                                        {520, 33, 2100}, {40, 40, 4096}, {1500, 1, 768},   {400, 400, 520}};
    ck_ok(wf_init(error, .threads = 2));
    for (int i = 0; i < (sanitized() ? 1 : (int)(sizeof shapes / sizeof *shapes)); i++)
        for (int form = sampled() ? i % (TT + 1) : NN; form <= TT; form += sampled() ? TT + 1 : 1) {
            struct both p = {.wide = product(shapes[i][0], shapes[i][1], shapes[i][2], (enum form)form, 1)};
            float *floats;
            const uint16_t *b = stored(p.wide.b, p.wide.k * p.wide.n, &floats);
            p.wide.b = floats;
            p.narrow = p.wide;
            p.narrow.b = (const wf_real *)b;
            p.narrow.b_stored = WF_BF16;
            p.c = p.wide.c;
            p.room = p.wide.m * p.wide.n;
            check(p);
        }
}
END_TEST

/* A batch, and two products at once, whose B is an array of bf16, as a caller of wf_array_matmul writes it. */
START_TEST(arrays)
{
    ck_ok(wf_init(error, .threads = 2));
    const wf_shape sa = {3, {3, 5, 70}}, sb = {3, {3, 70, 9}}, sc = {3, {3, 5, 9}};
    float *floats;
    uint16_t *b = stored(random_numbers(3 * 70 * 9), 3 * 70 * 9, &floats);
    const wf_array a = wf_array_contiguous(random_numbers(3 * 5 * 70), WF_F32, &sa), wide = wf_array_contiguous(floats, WF_F32, &sb),
                   narrow = wf_array_contiguous(b, WF_BF16, &sb), want = wf_array_contiguous(random_numbers(135), WF_F32, &sc),
                   got = wf_array_contiguous(random_numbers(135), WF_F32, &sc);
    ck_ok(wf_array_matmul(&a, &wide, &want, error, 0));
    ck_ok(wf_array_matmul(&a, &narrow, &got, error, 0));
    ck_assert_mem_eq(got.data, want.data, 135 * sizeof(float));
    ck_fails(wf_array_matmul(&narrow, &wide, &got, error, 0), WF_ERR_SHAPE, "does not fit");
    const wf_array bt = wf_array_transpose(narrow, 1, 2), out = wf_array_transpose(got, 1, 2), at = wf_array_transpose(a, 1, 2);
    ck_fails(wf_array_matmul(&bt, &at, &out, error, 0), WF_ERR_ARGUMENT, "all three must be F32, but the second may be BF16");
    const struct wf_gemm one = {5, 9, 70, 1, 0, a.data, 70, 1, (const wf_real *)b, 9, 1, got.data, 9, 1, .b_stored = WF_BF16};
    struct wf_gemm two = one;
    two.c = (wf_real *)got.data + 45;
    memset(got.data, 0, 90 * sizeof(float));
    ck_assert_int_eq(wf_gemm_two((const struct wf_gemm[]){one, two}), WF_OK);
    ck_assert_mem_eq(got.data, want.data, 45 * sizeof(float));
    ck_assert_mem_eq(two.c, want.data, 45 * sizeof(float));
    free_case();
}
END_TEST

/* Every allocation fails once: the product says so, and the next one is right. */
START_TEST(memory)
{
    ck_ok(wf_init(error, .threads = 2));
    for (int i = 0; i < 4; i++) {
        struct both p = random_both(i < 2 ? 3 : 200, i == 3 ? 1 : 200, 200, PLAIN);
        p.narrow.precision = i == 1 ? WF_PRECISION_BF16 : WF_PRECISION_REAL;
        p.narrow.beta = 0;
        ck_assert_int_eq(wf_gemm(&p.narrow), WF_OK);
        float *want = copy_of(p.c, p.room);
        int without = 0;
        for (int n = 0;; n++) {
            wf_scratch_drop();
            wf_alloc_fail_after(n);
            const wf_status status = wf_gemm(&p.narrow);
            wf_alloc_fail_after(-1);
            if (status == WF_OK)
                break;
            ck_assert_int_eq(status, WF_ERR_MEMORY);
            without++;
        }
        ck_assert_int_gt(without, i == 0 ? -1 : 0);
        ck_assert_int_eq(wf_gemm(&p.narrow), WF_OK);
        ck_assert_mem_eq(p.c, want, (size_t)p.room * sizeof *want);
        free_case();
    }
}
END_TEST

WF_TEST_MAIN("stored", sizes, large, arrays, memory)
