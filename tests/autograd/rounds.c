/* SPDX-License-Identifier: MIT */
/* Values that only products in bf16 read in their backward are kept in bf16 once they are released (wf_op.rounds): half the memory, the
 * same bits. */
#include <weft/gradcheck.h>
#include <weft/internal/ops_all.h>
#include <weft/internal/testing.h>

#include "ops_tools.h"

enum { ROWS = 96, WIDE = 64, HEADS = 4, LAYERS = 6 };

static bool releases; /* whether the functions below release what they make */

static void done(wf_tensor *x)
{
    if (releases)
        wf_release(x);
}

/* --- the ops --------------------------------------------------------------------------------------------------------- */

START_TEST(ops_that_round)
{
    for (int isa = 0; isa < ISAS; isa++) {
        int found = 0;
        for (int i = 0; isa_used(isa) && i < wf_op_count(); i++)
            if (wf_op_at(i)->rounds) {
                found++;
                ck_ok(wf_check_op(wf_op_at(i), NULL, error));
            }
        ck_assert(!isa_used(isa) || found == 7); /* linear, its cross-entropy, attention, relu, relu_dropout, lstm, gru */
    }
}
END_TEST

static wf_status cube_shape(wf_call *c)
{
    c->out[0] = wf_call_like(c, &c->in[0]);
    return WF_OK;
}

static wf_status cube_forward(wf_call *c)
{
    const wf_array x = wf_call_contiguous(c, &c->in[0]);
    for (int64_t i = 0; i < wf_array_count(&x); i++)
        ((wf_real *)c->out[0].data)[i] = ((const wf_real *)x.data)[i] * ((const wf_real *)x.data)[i] * ((const wf_real *)x.data)[i];
    return WF_OK;
}

/* Takes x in bf16 although it is no operand of a product. */
static wf_status cube_backward(wf_call *c)
{
    const wf_array x = wf_call_contiguous(c, &c->in[0]), dy = wf_call_contiguous(c, &c->dout[0]);
    wf_array dx = wf_grad_new(c, 0);
    for (int64_t i = 0; i < wf_array_count(&x); i++) {
        wf_real value = 0;
        wf_convert(WF_REAL, &value, x.dtype, (const char *)x.data + i * (int64_t)wf_dtype_size(x.dtype), 1);
        ((wf_real *)dx.data)[i] = 3 * value * value * ((const wf_real *)dy.data)[i];
    }
    wf_grad_give(c, 0, &dx);
    return WF_OK;
}

START_TEST(a_wrong_descriptor)
{
    static const struct wf_case cases[] = {{.in = {{2, 3}}}};
    wf_op op = {.name = "cube", .reads = WF_READS_INPUT(0), .shape = cube_shape, .forward = cube_forward, .backward = cube_backward};
    op.cases = (struct wf_cases){cases, 1};
    ck_ok(wf_check_op(&op, NULL, error));
    op.rounds = WF_READS_INPUT(0);
    ck_fails(wf_check_op(&op, NULL, error), WF_ERR_NUMERIC, "other bits if backward gets the values of .rounds in bf16");
}
END_TEST

/* --- functions of a model ---------------------------------------------------------------------------------------------- */

/* up, GELU, down: its result is new, so the caller may release it. */
static wf_tensor *feed_forward(void *ctx, wf_tensor *x)
{
    wf_tensor **w = ctx;
    wf_tensor *up = wf_linear(x, w[0], NULL), *h = wf_gelu(up);
    done(up);
    wf_tensor *y = wf_linear(h, w[1], NULL);
    done(h);
    return y;
}

static wf_tensor *with_relu(void *ctx, wf_tensor *x)
{
    wf_tensor **w = ctx;
    wf_tensor *up = wf_linear(x, w[0], NULL), *h = wf_relu_dropout(up, 0.25);
    done(up);
    wf_tensor *h2 = wf_relu(h), *y = wf_linear(h2, w[1], NULL);
    done(h);
    done(h2);
    return y;
}

/* q, k and v are views of one tensor. */
static wf_tensor *attend(void *ctx, wf_tensor *x)
{
    wf_tensor **w = ctx;
    wf_tensor *qkv = wf_linear(x, w[0], NULL), *part[3];
    for (int i = 0; i < 3; i++)
        part[i] = wf_slice(qkv, -1, i * WIDE, WIDE);
    wf_tensor *heads = wf_attention(part[0], part[1], part[2], .heads = HEADS, .causal = true);
    done(qkv);
    wf_tensor *y = wf_linear(heads, w[1], NULL);
    done(heads);
    return y;
}

/* A tensor that a product and another op read stays as it is. */
static wf_tensor *read_twice(void *ctx, wf_tensor *x)
{
    wf_tensor **w = ctx;
    wf_tensor *up = wf_linear(x, w[0], NULL), *h = wf_gelu(up), *y = wf_linear(h, w[1], NULL), *s = wf_linear(wf_square(h), w[1], NULL);
    done(up);
    done(h);
    return wf_add(y, s);
}

static wf_tensor *checkpointed(void *ctx, wf_tensor *x)
{
    wf_tensor *h = wf_checkpoint(feed_forward, ctx, x), *y = wf_checkpoint(attend, (wf_tensor **)ctx + 2, h);
    done(h);
    return y;
}

/* The function reads a tensor that was made before it, and released after it. */
static wf_tensor *reads_outside(void *ctx, wf_tensor *x)
{
    wf_tensor **weight_and_h = ctx;
    return wf_add(wf_linear(weight_and_h[1], weight_and_h[0], NULL), wf_linear(x, weight_and_h[0], NULL));
}

static wf_tensor *outside(void *ctx, wf_tensor *x)
{
    wf_tensor **w = ctx, **weight_and_h = wf_tape_memory(tape, 2 * sizeof *w);
    wf_tensor *h = wf_gelu(x);
    weight_and_h[0] = w[0];
    weight_and_h[1] = h;
    wf_tensor *early = wf_linear(h, w[0], NULL), *late = wf_checkpoint(reads_outside, weight_and_h, x);
    done(h);
    return wf_add(early, late);
}

typedef wf_tensor *function_of(void *ctx, wf_tensor *x);

/* Runs f LAYERS times in bf16, first on x [2, ROWS, WIDE]. Returns a hash of the result and of all gradients, and the bytes in use after
 * the forward. */
static uint64_t run(function_of *f, int64_t middle, bool release, int backwards, size_t *used)
{
    begin_bf16(WF_TRAIN);
    releases = release;
    wf_tensor *x = normal(1, WF_SHAPE(2, ROWS, WIDE)), *y = wf_keep(wf_scale(x, 1)), *given[4], *w[4];
    for (int i = 0; i < 4; i++) {
        given[i] = i == 0   ? normal(10, WF_SHAPE(middle, WIDE))
                   : i == 1 ? normal(11, WF_SHAPE(WIDE, f == attend ? WIDE : middle))
                   : i == 2 ? normal(12, WF_SHAPE(3 * WIDE, WIDE))
                            : normal(13, WF_SHAPE(WIDE, WIDE));
        w[i] = wf_keep(wf_scale(given[i], 0.2));
    }
    for (int i = 0; i < LAYERS; i++) {
        wf_tensor *before = y;
        y = f(w, y);
        done(before);
    }
    *used = wf_tape_stats(tape).used;
    wf_tensor *loss = wf_sum(wf_square(wf_keep(y)));
    for (int i = 0; i < backwards; i++)
        ran(wf_backward(loss, .retain = i + 1 < backwards));
    uint64_t hash = hash_of_gradient(hash_of_value(HASH, y), x);
    for (int i = 0; i < (f == checkpointed ? 4 : f == outside ? 1 : 2); i++)
        hash = hash_of_gradient(hash, given[i]);
    return hash;
}

/* `per_layer`: elements of a row that a layer keeps in bf16. The last reals that were released are still the tape's. */
static void same_in_less(const char *what, function_of *f, int64_t middle, int64_t per_layer)
{
    const size_t saved = (size_t)(LAYERS - 3) * 2 * ROWS * (size_t)per_layer * sizeof(wf_real) / 2;
    size_t kept, released;
    for (int backwards = 1; backwards <= 2; backwards++) {
        const uint64_t expected = run(f, middle, false, backwards, &kept);
        ck_assert_msg(run(f, middle, true, backwards, &released) == expected, "%s: other bits", what);
    }
    ck_assert_msg(released + saved <= kept, "%s: %zu bytes in use, %zu without wf_release", what, released, kept);
}

START_TEST(the_same_bits)
{
    for (int isa = 0; isa < ISAS; isa++) {
        if (!isa_used(isa) || (!thorough() && strcmp(wf_isa(), "base") == 0)) /* slow; what is released depends on no set */
            continue;
        same_in_less("gelu", feed_forward, 4 * WIDE, 5 * WIDE);
        same_in_less("relu", with_relu, 4 * WIDE, 9 * WIDE);
        same_in_less("attention", attend, 3 * WIDE, 4 * WIDE);
        same_in_less("two readers", read_twice, 2 * WIDE, 0);
        same_in_less("checkpoints", checkpointed, 2 * WIDE, 0);
        same_in_less("outside a checkpoint", outside, WIDE, 0);
    }
}
END_TEST

/* --- corners --------------------------------------------------------------------------------------------------------- */

/* wf_relu's backward asks where the result is positive: a denormal, which products take for 0, stays positive. */
START_TEST(denormals)
{
    enum { N = 2048, SMALL = 4 };
    static const wf_real small[SMALL] = {1e-40f, -1e-40f, 0, 1.1e-38f};
    static wf_real x[N], w[N];
    wf_real *gradient[2];
    for (int i = 0; i < N; i++) {
        x[i] = small[i % SMALL];
        w[i] = 1;
    }
    for (int release = 0; release < 2; release++) {
        begin_bf16(WF_GRADIENTS);
        wf_tensor *given_x = given(x, WF_SHAPE(1, N)), *h = wf_relu(given_x), *y = wf_linear(h, given(w, WF_SHAPE(1, N)), NULL);
        if (release)
            wf_release(h);
        ran(wf_backward(wf_sum(y)));
        gradient[release] = gradient_of(given_x);
    }
    for (int i = 0; i < N; i++) {
        ck_assert_double_eq((double)gradient[0][i], small[i % SMALL] > 0);
        ck_assert_double_eq((double)gradient[1][i], (double)gradient[0][i]);
    }
    free(gradient[0]);
    free(gradient[1]);
}
END_TEST

/* A release must not change whether a program works: each case does in bf16 what it does in f32. */
static void begin_in(bool bf16)
{
    begin(WF_GRADIENTS);
    if (bf16)
        begin_bf16(WF_GRADIENTS);
}

static wf_tensor *releases_what_it_got(void *ctx, wf_tensor *x)
{
    wf_tensor *sum = wf_add(ctx, x);
    wf_release(ctx);
    return wf_scale(sum, 2);
}

START_TEST(as_in_float)
{
    for (int bf16 = 0; bf16 < 2; bf16++) {
        /* without memory for the smaller copy the value stays */
        begin_in(bf16);
        wf_tensor *x = normal(1, WF_SHAPE(4096, 256)), *h = wf_gelu(x), *w = normal(2, WF_SHAPE(4, 256)), *y = wf_linear(h, w, NULL);
        wf_alloc_fail_after(0);
        wf_release(h);
        wf_alloc_fail_after(-1);
        ran(wf_backward(wf_sum(y)));

        /* a function of a checkpoint that releases a tensor from outside, which the record of the checkpoint reads later */
        begin_in(bf16);
        x = normal(1, WF_SHAPE(ROWS, WIDE)), h = wf_gelu(x);
        y = wf_linear(h, normal(2, WF_SHAPE(WIDE, WIDE)), NULL);
        wf_tensor *z = wf_checkpoint(releases_what_it_got, h, y);
        ran(wf_backward(wf_sum(z)));

        /* a loop without gradients between a record and its backward */
        begin_in(bf16);
        x = normal(1, WF_SHAPE(ROWS, WIDE)), h = wf_gelu(x);
        y = wf_linear(h, normal(2, WF_SHAPE(WIDE, WIDE)), NULL);
        wf_tape_no_grad(tape, true);
        const wf_tape_mark mark = wf_tape_here(tape);
        wf_release(h);
        wf_exp(y);
        wf_tape_rewind(tape, mark, NULL);
        wf_tape_no_grad(tape, false);
        ran(wf_backward(wf_sum(y)));

        /* a bool that a descriptor names by mistake */
        static const struct wf_case none[1];
        const wf_op op = {.name = "cube",
                          .shape = cube_shape,
                          .forward = cube_forward,
                          .backward = cube_backward,
                          .cases = {none, 0},
                          .reads = WF_READS_INPUT(0) | WF_READS_INPUT(1),
                          .rounds = WF_READS_INPUT(1)};
        begin_in(bf16);
        x = normal(1, WF_SHAPE(ROWS, WIDE)), h = wf_gt_constant(x, 0);
        y = wf_apply(&op, NULL, 2, (wf_tensor *[]){x, h});
        wf_release(h);
        ran(wf_backward(wf_sum(y)));
    }
}
END_TEST

/* Layers of falling widths: a buffer of one width serves the next. */
START_TEST(many_widths)
{
    enum { MOST = 10 };
    static const int64_t wide[MOST] = {512, 448, 400, 352, 300, 264, 232, 200, 176, 152};
    size_t used[2];
    for (int release = 0; release < 2; release++) {
        begin_bf16(WF_GRADIENTS);
        wf_tensor *x = wf_scale(normal(1, WF_SHAPE(4 * ROWS, wide[0])), 1);
        for (int i = 1; i < MOST; i++) {
            wf_tensor *up = wf_linear(x, normal(10 + (uint64_t)i, WF_SHAPE(wide[i], wide[i - 1])), NULL), *h = wf_gelu(up);
            if (release) {
                wf_release(up);
                wf_release(x);
            }
            x = h;
        }
        used[release] = wf_tape_stats(tape).used;
    }
    ck_assert_msg(used[1] < used[0], "%zu bytes in use, %zu without wf_release", used[1], used[0]);
}
END_TEST

START_TEST(gradients_with_respect_to_some)
{
    uint64_t hash[2];
    for (int release = 0; release < 2; release++) {
        begin_bf16(WF_GRADIENTS);
        releases = release;
        wf_tensor *w[2] = {normal(2, WF_SHAPE(4 * WIDE, WIDE)), normal(3, WF_SHAPE(WIDE, 4 * WIDE))}, *g[2];
        wf_tensor *y = feed_forward(w, wf_scale(normal(1, WF_SHAPE(ROWS, WIDE)), 1));
        ran(wf_gradients(wf_sum(wf_square(y)), 2, w, g));
        hash[release] = hash_of_value(hash_of_value(HASH, g[0]), g[1]);
    }
    ck_assert_uint_eq(hash[0], hash[1]);
}
END_TEST

START_TEST(a_rewind_after_a_release)
{
    begin_bf16(WF_GRADIENTS);
    wf_tensor *h = wf_gelu(normal(1, WF_SHAPE(ROWS, WIDE))), *y = wf_linear(h, normal(2, WF_SHAPE(WIDE, WIDE)), NULL);
    const wf_tape_mark mark = wf_tape_here(tape);
    wf_release(h); /* makes the value in bf16, after the mark */
    ck_assert(!wf_is_poison(y));
    expect_error(wf_tape_rewind(tape, mark, NULL), WF_ERR_STATE, "wf_release");
}
END_TEST

/* A block of a model releases its norm's result after the sublayer, which in a generation has dropped it already. */
START_TEST(what_a_rewind_dropped)
{
    begin(WF_INFER);
    const wf_tape_mark mark = wf_tape_here(tape);
    wf_tensor *h = wf_gelu(normal(1, WF_SHAPE(4, 4)));
    wf_tape_rewind(tape, mark, NULL);
    wf_release(h);
    ck_assert_int_eq(wf_tape_error(tape)->code, WF_OK);
    expect_error(wf_exp(h), WF_ERR_STATE, "was dropped by wf_tape_rewind");
}
END_TEST

/* The second call of a function is refused what was released and made smaller. */
struct second_call {
    wf_tensor *h;
    int calls;
};
static wf_tensor *reads_in_its_second_call(void *ctx, wf_tensor *x)
{
    struct second_call *s = ctx;
    return s->calls++ ? wf_add(wf_exp(x), s->h) : wf_exp(x);
}

START_TEST(a_use_in_a_second_call)
{
    begin_bf16(WF_GRADIENTS);
    wf_tensor *x = normal(1, WF_SHAPE(ROWS, WIDE)), *h = wf_gelu(x);
    struct second_call s = {h, 0};
    wf_tensor *y = wf_linear(h, normal(2, WF_SHAPE(WIDE, WIDE)), NULL);
    wf_release(h);
    wf_tensor *z = wf_checkpoint(reads_in_its_second_call, &s, y);
    ck_assert_int_eq(wf_backward(wf_sum(z)), WF_ERR_STATE);
    ck_says(wf_tape_error(tape)->message, "was released with wf_release");
}
END_TEST

START_TEST(a_later_use)
{
    begin_bf16(WF_GRADIENTS);
    wf_tensor *h = wf_gelu(normal(1, WF_SHAPE(ROWS, WIDE))), *view = wf_slice(h, 0, 1, 2);
    wf_linear(h, normal(2, WF_SHAPE(WIDE, WIDE)), NULL);
    wf_release(h);
    expect_error(wf_exp(view), WF_ERR_STATE, "was released with wf_release");
}
END_TEST

WF_TEST_MAIN("rounds", ops_that_round, a_wrong_descriptor, the_same_bits, denormals, as_in_float, many_widths,
             gradients_with_respect_to_some, a_rewind_after_a_release, what_a_rewind_dropped, a_use_in_a_second_call, a_later_use)
