/* SPDX-License-Identifier: MIT */
/* Encoder-decoders: failing allocations, and no allocations in the steady state. */
#include "memory_test.h"
#include "pairs_test.h"

enum { SENTENCES = 3, ROWS = 6 };
static struct some_pairs p;

static wf_status train_once(const wf_model *m, wf_tape *tape, wf_error *error)
{
    wf_tape_reset(tape, WF_TRAIN, .seed = 1);
    wf_status status = wf_backward(wf_pairs_loss(m, tape, &p.pairs, .label_smoothing = 0.1));
    *error = *wf_tape_error(tape);
    return status;
}

/* Encodes, and takes some steps in which all rows move. */
static wf_status decode_some(const wf_model *m, wf_tape *tape, struct wf_cache *cache, int steps, wf_error *error)
{
    static const int32_t row_offsets[SENTENCES + 1] = {0, 2, 4, 6}, from[ROWS] = {1, 0, 3, 3, 4, 4};
    int32_t ids[ROWS] = {1, 2, 3, 4, 5, 6};
    wf_real logits[ROWS * 29];
    wf_tensor *kv[2];
    for (int64_t r = 0; r < ROWS; r++)
        wf_cache_rewind(cache, r, 0);
    wf_tape_reset(tape, WF_INFER);
    wf_model_memory(m, wf_model_encode(m, tape, p.source, (struct wf_packed){p.source_offsets, SENTENCES}), kv);
    wf_tape_mark mark = wf_tape_here(tape);
    for (int s = 0; s < steps; s++) {
        wf_tensor *y = wf_model_decode(m, wf_ids(tape, ids, ROWS, 1), cache, kv, (struct wf_packed){row_offsets, SENTENCES},
                                       (struct wf_packed){p.source_offsets, SENTENCES});
        wf_status status = wf_read(y, logits, ROWS * 29);
        *error = *wf_tape_error(tape);
        if (status == WF_OK)
            status = wf_cache_select(cache, from, ROWS, error);
        if (status != WF_OK)
            return status;
        wf_tape_rewind(tape, mark, NULL);
    }
    return WF_OK;
}

static wf_model *some_model(double dropout)
{
    struct wf_config c = small_pairs_config("transformer-base", dropout);
    random_pairs(&p, SENTENCES, 12, key_of(&c, "vocab_size"), key_of(&c, "vocab_size"), 4);
    return model_of(&c, 1);
}

static wf_status decode_once(const wf_model *m, wf_tape *tape, wf_error *error)
{
    struct wf_cache cache;
    wf_status status = wf_model_cache(m, &cache, ROWS, error);
    if (status != WF_OK)
        return status;
    status = decode_some(m, tape, &cache, 3, error);
    wf_cache_free(&cache);
    return status;
}

START_TEST(out_of_memory)
{
    struct wf_config c = small_pairs_config("multi30k", 0.1);
    wf_model *m = some_model(0.1);
    ck_assert_int_gt(sweep_memory(build_model, &c), 5);
    ck_assert_int_gt(sweep_memory(on_new_tape, &(struct tape_sweep){m, train_once}), 3);
    ck_assert_int_gt(sweep_memory(on_new_tape, &(struct tape_sweep){m, decode_once}), 3);
    wf_model_free(m);
}
END_TEST

START_TEST(steady_state)
{
    wf_model *m = some_model(0.1);
    wf_tape *tape = new_tape();
    struct wf_cache cache;
    ck_ok(wf_model_cache(m, &cache, ROWS, error));
    for (int i = 0; i < 3; i++) {
        ck_ok(train_once(m, tape, error));
        ck_ok(decode_some(m, tape, &cache, 10, error));
    }
    int64_t before = wf_alloc_count();
    for (int i = 0; i < 5; i++) {
        ck_ok(train_once(m, tape, error));
        ck_ok(decode_some(m, tape, &cache, 10, error));
    }
    ck_assert_int_eq(wf_alloc_count(), before);
    wf_cache_free(&cache);
    wf_tape_free(tape);
    wf_model_free(m);
}
END_TEST

WF_TEST_MAIN("pairs_memory", out_of_memory, steady_state)
