/* SPDX-License-Identifier: MIT */
/* LSTM and GRU: against PyTorch (tests/golden/make_recurrent.py); sequences in pieces, in a cache, packed and alone; threads; mistakes. */
#include <math.h>

#include <weft/internal/testing.h>
#include <weft/lstm.h>
#include <weft/runtime.h>

#include "../golden/golden.h"
#include "nn_test.h"

static void init(wf_scope s, struct wf_recurrent *m, bool gru, int64_t in, int64_t hidden, struct wf_recurrent_module_options o)
{
    (gru ? wf_gru_init_with : wf_lstm_init_with)(s, m, in, hidden, &o);
}

static wf_tensor *flat(wf_tensor *x)
{
    return wf_reshape(x, -1);
}

/* The sizes of a case, as in the script. */
struct golden {
    const char *name;
    int64_t B, T, in, H;
    bool states;
    struct wf_recurrent_module_options o;
    const int32_t *lengths;
};

static void against_torch(const struct golden *g, bool gru)
{
    char name[64];
    snprintf(name, sizeof name, "%s%s", gru ? "gru" : "lstm", g->name);
    struct rig r = rig_open("recurrent", name);
    struct wf_recurrent m;
    wf_tensor *last[2];
    init(wf_root(r.registry), &m, gru, g->in, g->H, g->o);
    rig_start(&r, WF_GRADIENTS, 0.5);
    wf_tensor *x = rig_input(&r, "x", WF_SHAPE(g->B, g->T, g->in), 1);
    const wf_shape state = {3, {m.layers * m.directions, g->B, g->H}};
    wf_tensor *h = g->states ? rig_input(&r, "h", &state, 1) : NULL, *c = g->states && !gru ? rig_input(&r, "c", &state, 1) : NULL;
    wf_tensor *y = wf_recurrent_forward(&m, x, .h = h, .c = c, .lengths = g->lengths, .last_h = &last[0], .last_c = gru ? NULL : &last[1]);
    rig_check(&r, wf_concat((wf_tensor *[]){flat(y), flat(last[0]), gru ? NULL : flat(last[1])}, gru ? 2 : 3, 0));
}

static const struct golden cases[] = {
    {"", 3, 5, 4, 6, false, {0}, NULL},
    {"_states", 2, 4, 3, 19, true, {0}, NULL},
    {"_both", 3, 5, 4, 3, true, {.layers = 2, .bidirectional = true}, NULL},
    {"_lengths", 4, 6, 3, 3, true, {.layers = 2, .bidirectional = true}, (const int32_t[]){4, 1, 5, 3}},
    {"_one_step", 3, 1, 4, 5, false, {0}, NULL},
    {"_one_row", 1, 7, 4, 5, false, {.no_bias = true}, NULL},
    {"_long", 2, 60, 2, 3, false, {0}, NULL},
};

START_TEST(torch)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int gru = 0; gru < 2; gru++)
            against_torch(&cases[i], gru);
}
END_TEST

/* --- the same results in other ways ---------------------------------------------------------------------------------- */

enum { B = 5, T = 9, IN = 4, H = 21, LAYERS = 2, MOST = B * T * 2 * H };

struct setting {
    wf_registry *registry;
    wf_tape *tape;
    struct wf_recurrent m;
    wf_real x[B * T * IN];
};

static struct setting begin(bool gru, bool both, double dropout)
{
    struct setting s = {.registry = new_registry(), .tape = new_tape()};
    init(wf_root(s.registry), &s.m, gru, IN, H,
         (struct wf_recurrent_module_options){.layers = LAYERS, .bidirectional = both, .dropout = dropout});
    ck_ok(wf_registry_build(s.registry, 3, error));
    wf_fill_normal(s.x, B * T * IN, 0, 1, 7, 8);
    return s;
}

static void end(struct setting *s)
{
    wf_tape_free(s->tape);
    wf_registry_free(s->registry);
}

static void ck_near(const wf_real *a, const wf_real *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        ck_assert_msg(fabs((double)(a[i] - b[i])) <= (sizeof(wf_real) == 8 ? 1e-13 : 2e-6), "element %lld is %.9g, not %.9g", (long long)i,
                      (double)a[i], (double)b[i]);
}

/* In WF_INFER a row has the same bits alone, with others, in one call or in pieces, with a cache or with states. */
START_TEST(pieces_and_rows)
{
    static wf_real all[MOST], part[MOST], states[2][LAYERS * B * H];
    for (int gru = 0; gru < 2; gru++) {
        struct setting s = begin(gru, false, 0.3); /* in WF_INFER without effect */
        struct wf_cache cache;
        ck_ok(wf_cache_init_states(&cache, LAYERS, B, wf_recurrent_width(&s.m), error));
        wf_tape_reset(s.tape, WF_INFER);
        ck_read(wf_recurrent_forward(&s.m, wf_input(s.tape, s.x, WF_SHAPE(B, T, IN), false)), all, B * T * H);
        for (int64_t b = 0; b < B; b++) {
            wf_tape_reset(s.tape, WF_INFER);
            ck_read(wf_recurrent_forward(&s.m, wf_input(s.tape, s.x + b * T * IN, WF_SHAPE(1, T, IN), false)), part, T * H);
            ck_assert_mem_eq(part, all + b * T * H, T * H * sizeof *all);
        }
        for (int64_t t = 0, n; t < T; t += n) { /* steps 0-2, then one at a time, with the cache and with states */
            n = t == 0 ? 3 : 1;
            wf_tape_reset(s.tape, WF_INFER);
            wf_tensor *x = wf_slice(wf_input(s.tape, s.x, WF_SHAPE(B, T, IN), false), 1, t, n), *last[2] = {NULL};
            ck_read(wf_recurrent_forward(&s.m, x, .cache = cache.layer), part, B * n * H);
            wf_cache_advance(&cache, n);
            for (int64_t b = 0; b < B; b++)
                ck_assert_mem_eq(part + b * n * H, all + (b * T + t) * H, (size_t)(n * H) * sizeof *all);
            const wf_shape shape = {3, {LAYERS, B, H}};
            wf_tensor *h = t > 0 ? wf_input(s.tape, states[0], &shape, false) : NULL;
            wf_tensor *c = t > 0 && !gru ? wf_input(s.tape, states[1], &shape, false) : NULL;
            wf_tensor *y = wf_recurrent_forward(&s.m, x, .h = h, .c = c, .last_h = &last[0], .last_c = gru ? NULL : &last[1]);
            ck_read(y, part, B * n * H);
            for (int64_t b = 0; b < B; b++)
                ck_assert_mem_eq(part + b * n * H, all + (b * T + t) * H, (size_t)(n * H) * sizeof *all);
            for (int i = 0; i < (gru ? 1 : 2); i++)
                ck_read(last[i], states[i], LAYERS * B * H);
        }
        ck_assert_int_eq(cache.length[0], T);
        wf_cache_free(&cache);
        end(&s);
    }
}
END_TEST

/* Rows with lengths: each has the results and the states that it has alone with its own steps; zeros after them, whatever x holds there.
 * The same rows packed give the same. */
START_TEST(rows_with_lengths)
{
    static const int32_t lengths[B] = {9, 0, 4, 1, 7}, fewer[B] = {3, 0, 4, 1, 3}, whole[B] = {9, 9, 9, 9, 9};
    static wf_real all[MOST], alone[MOST], h[2 * LAYERS * B * H], own[2 * LAYERS * H];
    for (int gru = 0; gru < 2; gru++)
        for (int some = 0; some < 2; some++) {
            const int32_t *n = some ? fewer : lengths;
            struct setting s = begin(gru, true, 0);
            wf_tensor *last;
            for (int64_t b = 0; b < B; b++)
                for (int64_t i = n[b] * IN; i < T * IN; i++)
                    s.x[b * T * IN + i] = (wf_real)NAN;
            wf_tape_reset(s.tape, WF_GRADIENTS);
            wf_tensor *x = wf_input(s.tape, s.x, WF_SHAPE(B, T, IN), true);
            wf_tensor *y = wf_keep(wf_recurrent_forward(&s.m, x, .lengths = n, .last_h = &last));
            wf_keep(last);
            ck_read(y, all, B * T * 2 * H);
            ck_read(last, h, 2 * LAYERS * B * H);
            ck_backward(wf_add(wf_mean(wf_square(y)), wf_mean(last)));
            const wf_real *dx = gradient_of(x), *dw = gradient_of(s.m.layer[0].weight_ih);
            for (int64_t i = 0; i < B * T * IN; i++)
                ck_assert(i / IN % T < n[i / IN / T] ? isfinite(dx[i]) && dx[i] != 0 : dx[i] == 0);
            for (int64_t i = 0; i < (gru ? 3 : 4) * H * IN; i++)
                ck_assert(isfinite(dw[i]));
            for (int64_t b = 0; b < B; b++) {
                for (int64_t i = n[b] * 2 * H; i < T * 2 * H; i++)
                    ck_assert(all[b * T * 2 * H + i] == 0);
                wf_tape_reset(s.tape, WF_INFER);
                ck_read(wf_recurrent_forward(&s.m, wf_input(s.tape, s.x + b * T * IN, WF_SHAPE(1, n[b], IN), false), .last_h = &last),
                        alone, n[b] * 2 * H);
                ck_read(last, own, 2 * LAYERS * H);
                ck_near(all + b * T * 2 * H, alone, n[b] * 2 * H);
                for (int i = 0; i < 2 * LAYERS; i++)
                    ck_near(h + (i * B + b) * H, own + i * H, H);
            }
            end(&s);
        }
    struct setting s = begin(false, false, 0); /* lengths that leave all rows change nothing */
    wf_tape_reset(s.tape, WF_INFER);
    wf_tensor *x = wf_input(s.tape, s.x, WF_SHAPE(B, T, IN), false);
    ck_read(wf_recurrent_forward(&s.m, x), all, B * T * H);
    ck_read(wf_recurrent_forward(&s.m, x, .lengths = whole), alone, B * T * H);
    ck_assert_mem_eq(all, alone, B * T * H * sizeof *all);
    end(&s);
}
END_TEST

/* --- threads, dropout ------------------------------------------------------------------------------------------------ */

/* Values and gradients of one layer with H units in batches of `rows`: small ones divide the rows among the threads, large ones the units.
 */
static void with_threads(bool gru, int64_t hidden, int64_t rows, int64_t steps, const int32_t *offsets)
{
    wf_registry *registry = new_registry();
    struct wf_recurrent m;
    static wf_real x[40 * 12 * 8], y[2][40 * 12 * 520];
    static double sum[2][5];
    init(wf_root(registry), &m, gru, 8, hidden, (struct wf_recurrent_module_options){0});
    ck_ok(wf_registry_build(registry, 3, error));
    wf_tape *tape = new_tape();
    wf_fill_normal(x, rows * steps * 8, 0, 1, 7, 9);
    for (int threads = 1; threads <= 2; threads++) {
        ck_ok(wf_set_threads(threads, error));
        wf_tape_reset(tape, WF_GRADIENTS);
        wf_registry_zero_grads(registry);
        wf_tensor *in = wf_input(tape, x, offsets ? WF_SHAPE(rows * steps, 8) : WF_SHAPE(rows, steps, 8), true);
        wf_tensor *out = wf_keep(wf_recurrent_forward(&m, in, .packed = {offsets, offsets ? (int)rows : 0}));
        ck_read(out, y[threads - 1], rows * steps * hidden);
        ck_backward(wf_sum(wf_square(out)));
        wf_array g;
        const wf_tensor *of[] = {in, m.layer->weight_ih, m.layer->weight_hh, m.layer->bias_ih, m.layer->bias_hh};
        for (int i = 0; i < 5; i++) {
            ck_assert_int_eq(wf_grad(of[i], &g), WF_OK);
            sum[threads - 1][i] = 0;
            for (int64_t k = 0; k < wf_array_count(&g); k++) /* each element has another weight */
                sum[threads - 1][i] = sum[threads - 1][i] * 0.999 + (double)((const wf_real *)g.data)[k];
        }
    }
    ck_assert_mem_eq(y[0], y[1], (size_t)(rows * steps * hidden) * sizeof **y);
    ck_assert_mem_eq(sum[0], sum[1], sizeof *sum);
    wf_tape_free(tape);
    wf_registry_free(registry);
}

START_TEST(any_number_of_threads)
{
    int32_t offsets[41];
    for (int i = 0; i <= 40; i++)
        offsets[i] = i < 40 ? 12 * i - 2 * (i % 3) : 480;
    for (int gru = 0; gru < 2; gru++) {
        with_threads(gru, 30, 40, 12, NULL);
        with_threads(gru, 30, 40, 12, offsets);
        with_threads(gru, 520, 3, 4, NULL);
        with_threads(gru, 260, 40, 12, offsets);
    }
}
END_TEST

/* From the third pass on nothing is allocated: neither in a call nor in a step. */
START_TEST(nothing_allocated)
{
    static const int32_t lengths[B] = {9, 2, 4, 1, 7};
    for (int gru = 0; gru < 2; gru++)
        for (int wide = 0; wide < 2; wide++) {
            struct setting s = begin(gru, !wide, 0);
            wf_registry *registry = new_registry();
            if (wide) { /* each step is divided among the threads */
                init(wf_root(registry), &s.m, gru, IN, 330, (struct wf_recurrent_module_options){0});
                ck_ok(wf_registry_build(registry, 3, error));
            }
            int64_t before = 0;
            for (int pass = 0; pass < 5; pass++) {
                wf_tape_reset(s.tape, WF_TRAIN, .step = (uint64_t)pass);
                wf_tensor *x = wf_input(s.tape, s.x, WF_SHAPE(B, T, IN), true), *last,
                          *y = wf_recurrent_forward(&s.m, x, .lengths = lengths, .last_h = &last);
                ck_backward(wf_add(wf_mean(y), wf_mean(last)));
                before = pass < 3 ? wf_alloc_count() : before;
            }
            ck_assert_int_eq(wf_alloc_count(), before);
            end(&s);
            wf_registry_free(registry);
        }
}
END_TEST

START_TEST(dropout_between_layers)
{
    struct setting s = begin(false, false, 0.5);
    static wf_real with[B * T * H], without[B * T * H];
    for (int i = 0; i < 2; i++) {
        wf_tape_reset(s.tape, i ? WF_TRAIN : WF_GRADIENTS, .seed = 5);
        ck_read(wf_recurrent_forward(&s.m, wf_input(s.tape, s.x, WF_SHAPE(B, T, IN), false)), i ? with : without, B * T * H);
    }
    ck_assert(memcmp(with, without, sizeof with) != 0);
    end(&s);
    s = begin(false, false, 0.5);
    s.m.layers = 1; /* one layer has no dropout */
    for (int i = 0; i < 2; i++) {
        wf_tape_reset(s.tape, i ? WF_TRAIN : WF_GRADIENTS, .seed = 5);
        ck_read(wf_recurrent_forward(&s.m, wf_input(s.tape, s.x, WF_SHAPE(B, T, IN), false)), i ? with : without, B * T * H);
    }
    ck_assert_mem_eq(with, without, sizeof with);
    end(&s);
}
END_TEST

/* --- registry and mistakes ------------------------------------------------------------------------------------------- */

START_TEST(names)
{
    struct setting s = begin(true, true, 0);
    static const char *const expected[] = {"weight_ih_l0",       "weight_hh_l0",         "bias_ih_l0",
                                           "bias_hh_l0",         "weight_ih_l0_reverse", "weight_hh_l0_reverse",
                                           "bias_ih_l0_reverse", "bias_hh_l0_reverse",   "weight_ih_l1"};
    ck_assert_int_eq(wf_registry_count(s.registry), 16);
    for (int i = 0; i < 9; i++)
        ck_assert_str_eq(wf_parameter_info(wf_registry_at(s.registry, i))->name, expected[i]);
    ck_assert_int_eq(wf_dim(s.m.layer[2].weight_ih, 1), 2 * H);
    for (int i = 0; i < wf_registry_count(s.registry); i++) {
        const struct wf_parameter_info *info = wf_parameter_info(wf_registry_at(s.registry, i));
        double most = 0;
        for (int64_t k = 0; k < wf_array_count(&info->value); k++)
            most = fmax(most, fabs((double)wf_registry_values(s.registry)[info->offset + k]));
        ck_assert_msg(most > 0.8 / sqrt(H) && most <= 1 / sqrt(H), "%s reaches %g", info->name, most);
    }
    end(&s);
}
END_TEST

START_TEST(refused)
{
    struct wf_recurrent m;
    wf_registry *r = new_registry();
    wf_lstm_init(wf_sub(wf_root(r), "rnn"), &m, 4, 5, .layers = -1);
    declared_wrong(r, "rnn: layers = -1 must be in 1 .. 1024");
    r = new_registry();
    wf_gru_init(wf_sub(wf_root(r), "rnn"), &m, 4, 0);
    declared_wrong(r, "an input of 4 and a state of 0 numbers are no sizes of a recurrent layer");
    r = new_registry();
    wf_gru_init(wf_root(r), &m, 4, 5, .dropout = 1);
    declared_wrong(r, "dropout 1 is not in 0 <= p < 1");

    struct setting s = begin(true, true, 0);
    struct wf_cache cache;
    ck_ok(wf_cache_init_states(&cache, 1, 2, H, error));
    wf_tape_reset(s.tape, WF_INFER);
#define REFUSED(words, ...)                                                                                                                \
    do {                                                                                                                                   \
        wf_tensor *x = wf_zeros(s.tape, WF_SHAPE(2, 3, IN)), *last = NULL;                                                                 \
        (void)last, (void)x;                                                                                                               \
        ck_poison(wf_recurrent_forward(__VA_ARGS__), words);                                                                               \
    } while (0)
    REFUSED("lengths[1] = 4 must be in 0 .. 3, the steps of x", &s.m, x, .lengths = ((const int32_t[]){3, 4}));
    REFUSED("lengths[0] = -1 must be in 0 .. 3", &s.m, x, .lengths = ((const int32_t[]){-1, 2}));
    REFUSED("the initial state h must be [layers * directions, B, H] = [4,2,21]", &s.m, x, .h = x);
    REFUSED(".c and .last_c are for the LSTM", &s.m, x, .last_c = &last);
    REFUSED("x must be [B,T,in]", &s.m, wf_reshape(x, 6, IN));
    REFUSED("x must be [N,in] with .packed", &s.m, x, .packed = {(const int32_t[]){0, 2}, 1});
    REFUSED("end with the number of rows, 6", &s.m, wf_reshape(x, 6, IN), .packed = {(const int32_t[]){0, 5}, 1});
    REFUSED("a cache is for one direction", &s.m, x, .cache = cache.layer);
    REFUSED("gru(", &s.m, wf_zeros(s.tape, WF_SHAPE(2, 3, IN + 1)));
    REFUSED("for x [B,T,in]; wf_transpose(x, 1, 2) makes it of x [B,in,T]", &s.m, wf_zeros(s.tape, WF_SHAPE(2, IN, 3)));
    wf_tensor *h = NULL, *c = NULL; /* results of a call that failed can be used */
    ck_poison(wf_gru(wf_zeros(s.tape, WF_SHAPE(2, 3, IN)), s.m.layer[0].weight_ih, s.m.layer[0].weight_hh, NULL, NULL, .last_h = &h,
                     .last_c = &c),
              ".c and .last_c are for the LSTM");
    ck_assert(h && c && wf_is_poison(wf_scale(h, 2)) && wf_is_poison(wf_scale(c, 2)));
    wf_tape_reset(s.tape, WF_INFER);
    s.m.directions = 1;
    REFUSED("the cache has fewer than 2 layers from the given one on", &s.m, x, .cache = cache.layer);
    REFUSED("needs wf_lstm_init or wf_gru_init", &(struct wf_recurrent){.directions = 1}, x);
    s.m.layers = 1;
    wf_tensor *same = wf_zeros(s.tape, WF_SHAPE(2, 3, IN));
    ck_assert(!wf_is_poison(wf_recurrent_forward(&s.m, same, .cache = cache.layer)));
    wf_cache_free(&cache);
    end(&s);
}
END_TEST

WF_TEST_MAIN("lstm", torch, pieces_and_rows, rows_with_lengths, any_number_of_threads, nothing_allocated, dropout_between_layers, names,
             refused)
