/* SPDX-License-Identifier: MIT */
/* States in a cache: a text in pieces has the results of the whole; rows are copied and reordered as by a beam search; refusals. */
#include "nn_test.h"

enum { ROWS = 4, D = 5, MOST = 12, LAYERS = 2 };

static wf_real x[ROWS][MOST][D];

/* Two layers h_t = h_(t-1) / 2 + x_t, with the cache or from zeros: [R,T,D]. */
static wf_tensor *forward(wf_tensor *in, struct wf_cache *cache)
{
    const wf_shape shape = wf_shape_of(in);
    for (int i = 0; i < LAYERS; i++) {
        struct wf_kv *kv = cache ? &cache->layer[i] : NULL;
        wf_tensor *half = wf_affine(in, 0, 0.5), *state = wf_kv_state(kv, in, D);
        in = wf_scan(half, in, state, 1);
        wf_kv_set_state(kv, wf_reshape(wf_slice(in, 1, -1, 1), shape.dim[0], D));
    }
    if (cache)
        wf_cache_advance(cache, shape.dim[1]);
    return in;
}

static wf_tape *start(void)
{
    wf_fill_normal(&x[0][0][0], ROWS * MOST * D, 0, 1, 5, 6);
    return new_tape();
}

/* Rows go on with T tokens of texts text[] from at[] on; the results must be those of the texts alone. */
static void go_on(wf_tape *tape, struct wf_cache *cache, const int *text, int64_t *at, int64_t T)
{
    static wf_real in[ROWS * MOST * D], got[ROWS * MOST * D], alone[MOST * D];
    const int64_t rows = cache->rows;
    for (int64_t b = 0; b < rows; b++)
        memcpy(in + b * T * D, x[text[b]][at[b]], (size_t)(T * D) * sizeof *in);
    wf_tape_reset(tape, WF_INFER);
    ck_read(forward(wf_input(tape, in, WF_SHAPE(rows, T, D), false), cache), got, rows * T * D);
    for (int64_t b = 0; b < rows; b++) {
        at[b] += T;
        ck_assert_int_eq(cache->length[b], at[b]);
        wf_tape_reset(tape, WF_INFER);
        ck_read(forward(wf_input(tape, x[text[b]][0], WF_SHAPE(1, at[b], D), false), NULL), alone, at[b] * D);
        ck_assert_mem_eq(got + b * T * D, alone + (at[b] - T) * D, (size_t)(T * D) * sizeof *got);
    }
}

START_TEST(rows_as_alone)
{
    wf_tape *tape = start();
    struct wf_cache cache;
    ck_ok(wf_cache_init_states(&cache, LAYERS, ROWS, D, error));
    int64_t at[ROWS] = {0};
    go_on(tape, &cache, (int[]){0, 1, 2, 3}, at, 1);
    go_on(tape, &cache, (int[]){0, 1, 2, 3}, at, 3);
    /* row 0 is dropped, row 2 becomes two, rows 1 and 3 change places */
    ck_ok(wf_cache_select(&cache, (const int32_t[]){2, 3, 2, 1}, ROWS, error));
    go_on(tape, &cache, (int[]){2, 3, 2, 1}, at, 2);
    ck_ok(wf_cache_select(&cache, (const int32_t[]){1, 0}, 2, error)); /* fewer, swapped */
    go_on(tape, &cache, (int[]){3, 2}, at, 1);
    wf_cache_rewind(&cache, 1, 9); /* longer than it is: nothing */
    wf_cache_rewind(&cache, 0, 0); /* another text, from its beginning */
    at[0] = 0;
    go_on(tape, &cache, (int[]){1, 2}, at, 2);
    ck_ok(wf_cache_select(&cache, (const int32_t[]){1, 0, 0, 1}, ROWS, error)); /* more again */
    at[3] = at[0], at[0] = at[1], at[1] = at[2] = at[3], at[3] = at[0];
    go_on(tape, &cache, (int[]){2, 1, 1, 2}, at, 1);
    ck_assert_int_eq(cache.error.code, WF_OK);
    wf_cache_free(&cache);
    wf_tape_free(tape);
}
END_TEST

START_TEST(refused)
{
    wf_tape *tape = start();
    struct wf_cache states, tokens;
    ck_assert_int_eq(wf_cache_init_states(&states, 1, 2, 0, NULL), WF_ERR_ARGUMENT);
    ck_ok(wf_cache_init_states(&states, LAYERS, 2, D, error));
    ck_ok(wf_cache_init(&tokens, LAYERS, 2, 8, D, D, error));
#define REFUSED(mode, call, code_of, says)                                                                                                 \
    do {                                                                                                                                   \
        wf_tape_reset(tape, mode);                                                                                                         \
        wf_tensor *in = wf_zeros(tape, WF_SHAPE(2, 3, D));                                                                                 \
        (void)in;                                                                                                                          \
        call;                                                                                                                              \
        ck_assert_int_eq(wf_tape_error(tape)->code, code_of);                                                                              \
        ck_says(wf_tape_error(tape)->message, says);                                                                                       \
    } while (0)
    REFUSED(WF_INFER, wf_kv_state(states.layer, in, D + 1), WF_ERR_SHAPE, "2 rows with states of width 5, but the call has 2 rows of 6");
    REFUSED(WF_INFER, wf_kv_state(states.layer, wf_zeros(tape, WF_SHAPE(3, D)), D), WF_ERR_SHAPE, "but the call has 3 rows of 5");
    REFUSED(WF_INFER, wf_kv_state(tokens.layer, in, D), WF_ERR_STATE, "holds keys and values: make it with wf_cache_init_states");
    REFUSED(WF_INFER, wf_kv_state(NULL, in, 0), WF_ERR_ARGUMENT, "width = 0 must be at least 1");
    REFUSED(WF_TRAIN, wf_kv_state(states.layer, in, D), WF_ERR_STATE, "a cache works in WF_INFER only");
    REFUSED(WF_INFER, wf_kv_set_state(states.layer, in), WF_ERR_SHAPE, "wf_kv_set_state: 'zeros' is not [R,width] of reals");
    REFUSED(WF_INFER, wf_kv_set_state(states.layer, wf_zeros(tape, WF_SHAPE(1, D))), WF_ERR_SHAPE, "but the call has 1 rows of 5");
    REFUSED(WF_INFER, wf_kv_set_state(states.layer, wf_ids(tape, (int32_t[2 * D]){0}, 2, D)), WF_ERR_SHAPE, "is not [R,width] of reals");
    REFUSED(WF_INFER, wf_kv_state(states.layer, NULL, D), WF_ERR_ARGUMENT, "NULL");
    REFUSED(WF_INFER, wf_kv_set_state(states.layer, NULL), WF_ERR_ARGUMENT, "NULL");
    REFUSED(WF_INFER, wf_kv_append(states.layer, in, in), WF_ERR_STATE, "holds states of a recurrent model: make it with wf_cache_init");
    wf_cache_advance(&states, 4);
    wf_cache_rewind(&states, 1, 3);
    REFUSED(WF_INFER, wf_kv_state(states.layer, in, D), WF_ERR_ARGUMENT,
            "row 1 to 3 tokens: the state of its 4 tokens can only go back to 0");
    wf_cache_free(&states);
    wf_cache_free(&tokens);
    wf_tape_free(tape);
}
END_TEST

WF_TEST_MAIN("recurrent", rows_as_alone, refused)
