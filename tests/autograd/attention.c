/* SPDX-License-Identifier: MIT */
/* Fused attention: numbers, masks, what masked keys hold, dropout, bits. */
#include <weft/internal/kernels.h>

#include "attention_reference.h"

static const double bound = sizeof(wf_real) == 8 ? 1e-12 : 2e-6;
/* Everything that a run gives, contiguous. */
struct run {
    wf_tensor *q, *k, *v, *all /* what q, k and v are slices of, or NULL */, *out, *weights;
};

static struct wf_attention_options options_of(const struct problem *p)
{
    struct wf_attention_options o = {
        .heads = (int)p->h, .kv_heads = (int)p->g, .causal = p->causal, .key_lengths = p->lengths, .scale = p->scale};
    if (p->mask)
        o.mask = wf_bools(tape, p->mask, WF_SHAPE(p->b, p->h, p->t, p->s));
    return o;
}

/* q, k and v as tensors, as slices of one tensor where their sizes allow it. */
static struct run forward(const struct problem *p, bool weights)
{
    struct run r = {0};
    if (p->t == p->s && p->h == p->g && p->e == p->f) {
        int64_t d = p->h * p->e, rows = p->b * p->t;
        wf_real *all = malloc((size_t)(rows * 3 * d + 1) * sizeof *all);
        const wf_real *part[3] = {p->q, p->k, p->v};
        for (int64_t i = 0; i < rows; i++)
            for (int j = 0; j < 3; j++)
                memcpy(all + (3 * i + j) * d, part[j] + i * d, (size_t)d * sizeof *all);
        wf_tensor *split[3];
        r.all = wf_input(tape, all, WF_SHAPE(p->b, p->t, 3 * d), true);
        wf_split(r.all, 2, 3, split);
        free(all);
        r.q = split[0];
        r.k = split[1];
        r.v = split[2];
    } else {
        r.q = wf_input(tape, p->q, WF_SHAPE(p->b, p->t, p->h * p->e), true);
        r.k = wf_input(tape, p->k, WF_SHAPE(p->b, p->s, p->g * p->e), true);
        r.v = wf_input(tape, p->v, WF_SHAPE(p->b, p->s, p->g * p->f), true);
    }
    struct wf_attention_options o = options_of(p);
    if (weights)
        o.weights = &r.weights;
    r.out = wf_attention_with(r.q, r.k, r.v, &o);
    ran(wf_tape_error(tape)->code);
    return r;
}

static void backward(const struct problem *p, const struct run *r)
{
    wf_keep(r->out);
    wf_tensor *dout = wf_input(tape, p->dout, WF_SHAPE(p->b, p->t, p->h * p->f), false);
    ran(wf_backward(wf_sum(wf_mul(r->out, dout))));
}

/* Result 0: out, 1: dq, 2: dk, 3: dv. */
static wf_array result_of(const struct run *r, int which)
{
    wf_array a = {0};
    wf_tensor *const inputs[] = {r->q, r->k, r->v};
    ran(which == 0 ? wf_view(r->out, &a) : wf_grad(r->all ? r->all : inputs[which - 1], &a));
    if (which > 0 && r->all)
        a = wf_array_slice(a, 2, (which - 1) * a.dim[2] / 3, a.dim[2] / 3);
    return a;
}

static void check_near(const struct problem *p, const char *what, wf_array a, const double *expected)
{
    double d = distance(&a, expected), allowed = p->s == 1 ? 10 * bound : bound; /* one key: dq and dk are rounding errors */
    ck_assert_msg(d <= allowed, "%s B%d T%d S%d H%d G%d E%d F%d causal %d: %s is off by %.2g", wf_isa(), (int)p->b, (int)p->t, (int)p->s,
                  (int)p->h, (int)p->g, (int)p->e, (int)p->f, p->causal, what, d);
}

/* --- numbers ------------------------------------------------------------------------------------------------------- */

static void check_problem(struct problem p)
{
    fill_problem(&p);
    struct reference want = make_reference(&p);
    for (int i = 0; i < ISAS; i++) {
        if (!isa_used(i))
            continue;
        begin(WF_GRADIENTS);
        struct run r = forward(&p, true);
        wf_array weights;
        ran(wf_view(r.weights, &weights));
        check_near(&p, "weights", weights, want.weights);
        backward(&p, &r);
        const double *expected[] = {want.out, want.dq, want.dk, want.dv};
        static const char *const names[] = {"out", "dq", "dk", "dv"};
        for (int j = 0; j < 4; j++)
            check_near(&p, names[j], result_of(&r, j), expected[j]);
    }
    free_reference(&want);
    free_problem(&p);
}

START_TEST(against_reference)
{
    const struct problem list[] = {
        {1, 1, 1, 1, 1, 1, 1},
        {2, 64, 64, 4, 4, 32, 32, .causal = true},
        {1, 256, 256, 2, 2, 64, 64, .causal = true},
        {2, 70, 131, 2, 2, 20, 20, .causal = true},
        {2, 131, 70, 2, 2, 20, 20, .causal = true},
        {2, 128, 128, 4, 4, 8, 8},
        {1, 33, 65, 6, 2, 17, 31},
        {1, 40, 129, 4, 1, 256, 100, .scale = 0.2},
        {3, 65, 65, 3, 3, 5, 5, .lengths = I32(65, 0, 7)},
        {3, 10, 66, 2, 1, 16, 16, .causal = true, .lengths = I32(64, 60, 1)},
        {1, 200, 200, 1, 1, 300, 300, .causal = true},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        check_problem(list[i]);
}
END_TEST

/* Every number of queries and of keys around the edges of tiles and registers. */
START_TEST(odd_sizes)
{
    static const int64_t sizes[] = {1, 2, 7, 8, 9, 15, 17, 31, 32, 33, 63, 64, 65, 97};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t j = 0; j < sizeof sizes / sizeof *sizes; j++)
            check_problem((struct problem){1, sizes[i], sizes[j], 1, 1, 1 + (int64_t)(i * 5 + j) % 37, 1 + (int64_t)(i + j * 7) % 41,
                                           .causal = (i + j) % 2});
}
END_TEST

static bool *random_mask(int64_t n, double p)
{
    bool *mask = malloc((size_t)n + 1);
    wf_rng rng = wf_rng_new(3, 9);
    for (int64_t i = 0; i < n; i++)
        mask[i] = wf_rng_uniform(&rng) < p;
    return mask;
}

START_TEST(masks)
{
    for (int causal = 0; causal < 2; causal++) {
        struct problem p = {2, 70, 140, 3, 3, 12, 12, .causal = causal};
        bool *mask = random_mask(p.b * p.h * p.t * p.s, 0.6);
        for (int64_t row = 0; row < p.b * p.h * p.t; row++) /* empty rows, and tiles that are all true or all false */
            for (int64_t s = 0; s < p.s; s++) {
                if (row % 11 == 3 || (row < p.t && s < 64))
                    mask[row * p.s + s] = false;
                else if (row >= p.t && row < 2 * p.t && s >= 64 && s < 128)
                    mask[row * p.s + s] = true;
            }
        p.mask = mask;
        check_problem(p);
        free(mask);
    }
}
END_TEST

/* Masks that repeat along a dimension mean what the whole mask means, to the bit. */
START_TEST(broadcast_masks)
{
    static const wf_shape shapes[] = {{4, {2, 3, 20, 90}}, {4, {2, 1, 1, 90}}, {4, {1, 3, 20, 1}}, {2, {20, 90}},
                                      {1, {90}},           {0, {0}},           {3, {3, 1, 90}}};
    struct problem p = {2, 20, 90, 3, 3, 12, 12};
    fill_problem(&p);
    const wf_shape full = shapes[0], *out_shape = WF_SHAPE(2, 20, 36);
    int64_t n = wf_shape_count(out_shape);
    wf_real *a = malloc((size_t)n * sizeof *a), *b = malloc((size_t)n * sizeof *b);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        bool *small = random_mask(wf_shape_count(&shapes[i]), 0.7), *whole = malloc((size_t)wf_shape_count(&full));
        wf_array from = wf_array_contiguous(small, WF_BOOL, &shapes[i]), to = wf_array_contiguous(whole, WF_BOOL, &full);
        from = wf_array_expand(&from, &full);
        wf_array_copy(&to, &from);
        for (int j = 0; j < 2; j++) {
            begin(WF_INFER);
            struct wf_attention_options o = {.heads = 3, .mask = wf_bools(tape, j ? small : whole, j ? &shapes[i] : &full)};
            wf_tensor *y =
                wf_attention_with(wf_input(tape, p.q, WF_SHAPE(2, 20, 36), false), wf_input(tape, p.k, WF_SHAPE(2, 90, 36), false),
                                  wf_input(tape, p.v, WF_SHAPE(2, 90, 36), false), &o);
            ran(wf_read(y, j ? b : a, n));
        }
        ck_assert_mem_eq(a, b, (size_t)n * sizeof *a);
        free(small);
        free(whole);
    }
    free(a);
    free(b);
    free_problem(&p);
}
END_TEST

START_TEST(weights_sum_to_one)
{
    struct problem p = {2, 40, 100, 4, 2, 16, 16, .causal = true, .lengths = I32(80, 0)};
    fill_problem(&p);
    begin(WF_INFER);
    struct run r = forward(&p, true), plain = forward(&p, false);
    wf_array w, a, b;
    ran(wf_view(r.weights, &w));
    ran(wf_view(r.out, &a));
    ran(wf_view(plain.out, &b));
    ck_assert_mem_eq(a.data, b.data, (size_t)wf_array_count(&a) * sizeof(wf_real));
    for (int64_t row = 0; row < p.b * p.h * p.t; row++) {
        int64_t item = row / (p.h * p.t), t = row % p.t, allowed = 0;
        double sum = 0;
        for (int64_t s = 0; s < p.s; s++) {
            wf_real x = ((wf_real *)w.data)[row * p.s + s];
            bool may = may_attend(&p, item, 0, t, s);
            ck_assert_msg(may ? x > 0 : x == 0, "row %d key %d", (int)row, (int)s);
            allowed += may;
            sum += x;
        }
        ck_assert_double_eq_tol(sum, allowed ? 1 : 0, sizeof(wf_real) == 8 ? 1e-14 : 1e-5);
    }
    free_problem(&p);
}
END_TEST

/* --- masked keys never contribute, whatever they hold -------------------------------------------------------------- */

/* out, dq, dk and dv have the same bits with and without dirt in keys that no query, or only later ones, may attend to. */
static void check_dirt(struct problem p, bool (*dirty)(const struct problem *p, int64_t b, int64_t s), wf_real dirt)
{
    fill_problem(&p);
    wf_array result[2][4];
    begin(WF_GRADIENTS);
    for (int pass = 0; pass < 2; pass++) {
        if (pass)
            for (int64_t b = 0; b < p.b; b++)
                for (int64_t s = 0; s < p.s; s++)
                    for (int64_t i = 0; dirty(&p, b, s) && i < p.g * p.e; i++) {
                        p.k[(b * p.s + s) * p.g * p.e + i] = dirt;
                        if (p.e == p.f)
                            p.v[(b * p.s + s) * p.g * p.e + i] = -dirt;
                    }
        struct run r = forward(&p, false);
        backward(&p, &r);
        for (int i = 0; i < 4; i++)
            result[pass][i] = result_of(&r, i);
    }
    for (int i = 0; i < 4; i++) {
        wf_real *x[2] = {copy_of(&result[0][i]), copy_of(&result[1][i])};
        for (int64_t j = 0; j < wf_array_count(&result[0][i]); j++)
            ck_assert_msg(x[0][j] == x[1][j], "result %d element %d: %g clean, %g with %g in masked keys", i, (int)j, (double)x[0][j],
                          (double)x[1][j], (double)dirt);
        free(x[0]);
        free(x[1]);
    }
    free_problem(&p);
}

static bool beyond_length(const struct problem *p, int64_t b, int64_t s)
{
    return s >= p->lengths[b];
}

static bool masked_for_all(const struct problem *p, int64_t b, int64_t s)
{
    for (int64_t h = 0; h < p->h; h++)
        for (int64_t t = 0; t < p->t; t++)
            if (may_attend(p, b, h, t, s))
                return false;
    return true;
}

START_TEST(dirt_in_masked_keys)
{
    const wf_real dirts[] = {NAN, INFINITY, sizeof(wf_real) == 8 ? (wf_real)1e300 : (wf_real)1e38};
    for (int i = 0; i < 3; i++) {
        check_dirt((struct problem){3, 40, 100, 2, 2, 16, 16, .lengths = I32(70, 0, 1)}, beyond_length, dirts[i]);
        check_dirt((struct problem){1, 70, 100, 4, 2, 12, 12, .causal = true, .lengths = I32(90)}, beyond_length, dirts[i]);
        struct problem p = {2, 20, 90, 2, 2, 8, 8};
        bool *mask = random_mask(p.b * p.h * p.t * p.s, 0.5);
        for (int64_t row = 0; row < p.b * p.h * p.t; row++)
            for (int64_t s = 0; s < p.s; s++)
                if (s % 7 == 2 || s == 64)
                    mask[row * p.s + s] = false;
        p.mask = mask;
        check_dirt(p, masked_for_all, dirts[i]);
        free(mask);
    }
}
END_TEST

/* A NaN in a key that only later queries see must show in their rows, and leaves the earlier rows alone, here and in the layout for few
 * queries. */
START_TEST(dirt_in_the_future)
{
    struct problem p = {1, 80, 80, 2, 2, 16, 16, .causal = true};
    fill_problem(&p);
    begin(WF_INFER);
    struct run clean = forward(&p, true);
    for (int64_t i = 0; i < 32; i++)
        p.k[70 * 32 + i] = p.v[50 * 32 + i] = p.q[75 * 32 + i] = NAN;
    struct run r = forward(&p, true);
    wf_array a, b;
    ran(wf_view(clean.out, &a));
    ran(wf_view(r.out, &b));
    const wf_real *x = a.data, *y = b.data;
    ck_assert_mem_eq(x, y, 50 * 32 * sizeof *x);
    for (int64_t i = 50 * 32; i < 80 * 32; i++)
        ck_assert_msg(isnan(y[i]), "row %d does not show the NaN of key 50", (int)(i / 32));
    free_problem(&p);
}
END_TEST

/* Rows that may attend to nothing give zeros, and no gradient flows from or to them, even if their query is NaN. */
START_TEST(rows_without_keys)
{
    struct problem p = {2, 40, 30, 2, 2, 8, 8, .causal = true, .lengths = I32(30, 0)};
    fill_problem(&p);
    for (int64_t i = 0; i < 10 * 16; i++)
        p.q[i] = NAN; /* the first 10 queries come before all keys */
    begin(WF_GRADIENTS);
    struct run r = forward(&p, true);
    backward(&p, &r);
    for (int j = 0; j < 4; j++) {
        wf_array a = result_of(&r, j); /* contiguous: S is not T */
        for (int64_t i = 0; i < wf_array_count(&a); i++) {
            wf_real x = ((wf_real *)a.data)[i];
            bool none = i >= wf_array_count(&a) / 2 || (j < 2 && i < 10 * 16);
            ck_assert_msg(none ? x == 0 : isfinite(x), "result %d element %d is %g", j, (int)i, (double)x);
        }
    }
    free_problem(&p);
}
END_TEST

/* A batch without queries has no elements, whatever its size: nothing may loop over it. */
START_TEST(empty_batch_of_any_size)
{
    for (int mode = WF_GRADIENTS; mode >= 0; mode = mode == WF_GRADIENTS ? WF_INFER : -1) {
        begin((wf_mode)mode);
        const wf_real none[1] = {0};
        wf_tensor *x = wf_input(tape, none, WF_SHAPE(INT64_C(1) << 44, 0, 8), true);
        wf_tensor *y = wf_attention(x, x, x, .heads = 2, .causal = true);
        ck_assert_msg(!wf_is_poison(y), "%s", wf_tape_error(tape)->message);
        ck_assert(wf_dim(y, 0) == INT64_C(1) << 44 && wf_dim(y, 1) == 0 && wf_dim(y, 2) == 8);
        if (mode == WF_GRADIENTS)
            ran(wf_backward(wf_sum(y)));
    }
}
END_TEST

WF_TEST_MAIN("attention", against_reference, odd_sizes, masks, broadcast_masks, weights_sum_to_one, dirt_in_masked_keys, dirt_in_the_future,
             rows_without_keys, empty_batch_of_any_size)
