/* SPDX-License-Identifier: MIT */
/* Encoder-decoders without memory, and without allocations once they run. */
#include "pairs_test.h"

enum { SENTENCES = 3, ROWS = 6 };
static struct some_pairs p;

static wf_status train_once(const wf_model *m, wf_tape *tape)
{
    wf_tape_reset(tape, WF_TRAIN, .seed = 1);
    return wf_backward(wf_pairs_loss(m, tape, &p.pairs, .label_smoothing = 0.1));
}

/* Encoding, and some steps with all rows in motion. */
static wf_status decode_some(const wf_model *m, wf_tape *tape, struct wf_cache *cache, int steps)
{
    static const int32_t row_offsets[SENTENCES + 1] = {0, 2, 4, 6}, from[ROWS] = {1, 0, 3, 3, 4, 4};
    int32_t ids[ROWS] = {1, 2, 3, 4, 5, 6};
    wf_real logits[ROWS * 29];
    wf_tensor *kv[2];
    wf_error e = {0};
    for (int64_t r = 0; r < ROWS; r++)
        wf_cache_rewind(cache, r, 0);
    wf_tape_reset(tape, WF_INFER);
    wf_model_memory(m, wf_model_encode(m, tape, p.source, (struct wf_packed){p.source_offsets, SENTENCES}), kv);
    wf_tape_mark mark = wf_tape_here(tape);
    for (int s = 0; s < steps; s++) {
        wf_tensor *y = wf_model_decode(m, wf_ids(tape, ids, ROWS, 1), cache, kv, (struct wf_packed){row_offsets, SENTENCES},
                                       (struct wf_packed){p.source_offsets, SENTENCES});
        wf_status status = wf_read(y, logits, ROWS * 29);
        if (status == WF_OK)
            status = wf_cache_select(cache, from, ROWS, &e);
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

START_TEST(out_of_memory)
{
    struct wf_config c = small_pairs_config("multi30k", 0.1);
    wf_model *m = some_model(0.1);
    struct wf_cache cache;
    int64_t live = wf_alloc_live();
    int made = 0, trained = 0, decoded = 0;
    ck_ok(wf_model_cache(m, &cache, ROWS, error));
    wf_cache_free(&cache);
    for (int n = 0;; n++, made++) {
        wf_error e = {0};
        wf_alloc_fail_after(n);
        wf_model *other = wf_model_new(&c, &e);
        wf_alloc_fail_after(-1);
        if (other) {
            wf_model_free(other);
            break;
        }
        ck_assert_int_eq(e.code, WF_ERR_MEMORY);
        ck_assert_int_eq(wf_alloc_live(), live);
    }
    for (int what = 0; what < 2; what++)
        for (int n = 0;; n++) {
            wf_tape *tape = new_tape();
            wf_status status = WF_ERR_MEMORY;
            wf_error e = {0};
            wf_alloc_fail_after(n);
            if (what == 0)
                status = train_once(m, tape);
            else if (wf_model_cache(m, &cache, ROWS, &e) == WF_OK) {
                status = decode_some(m, tape, &cache, 3);
                wf_cache_free(&cache);
            }
            wf_alloc_fail_after(-1);
            wf_tape_free(tape);
            if (status == WF_OK)
                break;
            ck_assert_int_eq(status, WF_ERR_MEMORY);
            *(what ? &decoded : &trained) += 1;
        }
    ck_assert(made > 5 && trained > 3 && decoded > 3);
    wf_model_free(m);
}
END_TEST

START_TEST(steady_state)
{
    wf_model *m = some_model(0.1);
    wf_tape *tape = new_tape();
    struct wf_cache cache;
    ck_ok(wf_model_cache(m, &cache, ROWS, error));
    for (int i = 0; i < 3; i++)
        ck_assert(train_once(m, tape) == WF_OK && decode_some(m, tape, &cache, 10) == WF_OK);
    int64_t before = wf_alloc_count();
    for (int i = 0; i < 5; i++)
        ck_assert(train_once(m, tape) == WF_OK && decode_some(m, tape, &cache, 10) == WF_OK);
    ck_assert_int_eq(wf_alloc_count(), before);
    wf_cache_free(&cache);
    wf_tape_free(tape);
    wf_model_free(m);
}
END_TEST

WF_TEST_MAIN("pairs_memory", out_of_memory, steady_state)
