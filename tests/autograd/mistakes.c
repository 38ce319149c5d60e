/* SPDX-License-Identifier: MIT */
/* Mistakes of programs, made through the public header. Each is refused by a message that names the call and its operands. */
#include <pthread.h>
#include <unistd.h>

#include <weft/weft.h>

#include "one_tape.h"

static void says(const wf_error *error, wf_status code, const char *part)
{
    ck_assert_int_eq(error->code, code);
    ck_says(error->message, part);
}

static wf_registry *one_parameter(wf_tensor **w, const char *name)
{
    wf_error error = {0};
    wf_registry *registry = wf_registry_new(&error);
    ck_assert_msg(registry != NULL, "%s", error.message);
    *w = wf_parameter(wf_root(registry), name, WF_SHAPE(2), .init = {WF_INIT_CONSTANT, 2});
    return registry;
}

static void *parameters_alone(void *ctx)
{
    wf_tensor *w = ctx;
    double value;
    wf_tensor *y = wf_mul(w, w);
    ck_assert(wf_is_poison(y));
    ck_assert_int_eq(wf_item(wf_sum(y), &value), WF_ERR_STATE);
    says(wf_tape_error(wf_tape_of(y)), WF_ERR_STATE,
         "mul('w'): an op on parameters alone needs a tape: call wf_tape_reset, or wf_tape_use");
    expect_error(wf_reshape(w, 1, 2), WF_ERR_STATE, "reshape('w'): an op on parameters alone");
    ck_assert_int_eq(wf_backward(w), WF_ERR_STATE);
    says(wf_tape_error(NULL), WF_ERR_STATE, "wf_backward('w')");
    expect_error(wf_detach(w), WF_ERR_STATE, "wf_detach('w')");
    return NULL;
}

START_TEST(an_expression_of_parameters_alone)
{
    wf_tensor *w;
    wf_registry *registry = one_parameter(&w, "w");
    ck_ok(wf_registry_build(registry, 1, error));
    parameters_alone(w);
    begin(WF_INFER); /* another thread's */
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, parameters_alone, w), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    double value;
    begin(WF_INFER);
    ran(wf_item(wf_sum(wf_mul(w, w)), &value));
    ck_assert_double_eq(value, 8);
    wf_registry_free(registry);
}
END_TEST

START_TEST(null_operands)
{
    begin(WF_INFER);
    wf_tensor *x = wf_zeros(tape, WF_SHAPE(2));
    wf_array view;
    expect_error(wf_mul(wf_name(x, "x"), NULL), WF_ERR_ARGUMENT, "mul(x [2], none): operand 2 is NULL");
    begin(WF_INFER);
    x = wf_name(wf_zeros(tape, WF_SHAPE(1)), "x");
    refused(wf_item(x, NULL), WF_ERR_ARGUMENT, "wf_item: the place for 'x' is NULL");
    begin(WF_INFER);
    x = wf_name(wf_zeros(tape, WF_SHAPE(1)), "x");
    refused(wf_view(x, NULL), WF_ERR_ARGUMENT, "wf_view: the place for the view of 'x' is NULL");
    ck_assert_int_eq(wf_grad(x, NULL), WF_ERR_ARGUMENT);
    ck_assert_int_eq(wf_grad(NULL, &view), WF_ERR_ARGUMENT);
}
END_TEST

/* Each call says so to wf_tape_error(NULL), and does nothing else. */
START_TEST(a_null_tape)
{
    const wf_real v[2] = {1, 2};
    const wf_array array = wf_array_contiguous((void *)v, WF_REAL, WF_SHAPE(2));
    struct wf_tape_mark mark = {{0}};
    wf_tape_reset(NULL, WF_TRAIN);
    says(wf_tape_error(NULL), WF_ERR_ARGUMENT, "wf_tape_reset: the tape is NULL: look at what wf_tape_new returned");
    expect_error(wf_input(NULL, v, WF_SHAPE(2), true), WF_ERR_ARGUMENT, "input: the tape is NULL");
    expect_error(wf_ids(NULL, (int32_t[]){1}, 1, 1), WF_ERR_ARGUMENT, "ids: the tape is NULL");
    expect_error(wf_bools(NULL, (bool[]){true}, WF_SHAPE(1)), WF_ERR_ARGUMENT, "bools: the tape is NULL");
    expect_error(wf_zeros(NULL, WF_SHAPE(2)), WF_ERR_ARGUMENT, "zeros: the tape is NULL");
    expect_error(wf_borrow(NULL, &array), WF_ERR_ARGUMENT, "wf_borrow: the tape is NULL");
    expect_error(wf_tape_rewind(NULL, mark, NULL), WF_ERR_ARGUMENT, "wf_tape_rewind: the tape is NULL");
    mark = wf_tape_here(NULL);
    says(wf_tape_error(NULL), WF_ERR_ARGUMENT, "wf_tape_here: the tape is NULL");
    wf_tape_first_row(NULL, 3);
    ck_assert(!wf_tape_no_grad(NULL, true));
    wf_tape_check_finite(NULL, true);
    wf_tape_cancel(NULL, NULL, NULL);
    ck_assert_int_eq(wf_tape_mode(NULL), WF_INFER);
    ck_assert_int_eq(wf_tape_stats(NULL).nodes, 0);
    ck_fails(wf_tape_status(NULL, error), WF_ERR_ARGUMENT, "wf_tape_stats: the tape is NULL");
    wf_tape_use(NULL);
    wf_tape_free(NULL);
    begin(WF_INFER);
    double value;
    expect_error(wf_add(wf_zeros(tape, WF_SHAPE(2)), wf_zeros(NULL, WF_SHAPE(2))), WF_ERR_STATE,
                 "add: an operand is the result of an op without a tape");
    ck_assert_int_eq(wf_item(wf_zeros(NULL, WF_SHAPE(1)), &value), WF_ERR_STATE);
}
END_TEST

/* Parameters that could not be declared are refused like others, even after their registry was freed. */
START_TEST(a_declaration_that_failed)
{
    wf_tensor *w, *refused[3];
    wf_registry *registry = one_parameter(&w, "w");
    refused[0] = wf_parameter(wf_root(registry), "w", WF_SHAPE(2));
    refused[1] = wf_parameter(wf_root(registry), "v", WF_SHAPE(0));
    refused[2] = wf_parameter(wf_sub(wf_root(registry), ""), "u", WF_SHAPE(2));
    says(wf_registry_error(registry), WF_ERR_ARGUMENT, "w: declared twice");
    begin(WF_INFER);
    for (int freed = 0; freed < 2; freed++) {
        for (int i = 0; i < 3; i++) {
            static const char *const name[] = {"'w'", "'v'", "'u'"};
            begin(WF_TRAIN);
            expect_error(wf_mul(wf_zeros(tape, WF_SHAPE(2)), refused[i]), WF_ERR_STATE,
                         freed ? "was freed: call wf_registry_free after the last use" : "has no value yet");
            says(wf_tape_error(tape), WF_ERR_STATE, name[i]);
        }
        if (!freed)
            wf_registry_free(registry);
    }
}
END_TEST

START_TEST(empty_names)
{
    for (int i = 0; i < 3; i++) {
        wf_registry *registry = wf_registry_new(NULL);
        wf_scope root = wf_sub(wf_root(registry), "model");
        wf_parameter(i == 0 ? wf_sub(root, "") : i == 1 ? wf_sub_at(root, "", 2) : root, i == 2 ? "" : "w", WF_SHAPE(2));
        static const char *const text[] = {"model.\"\".: a name of a scope or a parameter is empty", "model.\"\".2.: a name",
                                           "model.\"\": a name"};
        says(wf_registry_error(registry), WF_ERR_ARGUMENT, text[i]);
        ck_assert_int_eq(wf_registry_build(registry, 1, NULL), WF_ERR_ARGUMENT);
        wf_registry_free(registry);
    }
}
END_TEST

START_TEST(a_null_registry)
{
    struct wf_linear m;
    wf_linear_init(wf_sub_at(wf_sub(wf_with_init(wf_root(NULL), &(struct wf_init_rules){0}), "a"), "b", 1), &m, 3, 2);
    wf_scope_fail(wf_root(NULL), WF_ERR_ARGUMENT, "nothing");
    begin(WF_INFER);
    expect_error(wf_linear_forward(&m, wf_zeros(tape, WF_SHAPE(2, 3))), WF_ERR_STATE,
                 "linear: the parameter 'a parameter of a NULL registry' has no value");
    says(wf_registry_error(NULL), WF_ERR_ARGUMENT, "the registry is NULL: look at what wf_registry_new returned");
    ck_fails(wf_registry_build(NULL, 1, error), WF_ERR_ARGUMENT, "the registry is NULL");
    ck_assert_int_eq(wf_registry_gradients(NULL, NULL), WF_ERR_ARGUMENT);
    ck_fails(wf_registry_load(NULL, NULL, NULL, error), WF_ERR_ARGUMENT, "wf_registry_load: the registry is NULL");
    ck_fails_null(wf_grads_new(NULL, error), WF_ERR_ARGUMENT, "wf_grads_new: the registry is NULL");
    ck_assert(wf_registry_count(NULL) == 0 && wf_registry_parameters(NULL) == 0 && wf_registry_slab(NULL) == 0);
    ck_assert(!wf_registry_at(NULL, 0) && !wf_registry_find(NULL, "w") && !wf_registry_is_buffer(NULL, 0));
    ck_assert(!wf_registry_values(NULL) && !wf_registry_grads(NULL));
    wf_registry_freeze(NULL, m.weight, true);
    wf_registry_cancel(NULL, NULL, NULL);
    wf_registry_zero_grads(NULL);
    wf_registry_free(NULL);
}
END_TEST

/* The content of a struct that a program forgot to set to zero. */
START_TEST(an_error_that_was_not_set_to_zero)
{
    static const unsigned char rubbish[] = {0xff, 0xa5, 0x5a, 0x7f, 0x01};
    for (int i = 0; i < (int)sizeof rubbish; i++) {
        wf_error error;
        memset(&error, rubbish[i], sizeof error);
        ck_assert_int_eq(wf_registry_build(NULL, 1, &error), WF_ERR_ARGUMENT);
        says(&error, WF_ERR_ARGUMENT, "the registry is NULL");
        wf_error_prefix(&error, "here");
        says(&error, WF_ERR_ARGUMENT, "here: the registry is NULL");
        ck_assert_int_eq(wf_error_set(&error, WF_ERR_IO, "a second one"), WF_ERR_IO);
        says(&error, WF_ERR_ARGUMENT, "here: the registry is NULL"); /* the first error wins */
    }
    wf_error error;
    memset(&error, 0x03, sizeof error);
    error.code = WF_ERR_IO; /* a status by chance, but no line of text */
    ck_assert_int_eq(wf_registry_build(NULL, 1, &error), WF_ERR_ARGUMENT);
    says(&error, WF_ERR_ARGUMENT, "the registry is NULL");
}
END_TEST

/* Results of any size are refused. */
START_TEST(an_inner_tensor_after_backward)
{
    begin(WF_INFER);
    static wf_real data[64 * 64];
    double value;
    for (int n = 1; n <= 64; n *= 8)
        for (int kept = 0; kept < 2; kept++) {
            begin(WF_GRADIENTS);
            wf_tensor *x = wf_input(tape, data, WF_SHAPE(n, n), true), *h = wf_name(wf_gelu(x), "h"), *loss = wf_sum(wf_mul(h, h));
            if (kept)
                wf_keep(h);
            ran(wf_backward(loss));
            ran(wf_item(loss, &value));
            ran(wf_read(x, data, n * n));
            ck_assert_int_eq(wf_read(h, data, n * n), kept ? WF_OK : WF_ERR_STATE);
            if (!kept)
                says(wf_tape_error(tape), WF_ERR_STATE, "wf_read: the value of 'h' was released in wf_backward: call wf_keep on it before");
        }
}
END_TEST

START_TEST(a_registry_that_was_freed)
{
    begin(WF_INFER);
    wf_real out[2];
    for (int mode = WF_INFER; mode <= WF_GRADIENTS; mode++)
        for (int used = 0; used < 3; used++) { /* before; and a view of it */
            wf_tensor *w, *kept, *view = NULL;
            wf_registry *registry = one_parameter(&w, "gain");
            ck_ok(wf_registry_build(registry, 1, error));
            begin((wf_mode)mode);
            wf_tensor *x = wf_input(tape, (wf_real[]){1, 2}, WF_SHAPE(2), true), *y = used ? wf_sum(wf_mul(x, w)) : wf_sum(x);
            if (used == 2)
                view = wf_slice(w, 0, 0, 1);
            wf_registry_free(registry);
            registry = one_parameter(&kept, "other"); /* another one in its memory */
            ck_ok(wf_registry_build(registry, 1, error));
            expect_error(
                wf_mul(x, view ? view : w), WF_ERR_STATE,
                view ? "mul: an operand is of a registry that was freed during this pass"
                     : "mul: the registry of the parameter 'gain' was freed: call wf_registry_free after the last use of its parameters");
            ck_assert_int_ne(wf_backward(y), WF_OK);
            begin((wf_mode)mode);
            refused(wf_read(w, out, 2), WF_ERR_STATE, "wf_read: the registry of the parameter 'gain' was freed");
            wf_registry_free(registry);
        }
    /* A backward over a record that read it. */
    wf_tensor *w;
    wf_registry *registry = one_parameter(&w, "gain");
    ck_ok(wf_registry_build(registry, 1, error));
    begin(WF_TRAIN);
    wf_tensor *y = wf_sum(wf_mul(w, w));
    wf_registry_free(registry);
    refused(wf_backward(y), WF_ERR_STATE, "wf_backward: a registry whose parameters this pass has read was freed");
}
END_TEST

START_TEST(two_builds)
{
    ck_fails_null(wf_tape_new_abi(WF_ABI ^ 12, error), WF_ERR_ARGUMENT, "the program was compiled for Weft");
    ck_fails_null(wf_registry_new_abi(WF_ABI ^ 12, error), WF_ERR_ARGUMENT,
                  "the program was compiled for another version or precision of Weft than the library");
}
END_TEST

/* --- another thread reads the parameters --------------------------------------------------------------------------- */

static struct reader {
    pthread_barrier_t barrier;
    wf_tensor *w;
} reader;

static void *reads_in_a_pass(void *ctx)
{
    (void)ctx;
    wf_tape *its = new_tape();
    double value;
    wf_tape_reset(its, WF_INFER);
    wf_tensor *y = wf_sum(wf_mul(reader.w, reader.w));
    pthread_barrier_wait(&reader.barrier); /* in a pass */
    pthread_barrier_wait(&reader.barrier);
    ran(wf_item(y, &value));
    ck_assert_double_eq(value, 8);
    wf_tape_reset(its, WF_INFER);
    pthread_barrier_wait(&reader.barrier); /* in none */
    pthread_barrier_wait(&reader.barrier);
    ran(wf_item(wf_sum(wf_mul(reader.w, reader.w)), &value));
    ck_assert_double_eq(value, 18);
    wf_tape_free(its);
    return NULL;
}

START_TEST(values_that_another_thread_reads)
{
    wf_registry *registry = one_parameter(&reader.w, "w");
    ck_ok(wf_registry_build(registry, 1, error));
    char folder[] = "/tmp/weft-mistakes-XXXXXX", path[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/w.safetensors", folder);
    wf_safetensors_writer *writer = wf_safetensors_writer_new();
    wf_registry_save(registry, writer, NULL);
    ck_ok(wf_safetensors_commit(writer, path, error));
    wf_error problem = {0};
    wf_safetensors *file = wf_safetensors_open(path, &problem);
    ck_assert_ptr_nonnull(file);
    pthread_barrier_init(&reader.barrier, NULL, 2);
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, reads_in_a_pass, NULL), 0);
    pthread_barrier_wait(&reader.barrier);
    ck_fails(wf_parameter_set(reader.w, (wf_real[]){3, 3}, 2, error), WF_ERR_BUSY,
             "wf_parameter_set: a tape of another thread is in a pass that reads these parameters: reset or free it first");
    ck_fails(wf_registry_load(registry, file, NULL, error), WF_ERR_BUSY, "wf_registry_load: a tape of another thread");
    ck_assert_int_eq(wf_registry_build(registry, 2, NULL), WF_ERR_BUSY);
    wf_registry_freeze(registry, reader.w, true); /* changes nothing that inference reads */
    wf_registry_freeze(registry, reader.w, false);
    pthread_barrier_wait(&reader.barrier);
    pthread_barrier_wait(&reader.barrier);
    wf_tape *own = new_tape(); /* this thread's passes do not hinder it */
    wf_tensor *y = wf_mul(reader.w, reader.w);
    ck_assert(!wf_is_poison(y));
    ck_ok(wf_registry_load(registry, file, NULL, error));
    ck_ok(wf_parameter_set(reader.w, (wf_real[]){3, 3}, 2, error));
    pthread_barrier_wait(&reader.barrier);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_ok(wf_parameter_set(reader.w, (wf_real[]){4, 4}, 2, error)); /* its tape is freed */
    wf_safetensors_close(file);
    unlink(path);
    ck_assert_int_eq(rmdir(folder), 0);
    wf_tape_free(own);
    wf_registry_free(registry);
}
END_TEST

WF_TEST_MAIN("mistakes", a_declaration_that_failed, empty_names, an_expression_of_parameters_alone, null_operands, a_null_tape,
             a_null_registry, an_error_that_was_not_set_to_zero, an_inner_tensor_after_backward, a_registry_that_was_freed, two_builds,
             values_that_another_thread_reads)
