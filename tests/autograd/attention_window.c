/* SPDX-License-Identifier: MIT */
/* Sliding windows have the bits of the equivalent mask, in values, weights and gradients. Further: dirt outside the window, any number of
 * threads, windows without effect, and memory. Against PyTorch: tests/nn/attention.c. */
#include "attention_runs.h"

static struct result run(const struct sizes *s, struct wf_attention_options o, const bool *mask, bool weights)
{
    return run_with(s, o, NULL, mask, WF_SHAPE(s->B, 1, s->T, s->S), false, weights);
}

/* Query t of sequence b is at position starts[b] + t, or S - T + t without starts. */
static bool *band(const struct sizes *s, int64_t window, bool causal, const int32_t *starts)
{
    bool *mask = malloc((size_t)(s->B * s->T * s->S));
    for (int64_t i = 0; i < s->B * s->T * s->S; i++) {
        int64_t p = (starts ? starts[i / s->S / s->T] : s->S - s->T) + i / s->S % s->T, k = i % s->S;
        mask[i] = k > p - window && (causal ? k <= p : k < p + window);
    }
    return mask;
}

START_TEST(equals_a_mask)
{
    static const struct sizes shapes[] = {{1, 300, 300, 2, 1, 8, 8}, {2, 65, 65, 2, 2, 20, 7},  {1, 33, 200, 1, 1, 16, 16},
                                          {1, 200, 90, 2, 2, 5, 5},  {2, 6, 150, 4, 2, 16, 16}, {1, 1, 1, 1, 1, 3, 3}};
    static const int64_t windows[] = {1, 2, 15, 16, 17, 33, 64, 100, 128};
    static const int32_t starts[] = {7, 3};
    for (int isa = 0; isa < ISAS; isa++) {
        if (!isa_used(isa))
            continue;
        begin(WF_TRAIN);
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            for (size_t j = 0; j < sizeof windows / sizeof *windows; j++) {
                const struct sizes *s = &shapes[i];
                const bool causal = (i + j) % 3 > 0;
                const int32_t *from = s->B == 2 && j % 2 ? starts : NULL, *lengths = s->B == 2 && j % 3 == 0 ? I32(60, 5) : NULL;
                bool *mask = band(s, windows[j], causal, from);
                struct wf_attention_options o = {.key_lengths = lengths, .dropout = j % 4 == 1 ? 0.3 : 0}, w = o;
                w.window = windows[j];
                w.causal = causal;
                w.starts = from;
                char what[128];
                snprintf(what, sizeof what, "%s, shape %d, window %d, causal %d", wf_isa(), (int)i, (int)windows[j], causal);
                same_and_free(run(s, w, NULL, true), run(s, o, mask, true), what);
                same_and_free(run(s, w, NULL, false), run(s, o, mask, false), what);
                free(mask);
            }
    }
}
END_TEST

/* The window and a mask of the caller both hold. */
START_TEST(and_a_mask)
{
    const struct sizes s = {2, 130, 130, 2, 2, 8, 8};
    begin(WF_TRAIN);
    bool *mask = band(&s, 20, true, NULL), *own = malloc((size_t)(s.B * s.T * s.S));
    for (int64_t i = 0; i < s.B * s.T * s.S; i++) {
        own[i] = i % 7 != 3 && (i / s.S) % 40 != 11;
        mask[i] = mask[i] && own[i];
    }
    same_and_free(run(&s, (struct wf_attention_options){.causal = true, .window = 20}, own, true),
                  run(&s, (struct wf_attention_options){0}, mask, true), "with a mask");
    free(mask);
    free(own);
}
END_TEST

START_TEST(no_limit_no_difference)
{
    const struct sizes s = {2, 150, 150, 4, 2, 8, 8};
    begin(WF_TRAIN);
    static const int64_t windows[] = {150, 151, 1000, INT64_MAX};
    for (int i = 0; i < 4; i++)
        for (int causal = 0; causal < 2; causal++)
            same_and_free(run(&s, (struct wf_attention_options){.causal = causal, .window = windows[i]}, NULL, true),
                          run(&s, (struct wf_attention_options){.causal = causal}, NULL, true), "no limit");
}
END_TEST

/* Keys outside the window have no effect, even if they are NaN. */
START_TEST(dirt_outside)
{
    enum { T = 100, D = 8, W = 20 };
    wf_real x[T * D], clean[2][D];
    wf_fill_normal(x, T * D, 0, 1, 5, 6);
    begin(WF_INFER);
    for (int dirty = 0; dirty < 2; dirty++) {
        for (int i = 0; dirty && i < (T - W) * D; i++)
            x[i] = i % 3 ? NAN : INFINITY;
        for (int few = 0; few < 2; few++) { /* the layouts for few queries and for many */
            wf_tensor *in = wf_input(tape, x, WF_SHAPE(1, T, D), false), *q = wf_slice(in, 1, T - (few ? 1 : W), few ? 1 : W);
            wf_real *y = value_of(wf_attention(q, in, in, .causal = true, .window = W));
            const wf_real *last = y + (few ? 0 : (W - 1) * D);
            if (!dirty)
                memcpy(clean[few], last, sizeof clean[few]);
            ck_assert_mem_eq(clean[few], last, sizeof clean[few]);
            free(y);
        }
    }
    ck_assert_mem_eq(clean[0], clean[1], sizeof clean[0]);
}
END_TEST

START_TEST(same_bits_on_any_threads)
{
    static const struct sizes shapes[] = {{1, 700, 700, 3, 3, 16, 16}, {1, 700, 700, 3, 3, 8, 5}, {1, 700, 700, 3, 1, 8, 20}};
    begin(WF_TRAIN);
    for (int i = 0; i < 6; i++) {
        const struct sizes s = shapes[i % 3];
        const int threads = i < 3 ? 2 : 5;
        const struct wf_attention_options o = {.causal = true, .window = 50, .dropout = 0.1};
        ck_ok(wf_set_threads(1, error));
        struct result one = run(&s, o, NULL, false);
        ck_ok(wf_set_threads(threads, error));
        same_and_free(run(&s, o, NULL, false), one, "threads");
    }
}
END_TEST

/* A mask of 20,000 x 20,000 would take 400 MB. */
START_TEST(memory)
{
    enum { T = 20000, D = 8 };
    begin(WF_GRADIENTS);
    wf_tensor *x = normal(1, WF_SHAPE(1, T, D)), *y = wf_attention(x, x, x, .causal = true, .window = 16);
    ran(wf_backward(y));
    ck_assert_uint_lt(wf_tape_stats(tape).peak, (size_t)16 * T * D * sizeof(wf_real));
}
END_TEST

START_TEST(refusals)
{
    begin(WF_INFER);
    wf_tensor *x = normal(1, WF_SHAPE(1, 4, 8));
    expect_error(wf_attention(x, x, x, .window = -1), WF_ERR_ARGUMENT,
                 "attention(input [1,4,8], input [1,4,8], input [1,4,8]): window = -1 is negative");
}
END_TEST

WF_TEST_MAIN("attention_window", equals_a_mask, and_a_mask, no_limit_no_difference, dirt_outside, same_bits_on_any_threads, memory,
             refusals)
