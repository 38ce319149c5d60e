/* SPDX-License-Identifier: MIT */
/* wf_check_module: right modules pass, wrong gradients of parameters are found and named. */
#include <weft/weft.h>

#include "nn_test.h"

enum { D = 8, T = 3, B = 2 };

struct block {
    struct wf_rms_norm norm;
    struct wf_mha attn;
    struct wf_ffn ffn;
    struct wf_embedding embed;
    wf_tensor *gain;
};

static void block_init(wf_scope s, struct block *b)
{
    wf_rms_norm_init(wf_sub(s, "norm"), &b->norm, D);
    wf_mha_init(wf_sub(s, "attn"), &b->attn, D, 2, .rope = true);
    wf_ffn_init(wf_sub(s, "ffn"), &b->ffn, D, 12, .activation = WF_SWIGLU);
    wf_embedding_init(wf_sub(s, "embed"), &b->embed, 5, D);
    b->gain = wf_parameter(s, "gain", WF_SHAPE(D), .init = {WF_INIT_NORMAL, 1});
}

static wf_tensor *block_forward(const struct block *b, wf_tensor *x)
{
    x = wf_mha_forward(&b->attn, wf_rms_norm_forward(&b->norm, x), .causal = true, .residual = x);
    return wf_ffn_forward(&b->ffn, x, .residual = x);
}

static wf_tensor *right(void *ctx, wf_tape *tape, wf_tensor *const in[])
{
    static const int32_t ids[] = {1, 4, 1, 0, 2, 2};
    const struct block *b = ctx;
    wf_tensor *x = wf_add(in[0], wf_embedding_forward(&b->embed, wf_ids(tape, ids, B, T)));
    return wf_mul(block_forward(b, x), b->gain);
}

/* y = x * w, with a gradient of w that is a thousandth too large. */
static wf_status shape(wf_call *c)
{
    c->out[0] = wf_call_like(c, &c->in[0]);
    return WF_OK;
}

static wf_status forward(wf_call *c)
{
    wf_array x = wf_call_contiguous(c, &c->in[0]), w = wf_call_contiguous(c, &c->in[1]);
    wf_real *y = c->out[0].data;
    for (int64_t i = 0, n = wf_array_count(&x); i < n; i++)
        y[i] = ((const wf_real *)x.data)[i] * ((const wf_real *)w.data)[i % D];
    return WF_OK;
}

static wf_status backward(wf_call *c)
{
    wf_array x = wf_call_contiguous(c, &c->in[0]), w = wf_call_contiguous(c, &c->in[1]), dy = wf_call_contiguous(c, &c->dout[0]);
    for (int k = 0; k < 2; k++) {
        if (!c->need[k])
            continue;
        wf_array d = wf_grad_new(c, k);
        wf_real *out = d.data;
        const int64_t n = wf_array_count(&x), m = wf_array_count(&d);
        for (int64_t i = 0; i < m; i++)
            out[i] = 0;
        for (int64_t i = 0; i < n; i++)
            out[i % m] +=
                ((const wf_real *)dy.data)[i] *
                (k == 0 ? ((const wf_real *)w.data)[i % D] : ((const wf_real *)x.data)[i] * (wf_real)(sizeof(wf_real) == 8 ? 1.001 : 1.3));
        wf_grad_give(c, k, &d);
    }
    return WF_OK;
}

static const wf_op op_wrong = {
    .name = "wrong", .shape = shape, .forward = forward, .backward = backward, .reads = WF_READS_INPUT(0) | WF_READS_INPUT(1)};

static wf_tensor *wrong(void *ctx, wf_tape *tape, wf_tensor *const in[])
{
    const struct block *b = ctx;
    (void)tape;
    return wf_apply(&op_wrong, NULL, 2, (wf_tensor *[]){block_forward(b, in[0]), b->gain});
}

/* Forgets that the result depends on the gain. */
static wf_tensor *detached(void *ctx, wf_tape *tape, wf_tensor *const in[])
{
    const struct block *b = ctx;
    (void)tape;
    return wf_mul(block_forward(b, in[0]), wf_detach(b->gain));
}

static wf_tensor *nothing(void *ctx, wf_tape *tape, wf_tensor *const in[])
{
    (void)ctx, (void)tape, (void)in;
    return NULL;
}

static wf_tensor *alone(void *ctx, wf_tape *tape, wf_tensor *const in[])
{
    const struct block *b = ctx;
    (void)tape, (void)in;
    return wf_exp(b->gain);
}

START_TEST(parameters_and_inputs)
{
    wf_registry *registry = new_registry();
    struct block b;
    const wf_shape in = {3, {B, T, D}};
    block_init(wf_root(registry), &b);
    ck_fails(wf_check_module(registry, right, &b, 1, &in, NULL, error), WF_ERR_STATE, "call wf_registry_build first");
    ck_ok(wf_registry_build(registry, 1, error));
    wf_real before[D], after[D];
    ck_read(b.gain, before, D);
    ck_ok(wf_check_module(registry, right, &b, 1, &in, NULL, error));
    ck_ok(wf_check_module(registry, alone, &b, 0, NULL, NULL, error));
    static const struct {
        wf_function fn;
        const char *part;
    } bad[] = {{wrong, "parameter 'gain': along"}, {detached, "parameter 'gain': along"}, {nothing, "NULL"}};
    for (int i = 0; i < 3; i++) {
        wf_error why = {0};
        ck_assert_msg(wf_check_module(registry, bad[i].fn, &b, i == 2 ? 0 : 1, &in, NULL, &why) != WF_OK, "%d passes", i);
        ck_says(why.message, bad[i].part);
    }
    ck_read(b.gain, after, D); /* as they were */
    ck_assert_mem_eq(before, after, sizeof before);
    wf_registry_freeze(registry, b.gain, true); /* a frozen parameter has no gradient to check */
    ck_ok(wf_registry_gradients(registry, error));
    ck_ok(wf_check_module(registry, wrong, &b, 1, &in, NULL, error));
    ck_assert_int_eq(wf_check_module(NULL, right, &b, 1, &in, NULL, NULL), WF_ERR_ARGUMENT);
    ck_assert_int_eq(wf_check_module(registry, NULL, &b, 1, &in, NULL, NULL), WF_ERR_ARGUMENT);
    ck_assert_int_eq(wf_check_module(registry, right, &b, 1, NULL, NULL, NULL), WF_ERR_ARGUMENT);
    ck_assert_int_eq(wf_check_module(registry, right, &b, -1, &in, NULL, NULL), WF_ERR_ARGUMENT);
    wf_registry_free(registry);
}
END_TEST

WF_TEST_MAIN("nn/check", parameters_and_inputs)
