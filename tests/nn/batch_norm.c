/* SPDX-License-Identifier: MIT */
/* Batch normalisation: values, gradients and running statistics against PyTorch (tests/golden/make_batch_norm.py); when the running
 * statistics change, and what else may change them; files; bits. */
#include <pthread.h>

#include <weft/check.h>
#include <weft/optim.h>
#include <weft/random.h>
#include <weft/runtime.h>

#include "../golden/golden.h"
#include "nn_test.h"

/* --- PyTorch --------------------------------------------------------------------------------------------------------- */

static wf_tensor *from_file(wf_tape *tape, const wf_safetensors *file, const char *name, const char *what, const wf_shape *shape, bool grad)
{
    char key[64];
    wf_real x[512];
    snprintf(key, sizeof key, "%s/%s", name, what);
    ck_assert_int_le(wf_shape_count(shape), 512);
    ck_ok(wf_safetensors_read(file, key, WF_REAL, x, wf_shape_count(shape), error));
    return wf_input(tape, x, shape, grad);
}

static void near(const wf_safetensors *file, const char *name, const char *what, const char *step, const wf_array *a)
{
    char key[64];
    snprintf(key, sizeof key, "%s/%s%s", name, what, step);
    if (strcmp(name, "two_rows") != 0 || strcmp(what, "dx") != 0 || *step == 'e') {
        golden_near(file, key, a, golden_tolerance());
        return;
    }
    /* With two rows the normalised values are 1 and -1, and dx is a difference near 0 of numbers of the size of 1. */
    double *want = golden_read(file, key, wf_array_count(a)), *have = golden_elements(a);
    ck_assert(golden_norm(want, have, wf_array_count(a)) < golden_tolerance());
    free(want);
    free(have);
}

static void near_gradient(const wf_safetensors *file, const char *name, const char *what, const char *step, const wf_tensor *x)
{
    wf_array view;
    ck_assert_msg(wf_grad(x, &view) == WF_OK, "%s: %s", name, wf_tape_error(wf_tape_of(x))->message);
    near(file, name, what, step, &view);
}

static void golden(const char *name, const wf_shape *shape, const struct wf_batch_norm_options *o)
{
    static const char *const steps[] = {"0", "1", "2", "e"};
    wf_safetensors *file = golden_open("batch_norm");
    wf_registry *registry = new_registry();
    struct wf_batch_norm m;
    struct wf_optimizer sgd = {0};
    wf_tape *tape = new_tape();
    wf_batch_norm_init_with(wf_root(registry), &m, shape->dim[1], o);
    ck_ok(wf_registry_build(registry, 1, error));
    ck_assert_int_eq(wf_registry_parameters(registry), o->no_affine ? 0 : 2 * shape->dim[1]);
    for (int i = 0; !o->no_affine && i < 2; i++) {
        char key[64];
        wf_real value[8];
        snprintf(key, sizeof key, "%s/%s", name, i ? "bias" : "weight");
        ck_ok(wf_safetensors_read(file, key, WF_REAL, value, shape->dim[1], error));
        ck_ok(wf_parameter_set(i ? m.bias : m.weight, value, shape->dim[1], error));
    }
    ck_ok(wf_sgd_init(&sgd, registry, error, .lr = 0.1));
    for (int k = 0; k < 4; k++) {
        char what[2][8];
        wf_array view;
        const wf_mode mode = k < 3 ? WF_TRAIN : WF_GRADIENTS;
        snprintf(what[0], sizeof what[0], "x%s", steps[k]);
        snprintf(what[1], sizeof what[1], "r%s", steps[k]);
        wf_registry_zero_grads(registry);
        wf_tape_reset(tape, mode);
        wf_tensor *x = from_file(tape, file, name, what[0], shape, true), *y = wf_batch_norm_forward(&m, x);
        ck_assert_msg(wf_view(y, &view) == WF_OK, "%s: %s", name, wf_tape_error(tape)->message);
        near(file, name, "y", steps[k], &view);
        ck_backward(wf_sum(wf_mul(y, from_file(tape, file, name, what[1], shape, false))));
        near_gradient(file, name, "dx", steps[k], x);
        if (m.weight) {
            near_gradient(file, name, "dweight", steps[k], m.weight);
            near_gradient(file, name, "dbias", steps[k], m.bias);
        }
        ck_ok(wf_optimizer_step(&sgd, error));
        near(file, name, "running_mean", steps[k], &wf_parameter_info(m.running_mean)->value);
        near(file, name, "running_var", steps[k], &wf_parameter_info(m.running_var)->value);
    }
    wf_optimizer_free(&sgd);
    wf_registry_free(registry);
    wf_tape_free(tape);
    wf_safetensors_close(file);
}
#define GOLDEN(name, shape, ...) golden(name, shape, &(struct wf_batch_norm_options){__VA_ARGS__})

START_TEST(is_pytorch)
{
    GOLDEN("rows", WF_SHAPE(5, 4), .eps = 0);
    GOLDEN("two_rows", WF_SHAPE(2, 3), .eps = 1e-5);
    GOLDEN("sequence", WF_SHAPE(2, 3, 7), .momentum = 0.3, .eps = 1e-3);
    GOLDEN("pictures", WF_SHAPE(3, 5, 4, 6), .momentum = 0.1);
    GOLDEN("plain", WF_SHAPE(2, 3, 3, 3), .no_affine = true);
    GOLDEN("one_channel", WF_SHAPE(2, 1, 3, 5), .eps = 0);
    GOLDEN("constant", WF_SHAPE(2, 3, 4, 2), .eps = 0);
    GOLDEN("last", WF_SHAPE(4, 2), .momentum = 1);
    GOLDEN("one_picture", WF_SHAPE(1, 2, 5, 5), .eps = 0);
}
END_TEST

/* --- one module ------------------------------------------------------------------------------------------------------ */

enum { C = 3, N = 6 };
struct one {
    wf_registry *registry;
    struct wf_batch_norm m;
    struct wf_optimizer adam;
    wf_tape *tape;
    wf_real x[4][N * C];
};

static struct one *one_open(void)
{
    struct one *o = calloc(1, sizeof *o);
    o->registry = new_registry();
    o->tape = new_tape();
    wf_batch_norm_init(wf_sub(wf_root(o->registry), "norm"), &o->m, C);
    ck_ok(wf_registry_build(o->registry, 1, error));
    ck_ok(wf_adamw_init(&o->adam, o->registry, error, .weight_decay = 0.5));
    o->adam.ema = 0.9;
    for (int i = 0; i < 4; i++)
        wf_fill_normal(o->x[i], N * C, 1, 2, 5, (uint64_t)i);
    return o;
}

static void one_close(struct one *o)
{
    wf_optimizer_free(&o->adam);
    wf_registry_free(o->registry);
    wf_tape_free(o->tape);
    free(o);
}

static const wf_real *running(const struct one *o, int which)
{
    return wf_parameter_info(which ? o->m.running_var : o->m.running_mean)->value.data;
}

/* r = (1 - rate) r + rate * (the statistics of batch i), in double. */
static void by_hand(const struct one *o, int i, double rate, double r[2][C])
{
    for (int c = 0; c < C; c++) {
        double mean = 0, squares = 0;
        for (int k = 0; k < N; k++)
            mean += (double)o->x[i][k * C + c] / N;
        for (int k = 0; k < N; k++)
            squares += ((double)o->x[i][k * C + c] - mean) * ((double)o->x[i][k * C + c] - mean);
        r[0][c] = (1 - rate) * r[0][c] + rate * mean;
        r[1][c] = (1 - rate) * r[1][c] + rate * squares / (N - 1);
    }
}

static void ck_running(const struct one *o, double r[2][C])
{
    for (int which = 0; which < 2; which++)
        for (int c = 0; c < C; c++)
            ck_assert_double_eq_tol((double)running(o, which)[c], r[which][c], sizeof(wf_real) == 8 ? 1e-14 : 1e-6);
}

static wf_tensor *forward(struct one *o, wf_mode mode, int i)
{
    wf_tape_reset(o->tape, mode);
    return wf_batch_norm_forward(&o->m, wf_input(o->tape, o->x[i], WF_SHAPE(N, C), true));
}

static wf_tensor *loss_of(wf_tensor *y)
{
    return wf_mean(wf_square(wf_add_constant(y, 0.3)));
}

static wf_tensor *in_checkpoint(void *ctx, wf_tensor *x)
{
    return wf_gelu(wf_batch_norm_forward(ctx, x));
}

/* Each micro-batch of an update counts once, in its order, when the optimiser steps. */
START_TEST(statistics_change_with_the_update)
{
    struct one *o = one_open();
    double r[2][C] = {{0, 0, 0}, {1, 1, 1}};
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < 3; i++) {
            ck_backward(loss_of(forward(o, WF_TRAIN, i)));
            ck_running(o, r); /* as before the update */
        }
        for (int i = 0; i < 3; i++)
            by_hand(o, i, 0.1, r);
        ck_ok(wf_optimizer_step(&o->adam, error));
        ck_running(o, r);
        ck_ok(wf_optimizer_step(&o->adam, error)); /* without a pass */
        ck_running(o, r);
    }
    /* an inner function that the backward repeats */
    wf_tape_reset(o->tape, WF_TRAIN);
    ck_backward(loss_of(wf_checkpoint(in_checkpoint, &o->m, wf_input(o->tape, o->x[3], WF_SHAPE(N, C), true))));
    by_hand(o, 3, 0.1, r);
    ck_ok(wf_registry_update_buffers(o->registry, error));
    ck_running(o, r);
    /* two losses of one pass; the module called twice in it */
    wf_tensor *y = forward(o, WF_TRAIN, 0), *again = wf_batch_norm_forward(&o->m, wf_input(o->tape, o->x[1], WF_SHAPE(N, C), true));
    ck_assert(wf_backward(loss_of(y), .retain = true) == WF_OK);
    ck_backward(wf_add(loss_of(again), wf_mean(y)));
    by_hand(o, 0, 0.1, r);
    by_hand(o, 1, 0.1, r);
    ck_ok(wf_registry_update_buffers(o->registry, error));
    ck_running(o, r);
    /* under wf_tape_no_grad too, as in PyTorch, with a loss elsewhere in the pass */
    y = forward(o, WF_TRAIN, 2);
    const bool before = wf_tape_no_grad(o->tape, true);
    wf_batch_norm_forward(&o->m, wf_input(o->tape, o->x[3], WF_SHAPE(N, C), false));
    wf_tape_no_grad(o->tape, before);
    ck_backward(loss_of(y));
    by_hand(o, 2, 0.1, r);
    by_hand(o, 3, 0.1, r);
    ck_ok(wf_optimizer_step(&o->adam, error));
    ck_running(o, r);
    one_close(o);
}
END_TEST

/* Passes that change nothing. */
START_TEST(statistics_stay)
{
    struct one *o = one_open();
    double r[2][C] = {{0, 0, 0}, {1, 1, 1}};
    wf_tensor *gradient;
    forward(o, WF_INFER, 0);
    ck_ok(wf_registry_update_buffers(o->registry, error));
    ck_backward(loss_of(forward(o, WF_GRADIENTS, 0)));
    ck_ok(wf_registry_update_buffers(o->registry, error));
    forward(o, WF_TRAIN, 0); /* without a backward */
    ck_ok(wf_registry_update_buffers(o->registry, error));
    wf_tensor *y = forward(o, WF_TRAIN, 0);
    ck_assert(wf_gradients(loss_of(y), 1, &y, &gradient) == WF_OK);
    ck_ok(wf_registry_update_buffers(o->registry, error));
    ck_backward(loss_of(forward(o, WF_TRAIN, 0))); /* discarded with its gradients */
    wf_registry_zero_grads(o->registry);
    ck_ok(wf_registry_update_buffers(o->registry, error));
    o->m.evaluation = true;
    ck_backward(loss_of(forward(o, WF_TRAIN, 0)));
    ck_ok(wf_optimizer_step(&o->adam, error));
    o->m.evaluation = false;
    ck_running(o, r);
    wf_tape_reset(o->tape, WF_TRAIN); /* an empty batch has no statistics */
    ck_backward(wf_sum(wf_batch_norm_forward(&o->m, wf_input(o->tape, NULL, WF_SHAPE(0, C), true))));
    ck_ok(wf_registry_update_buffers(o->registry, error));
    ck_running(o, r);
    /* a failed backward: the update is refused, and after wf_registry_zero_grads nothing of it remains */
    ck_backward(loss_of(forward(o, WF_TRAIN, 1)));
    y = forward(o, WF_TRAIN, 0);
    ck_assert(wf_backward(y, .gradient = wf_zeros(o->tape, WF_SHAPE(2))) == WF_ERR_SHAPE);
    ck_fails(wf_registry_update_buffers(o->registry, error), WF_ERR_STATE, "the last backward failed");
    wf_registry_zero_grads(o->registry);
    ck_ok(wf_registry_update_buffers(o->registry, error));
    ck_running(o, r);
    /* no optimiser, clipping or freezing touches a buffer */
    ck_ok(wf_registry_freeze_matching(o->registry, "*", false, error));
    wf_registry_freeze(o->registry, o->m.running_mean, false);
    ck_assert(wf_parameter_info(o->m.running_mean)->frozen && wf_registry_is_buffer(o->registry, 2) &&
              wf_registry_is_saved(o->registry, 2));
    o->m.evaluation = true;
    for (int i = 0; i < 5; i++) {
        ck_backward(loss_of(forward(o, WF_TRAIN, i % 4)));
        ck_ok(wf_clip_norm(wf_registry_grads(o->registry), 0.01, NULL, error));
        ck_ok(wf_optimizer_step(&o->adam, error));
    }
    ck_running(o, r);
    ck_assert_int_eq(wf_registry_parameters(o->registry), 2 * C);
    one_close(o);
}
END_TEST

/* One row is refused in training alone. Rows in an evaluation do not depend on each other. */
START_TEST(rows_and_modes)
{
    struct one *o = one_open();
    wf_real all[N * C], alone[C], again[N * C];
    ck_backward(loss_of(forward(o, WF_TRAIN, 0)));
    ck_ok(wf_optimizer_step(&o->adam, error));
    ck_read(forward(o, WF_INFER, 1), all, N * C);
    ck_read(forward(o, WF_GRADIENTS, 1), again, N * C);
    ck_assert_mem_eq(all, again, sizeof all);
    for (int i = 0; i < N; i++) {
        wf_tape_reset(o->tape, WF_INFER);
        ck_read(wf_batch_norm_forward(&o->m, wf_input(o->tape, o->x[1] + i * C, WF_SHAPE(1, C), false)), alone, C);
        ck_assert_mem_eq(alone, all + i * C, sizeof alone);
    }
    wf_tape_reset(o->tape, WF_TRAIN);
    ck_poison(wf_batch_norm_forward(&o->m, wf_input(o->tape, o->x[0], WF_SHAPE(1, C), true)),
              "batch_norm(input [1,3], norm.weight [3], norm.bias [3]): each channel has only one value");
    wf_tape_reset(o->tape, WF_TRAIN);
    ck_poison(wf_batch_norm_forward(&o->m, wf_input(o->tape, o->x[0], WF_SHAPE(1, C, 1, 1), true)), "each channel has only one value");
    wf_tape_reset(o->tape, WF_TRAIN);
    ck_poison(wf_batch_norm_forward(&o->m, wf_zeros(o->tape, WF_SHAPE(2, 4))), "[3]");
    wf_tape_reset(o->tape, WF_TRAIN);
    ck_poison(wf_batch_norm_forward(&o->m, wf_zeros(o->tape, WF_SHAPE(3))), "x must be [N,C], [B,C,T] or [B,C,H,W]");
    wf_tape_reset(o->tape, WF_TRAIN);
    ck_poison(wf_batch_norm_running(wf_zeros(o->tape, WF_SHAPE(2, 3)), o->m.weight, o->m.running_var, NULL, NULL, 1e-5),
              "given statistics have no gradient");
    wf_tape_reset(o->tape, WF_TRAIN);
    ck_poison(wf_batch_norm(wf_zeros(o->tape, WF_SHAPE(2, 3)), NULL, NULL, -1, NULL, NULL), "eps = -1 must be");
    static const struct wf_batch_norm_options wrong[] = {
        {.eps = -1}, {.eps = NAN}, {.momentum = -0.1}, {.momentum = 1.1}, {.momentum = NAN}};
    for (int i = 0; i < 5; i++) {
        wf_registry *registry = new_registry();
        struct wf_batch_norm m;
        wf_batch_norm_init_with(wf_root(registry), &m, 3, &wrong[i]);
        declared_wrong(registry, i < 2 ? "eps = " : "momentum = ");
    }
    one_close(o);
}
END_TEST

START_TEST(wrong_averages)
{
    struct one *o = one_open();
    const struct {
        wf_tensor *buffer;
        int64_t count;
        double rate;
        const char *words;
    } wrong[] = {{o->m.weight, C, 0.1, "'norm.weight' is no persistent buffer"},
                 {NULL, C, 0.1, "'NULL' is no persistent buffer"},
                 {o->m.running_mean, C, 1.5, "the rate 1.5 of 'norm.running_mean' is not in 0 <= rate <= 1"},
                 {o->m.running_mean, C, NAN, "is not in 0 <= rate <= 1"},
                 {o->m.running_mean, C + 1, 0.1, "'zeros' is no tensor of real numbers [3]"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        wf_tape_reset(o->tape, WF_TRAIN);
        wf_running_average(wrong[i].buffer, wf_zeros(o->tape, WF_SHAPE(wrong[i].count)), wrong[i].rate);
        ck_says(wf_tape_error(o->tape)->message, wrong[i].words);
    }
    wf_tape_reset(o->tape, WF_TRAIN);
    wf_running_average(o->m.running_mean, wf_ids_of(o->tape, (int32_t[]){1, 2, 3}, WF_SHAPE(3)), 1);
    ck_says(wf_tape_error(o->tape)->message, "no tensor of real numbers");
    wf_tape_reset(o->tape, WF_TRAIN);
    wf_running_average(o->m.running_mean, NULL, 1);
    ck_says(wf_tape_error(o->tape)->message, "wf_running_average");
    wf_registry *registry = new_registry();
    wf_parameter(wf_root(registry), "w", WF_SHAPE(2), .persistent = true);
    declared_wrong(registry, "w: .persistent is for buffers");
    ck_fails(wf_registry_update_buffers(NULL, error), WF_ERR_ARGUMENT, "the registry is NULL");
    registry = new_registry();
    ck_fails(wf_registry_update_buffers(registry, error), WF_ERR_STATE, "no gradients");
    wf_registry_free(registry);
    /* a rate of 1 replaces, whatever the value was */
    ck_ok(wf_parameter_set(o->m.running_mean, (wf_real[]){NAN, INFINITY, 0}, 3, error));
    wf_tape_reset(o->tape, WF_TRAIN);
    wf_tensor *w = wf_input(o->tape, (wf_real[]){1, 2, 3}, WF_SHAPE(3), true);
    wf_running_average(o->m.running_mean, w, 0.5);
    wf_running_average(o->m.running_mean, wf_scale(w, 7), 1);
    ck_backward(wf_sum(w));
    ck_ok(wf_registry_update_buffers(o->registry, error));
    ck_assert(running(o, 0)[0] == 7 && running(o, 0)[2] == 21);
    ck_ok(wf_registry_build(o->registry, 1, error)); /* begins again */
    ck_assert(running(o, 0)[0] == 0 && running(o, 1)[0] == 1);
    one_close(o);
}
END_TEST

/* --- threads --------------------------------------------------------------------------------------------------------- */

static struct reader {
    struct one *o;
    pthread_barrier_t barrier;
    wf_grads *grads;
} reader;

static void *reads_in_a_pass(void *ctx)
{
    (void)ctx;
    wf_tape *tape = new_tape();
    wf_tape_reset(tape, WF_INFER);
    wf_batch_norm_forward(&reader.o->m, wf_input(tape, reader.o->x[1], WF_SHAPE(N, C), false));
    pthread_barrier_wait(&reader.barrier);
    pthread_barrier_wait(&reader.barrier);
    wf_tape_reset(tape, WF_TRAIN, .grads = reader.grads);
    ck_backward(loss_of(wf_batch_norm_forward(&reader.o->m, wf_input(tape, reader.o->x[1], WF_SHAPE(N, C), false))));
    wf_tape_free(tape);
    return NULL;
}

/* A change is refused while another thread reads. The changes of another thread's gradients wait until they are taken. */
START_TEST(with_other_threads)
{
    struct one *o = one_open();
    double r[2][C] = {{0, 0, 0}, {1, 1, 1}};
    pthread_t thread;
    wf_error e = {0};
    reader.o = o;
    reader.grads = wf_grads_new(o->registry, &e);
    pthread_barrier_init(&reader.barrier, NULL, 2);
    ck_assert_int_eq(pthread_create(&thread, NULL, reads_in_a_pass, NULL), 0);
    pthread_barrier_wait(&reader.barrier);
    ck_backward(loss_of(forward(o, WF_TRAIN, 0)));
    ck_fails(wf_registry_update_buffers(o->registry, error), WF_ERR_BUSY, "wf_registry_update_buffers: a tape of another thread");
    ck_running(o, r);
    pthread_barrier_wait(&reader.barrier);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_ok(wf_registry_update_buffers(o->registry, error));
    by_hand(o, 0, 0.1, r);
    ck_running(o, r);
    wf_grads_take_buffers(wf_registry_grads(o->registry), reader.grads);
    wf_grads_take_buffers(wf_registry_grads(o->registry), reader.grads); /* nothing is left */
    wf_grads_take_buffers(NULL, reader.grads);
    ck_ok(wf_registry_update_buffers(o->registry, error));
    by_hand(o, 1, 0.1, r);
    ck_running(o, r);
    wf_grads_free(reader.grads);
    one_close(o);
}
END_TEST

/* The bits do not depend on the number of threads. */
START_TEST(the_same_bits)
{
    enum { COUNT = 4 * 24 * 20 * 20 };
    static wf_real x[COUNT], out[2][3][COUNT];
    wf_tape *tape = new_tape();
    wf_fill_normal(x, COUNT, 0.2, 1, 3, 1);
    for (int shape = 0; shape < 2; shape++) {
        for (int threads = 1; threads <= 2; threads++) {
            ck_ok(wf_set_threads(threads, error));
            wf_tape_reset(tape, WF_GRADIENTS);
            wf_tensor *mean, *variance, *in = wf_input(tape, x, shape ? WF_SHAPE(4 * 20 * 20, 24) : WF_SHAPE(4, 24, 20, 20), true);
            wf_tensor *w = wf_input(tape, x, WF_SHAPE(24), true), *y = wf_batch_norm(in, w, w, 1e-5, &mean, &variance);
            ck_read(y, out[threads - 1][0], COUNT);
            ck_read(variance, out[threads - 1][2] + 24, 24);
            ck_backward(wf_sum(wf_gelu(y)));
            memcpy(out[threads - 1][1], gradient_of(in), sizeof *out[0]);
            memcpy(out[threads - 1][2], gradient_of(w), 24 * sizeof(wf_real));
        }
        ck_assert_mem_eq(out[0], out[1], sizeof out[0]);
    }
    wf_tape_free(tape);
}
END_TEST

/* --- files ----------------------------------------------------------------------------------------------------------- */

static wf_tensor *module_forward(void *ctx, wf_tape *tape, wf_tensor *const in[])
{
    (void)tape;
    return wf_batch_norm_forward(ctx, in[0]);
}

/* The state that PyTorch saves, with its int64 num_batches_tracked; and what Weft saves. */
START_TEST(in_files)
{
    wf_registry *registry = new_registry(), *copy = new_registry(), *without = new_registry();
    struct wf_batch_norm m, n;
    wf_safetensors *file = golden_open("batch_norm");
    wf_batch_norm_init(wf_sub(wf_root(registry), "norm"), &m, 2);
    wf_batch_norm_init(wf_sub(wf_root(copy), "norm"), &n, 2);
    ck_ok(wf_registry_load(registry, file, "state/", error));
    ck_assert(wf_safetensors_find(file, "state/norm.num_batches_tracked")->dtype == WF_I64);
    golden_near(file, "one_picture/running_mean2", &wf_parameter_info(m.running_mean)->value, golden_tolerance());
    golden_near(file, "one_picture/running_var2", &wf_parameter_info(m.running_var)->value, golden_tolerance());
    ck_ok(wf_registry_gradients(registry, error));
    ck_ok(wf_check_module(registry, module_forward, &m, 1, WF_SHAPE(3, 2), NULL, error));
    wf_safetensors_writer *w = wf_safetensors_writer_new();
    wf_registry_save(registry, w, NULL);
    wf_safetensors *own = written(w);
    static const char *const names[] = {"norm.weight", "norm.bias", "norm.running_mean", "norm.running_var"};
    ck_assert_int_eq(wf_safetensors_count(own), 4);
    for (int i = 0; i < 4; i++)
        ck_assert(wf_safetensors_find(own, names[i]) && wf_safetensors_find(own, names[i])->dtype == WF_REAL);
    ck_ok(wf_registry_load(copy, own, NULL, error));
    ck_assert_mem_eq(wf_registry_values(copy), wf_registry_values(registry), (size_t)wf_registry_slab(copy) * sizeof(wf_real));
    wf_safetensors_close(own);
    /* under other names, by rules; mapped, where the statistics are read all the same */
    wf_registry *other = new_registry();
    struct wf_batch_norm of_other;
    wf_batch_norm_init(wf_sub(wf_sub(wf_root(other), "layer"), "bn"), &of_other, 2);
    static const struct wf_load_rule rules[] = {{"layer.bn.weight", {"norm.weight"}},
                                                {"layer.bn.bias", {"norm.bias"}},
                                                {"layer.bn.running_mean", {"norm.running_mean"}},
                                                {"layer.bn.running_var", {"norm.running_var"}}};
    ck_ok(wf_registry_load_with(other, file, &(struct wf_load_options){.prefix = "state/", .rule = rules, .rules = 4, .map = true}, error));
    ck_assert_mem_eq(wf_registry_values(other), wf_registry_values(registry), (size_t)wf_registry_slab(other) * sizeof(wf_real));
    ck_assert(!wf_registry_is_mapped(other, 2));
    wf_registry_free(other);
    /* the statistics are required, and other names are still unexpected */
    wf_linear_init(wf_sub(wf_root(without), "norm"), &(struct wf_linear){0}, 2, 2, .no_bias = true);
    ck_ok(wf_registry_build(without, 1, error));
    w = wf_safetensors_writer_new();
    const wf_real two[2] = {1, 1};
    const wf_array pair = wf_array_contiguous((void *)two, WF_REAL, WF_SHAPE(2));
    wf_safetensors_put(w, "norm.weight", &pair);
    wf_safetensors_put(w, "norm.bias", &pair);
    wf_safetensors_put(w, "norm.other.num_batches_tracked", &pair);
    own = written(w);
    ck_fails(wf_registry_load(copy, own, NULL, error), WF_ERR_FORMAT,
             "2 missing: norm.running_mean, norm.running_var; 1 unexpected: norm.other.num_batches_tracked");
    wf_safetensors_close(own);
    wf_safetensors_close(file);
    wf_registry_free(registry);
    wf_registry_free(copy);
    wf_registry_free(without);
}
END_TEST

WF_TEST_MAIN("batch_norm", is_pytorch, statistics_change_with_the_update, statistics_stay, rows_and_modes, wrong_averages,
             with_other_threads, the_same_bits, in_files)
