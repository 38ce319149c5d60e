/* SPDX-License-Identifier: MIT */
/* Threads that share the parameters of a registry have the bits that each has alone. A call that replaces values is refused only because
 * of a pass of another living thread. */
#include <pthread.h>

#include <weft/weft.h>

#include "check_weft.h"

enum { D = 16, ROWS = 7, THREADS = 3, PASSES = 40 };

static struct {
    wf_registry *registry;
    wf_tensor *p;
    wf_tape *tape;
    bool armed;
    pthread_barrier_t barrier;
} shared;

/* Resets the tape while the registry's values are replaced: in this thread, or in another one that waits for it. */
static void fill(void *ctx, wf_real *value, const wf_shape *shape, uint64_t seed, const char *name)
{
    (void)seed, (void)name;
    for (int64_t i = 0; i < wf_shape_count(shape); i++)
        value[i] = 1;
    if (!shared.armed)
        return;
    shared.armed = false;
    if (!ctx) {
        wf_tape_reset(shared.tape, WF_INFER);
        return;
    }
    pthread_barrier_wait(&shared.barrier);
    pthread_barrier_wait(&shared.barrier);
}

static void open_shared(void *ctx)
{
    double sum;
    shared.registry = wf_registry_new(NULL);
    shared.p = wf_parameter(wf_root(shared.registry), "p", WF_SHAPE(4), .init = {WF_INIT_FUNCTION, .fill = fill, .ctx = ctx});
    shared.armed = false;
    ck_ok(wf_registry_build(shared.registry, 1, error));
    shared.tape = wf_tape_new(NULL);
    wf_tape_reset(shared.tape, WF_INFER);
    ck_assert_int_eq(wf_item(wf_sum(shared.p), &sum), WF_OK);
    shared.armed = true;
}

static void close_shared(void)
{
    static const wf_real four[4] = {1, 2, 3, 4};
    for (int i = 0; i < 2; i++) {
        ck_ok(wf_parameter_set(shared.p, four, 4, error));
        ck_ok(wf_registry_build(shared.registry, 3, error));
    }
    wf_tape_free(shared.tape);
    ck_ok(wf_registry_build(shared.registry, 4, error));
    wf_registry_free(shared.registry);
}

START_TEST(an_initialiser_resets_a_tape)
{
    open_shared(NULL);
    ck_ok(wf_registry_build(shared.registry, 2, error));
    close_shared();
}
END_TEST

static void *resets(void *unused)
{
    pthread_barrier_wait(&shared.barrier);
    wf_tape_reset(shared.tape, WF_INFER);
    pthread_barrier_wait(&shared.barrier);
    return unused;
}

START_TEST(a_tape_is_handed_to_another_thread)
{
    pthread_t thread;
    pthread_barrier_init(&shared.barrier, NULL, 2);
    open_shared(&shared);
    ck_assert_int_eq(pthread_create(&thread, NULL, resets, NULL), 0);
    ck_ok(wf_registry_build(shared.registry, 2, error)); /* this thread's own pass does not hinder it */
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    close_shared();
}
END_TEST

static void *infers(void *tape)
{
    double sum;
    wf_tape_reset(tape, WF_INFER);
    ck_assert_int_eq(wf_item(wf_sum(shared.p), &sum), WF_OK);
    return NULL;
}

/* A worker that infers, leaves its tape as it is and ends. */
START_TEST(a_thread_that_has_ended)
{
    pthread_t thread;
    open_shared(NULL);
    shared.armed = false;
    wf_tape *left = wf_tape_new(NULL);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(pthread_create(&thread, NULL, infers, left), 0);
        ck_assert_int_eq(pthread_join(thread, NULL), 0);
        ck_ok(wf_parameter_set(shared.p, (wf_real[]){1, 2, 3, 4}, 4, error));
    }
    close_shared();
    wf_tape_free(left);
}
END_TEST

/* --- bits ---------------------------------------------------------------------------------------------------------- */

static struct wf_mha attn;
static struct wf_ffn ffn;
static pthread_barrier_t start;

static void forward(wf_tape *tape, int which, wf_real *out)
{
    wf_real x[ROWS * D];
    wf_fill_normal(x, ROWS * D, 0, 1, 5, (uint64_t)which);
    wf_tape_reset(tape, WF_INFER);
    wf_tensor *y = wf_input(tape, x, WF_SHAPE(1, ROWS, D), false);
    y = wf_ffn_forward(&ffn, wf_mha_forward(&attn, y, .causal = true, .residual = y), .residual = y);
    ck_assert_int_eq(wf_read(y, out, ROWS * D), WF_OK);
    wf_tape_reset(tape, WF_INFER);
}

struct worker {
    pthread_t thread;
    int first;
    wf_real out[PASSES][ROWS * D];
};

static void *work(void *ctx)
{
    struct worker *w = ctx;
    wf_tape *tape = wf_tape_new(NULL);
    pthread_barrier_wait(&start);
    for (int i = 0; i < PASSES; i++)
        forward(tape, w->first + i, w->out[i]);
    wf_tape_free(tape);
    return NULL;
}

START_TEST(threads_get_the_bits_that_one_gets_alone)
{
    static struct worker worker[THREADS];
    static wf_real alone[ROWS * D];
    wf_registry *registry = wf_registry_new(NULL);
    wf_mha_init(wf_sub(wf_root(registry), "attn"), &attn, D, 4, .rope = true);
    wf_ffn_init(wf_sub(wf_root(registry), "ffn"), &ffn, D, 4 * D, .activation = WF_SWIGLU);
    ck_ok(wf_registry_build(registry, 1, error));
    pthread_barrier_init(&start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        worker[i].first = i * PASSES;
        ck_assert_int_eq(pthread_create(&worker[i].thread, NULL, work, &worker[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(worker[i].thread, NULL), 0);
    wf_tape *tape = wf_tape_new(NULL);
    for (int i = 0; i < THREADS; i++)
        for (int k = 0; k < PASSES; k++) {
            forward(tape, worker[i].first + k, alone);
            ck_assert_mem_eq(alone, worker[i].out[k], sizeof alone);
        }
    wf_tape_free(tape);
    wf_registry_free(registry);
}
END_TEST

/* --- checkpoints ---------------------------------------------------------------------------------------------------- */

static wf_tensor *parameter_without_gradient(void *ctx, wf_tensor *x)
{
    wf_tape *tape = wf_tape_of(x);
    const bool before = wf_tape_no_grad(tape, true);
    wf_tensor *factor = wf_exp(ctx);
    wf_tape_no_grad(tape, before);
    return wf_mul(x, factor);
}

static void *differentiate(void *ctx)
{
    _Atomic int *wrong = ctx;
    wf_tape *tape = wf_tape_new(NULL);
    pthread_barrier_wait(&start);
    for (int i = 0; i < PASSES; i++) {
        wf_array gradient;
        wf_tape_reset(tape, WF_GRADIENTS);
        wf_tensor *x = wf_input(tape, (wf_real[]){1, 2, 3, 4}, WF_SHAPE(4), true);
        if (wf_backward(wf_sum(wf_checkpoint(parameter_without_gradient, shared.p, x))) != WF_OK || wf_grad(x, &gradient) != WF_OK ||
            ((wf_real *)gradient.data)[2] != 1)
            ++*wrong;
    }
    wf_tape_free(tape);
    return NULL;
}

/* A record of a checkpoint has the tape's leaf of a parameter, without a gradient too: it writes nothing to what threads share. */
START_TEST(checkpoints_without_gradient)
{
    _Atomic int wrong = 0;
    pthread_t thread[THREADS];
    shared.registry = wf_registry_new(NULL);
    shared.p = wf_parameter(wf_root(shared.registry), "p", WF_SHAPE(4));
    ck_ok(wf_registry_build(shared.registry, 1, error));
    ck_ok(wf_parameter_set(shared.p, (wf_real[]){0, 0, 0, 0}, 4, error));
    pthread_barrier_init(&start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, differentiate, &wrong), 0);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
    ck_assert_int_eq(wrong, 0);
    wf_registry_free(shared.registry);
}
END_TEST

WF_TEST_MAIN("readers", checkpoints_without_gradient, an_initialiser_resets_a_tape, a_tape_is_handed_to_another_thread,
             a_thread_that_has_ended, threads_get_the_bits_that_one_gets_alone)
