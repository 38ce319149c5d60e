/* SPDX-License-Identifier: MIT */
/* checkpoint=true: blocks are computed a second time in backward, with the same bits and less memory. */
#include <weft/encoder.h>
#include <weft/weft.h>

#include "gradients_test.h"
#include "pairs_test.h"

enum { ROWS = 3, T = 24, VOCAB = 29, LAYERS = 6, CHOSEN = 5 };
static int32_t ids[ROWS * T], targets[ROWS * T];
static struct some_pairs pairs;

/* Offsets and lengths are the caller's, and gone before the backward. */
static wf_tensor *loss_of(const wf_model *m, wf_tape *tape, bool packed)
{
    static const int32_t places[CHOSEN] = {0, 3, 5, 9, 17};
    int32_t offsets[] = {0, 10, T, ROWS * T}, lengths[ROWS] = {T, 7, 12}, s[MOST_PAIRS + 1], t[MOST_PAIRS + 1];
    wf_tensor *loss;
    if (wf_model_kind_of(m) == WF_MODEL_PAIRS) {
        struct wf_pairs own = part_of(&pairs.pairs, 0, pairs.pairs.count, s, t);
        loss = wf_pairs_loss(m, tape, &own, .label_smoothing = 0.1);
    } else if (wf_model_kind_of(m) == WF_MODEL_LANGUAGE) {
        loss = wf_model_loss(m, wf_ids(tape, ids, ROWS, T), wf_ids(tape, targets, ROWS, T));
    } else {
        struct wf_encoder_call call = {.lengths = packed ? NULL : lengths, .packed = {packed ? offsets : NULL, packed ? 3 : 0}};
        wf_tensor *x = packed ? wf_ids_of(tape, ids, WF_SHAPE(ROWS * T)) : wf_ids(tape, ids, ROWS, T);
        loss = wf_encoder_loss(m, x, &call, places, targets, CHOSEN, 0);
        memset(&call, 1, sizeof call);
    }
    memset(offsets, 1, sizeof offsets);
    memset(lengths, 1, sizeof lengths);
    memset(s, 1, sizeof s);
    memset(t, 1, sizeof t);
    return loss;
}

static size_t train_once(struct wf_config *c, bool checkpoint, bool packed, struct result *r)
{
    set_key(c, "checkpoint", checkpoint);
    wf_model *m = model_of(c, 1);
    wf_tape *tape = new_tape();
    int64_t before = 0;
    for (int i = 0; i < 4; i++) { /* the last one allocates nothing */
        wf_grads_zero(wf_registry_grads(wf_model_registry(m)));
        before = wf_alloc_count();
        wf_tape_reset(tape, WF_TRAIN, .seed = 3, .step = 2);
        wf_tensor *loss = loss_of(m, tape, packed);
        r->loss = backward(loss);
    }
    ck_assert_int_eq(wf_alloc_count(), before);
    result_take(r, wf_model_registry(m));
    const size_t peak = wf_tape_stats(tape).peak;
    wf_tape_free(tape);
    wf_model_free(m);
    return peak;
}

static void compare(struct wf_config c, bool packed)
{
    struct result plain = {0}, recomputed = {0};
    make_narrow(&c, LAYERS);
    set_keys(&c, "dropout=0.2");
    const size_t all = train_once(&c, false, packed, &plain), less = train_once(&c, true, packed, &recomputed);
    ck_assert_msg(less < all / 2, "%s: %zu bytes, %zu without", c.model, less, all);
    ck_assert_mem_eq(&plain.loss, &recomputed.loss, sizeof plain.loss);
    ck_assert_int_eq(plain.count, recomputed.count);
    ck_assert_mem_eq(plain.gradient, recomputed.gradient, (size_t)plain.count * sizeof *plain.gradient);
    free(plain.gradient);
    free(recomputed.gradient);
}

START_TEST(same_bits_and_less_memory)
{
    static const char *const names[] = {"nanogpt-char", "gpt2", "char-rms", "encoder-attention", "multi30k", "transformer-base"};
    random_ids(ids, ROWS * T, VOCAB, 1);
    random_ids(targets, ROWS * T, VOCAB, 2);
    random_pairs(&pairs, 6, 20, VOCAB, VOCAB, 3);
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
        compare(preset(names[i]), false);
    compare(preset("encoder-attention"), true);
    struct wf_config c;
    ck_ok(wf_config_defaults(&c, "bert", error));
    set_key(&c, "masked_head", true);
    for (int packed = 0; packed < 2; packed++)
        compare(c, packed);
}
END_TEST

/* --- families that cannot ------------------------------------------------------------------------------------------- */

struct small_config {
    int64_t width, context, vocab_size;
};
static const struct wf_key keys[] = {
    WF_NUMBER_KEY(struct small_config, width, "16", 1, 1024, "width", .role = WF_KEY_WIDTH),
    WF_NUMBER_KEY(struct small_config, context, "64", 1, 4096, "context", .role = WF_KEY_CONTEXT),
    WF_NUMBER_KEY(struct small_config, vocab_size, "29", 0, 65536, "vocabulary", .role = WF_KEY_VOCAB),
};
struct small {
    struct wf_embedding embed;
    struct wf_linear head;
};

static void init(wf_scope s, void *model, const void *config)
{
    const struct small_config *c = config;
    struct small *m = model;
    wf_embedding_init(wf_sub(s, "embed"), &m->embed, c->vocab_size, c->width);
    wf_linear_init(wf_sub(s, "head"), &m->head, c->width, c->vocab_size);
}

static wf_tensor *without(const void *model, wf_tensor *x, struct wf_cache *cache, wf_tensor **weights)
{
    const struct small *m = model;
    (void)cache, (void)weights;
    return wf_tanh(wf_embedding_forward(&m->embed, x));
}

static wf_tensor *block_forward(const void *block, wf_tensor *x, const struct wf_block_call *call)
{
    (void)block, (void)call;
    return wf_tanh(x);
}

static wf_tensor *keeping(const void *model, wf_tensor *x, struct wf_cache *cache, wf_tensor **weights)
{
    const struct small *m = model;
    (void)cache, (void)weights;
    return wf_blocks_forward(m, 1, block_forward, wf_embedding_forward(&m->embed, x), .keep = true);
}

#define SMALL(title, function)                                                                                                             \
    {                                                                                                                                      \
        .abi = WF_FAMILY_ABI, .name = title, .kind = WF_MODEL_LANGUAGE, .config_size = sizeof(struct small_config), .keys = WF_ROWS(keys), \
        .size = sizeof(struct small), .init = init, .forward = function, .no_cache = true, .head = WF_HEAD_AT(struct small, head)          \
    }
static const struct wf_family families[] = {SMALL("without", without), SMALL("keeping", keeping)};

START_TEST(families_that_cannot_say_so)
{
    static const char *const messages[] = {
        "checkpoint=true: family without does not run its blocks by wf_blocks_forward: train without it",
        "checkpoint=true: the blocks of family keeping make tensors that are used after them (.keep): train without it"};
    random_ids(ids, ROWS * T, VOCAB, 1);
    for (int i = 0; i < 2; i++) {
        struct wf_config c;
        ck_ok(wf_family_register(&families[i], error));
        ck_ok(wf_config_defaults(&c, families[i].name, error));
        set_key(&c, "checkpoint", 1);
        wf_model *m = model_of(&c, 1);
        wf_tape *tape = new_tape();
        wf_tape_reset(tape, WF_INFER);
        ck_assert(!wf_is_poison(loss_of(m, tape, false))); /* of training only */
        wf_tape_reset(tape, WF_TRAIN);
        ck_assert(wf_is_poison(loss_of(m, tape, false)));
        ck_assert_str_eq(wf_tape_error(tape)->message, messages[i]);
        wf_tape_free(tape);
        wf_model_free(m);
    }
}
END_TEST

WF_TEST_MAIN("checkpoint", same_bits_and_less_memory, families_that_cannot_say_so)
