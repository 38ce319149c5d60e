/* SPDX-License-Identifier: MIT */
/* Attention in a pass in bf16: its products against the definition of docs/numerics.md, and what its bits may depend on. */
#include "attention_bf16_reference.h"

/* --- the op --------------------------------------------------------------------------------------------------------- */

static struct answer computed(const struct setting *x, bool bf16)
{
    const struct problem *p = &x->p;
    int64_t n[KINDS];
    sizes(p, n);
    struct answer r = new_answer(p);
    float *to[KINDS] = {r.out, r.dq, r.dk, r.dv, r.dbias};
    begin(WF_TRAIN);
    if (bf16)
        begin_bf16(WF_TRAIN);
    wf_tensor *in[4] = {wf_input(tape, p->q, WF_SHAPE(p->b, p->t, p->h * p->e), true),
                        wf_input(tape, p->k, WF_SHAPE(p->b, p->s, p->g * p->e), true),
                        wf_input(tape, p->v, WF_SHAPE(p->b, p->s, p->g * p->f), true),
                        x->bias ? wf_input(tape, x->bias, WF_SHAPE(p->h, p->t, p->s), true) : NULL};
    wf_tensor *y = wf_keep(wf_attention(in[0], in[1], in[2], .heads = (int)p->h, .kv_heads = (int)p->g, .scale = p->scale,
                                        .dropout = x->dropout, .causal = p->causal, .window = x->window, .key_lengths = p->lengths,
                                        .mask = p->mask ? wf_bools(tape, p->mask, WF_SHAPE(p->b, p->h, p->t, p->s)) : NULL, .bias = in[3],
                                        .softcap = x->cap));
    ran(wf_backward(y, .gradient = wf_input(tape, p->dout, WF_SHAPE(p->b, p->t, p->h * p->f), false)));
    for (int i = 0; i < (x->bias ? KINDS : KINDS - 1); i++) {
        wf_real *got = i == 0 ? value_of(y) : gradient_of(in[i - 1]);
        memcpy(to[i], got, (size_t)n[i] * sizeof *got);
        free(got);
    }
    volatile float smallest = 0x1p-126f;
    ck_assert_msg(smallest / 2 > 0, "the thread flushes denormals to zero afterwards");
    return r;
}

static const char *const names[KINDS] = {"out", "dq", "dk", "dv", "dbias"};

static double off(const float *x, const float *y, int64_t n)
{
    double difference = 0, norm = 0;
    for (int64_t i = 0; i < n; i++) {
        difference += pow((double)x[i] - (double)y[i], 2);
        norm += pow((double)y[i], 2);
    }
    return norm == 0 ? sqrt(difference) : sqrt(difference / norm);
}

/* With AMX, where this machine has it, and without, the bits are equal. Exponentials differ in their last bits from the C library's, so a
 * few weights are rounded to the other neighbour in bf16. */
static void check(struct setting *x, const char *what)
{
    fill_problem(&x->p);
    int64_t n[KINDS];
    sizes(&x->p, n);
    const int kinds = x->bias ? KINDS : KINDS - 1;
    for (int s = 0; s < ISAS; s++) {
        if (!isa_used(s))
            continue;
        struct answer want = definition(x), got = computed(x, true), of_float = computed(x, false);
        wf_amx_use(false);
        struct answer by_vectors = computed(x, true);
        wf_amx_use(true);
        const float *w[KINDS] = {want.out, want.dq, want.dk, want.dv, want.dbias}, *h[KINDS] = {got.out, got.dq, got.dk, got.dv, got.dbias},
                    *v[KINDS] = {by_vectors.out, by_vectors.dq, by_vectors.dk, by_vectors.dv, by_vectors.dbias},
                    *f[KINDS] = {of_float.out, of_float.dq, of_float.dk, of_float.dv, of_float.dbias};
        for (int i = 0; i < kinds; i++) {
            const double error = off(h[i], w[i], n[i]), rounding = off(f[i], w[i], n[i]);
            ck_assert_msg(error < 2e-4 && rounding > 1e-3, "%s, %s on %s: %g from the definition, %g from float", what, names[i], wf_isa(),
                          error, rounding);
            for (int64_t j = 0; j < n[i]; j++)
                ck_assert_msg(h[i][j] == v[i][j] || (isnan(h[i][j]) && isnan(v[i][j])),
                              "%s, %s on %s: element %lld is %a with AMX, %a without", what, names[i], wf_isa(), (long long)j,
                              (double)h[i][j], (double)v[i][j]);
        }
        free(want.out), free(got.out), free(of_float.out), free(by_vectors.out);
    }
    free_problem(&x->p);
}

START_TEST(as_defined)
{
    static const int64_t widths[][2] = {{1, 8}, {8, 1}, {16, 16}, {20, 33}, {33, 20}, {64, 64}, {128, 128}};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        for (int causal = 0; causal < 2; causal++)
            check(
                &(struct setting){
                    .p = {.b = 1, .t = 70, .s = 70 + 65 * (i % 2), .h = 2, .g = 1, .e = widths[i][0], .f = widths[i][1], .causal = causal}},
                causal ? "causal" : "all keys");
}
END_TEST

START_TEST(options_as_defined)
{
    enum { T = 50, S = 140, H = 2 };
    static bool mask[2 * H * T * S];
    wf_rng rng = wf_rng_new(8, 8);
    for (size_t i = 0; i < sizeof mask; i++) /* query 3 may attend to no key */
        mask[i] = i / S % T != 3 && wf_rng_uniform(&rng) < 0.4;
    wf_real *bias = normals(H * T * S, 9);
    const struct problem p = {.b = 2, .t = T, .s = S, .h = H, .g = H, .e = 16, .f = 20};
    struct problem masked = p, lengths = p;
    masked.mask = mask;
    lengths.lengths = I32(S, 77);
    check(&(struct setting){.p = masked}, "mask");
    check(&(struct setting){.p = lengths}, "lengths");
    struct problem one = {.b = 1, .t = 150, .s = 150, .h = 1, .g = 1, .e = 24, .f = 24, .causal = true};
    for (int64_t window = 1 + 40; window < 100; window += 11)
        check(&(struct setting){.p = one, .window = window}, "window");
    check(&(struct setting){.p = p, .cap = 0.8}, "softcap");
    check(&(struct setting){.p = p, .dropout = 0.3}, "dropout");
    one = p, one.b = 1;
    check(&(struct setting){.p = one, .bias = bias}, "bias");
    one.causal = true, one.scale = 0.4;
    check(&(struct setting){.p = one, .bias = bias, .dropout = 0.2, .cap = 2}, "bias, dropout, softcap, causal");
    free(bias);
}
END_TEST

/* All products bit for bit, on every instruction set and any number of threads. Keys are orthogonal to queries, so that each weight is 1
 * over the number of keys. Values cancel in pairs, so that out and the row sums D are exactly 0. */
static void check_bits(int64_t t, int64_t s, int64_t e, int64_t f, bool cancel, float size)
{
    struct setting x = {.p = {.b = 1, .t = t, .s = s, .h = 2, .g = 2, .e = 2 * e, .f = f}};
    struct problem *p = &x.p;
    fill_problem(p);
    for (int64_t i = 0; i < t * p->h * 2 * e; i++)
        p->q[i] = i / e % 2 ? 0 : p->q[i];
    for (int64_t i = 0; i < s * p->g * 2 * e; i++)
        p->k[i] = i / e % 2 ? p->k[i] * size : 0;
    for (int64_t i = 0; i < s * p->g * f; i++)
        p->v[i] = cancel && i / (p->g * f) % 4 > 1 ? -p->v[i - 2 * p->g * f] : p->v[i] * size;
    int64_t n[KINDS];
    sizes(p, n);
    struct answer want = definition(&x);
    for (int isa = 0; isa < ISAS; isa++)
        for (int threads = 1; threads <= 3 && isa_used(isa); threads++) {
            ck_ok(wf_set_threads(threads, error));
            struct answer got = computed(&x, true);
            const float *w[KINDS] = {want.out, want.dq, want.dk, want.dv}, *h[KINDS] = {got.out, got.dq, got.dk, got.dv};
            for (int i = 0; i < KINDS - 1; i++)
                for (int64_t j = 0; j < n[i] && (cancel || i % 3 == 0); j++) /* without `cancel`: out and dv */
                    ck_assert_msg(h[i][j] == w[i][j], "%s on %s, %d threads: element %lld is %.9g, not %.9g", names[i], wf_isa(), threads,
                                  (long long)j, (double)h[i][j], (double)w[i][j]);
            free(got.out);
        }
    free(want.out);
    free_problem(p);
}

START_TEST(products_have_their_bits)
{
    check_bits(70, 132, 33, 20, true, 1);
    check_bits(70, 131, 33, 20, false, 1);
    check_bits(33, 64, 64, 64, true, 1);
    check_bits(5, 300, 1, 33, false, 1);
    check_bits(40, 100, 8, 8, true, 0x1p-124f); /* denormal operands and terms */
    check_bits(40, 100, 8, 8, false, 0x1p-122f);
}
END_TEST

/* The chains of a score: the second half of a product cancels the first, up to rounding, and the scale makes scores of what remains. */
START_TEST(scores_have_their_order)
{
    enum { T = 40, S = 70, E = 96 };
    struct setting x = {.p = {.b = 1, .t = T, .s = S, .h = 1, .g = 1, .e = E, .f = 16, .scale = 0x1p20}};
    fill_problem(&x.p);
    for (int i = 0; i < T * E; i++)
        x.p.q[i] = i % E < E / 2 ? x.p.q[i] : -x.p.q[i - E / 2];
    for (int i = 0; i < S * E; i++)
        x.p.k[i] = i % E < E / 2 ? x.p.k[i] : x.p.k[i - E / 2];
    struct answer want = definition(&x);
    double spread = 0;
    for (int isa = 0; isa < ISAS; isa++) {
        if (!isa_used(isa))
            continue;
        struct answer got = computed(&x, true), of_float = computed(&x, false);
        ck_assert_double_lt(off(got.out, want.out, T * 16), 2e-4);
        spread = off(of_float.out, want.out, T * 16);
        free(got.out), free(of_float.out);
    }
    ck_assert_double_gt(spread, 0.1);
    free(want.out);
    free_problem(&x.p);
}
END_TEST

/* --- what the bits may depend on -------------------------------------------------------------------------------------- */

static wf_tensor *part(const wf_real *x, int64_t items, int64_t rows, int64_t first, int64_t count, int64_t d)
{
    return wf_slice(wf_input(tape, x, WF_SHAPE(items, rows, d), false), 1, first, count);
}

/* The last `count` queries of n positions, with a cache of n keys, have the bits of all N positions at once. */
static void check_prefixes(int heads, int kv_heads, int64_t e, int64_t f, struct wf_attention_options o)
{
    enum { B = 2, N = 140 };
    const int64_t d = heads * e, kd = kv_heads * e, vd = kv_heads * f, od = heads * f;
    wf_real *q = normals(B * N * d, 1), *k = normals(B * N * kd, 2), *v = normals(B * N * vd, 3);
    o.heads = heads, o.kv_heads = kv_heads, o.causal = true;
    begin_bf16(WF_INFER);
    wf_real *full = value_of(wf_attention_with(part(q, B, N, 0, N, d), part(k, B, N, 0, N, kd), part(v, B, N, 0, N, vd), &o));
    begin(WF_INFER);
    wf_real *of_float = value_of(wf_attention_with(part(q, B, N, 0, N, d), part(k, B, N, 0, N, kd), part(v, B, N, 0, N, vd), &o));
    ck_assert_double_gt(off(of_float, full, B * N * od), 1e-3);
    static const int64_t counts[] = {1, 3, 8, 9, 40};
    for (int64_t n = 1; n <= N; n++)
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            const int64_t count = WF_MIN(counts[i], n);
            begin_bf16(WF_INFER);
            wf_real *y =
                value_of(wf_attention_with(part(q, B, N, n - count, count, d), part(k, B, N, 0, n, kd), part(v, B, N, 0, n, vd), &o));
            for (int64_t b = 0; b < B; b++)
                ck_assert_msg(memcmp(y + b * count * od, full + (b * N + n - count) * od, (size_t)(count * od) * sizeof *y) == 0,
                              "%s E%d F%d window %d: %d rows at %d of item %d", wf_isa(), (int)e, (int)f, (int)o.window, (int)count, (int)n,
                              (int)b);
            free(y);
        }
    free(q), free(k), free(v), free(full), free(of_float);
}

START_TEST(cache_equals_recompute)
{
    typedef struct wf_attention_options O;
    for (int i = 0; i < ISAS; i++) {
        if (!isa_used(i))
            continue;
        check_prefixes(2, 2, 1, 8, (O){0});
        check_prefixes(2, 1, 8, 8, (O){.softcap = 0.5});
        if (!thorough() && strcmp(wf_isa(), "base") == 0)
            continue;
        check_prefixes(2, 2, 20, 33, (O){.window = 37});
        check_prefixes(1, 1, 48, 16, (O){.window = 70});
        check_prefixes(1, 1, 64, 80, (O){.scale = 3});
        check_prefixes(1, 1, 16, 128, (O){0});
    }
}
END_TEST

/* Long enough that several threads share the queries of a head in pieces. */
START_TEST(same_bits_on_any_threads)
{
    struct setting x = {.p = {.b = 1, .t = 1100, .s = 1100, .h = 1, .g = 1, .e = 20, .f = 20, .causal = true}, .dropout = 0.2};
    fill_problem(&x.p);
    int64_t n[KINDS];
    struct answer first = {0};
    const size_t bytes = (size_t)sizes(&x.p, n) * sizeof(float);
    for (int threads = 1; threads <= 4; threads++) {
        ck_ok(wf_set_threads(threads, error));
        struct answer got = computed(&x, true);
        if (threads == 1)
            first = got;
        else
            ck_assert_mem_eq(got.out, first.out, bytes);
        if (threads > 1)
            free(got.out);
    }
    free(first.out);
    free_problem(&x.p);
}
END_TEST

/* Keys and values that a mask hides may hold anything: NaN, infinities, and numbers that become infinite in bf16. */
START_TEST(masked_keys_do_not_matter)
{
    enum { T = 45, S = 90, H = 2, E = 20 };
    static bool mask[H * T * S];
    static const float dirt[] = {NAN, INFINITY, 3.4e38f, -3.4e38f};
    wf_rng rng = wf_rng_new(3, 8);
    for (size_t i = 0; i < sizeof mask; i++)
        mask[i] = i % S % 7 != 5 && i / S % T != 3 && wf_rng_uniform(&rng) < 0.6;
    for (int isa = 0; isa < ISAS; isa++)
        for (size_t d = 0; d < 4 && isa_used(isa); d++) {
            struct setting x = {.p = {.b = 1, .t = T, .s = S, .h = H, .g = H, .e = E, .f = E, .mask = mask}};
            struct problem *p = &x.p;
            fill_problem(p);
            struct answer clean = computed(&x, true);
            for (int64_t i = 0; i < S * H * E; i++)
                if (i / (H * E) % 7 == 5)
                    p->k[i] = p->v[i] = dirt[d];
            struct answer got = computed(&x, true);
            int64_t n[KINDS];
            for (int64_t i = 0; i < sizes(p, n); i++)
                ck_assert_msg(got.out[i] == clean.out[i], "%g on %s: number %lld is %g, not %g", (double)dirt[d], wf_isa(), (long long)i,
                              (double)got.out[i], (double)clean.out[i]);
            for (int64_t i = 0; i < H * E; i++) /* query 3 may attend to no key */
                ck_assert(got.out[3 * H * E + i] == 0 && got.dq[3 * H * E + i] == 0);
            free(clean.out), free(got.out);
            begin_bf16(WF_INFER); /* few queries, by the other kernel */
            wf_tensor *y = wf_attention(part(p->q, 1, T, 7, 2, H * E), part(p->k, 1, S, 0, S, H * E), part(p->v, 1, S, 0, S, H * E),
                                        .heads = H, .mask = wf_slice(wf_bools(tape, mask, WF_SHAPE(H, T, S)), 1, 7, 2));
            wf_real *few = value_of(y);
            for (int64_t i = 0; i < 2 * H * E; i++)
                ck_assert(isfinite(few[i]));
            free(few);
            free_problem(p);
        }
}
END_TEST

/* A sum that is flushed to -0 in one tile of keys is +0 at the end, whether a next tile, which is masked, is computed or not. */
START_TEST(a_zero_has_one_sign)
{
    enum { T = 9, S = 100 };
    static bool mask[T * S];
    float v[S] = {[0] = 0x1.8p-126f, [32] = -0x1.cp-126f};
    for (int i = 0; i < T * S; i++)
        mask[i] = i == 0 || i == 32 || i >= S;
    for (int way = 0; way < 4; way++) {
        const int rows = way % 2 ? T : 1, keys = way / 2 ? S : TILE;
        begin_bf16(WF_INFER);
        wf_tensor *y = wf_attention(wf_zeros(tape, WF_SHAPE(1, rows, 1)), wf_zeros(tape, WF_SHAPE(1, keys, 1)),
                                    wf_input(tape, v, WF_SHAPE(1, keys, 1), false), .mask = wf_bools(tape, mask, WF_SHAPE(rows, keys)));
        wf_real *out = value_of(y);
        ck_assert(out[0] == 0 && !signbit(out[0]));
        free(out);
    }
}
END_TEST

/* The weights that attention returns are those with which it computes. */
START_TEST(weights_returned)
{
    enum { T = 40, E = 24 };
    wf_real *x = normals(T * E, 1), *w[2];
    for (int bf16 = 0; bf16 < 2; bf16++) {
        begin(WF_INFER);
        if (bf16)
            begin_bf16(WF_INFER);
        wf_tensor *t = wf_input(tape, x, WF_SHAPE(1, T, E), false), *weights, *eye = wf_attention(t, t, t, .weights = &weights);
        ck_assert(!wf_is_poison(eye));
        w[bf16] = value_of(weights);
        for (int i = 0; i < T; i++) {
            double sum = 0;
            for (int j = 0; j < T; j++)
                sum += w[bf16][i * T + j];
            ck_assert_double_eq_tol(sum, 1, 1e-5);
        }
    }
    const double rounding = off(w[1], w[0], T * T);
    ck_assert_msg(rounding > 1e-4 && rounding < 2e-2, "weights differ by %g", rounding);
    free(w[0]), free(w[1]), free(x);
}
END_TEST

WF_TEST_MAIN("attention_bf16", as_defined, options_as_defined, products_have_their_bits, scores_have_their_order, cache_equals_recompute,
             same_bits_on_any_threads, masked_keys_do_not_matter, a_zero_has_one_sign, weights_returned)
