/* SPDX-License-Identifier: MIT */
/* The parameters of tests of wf_checkpoint, and the numbers of a pass that are compared. */
#ifndef TESTS_CHECKPOINT_TEST_H
#define TESTS_CHECKPOINT_TEST_H

#include <weft/op.h>

#include "one_registry.h"

enum { BATCH = 2, T = 24, D = 48, LAYERS = 12, GROUP = 4 };

struct block {
    struct wf_rms_norm norm1, norm2;
    struct wf_mha attn;
    struct wf_ffn ffn;
};

static struct block block[LAYERS];
static wf_tensor *gain, *unused;
static wf_real values[BATCH * T * D];

static inline void declare(wf_scope root)
{
    for (int i = 0; i < LAYERS; i++) {
        wf_scope s = wf_sub_at(root, "block", i);
        wf_rms_norm_init(wf_sub(s, "norm1"), &block[i].norm1, D);
        wf_mha_init(wf_sub(s, "attn"), &block[i].attn, D, 4, .kv_heads = 2, .dropout = 0.1, .residual_dropout = 0.1);
        wf_rms_norm_init(wf_sub(s, "norm2"), &block[i].norm2, D);
        wf_ffn_init(wf_sub(s, "ffn"), &block[i].ffn, D, 4 * D, .activation = i % 2 ? WF_SWIGLU : WF_GELU, .dropout = 0.2);
    }
    gain = wf_parameter(root, "gain", WF_SHAPE(D), .init = {WF_INIT_NORMAL, 1});
    unused = wf_parameter(root, "unused", WF_SHAPE(2));
    normal_numbers(values, BATCH * T * D);
}

static inline wf_tensor *input(bool needs_grad)
{
    return wf_input(tape, values, WF_SHAPE(BATCH, T, D), needs_grad);
}

static inline wf_tensor *loss_of(wf_tensor *x)
{
    return wf_mean(wf_mul(wf_mul(x, gain), x));
}

/* All gradients of parameters, that of the input, and the loss. */
struct numbers {
    wf_real *g;
    int64_t count;
};
static inline struct numbers numbers(wf_tensor *x, wf_tensor *loss)
{
    const wf_grads *grads = wf_registry_grads(registry);
    struct numbers n = {.count = grads->count + BATCH * T * D + 1};
    n.g = calloc((size_t)n.count, sizeof *n.g);
    for (int i = 0; i < grads->parameters; i++)
        if (grads->valid[i])
            memcpy(n.g + grads->place[i].offset, grads->slab + grads->place[i].offset, (size_t)grads->place[i].count * sizeof *n.g);
    wf_array g;
    double value;
    ran(wf_grad(x, &g));
    ck_assert(wf_array_is_contiguous(&g));
    memcpy(n.g + grads->count, g.data, BATCH * T * D * sizeof *n.g);
    ran(wf_item(loss, &value));
    n.g[n.count - 1] = (wf_real)value;
    return n;
}

static inline void same_bits(struct numbers *have, const struct numbers *want, const char *what)
{
    ck_assert_int_eq(have->count, want->count);
    ck_assert_msg(memcmp(have->g, want->g, (size_t)want->count * sizeof *want->g) == 0, "%s", what);
    free(have->g);
    have->g = NULL;
}

#endif
