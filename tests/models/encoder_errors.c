/* SPDX-License-Identifier: MIT */
/* Invalid calls of encoders, models of another kind, and failing allocations. */
#include "encoder_test.h"
#include "memory_test.h"
#include <weft/seq2seq.h>

enum { T = 9 };
#define CALL(...) (&(struct wf_encoder_call){__VA_ARGS__})

START_TEST(calls_that_cannot_be)
{
    struct wf_config c = small_encoder_config(0);
    set_key(&c, "context", T);
    wf_model *m = model_of(&c, 1);
    wf_tape *tape = new_tape();
    wf_tensor *w[2];
    int32_t ids[64];
    bool mask[4] = {true, true, true, true};
    random_ids(ids, 64, key_of(&c, "vocab_size"), 1);
    wf_tape_reset(tape, WF_INFER);
#define ROWS(rows, columns) wf_ids(tape, ids, rows, columns)
#define FLAT(n) wf_ids_of(tape, ids, WF_SHAPE(n))
#define PACKED(n, ...) .packed = {(int32_t[]){__VA_ARGS__}, n}
#define REFUSED(code, says, in, ...) poisoned(tape, wf_encoder_forward(m, in, __VA_ARGS__), code, says)
    REFUSED(WF_ERR_SHAPE, "encoder-attention: a row has 10 ids, but the context is 9: shorten it", ROWS(1, 10), .causal = false);
    REFUSED(WF_ERR_SHAPE, "are not [B,T]", FLAT(4), .causal = true);
    REFUSED(WF_ERR_ARGUMENT, "the length of row 1 is 5, not in 0 .. 4", ROWS(2, 4), .lengths = (int32_t[]){4, 5});
    REFUSED(WF_ERR_ARGUMENT, "the length of row 0 is -1, not in 0 .. 4", ROWS(2, 4), .lengths = (int32_t[]){-1, 4});
    REFUSED(WF_ERR_SHAPE, "mask must broadcast to [B,H,T,S]", ROWS(1, 3), .mask = wf_bools(tape, mask, WF_SHAPE(2, 2)));
    REFUSED(WF_ERR_ARGUMENT, "the model has no segment embedding: set segments to NULL", ROWS(1, 3), .segments = (int32_t[]){0, 0, 0});
    REFUSED(WF_ERR_SHAPE, "are not [N], as packed sentences are", ROWS(1, 4), PACKED(1, 0, 4));
    REFUSED(WF_ERR_ARGUMENT,
            "packed: offsets[1] = 3 after 0, but offsets of 1 sequences must begin with 0, never fall, and end with the number of rows, 4",
            FLAT(4), PACKED(1, 0, 3));
    REFUSED(WF_ERR_ARGUMENT, "packed: offsets[0] = 1, but", FLAT(4), PACKED(1, 1, 4));
    REFUSED(WF_ERR_ARGUMENT, "packed: count = -1 sequences is negative", FLAT(4), PACKED(-1, 0, 4));
    REFUSED(WF_ERR_ARGUMENT, "packed: offsets[2] = 2 after 3, but", FLAT(4), PACKED(3, 0, 3, 2, 4));
    REFUSED(WF_ERR_SHAPE, "sentence 1 has 10 ids, but the context is 9: shorten it", FLAT(12), PACKED(2, 0, 2, 12));
    REFUSED(WF_ERR_ARGUMENT, "cannot be combined with lengths or a mask", FLAT(4), PACKED(1, 0, 4), .lengths = (int32_t[]){4});
    REFUSED(WF_ERR_ARGUMENT, "cannot be combined with lengths or a mask", FLAT(4), PACKED(1, 0, 4),
            .mask = wf_bools(tape, mask, WF_SHAPE(2, 2)));
    REFUSED(WF_ERR_ARGUMENT, "attention weights are not available for packed sentences", FLAT(4), PACKED(1, 0, 4), .weights = w);

    int32_t places[] = {0, 8}, targets[] = {1, 2};
    poisoned(tape, wf_encoder_loss(m, ROWS(2, 4), NULL, places, targets, 2), WF_ERR_ARGUMENT,
             "place 8 is not the index of one of 8 tokens");
    poisoned(tape, wf_encoder_loss(m, ROWS(2, 4), NULL, places, targets, -1), WF_ERR_ARGUMENT, "count = -1 is out of range");
    places[1] = -1;
    poisoned(tape, wf_encoder_loss(m, ROWS(2, 4), NULL, places, targets, 2), WF_ERR_ARGUMENT,
             "place -1 is not the index of one of 8 tokens");
    targets[0] = 29;
    poisoned(tape, wf_encoder_loss(m, ROWS(2, 4), NULL, places, targets, 1), WF_ERR_ARGUMENT, "29");
    ids[2] = 29;
    poisoned(tape, wf_encoder_logits(m, ROWS(2, 4), .causal = true), WF_ERR_ARGUMENT, "29");

    /* The first error stays. */
    wf_tensor *poison = wf_tape_fail(tape, WF_ERR_FORMAT, "earlier");
    ck_assert(wf_is_poison(wf_encoder_forward_with(m, poison, NULL)) && wf_is_poison(wf_encoder_logits_with(m, poison, NULL)));
    ck_assert(wf_is_poison(wf_encoder_loss(m, poison, NULL, places, targets, 1)));
    ck_assert_str_eq(wf_tape_error(tape)->message, "earlier");
    wf_tape_free(tape);
    wf_model_free(m);
}
END_TEST

START_TEST(nothing_to_encode)
{
    struct wf_config c = small_encoder_config(0);
    wf_model *m = model_of(&c, 1);
    wf_tape *tape = new_tape();
    const int32_t zeros[3] = {0};
    wf_tape_reset(tape, WF_INFER);
    ck_assert_int_eq(view_of(wf_encoder_forward(m, wf_ids(tape, zeros, 0, 4), .lengths = zeros)).dim[0], 0);
    ck_assert_int_eq(view_of(wf_encoder_forward(m, wf_ids_of(tape, zeros, WF_SHAPE(0)), .packed = {zeros, 2})).dim[0], 0);
    wf_tape_free(tape);
    wf_model_free(m);
}
END_TEST

/* Each kind of model in calls for another kind. */
START_TEST(the_wrong_kind_of_model)
{
    struct wf_config c = small_encoder_config(0), l = small_config("char-rms", 16, 29), p = preset("seq2seq-tiny");
    set_key(&p, "vocab_size", set_key(&p, "source_vocab_size", 29));
    wf_model *encoder = model_of(&c, 1), *language = model_of(&l, 1), *pairs = model_of(&p, 1);
    wf_tape *tape = new_tape();
    wf_tensor *w[2];
    struct wf_cache cache;
    int32_t ids[4] = {1, 2, 3, 4}, out[4];
    int64_t count;
    struct wf_evaluation e;
    wf_tape_reset(tape, WF_INFER);
    const char *no_language = "encoder-attention is an encoder, not a language model: use the functions of weft/encoder.h";
    poisoned(tape, wf_model_logits(encoder, wf_ids(tape, ids, 1, 4), NULL), WF_ERR_STATE, no_language);
    poisoned(tape, wf_model_next(encoder, wf_ids(tape, ids, 1, 4), NULL), WF_ERR_STATE, no_language);
    poisoned(tape, wf_model_attention(encoder, wf_ids(tape, ids, 1, 4), w), WF_ERR_STATE, no_language);
    poisoned(tape, wf_model_loss(encoder, wf_ids(tape, ids, 1, 4), wf_ids(tape, ids, 1, 4)), WF_ERR_STATE, no_language);
    ck_fails(wf_model_cache(encoder, &cache, 1, error), WF_ERR_STATE, "encoder-attention is an encoder");
    ck_fails(wf_model_evaluate(encoder, tape, wf_id_view_of(ids, 4), 0, &e, error), WF_ERR_STATE,
             "encoder-attention is not a language model");
    ck_fails(wf_generate_with(encoder, tape, ids, 4, &(struct wf_generate_options){.max_tokens = 2}, out, &count, error), WF_ERR_STATE,
             "encoder-attention is not a language model");
    wf_tape_reset(tape, WF_INFER);
    ck_assert(wf_model_kind_of(encoder) != WF_MODEL_PAIRS);
    poisoned(tape, wf_model_encode(encoder, tape, ids, (struct wf_packed){(int32_t[]){0, 4}, 1}), WF_ERR_STATE,
             "encoder-attention is not an encoder-decoder");
    poisoned(tape, wf_encoder_forward(language, wf_ids(tape, ids, 1, 4), .weights = w), WF_ERR_STATE,
             "char-rms is not an encoder: use the functions of weft/models.h");
    poisoned(tape, wf_encoder_logits(pairs, wf_ids(tape, ids, 1, 4), .causal = true), WF_ERR_STATE,
             "seq2seq-tiny is not an encoder: use the functions of weft/seq2seq.h");
    poisoned(tape, wf_encoder_loss(language, wf_ids(tape, ids, 1, 4), NULL, ids, ids, 1), WF_ERR_STATE, "char-rms is not an encoder");
    wf_tape_free(tape);
    wf_model_free(encoder);
    wf_model_free(language);
    wf_model_free(pairs);
}
END_TEST

/* "bert" has segments and no output layer. */
START_TEST(no_output_layer)
{
    struct wf_config c;
    ck_ok(wf_config_defaults(&c, "bert", error));
    set_keys(&c, "d_model=24 heads=4 d_ff=40 layers=1 vocab_size=29");
    set_key(&c, "context", T);
    strcpy(c.model, "minilm");
    wf_model *m = model_of(&c, 1);
    wf_tape *tape = new_tape();
    const int32_t ids[4] = {1, 2, 3, 4}, segments[4] = {0, 1, 1, 0}, high[4] = {0, 0, 2, 0};
    wf_tape_reset(tape, WF_INFER);
    ck_assert_int_eq(wf_model_kind_of(m), WF_MODEL_ENCODER);
    view_of(wf_encoder_forward(m, wf_ids(tape, ids, 1, 4), .segments = segments));
    poisoned(tape, wf_encoder_forward(m, wf_ids(tape, ids, 1, 4), .segments = high), WF_ERR_ARGUMENT,
             "minilm: segment 2 of token 2 is not in 0 .. 1");
    const char *none = "minilm has no output layer: use wf_encoder_forward for its vectors";
    poisoned(tape, wf_encoder_logits(m, wf_ids(tape, ids, 1, 4), .segments = segments), WF_ERR_STATE, none);
    poisoned(tape, wf_encoder_loss(m, wf_ids(tape, ids, 1, 4), NULL, ids, ids, 1), WF_ERR_STATE, none);
    poisoned(tape, wf_model_next(m, wf_ids(tape, ids, 1, 4), NULL), WF_ERR_STATE, "minilm is an encoder, not a language model");
    poisoned(tape, wf_model_loss(m, wf_ids(tape, ids, 1, 4), wf_ids(tape, ids, 1, 4)), WF_ERR_STATE, "not a language model");
    wf_tape_free(tape);
    wf_model_free(m);
}
END_TEST

/* --- memory -------------------------------------------------------------------------------------------------------- */

static wf_status train_once(const wf_model *m, wf_tape *tape, wf_error *error)
{
    int32_t ids[4 * T];
    wf_tensor *w[2];
    random_ids(ids, 4 * T, 29, 1);
    wf_tape_reset(tape, WF_TRAIN, .seed = 1);
    wf_status status = wf_backward(wf_encoder_loss(m, wf_ids(tape, ids, 4, T), CALL(.lengths = ((int32_t[]){T, 3, 1, 8})), ids, ids, 20));
    *error = *wf_tape_error(tape);
    if (status != WF_OK)
        return status;
    wf_tape_reset(tape, WF_INFER);
    wf_encoder_forward(m, wf_ids(tape, ids, 4, T), .weights = w);
    wf_encoder_logits(m, wf_ids_of(tape, ids, WF_SHAPE(12)), .packed = {(int32_t[]){0, 3, 12}, 2});
    *error = *wf_tape_error(tape);
    return error->code;
}

START_TEST(out_of_memory)
{
    struct wf_config c = small_encoder_config(0.1);
    wf_model *m = model_of(&c, 1);
    ck_assert_int_gt(sweep_memory(build_model, &c), 5);
    ck_assert_int_gt(sweep_memory(on_new_tape, &(struct tape_sweep){m, train_once}), 3);
    wf_model_free(m);
}
END_TEST

START_TEST(steady_state)
{
    struct wf_config c = small_encoder_config(0.1);
    wf_model *m = model_of(&c, 1);
    wf_tape *tape = new_tape();
    for (int i = 0; i < 3; i++)
        ck_ok(train_once(m, tape, error));
    int64_t before = wf_alloc_count();
    for (int i = 0; i < 5; i++)
        ck_ok(train_once(m, tape, error));
    ck_assert_int_eq(wf_alloc_count(), before);
    wf_tape_free(tape);
    wf_model_free(m);
}
END_TEST

WF_TEST_MAIN("encoder_errors", calls_that_cannot_be, nothing_to_encode, the_wrong_kind_of_model, no_output_layer, out_of_memory,
             steady_state)
