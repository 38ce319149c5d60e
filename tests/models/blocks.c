/* SPDX-License-Identifier: MIT */
/* The loop over blocks: the arguments of each, and the memory of a pass without gradients. */
#include <weft/blocks.h>

#include "models_test.h"

enum { BLOCKS = 6, B = 2, T = 16, D = 16 };
struct block {
    struct wf_rms_norm norm1, norm2;
    struct wf_mha attn;
    struct wf_ffn ffn;
};
static struct stack {
    wf_registry *registry;
    struct block block[BLOCKS];
    wf_real x[B * T * D];
} stack;

static void make(void)
{
    wf_error error = {0};
    stack.registry = wf_registry_new(&error);
    for (int i = 0; i < BLOCKS; i++) {
        wf_scope s = wf_sub_at(wf_root(stack.registry), "blocks", i);
        wf_rms_norm_init(wf_sub(s, "norm1"), &stack.block[i].norm1, D);
        wf_rms_norm_init(wf_sub(s, "norm2"), &stack.block[i].norm2, D);
        wf_mha_init(wf_sub(s, "attn"), &stack.block[i].attn, D, 2, .rope = true);
        wf_ffn_init(wf_sub(s, "ffn"), &stack.block[i].ffn, D, 4 * D);
    }
    ck_assert_int_eq(wf_registry_build(stack.registry, 1, &error), WF_OK);
    wf_rng rng = wf_rng_new(1, 2);
    for (int i = 0; i < B * T * D; i++)
        stack.x[i] = (wf_real)wf_rng_uniform(&rng) - (wf_real)0.5;
}

static wf_tensor *input(wf_tape *tape)
{
    return wf_input(tape, stack.x, WF_SHAPE(B, T, D), false);
}

static wf_tensor *pre(const void *block, wf_tensor *x, const struct wf_block_call *call)
{
    const struct block *b = block;
    x = wf_mha_forward(&b->attn, wf_rms_norm_forward(&b->norm1, x), .causal = true, .cache = call->cache, .weights = call->weights,
                       .residual = x);
    return wf_ffn_forward(&b->ffn, wf_rms_norm_forward(&b->norm2, x), .residual = x);
}

static wf_tensor *post(const void *block, wf_tensor *x, const struct wf_block_call *call)
{
    const struct block *b = block;
    x = wf_rms_norm_forward(&b->norm1, wf_mha_forward(&b->attn, x, .weights = call->weights, .residual = x));
    return wf_rms_norm_forward(&b->norm2, wf_ffn_forward(&b->ffn, x, .residual = x));
}

/* A block whose first tensor is read after its sublayers, and whose result is not contiguous. */
static wf_tensor *reads_back(const void *block, wf_tensor *x, const struct wf_block_call *call)
{
    wf_tensor *early = wf_tanh(x), *y = wf_add(pre(block, x, call), early);
    return wf_transpose(wf_contiguous(wf_transpose(y, 0, 1)), 0, 1);
}

static wf_block_forward *const forwards[] = {pre, post, reads_back};

static void loop(wf_block_forward *forward, wf_real *out)
{
    wf_tape *tape = new_tape();
    wf_tape_reset(tape, WF_INFER);
    wf_tensor *x = input(tape);
    for (int i = 0; i < BLOCKS; i++)
        x = forward(&stack.block[i], x, &(struct wf_block_call){.index = i});
    read_values(x, out, B * T * D);
    wf_tape_free(tape);
}

/* The peak of a pass over the first `count` blocks. */
static size_t peak_of(wf_block_forward *forward, int count, bool since, wf_real *out)
{
    wf_tape *tape = new_tape();
    wf_tape_reset(tape, WF_INFER);
    const wf_tape_mark start = since ? wf_tape_here(tape) : (wf_tape_mark){0};
    wf_tensor *x = wf_blocks_forward(stack.block, count, forward, input(tape), .since = start);
    read_values(x, out, B * T * D);
    const size_t peak = wf_tape_stats(tape).peak;
    wf_tape_free(tape);
    return peak;
}

START_TEST(inference_drops_what_a_block_made)
{
    static wf_real want[B * T * D], have[B * T * D];
    make();
    for (int f = 0; f < 3; f++) {
        loop(forwards[f], want);
        const size_t few = peak_of(forwards[f], 2, false, have), many = peak_of(forwards[f], BLOCKS, false, have);
        ck_assert_msg(many <= few, "%d: %zu bytes with %d blocks, %zu with 2", f, many, BLOCKS, few);
        ck_assert_mem_eq(have, want, sizeof have);
        if (forwards[f] == reads_back)
            continue;
        const size_t chain = peak_of(forwards[f], BLOCKS, true, have);
        ck_assert_msg(chain + D * T * B * sizeof(wf_real) <= many, "%d: %zu bytes by sublayers, %zu by blocks", f, chain, many);
        ck_assert_mem_eq(have, want, sizeof have);
    }
    wf_registry_free(stack.registry);
}
END_TEST

/* --- slots -------------------------------------------------------------------------------------------------------- */

struct seen {
    int calls;
    wf_tensor *inner[BLOCKS];
};

static wf_tensor *look(const void *block, wf_tensor *x, const struct wf_block_call *call)
{
    struct seen *seen = *(struct seen *const *)call->ctx;
    ck_assert_ptr_eq(block, &stack.block[seen->calls]);
    ck_assert_int_eq(call->index, seen->calls);
    seen->inner[seen->calls++] = x = pre(block, x, call);
    return wf_scale(x, 2);
}

START_TEST(each_block_gets_its_slots)
{
    wf_error error = {0};
    wf_tensor *weights[BLOCKS] = {0};
    struct seen seen = {0}, *at = &seen;
    struct wf_cache cache;
    static wf_real want[B * T * D], have[B * T * D];
    make();
    wf_tape *tape = new_tape();
    wf_tape_reset(tape, WF_INFER);
    wf_tensor *y = wf_blocks_forward(stack.block, BLOCKS, look, input(tape), .weights = weights, .ctx = &at);
    read_values(y, want, B * T * D);
    ck_assert_int_eq(seen.calls, BLOCKS);
    for (int i = 0; i < BLOCKS; i++) /* weights and .inner are all there */
        ck_assert(wf_ndim(weights[i]) == 4 && wf_read(seen.inner[i], have, B * T * D) == WF_OK);
    seen.calls = 0;
    y = wf_blocks_forward(stack.block, BLOCKS, look, input(tape), .ctx = &at, .keep = true);
    for (int i = 0; i < BLOCKS; i++)
        read_values(seen.inner[i], have, B * T * D);
    /* in two halves through a cache */
    ck_assert_int_eq(wf_cache_init(&cache, BLOCKS, B, T, D, D, &error), WF_OK);
    for (int half = 0; half < 2; half++) {
        seen.calls = 0;
        y = wf_contiguous(wf_slice(input(tape), 1, half * T / 2, T / 2));
        y = wf_blocks_forward(stack.block, BLOCKS, look, y, .cache = &cache, .ctx = &at);
        wf_cache_advance(&cache, T / 2);
        read_values(y, have, B * T / 2 * D);
        for (int b = 0; b < B; b++)
            ck_assert_mem_eq(have + b * T / 2 * D, want + (b * T + half * T / 2) * D, T / 2 * D * sizeof *have);
    }
    cache.layers = BLOCKS - 1;
    y = wf_blocks_forward(stack.block, BLOCKS, pre, input(tape), .cache = &cache);
    ck_assert(wf_is_poison(y));
    ck_assert_str_eq(wf_tape_error(tape)->message, "wf_blocks_forward: the cache has 5 layers, but there are 6 blocks");
    cache.layers = BLOCKS;
    wf_cache_free(&cache);
    wf_tape_free(tape);
    wf_registry_free(stack.registry);
}
END_TEST

WF_TEST_MAIN("blocks", inference_drops_what_a_block_made, each_block_gets_its_slots)
