/* SPDX-License-Identifier: MIT */
/* Low-rank adapters: the formula, their gradients, models of the zoo with adapters alone trained, merging. */
#include <math.h>
#include <pthread.h>

#include <weft/weft.h>

#include "config_test.h"
#include "nn_test.h"

enum { IN = 6, OUT = 4, RANK = 2, ROWS = 3 };

/* The map's result on rows x [ROWS,IN], with its adapter or without. */
static wf_tensor *forward(const struct wf_linear *m, wf_tape *tape, const wf_real *x, bool adapter)
{
    wf_tensor *in = wf_input(tape, x, WF_SHAPE(ROWS, IN), false);
    return adapter ? wf_linear_forward(m, in) : wf_linear(in, m->weight, m->bias);
}

static void fill(wf_tensor *p, uint64_t seed)
{
    wf_real x[64];
    int64_t n = wf_array_count(&wf_parameter_info(p)->value);
    wf_fill_normal(x, n, 0, 1, seed, 7);
    ck_ok(wf_parameter_set(p, x, n, error));
}

START_TEST(the_formula)
{
    wf_registry *registry = new_registry();
    struct wf_linear plain, m;
    wf_real x[ROWS * IN], y[ROWS * OUT], before[ROWS * OUT], w[OUT * IN], bias[OUT], a[RANK * IN], b[OUT * RANK];
    wf_linear_init(wf_sub(wf_root(registry), "plain"), &plain, IN, OUT);
    wf_linear_init(wf_sub(wf_root(registry), "m"), &m, IN, OUT, .lora = {.rank = RANK, .alpha = 6});
    ck_assert(!plain.lora_a && m.lora_a && m.lora_b);
    ck_ok(wf_registry_build(registry, 1, error));
    ck_assert_ptr_eq(wf_registry_find(registry, "m.lora_a"), m.lora_a);
    wf_fill_normal(x, ROWS * IN, 0, 1, 3, 1);
    wf_tape *tape = new_tape();
    wf_tape_reset(tape, WF_INFER);
    ck_read(forward(&m, tape, x, true), before, ROWS * OUT);
    ck_read(forward(&m, tape, x, false), y, ROWS * OUT);
    ck_assert_mem_eq(y, before, sizeof y); /* B is 0 */
    fill(m.lora_b, 5);
    ck_read(m.weight, w, OUT * IN);
    ck_read(m.bias, bias, OUT);
    ck_read(m.lora_a, a, RANK * IN);
    ck_read(m.lora_b, b, OUT * RANK);
    wf_tape_reset(tape, WF_INFER);
    ck_read(forward(&m, tape, x, true), y, ROWS * OUT);
    for (int i = 0; i < ROWS; i++)
        for (int o = 0; o < OUT; o++) {
            double sum = (double)bias[o];
            for (int j = 0; j < IN; j++) {
                double matrix = (double)w[o * IN + j];
                for (int r = 0; r < RANK; r++)
                    matrix += 3.0 * (double)b[o * RANK + r] * (double)a[r * IN + j]; /* alpha / rank */
                sum += matrix * (double)x[i * IN + j];
            }
            ck_assert(fabs(sum - (double)y[i * OUT + o]) < 1e-5);
        }
    /* merged: the same, without the adapters' help */
    ck_ok(wf_linear_merge(&m, tape, error));
    wf_tape_reset(tape, WF_INFER);
    ck_read(forward(&m, tape, x, false), before, ROWS * OUT);
    for (int i = 0; i < ROWS * OUT; i++)
        ck_assert(fabs((double)(before[i] - y[i])) < 1e-5);
    ck_read(forward(&m, tape, x, true), y, ROWS * OUT);
    ck_assert_mem_eq(y, before, sizeof y);
    ck_ok(wf_linear_merge(&plain, tape, error));
    wf_tape_free(tape);
    wf_registry_free(registry);
}
END_TEST

/* Slopes of the adapters against differences. */
START_TEST(gradients)
{
    wf_registry *registry = new_registry();
    struct wf_linear m;
    wf_linear_init(wf_root(registry), &m, IN, OUT, .lora = {.rank = RANK, .alpha = 1});
    wf_registry_freeze(registry, m.weight, true);
    ck_ok(wf_registry_build(registry, 1, error));
    fill(m.lora_b, 9);
    wf_real x[ROWS * IN], p[64];
    wf_fill_normal(x, ROWS * IN, 0, 1, 3, 1);
    wf_tape *tape = new_tape();
    wf_tensor *const parameters[] = {m.lora_a, m.lora_b, m.bias};
    for (int k = 0; k < 3; k++) {
        double low, high;
        const double h = sizeof(wf_real) == 8 ? 1e-6 : 1e-2;
        int64_t n = wf_array_count(&wf_parameter_info(parameters[k])->value);
        ck_read(parameters[k], p, n);
        for (int64_t i = 0; i < n; i++) {
            wf_real was = p[i];
            wf_grads_zero(wf_registry_grads(registry));
            wf_tape_reset(tape, WF_TRAIN);
            ck_backward(wf_sum(wf_tanh(forward(&m, tape, x, true))));
            double slope = (double)gradient_of(parameters[k])[i];
            for (int side = 0; side < 2; side++) {
                p[i] = was + (wf_real)(side ? h : -h);
                ck_ok(wf_parameter_set(parameters[k], p, n, error));
                wf_tape_reset(tape, WF_INFER);
                ck_assert_int_eq(wf_item(wf_sum(wf_tanh(forward(&m, tape, x, true))), side ? &high : &low), WF_OK);
            }
            p[i] = was;
            ck_ok(wf_parameter_set(parameters[k], p, n, error));
            ck_assert_msg(fabs((high - low) / (2 * h) - slope) < (sizeof(wf_real) == 8 ? 1e-8 : 2e-2), "%s[%d]: %g, not %g",
                          wf_name_of(parameters[k]), (int)i, slope, (high - low) / (2 * h));
        }
    }
    wf_tape_free(tape);
    wf_registry_free(registry);
}
END_TEST

/* A model of the zoo: the adapters of its attention alone are trained, the rest keeps its bits. */
START_TEST(models_of_the_zoo)
{
    static const char *const presets[] = {"nanogpt-char-small", "char-rms"};
    static const int32_t x[] = {0, 1, 2, 3, 4, 0, 1, 2}, y[] = {1, 2, 3, 4, 0, 1, 2, 3};
    for (int k = 0; k < 2; k++) {
        struct wf_config c;
        ck_ok(wf_config_preset(&c, presets[k], error));
        ck_ok(wf_config_set_all(&c, "d_model=16 d_ff=16 heads=2 layers=2 context=8", error));
        wf_config_set_vocab(&c, 5, 0);
        const struct wf_model_options o = {.lora_pattern = k == 0 ? "blocks.*.attn.*" : NULL,
                                           .lora = {.rank = 2, .alpha = 8, .dropout = 0.1}};
        wf_error problem = {0};
        wf_model *model = wf_model_new_with(&c, &o, &problem);
        ck_assert_msg(model, "%s", problem.message);
        wf_registry *registry = wf_model_registry(model);
        int adapters = 0;
        for (int i = 0; i < wf_registry_count(registry); i++)
            adapters += strstr(wf_parameter_info(wf_registry_at(registry, i))->name, "lora_") != NULL;
        ck_assert_int_eq(adapters, k == 0 ? 2 * 2 * 2 : 2 * (2 * 4 + 1)); /* qkv, out; or also up, down, and the head */
        ck_ok(wf_registry_freeze_matching(registry, "*", true, error));
        ck_ok(wf_registry_freeze_matching(registry, "*.lora_*", false, error));
        ck_ok(wf_registry_build(registry, 1, error));
        wf_tape *tape = new_tape();
        struct wf_optimizer optimizer;
        ck_ok(wf_adamw_init(&optimizer, registry, error, .lr = 0.02));
        wf_real frozen[5 * 16], now[5 * 16];
        wf_tensor *embed = wf_registry_find(registry, "embed.weight");
        ck_assert_ptr_nonnull(embed);
        ck_read(embed, frozen, 5 * 16);
        double first = 0, loss = 0;
        for (int step = 0; step < 80; step++) {
            wf_tape_reset(tape, WF_TRAIN, .step = (uint64_t)step);
            wf_tensor *l = wf_model_loss(model, wf_ids(tape, x, 1, 8), wf_ids(tape, y, 1, 8));
            ck_assert_int_eq(wf_item(l, &loss), WF_OK);
            ck_backward(l);
            ck_ok(wf_optimizer_step(&optimizer, error));
            first = step == 0 ? loss : first;
        }
        /* the frozen, tied embeddings of the first are so small that attention alone can do little */
        ck_assert_msg(loss < (k == 0 ? 0.95 : 0.6) * first, "%g, then %g", first, loss);
        ck_read(embed, now, 5 * 16);
        ck_assert_mem_eq(now, frozen, sizeof now);
        wf_optimizer_free(&optimizer);
        wf_tape_free(tape);
        wf_model_free(model);
    }
}
END_TEST

START_TEST(mistakes_are_named)
{
    wf_registry *registry = new_registry();
    struct wf_linear m;
    ck_fails(wf_registry_lora(registry, "*", error, .rank = 0), WF_ERR_ARGUMENT, "rank = 0");
    ck_fails(wf_registry_lora(registry, "*", error, .rank = 1, .dropout = 1), WF_ERR_ARGUMENT, "dropout = 1");
    ck_fails(wf_registry_lora(registry, "*", error, .rank = 1, .alpha = -1), WF_ERR_ARGUMENT, "alpha = -1");
    ck_fails(wf_registry_lora(registry, NULL, error, .rank = 1), WF_ERR_ARGUMENT, "the pattern is NULL");
    ck_fails(wf_registry_lora(NULL, "*", error, .rank = 1), WF_ERR_ARGUMENT, "the registry is NULL");
    wf_linear_init(wf_sub(wf_root(registry), "up"), &m, 2, 2);
    ck_ok(wf_registry_lora(registry, "up", error, .rank = 1)); /* too late */
    ck_fails(wf_registry_build(registry, 1, error), WF_ERR_ARGUMENT, "no linear map was declared under a path that fits \"up\"");
    ck_fails(wf_linear_merge(&m, NULL, error), WF_ERR_ARGUMENT, "the tape is NULL");
    wf_registry_free(registry);
    registry = new_registry();
    wf_linear_init(wf_sub(wf_root(registry), "up"), &m, 2, 2, .lora = {.rank = -1});
    ck_fails(wf_registry_build(registry, 1, error), WF_ERR_ARGUMENT, "up: lora: rank = -1");
    wf_registry_free(registry);
}
END_TEST

static struct {
    pthread_barrier_t barrier;
    wf_tensor *b;
} reader;

static void *reads_b_in_a_pass(void *ctx)
{
    (void)ctx;
    wf_tape *tape = new_tape();
    double value;
    wf_tape_reset(tape, WF_INFER);
    ck_assert_int_eq(wf_item(wf_sum(wf_scale(reader.b, 2)), &value), WF_OK);
    pthread_barrier_wait(&reader.barrier); /* in a pass */
    pthread_barrier_wait(&reader.barrier);
    wf_tape_free(tape);
    return NULL;
}

/* B, of another registry, cannot be set: W stays as it was, so that the merge can be repeated. */
START_TEST(merges_both_or_neither)
{
    wf_registry *registry = new_registry(), *other = new_registry();
    struct wf_linear m, shared;
    wf_real before[OUT * IN], w[OUT * IN], a[RANK * IN], b[OUT * RANK];
    wf_linear_init(wf_root(registry), &m, IN, OUT, .lora = {.rank = RANK});
    wf_linear_init(wf_root(other), &shared, IN, OUT, .lora = {.rank = RANK});
    ck_ok(wf_registry_build(registry, 1, error));
    ck_ok(wf_registry_build(other, 2, error));
    m.lora_b = reader.b = shared.lora_b;
    fill(m.lora_b, 5);
    ck_read(m.weight, before, OUT * IN);
    ck_read(m.lora_a, a, RANK * IN);
    ck_read(m.lora_b, b, OUT * RANK);
    wf_tape *tape = new_tape();
    pthread_t thread;
    pthread_barrier_init(&reader.barrier, NULL, 2);
    ck_assert_int_eq(pthread_create(&thread, NULL, reads_b_in_a_pass, NULL), 0);
    pthread_barrier_wait(&reader.barrier);
    for (int again = 0; again < 2; again++) {
        ck_fails(wf_linear_merge(&m, tape, error), WF_ERR_BUSY, "a tape of another thread is in a pass");
        ck_read(m.weight, w, OUT * IN);
        ck_assert_mem_eq(w, before, sizeof w);
    }
    pthread_barrier_wait(&reader.barrier);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    pthread_barrier_destroy(&reader.barrier);
    for (int again = 0; again < 2; again++) { /* merged once, however often */
        ck_ok(wf_linear_merge(&m, tape, error));
        ck_read(m.weight, w, OUT * IN);
        for (int o = 0; o < OUT; o++)
            for (int i = 0; i < IN; i++) {
                double sum = (double)before[o * IN + i];
                for (int r = 0; r < RANK; r++)
                    sum += (double)b[o * RANK + r] * (double)a[r * IN + i];
                ck_assert(fabs(sum - (double)w[o * IN + i]) < 1e-5);
            }
    }
    wf_tape_free(tape);
    wf_registry_free(other);
    wf_registry_free(registry);
}
END_TEST

WF_TEST_MAIN("nn/lora", the_formula, merges_both_or_neither, gradients, models_of_the_zoo, mistakes_are_named)
