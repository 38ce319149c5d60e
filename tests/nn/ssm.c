/* SPDX-License-Identifier: MIT */
/* The selective scan and the block of Mamba: against PyTorch and transformers (tests/golden/make_ssm.py); rows in pieces, in a cache and
 * alone; threads; initial values; mistakes. */
#include <math.h>

#include <weft/internal/testing.h>
#include <weft/runtime.h>
#include <weft/ssm.h>

#include "../golden/golden.h"
#include "nn_test.h"

/* --- the scan -------------------------------------------------------------------------------------------------------- */

static void scan_against_torch(const char *name, int64_t B, int64_t T, int64_t E, int64_t N, bool softplus, bool plain)
{
    struct rig r = rig_open("ssm", name);
    wf_scope s = wf_root(r.registry);
    wf_tensor *a = wf_parameter(s, "a", WF_SHAPE(E, N)), *d = plain ? NULL : wf_parameter(s, "d", WF_SHAPE(E)),
              *h = plain ? NULL : wf_parameter(s, "h", WF_SHAPE(B, E, N)), *last = NULL;
    rig_start(&r, WF_GRADIENTS, 0.5);
    wf_tensor *x = rig_input(&r, "x", WF_SHAPE(B, T, E), 1), *dt = rig_input(&r, "dt", WF_SHAPE(B, T, E), 1),
              *b = rig_input(&r, "b", WF_SHAPE(B, T, N), 1), *c = rig_input(&r, "c", WF_SHAPE(B, T, N), 1);
    wf_tensor *y =
        wf_selective_scan(x, dt, wf_neg(wf_exp(a)), b, c, .d = d, .state = h, .softplus = softplus, .last = plain ? NULL : &last);
    rig_check(&r, plain ? y : wf_concat((wf_tensor *[]){wf_reshape(y, -1), wf_reshape(last, -1)}, 2, 0));
}

START_TEST(scan)
{
    scan_against_torch("scan", 2, 7, 5, 3, false, false);
    scan_against_torch("scan_softplus", 3, 5, 19, 6, true, false);
    scan_against_torch("scan_plain", 2, 4, 3, 4, false, true);
    scan_against_torch("scan_long", 2, 70, 3, 2, true, false);
    scan_against_torch("scan_wide", 1, 3, 131, 9, true, false);
    scan_against_torch("scan_one_step", 3, 1, 4, 5, true, false);
    scan_against_torch("scan_one_state", 2, 9, 4, 1, false, false);
}
END_TEST

/* dt of 0, large, infinite and NaN; x infinite and NaN; a state that grows. Infinities and NaN have to be PyTorch's. */
START_TEST(edges)
{
    enum { T = 4, E = 8, N = 2 };
    struct rig r = rig_open("ssm", "scan_edges");
    static const char *const names[] = {"scan_edges/x", "scan_edges/dt", "scan_edges/a", "scan_edges/out", "scan_edges/last"};
    static const int64_t counts[] = {T * E, T * E, E * N, T * E, E * N};
    double *v[5];
    wf_real given[3][T * E], have[2][T * E];
    for (int i = 0; i < 5; i++) {
        v[i] = golden_read(r.file, names[i], counts[i]);
        for (int64_t k = 0; i < 3 && k < counts[i]; k++)
            given[i][k] = (wf_real)v[i][k];
    }
    rig_start(&r, WF_GRADIENTS, 0.5);
    wf_tensor *x = wf_input(r.tape, given[0], WF_SHAPE(1, T, E), true), *dt = wf_input(r.tape, given[1], WF_SHAPE(1, T, E), true), *last;
    wf_tensor *a = wf_input(r.tape, given[2], WF_SHAPE(E, N), true), *b = rig_tensor(&r, "b", WF_SHAPE(1, T, N), 1, false),
              *c = rig_tensor(&r, "c", WF_SHAPE(1, T, N), 1, false), *h = rig_tensor(&r, "h", WF_SHAPE(1, E, N), 1, false);
    wf_tensor *y = wf_selective_scan(x, dt, a, b, c, .state = h, .last = &last);
    ck_read(y, have[0], T * E);
    ck_read(last, have[1], E * N);
    for (int i = 0; i < 2; i++)
        for (int64_t k = 0; k < counts[3 + i]; k++) {
            const double want = v[3 + i][k], got = (double)have[i][k];
            ck_assert_msg(isnan(want) ? isnan(got) : want == got || fabs(got - want) <= 10 * golden_tolerance() * fmax(1, fabs(want)),
                          "%s[%lld] is %.17g, not %.17g", names[3 + i], (long long)k, got, want);
        }
    wf_array g;
    ck_backward(wf_sum(y));
    ck_assert_int_eq(wf_grad(dt, &g), WF_OK);
    for (int t = 0; t < T; t++) /* channel 0, whose dt are 0 */
        ck_assert(isfinite(((const wf_real *)g.data)[t * E]));
    for (int i = 0; i < 5; i++)
        free(v[i]);
    rig_close(&r);
}
END_TEST

/* Values and all gradients have the same bits on one thread and on two. */
START_TEST(any_number_of_threads)
{
    enum { B = 3, T = 70, E = 150, N = 5 };
    static wf_real x[2][B * T * E], bc[2][B * T * N], a[E * N], y[2][B * T * E], last[2][B * E * N], g[2][B * T * E];
    static const int64_t counts[] = {B * T * E, B * T * E, E * N, B * T * N, B * T * N, E, B * E * N};
    static wf_real d[E], h[B * E * N], first[7][B * T * E];
    for (int i = 0; i < 2; i++) {
        wf_fill_normal(x[i], B * T * E, 0, 1, 1, (uint64_t)i);
        wf_fill_normal(bc[i], B * T * N, 0, 1, 2, (uint64_t)i);
    }
    wf_fill_uniform(a, E * N, -2, 0, 3, 1);
    wf_fill_normal(d, E, 0, 1, 4, 1);
    wf_fill_normal(h, B * E * N, 0, 1, 5, 1);
    wf_tape *tape = new_tape();
    for (int threads = 1; threads <= 2; threads++) {
        ck_ok(wf_set_threads(threads, error));
        wf_tape_reset(tape, WF_GRADIENTS);
        wf_tensor *in[7] = {wf_input(tape, x[0], WF_SHAPE(B, T, E), true),  wf_input(tape, x[1], WF_SHAPE(B, T, E), true),
                            wf_input(tape, a, WF_SHAPE(E, N), true),        wf_input(tape, bc[0], WF_SHAPE(B, T, N), true),
                            wf_input(tape, bc[1], WF_SHAPE(B, T, N), true), wf_input(tape, d, WF_SHAPE(E), true),
                            wf_input(tape, h, WF_SHAPE(B, E, N), true)};
        wf_tensor *end,
            *out =
                wf_keep(wf_selective_scan(in[0], in[1], in[2], in[3], in[4], .d = in[5], .state = in[6], .softplus = true, .last = &end));
        wf_keep(end);
        ck_read(out, y[threads - 1], B * T * E);
        ck_read(end, last[threads - 1], B * E * N);
        ck_backward(wf_add(wf_sum(wf_square(out)), wf_sum(wf_square(end))));
        for (int i = 0; i < 7; i++) {
            wf_array view;
            ck_assert_int_eq(wf_grad(in[i], &view), WF_OK);
            const wf_array to = wf_array_contiguous(threads == 1 ? first[i] : g[1], WF_REAL, &(wf_shape){1, {counts[i]}});
            wf_array reshaped = wf_array_contiguous(to.data, WF_REAL, &(wf_shape){view.ndim, {view.dim[0], view.dim[1], view.dim[2]}});
            wf_array_copy(&reshaped, &view);
            if (threads == 2)
                ck_assert_mem_eq(first[i], g[1], (size_t)counts[i] * sizeof **g);
        }
    }
    ck_assert_mem_eq(y[0], y[1], sizeof *y);
    ck_assert_mem_eq(last[0], last[1], sizeof *last);
    wf_tape_free(tape);
}
END_TEST

/* --- the block ------------------------------------------------------------------------------------------------------- */

static void mixer_against_transformers(const char *name, int64_t B, int64_t T, int64_t d, struct wf_ssm_options o)
{
    struct rig r = rig_open("ssm", name);
    struct wf_ssm m;
    wf_ssm_init_with(wf_root(r.registry), &m, d, &o);
    rig_start(&r, WF_GRADIENTS, 0.5);
    rig_check(&r, wf_ssm_forward(&m, rig_input(&r, "x", WF_SHAPE(B, T, d), 1)));
}

START_TEST(transformers)
{
    mixer_against_transformers("mixer", 2, 9, 12, (struct wf_ssm_options){.states = 5, .rank = 3});
    mixer_against_transformers("mixer_bias", 3, 4, 6, (struct wf_ssm_options){.rank = 1, .expand = 3, .bias = true, .no_conv_bias = true});
    mixer_against_transformers("mixer_long", 1, 75, 4, (struct wf_ssm_options){.states = 3, .rank = 2, .taps = 3});
    mixer_against_transformers("mixer_short", 2, 3, 20, (struct wf_ssm_options){.states = 4});
}
END_TEST

enum { B = 4, T = 41, D = 20, N = 5, LAYERS = 2 };

struct setting {
    wf_registry *registry;
    wf_tape *tape;
    struct wf_ssm m[LAYERS];
    wf_real x[B * T * D];
};

static struct setting begin(int64_t taps)
{
    struct setting s = {.registry = new_registry(), .tape = new_tape()};
    for (int i = 0; i < LAYERS; i++)
        wf_ssm_init(wf_sub_at(wf_root(s.registry), "layers", i), &s.m[i], D, .states = N, .taps = taps);
    ck_ok(wf_registry_build(s.registry, 3, error));
    wf_fill_normal(s.x, B * T * D, 0, 1, 7, 8);
    return s;
}

static void end(struct setting *s)
{
    wf_tape_free(s->tape);
    wf_registry_free(s->registry);
}

static wf_tensor *layers(const struct setting *s, wf_tensor *x, struct wf_cache *cache)
{
    for (int i = 0; i < LAYERS; i++)
        x = wf_ssm_forward(&s->m[i], x, .residual = x, .cache = cache ? &cache->layer[i] : NULL);
    if (cache)
        wf_cache_advance(cache, wf_dim(x, 1));
    return x;
}

/* In WF_INFER a row has the same bits alone, with others, and in one call or in pieces with a cache. */
static void pieces(int64_t taps)
{
    static wf_real all[B * T * D], part[B * T * D];
    struct setting s = begin(taps);
    struct wf_cache cache;
    ck_ok(wf_cache_init_states(&cache, LAYERS, B, wf_ssm_width(&s.m[0]), error));
    wf_tape_reset(s.tape, WF_INFER);
    ck_read(layers(&s, wf_input(s.tape, s.x, WF_SHAPE(B, T, D), false), NULL), all, B * T * D);
    for (int64_t b = 0; b < B; b++) {
        wf_tape_reset(s.tape, WF_INFER);
        ck_read(layers(&s, wf_input(s.tape, s.x + b * T * D, WF_SHAPE(1, T, D), false), NULL), part, T * D);
        ck_assert_mem_eq(part, all + b * T * D, T * D * sizeof *all);
    }
    for (int64_t t = 0, n; t < T; t += n) {
        n = t == 0 ? 2 : t == 2 ? 35 : 1;
        wf_tape_reset(s.tape, WF_INFER);
        ck_read(layers(&s, wf_slice(wf_input(s.tape, s.x, WF_SHAPE(B, T, D), false), 1, t, n), &cache), part, B * n * D);
        for (int64_t b = 0; b < B; b++)
            ck_assert_mem_eq(part + b * n * D, all + (b * T + t) * D, (size_t)(n * D) * sizeof *all);
    }
    ck_assert_int_eq(cache.length[0], T);
    wf_cache_free(&cache);
    end(&s);
}

START_TEST(pieces_and_rows)
{
    pieces(4);
    pieces(1); /* no earlier inputs are kept */
}
END_TEST

/* Rows whose texts have several lengths so far go on together, and have the bits that each has in one call without a cache. */
START_TEST(rows_of_several_lengths)
{
    static const int64_t lengths[B] = {1, 33, 2, 7};
    enum { MORE = 5 };
    static wf_real all[B][T * D], part[B * D], next[B * D];
    struct setting s = begin(4);
    struct wf_cache cache, view = {0};
    ck_ok(wf_cache_init_states(&cache, LAYERS, B, wf_ssm_width(&s.m[0]), error));
    for (int64_t b = 0; b < B; b++) {
        wf_tape_reset(s.tape, WF_INFER);
        ck_read(layers(&s, wf_input(s.tape, s.x + b * T * D, WF_SHAPE(1, lengths[b] + MORE, D), false), NULL), all[b],
                (lengths[b] + MORE) * D);
        ck_ok(wf_cache_view(&view, &cache, b, 1, error));
        wf_tape_reset(s.tape, WF_INFER);
        layers(&s, wf_input(s.tape, s.x + b * T * D, WF_SHAPE(1, lengths[b], D), false), &view);
        ck_assert_int_eq(cache.length[b], lengths[b]);
    }
    for (int64_t k = 0; k < MORE; k++) {
        for (int64_t b = 0; b < B; b++)
            memcpy(next + b * D, s.x + (b * T + lengths[b] + k) * D, D * sizeof *next);
        wf_tape_reset(s.tape, WF_INFER);
        ck_read(layers(&s, wf_input(s.tape, next, WF_SHAPE(B, 1, D), false), &cache), part, B * D);
        for (int64_t b = 0; b < B; b++)
            ck_assert_mem_eq(part + b * D, all[b] + (lengths[b] + k) * D, D * sizeof *part);
    }
    wf_cache_free(&view);
    wf_cache_free(&cache);
    end(&s);
}
END_TEST

START_TEST(gradients)
{
    wf_registry *r = new_registry();
    struct wf_ssm m;
    wf_ssm_init(wf_root(r), &m, 3, .states = 2, .taps = 2);
    ck_ok(wf_registry_build(r, 5, error));
    wf_tape *tape = new_tape();
    static wf_real x[2 * 4 * 3], dx[2][2 * 4 * 3];
    wf_fill_normal(x, 2 * 4 * 3, 0, 1, 7, 9);
    for (int i = 0; i < 2; i++) { /* the residual adds its own gradient */
        wf_array g;
        wf_tape_reset(tape, WF_GRADIENTS);
        wf_registry_zero_grads(r);
        wf_tensor *in = wf_input(tape, x, WF_SHAPE(2, 4, 3), true);
        ck_backward(wf_sum(wf_ssm_forward(&m, in, .residual = i ? in : NULL)));
        ck_assert_int_eq(wf_grad(in, &g), WF_OK);
        memcpy(dx[i], g.data, sizeof dx[i]);
    }
    for (int i = 0; i < 2 * 4 * 3; i++)
        ck_assert(fabs((double)(dx[1][i] - dx[0][i]) - 1) < 1e-5);
    wf_tape_free(tape);
    wf_registry_free(r);
}
END_TEST

/* From the third pass on nothing is allocated. */
START_TEST(nothing_allocated)
{
    struct setting s = begin(4);
    struct wf_cache cache;
    ck_ok(wf_cache_init_states(&cache, LAYERS, B, wf_ssm_width(&s.m[0]), error));
    int64_t before = 0;
    for (int infer = 0; infer < 2; infer++)
        for (int pass = 0; pass < 5; pass++) {
            wf_tape_reset(s.tape, infer ? WF_INFER : WF_TRAIN, .step = (uint64_t)pass);
            wf_tensor *y = layers(&s, wf_input(s.tape, s.x, WF_SHAPE(B, T, D), !infer), infer ? &cache : NULL);
            if (!infer)
                ck_backward(wf_mean(y));
            before = pass < 3 ? wf_alloc_count() : before;
            ck_assert_int_eq(wf_alloc_count(), before);
        }
    wf_cache_free(&cache);
    end(&s);
}
END_TEST

/* --- registry and mistakes ------------------------------------------------------------------------------------------- */

START_TEST(names_and_initial_values)
{
    struct setting s = begin(4);
    static const char *const names[] = {"in_proj.weight", "conv1d.weight",   "conv1d.bias",
                                        "x_proj.weight",  "dt_proj.weight",  "dt_proj.bias",
                                        "A_log",          "out_proj.weight", "D"};
    char full[64];
    ck_assert_int_eq(wf_registry_count(s.registry), LAYERS * 9);
    for (int i = 0; i < 9; i++) {
        snprintf(full, sizeof full, "layers.1.%s", names[i]);
        ck_assert_msg(wf_registry_find(s.registry, full) != NULL, "%s", full);
    }
    wf_real a[2 * D * N], bias[2 * D], skip[2 * D], other[2 * D], weight[2 * D * 2];
    const struct wf_ssm *m = s.m;
    ck_assert_int_eq(m->rank, 2);
    ck_read(m->a_log, a, 2 * D * N);
    ck_read(m->d, skip, 2 * D);
    ck_read(m->dt_proj.bias, bias, 2 * D);
    ck_read(s.m[1].dt_proj.bias, other, 2 * D);
    ck_read(m->dt_proj.weight, weight, 2 * D * 2);
    double least = 1, most = 0, widest = 0;
    for (int i = 0; i < 2 * D; i++) {
        const double dt = log1p(exp((double)bias[i]));
        for (int n = 0; n < N; n++)
            ck_assert(fabs((double)a[i * N + n] - log(1 + n)) < 1e-6);
        ck_assert(skip[i] == 1 && dt >= 0.00099 && dt <= 0.101);
        least = fmin(least, dt);
        most = fmax(most, dt);
    }
    ck_assert(least < 0.003 && most > 0.03);
    ck_assert_mem_ne(bias, other, sizeof bias);
    for (int i = 0; i < 2 * D * 2; i++)
        widest = fmax(widest, fabs((double)weight[i]));
    ck_assert(widest > 0.8 / sqrt(2) && widest <= 1 / sqrt(2));
    end(&s);
}
END_TEST

/* A call without a token gives none, and leaves a cache as it is. */
START_TEST(no_tokens)
{
    struct setting s = begin(4);
    struct wf_cache cache;
    wf_real before[B * D], after[B * D];
    for (int empty = 0; empty < 2; empty++) {
        ck_ok(wf_cache_init_states(&cache, LAYERS, B, wf_ssm_width(&s.m[0]), error));
        wf_tape_reset(s.tape, WF_INFER);
        layers(&s, wf_slice(wf_input(s.tape, s.x, WF_SHAPE(B, T, D), false), 1, 0, 3), &cache);
        if (empty)
            ck_assert_int_eq(wf_dim(layers(&s, wf_zeros(s.tape, WF_SHAPE(B, 0, D)), &cache), 1), 0);
        ck_read(layers(&s, wf_slice(wf_input(s.tape, s.x, WF_SHAPE(B, T, D), false), 1, 3, 1), &cache), empty ? after : before, B * D);
        wf_cache_free(&cache);
    }
    ck_assert_mem_eq(before, after, sizeof before);
    wf_tape_reset(s.tape, WF_GRADIENTS);
    wf_tensor *x = wf_input(s.tape, s.x, WF_SHAPE(B, 0, D), true);
    ck_backward(wf_sum(wf_ssm_forward(&s.m[0], x, .residual = x)));
    end(&s);
}
END_TEST

START_TEST(refused)
{
    struct wf_ssm m;
    wf_registry *r = new_registry();
    wf_ssm_init(wf_sub(wf_root(r), "mixer"), &m, 4, .states = -1);
    declared_wrong(r, "mixer: a width of 4, expanded 2 times, -1 states, 4 taps and a rank of 0 are no sizes of a state-space layer");
    r = new_registry();
    wf_ssm_init(wf_root(r), &m, 0);
    declared_wrong(r, "a width of 0");
    r = new_registry();
    wf_ssm_init(wf_root(r), &m, (int64_t)1 << 62, .expand = (int64_t)1 << 62);
    declared_wrong(r, "are no sizes of a state-space layer");

    struct setting s = begin(4);
    struct wf_cache cache;
    ck_ok(wf_cache_init_states(&cache, 1, 2, 7, error));
    wf_tape_reset(s.tape, WF_INFER);
#define REFUSED(words, ...)                                                                                                                \
    do {                                                                                                                                   \
        wf_tensor *x = wf_zeros(s.tape, WF_SHAPE(2, 3, D)), *a = wf_zeros(s.tape, WF_SHAPE(D, 2)),                                         \
                  *b = wf_zeros(s.tape, WF_SHAPE(2, 3, 2));                                                                                \
        (void)x, (void)a, (void)b;                                                                                                         \
        ck_poison(__VA_ARGS__, words);                                                                                                     \
    } while (0)
    REFUSED("x must be [B,T,d]", wf_ssm_forward(s.m, wf_reshape(x, 6, D)));
    REFUSED("linear(", wf_ssm_forward(s.m, wf_zeros(s.tape, WF_SHAPE(2, 3, D + 1))));
    REFUSED("the cache has 2 rows with states of width 7, but the call has 2 rows of 320", wf_ssm_forward(s.m, x, .cache = cache.layer));
    REFUSED("needs wf_ssm_init", wf_ssm_forward(&(struct wf_ssm){0}, x));
    REFUSED("a must be [E,N], and x has E = 20 channels", wf_selective_scan(x, x, b, b, b));
    REFUSED("x must be [B,T,E]", wf_selective_scan(a, a, a, b, b));
    REFUSED("dt must be [2,3,20]", wf_selective_scan(x, b, a, b, b));
    REFUSED("c must be [2,3,2]", wf_selective_scan(x, x, a, b, x));
    REFUSED("the initial state must be [2,20,2]", wf_selective_scan(x, x, a, b, b, .state = x));
    REFUSED("the vector d must be [20]", wf_selective_scan(x, x, a, b, b, .d = a));
    REFUSED("operand 5 is NULL: c is required", wf_selective_scan(x, x, a, b, NULL));
    wf_cache_free(&cache);
    end(&s);
}
END_TEST

WF_TEST_MAIN("ssm", scan, edges, any_number_of_threads, transformers, pieces_and_rows, rows_of_several_lengths, gradients,
             nothing_allocated, names_and_initial_values, no_tokens, refused)
