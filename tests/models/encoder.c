/* SPDX-License-Identifier: MIT */
/* Encoders: parameters, weights under masks, bits packed and in rows, dropout, the loss of chosen tokens. */
#include "encoder_test.h"
#include "gradients_test.h"

#define CALL(...) (&(struct wf_encoder_call){__VA_ARGS__})

START_TEST(parameters)
{
    struct wf_config c = preset("encoder-attention");
    wf_model *m = bare_model(&c);
    ck_assert_int_eq(wf_model_kind_of(m), WF_MODEL_ENCODER);
    ck_assert_int_eq(wf_registry_parameters(wf_model_registry(m)), 364032 + 65000); /* counted in PyTorch; and the output layer */
    wf_model_free(m);
    static const char *const names[] = {"embed.weight",
                                        "blocks.1.attn.qkv.weight",
                                        "blocks.1.attn.out.bias",
                                        "blocks.0.norm1.weight",
                                        "blocks.0.ffn.up.weight",
                                        "blocks.0.ffn.down.bias",
                                        "blocks.1.norm2.bias",
                                        "norm.weight",
                                        "head.weight",
                                        "head.bias",
                                        "positions.table"};
    c = small_encoder_config(0);
    m = model_of(&c, 1);
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
        value_of(m, names[i]);
    ck_assert_int_eq(wf_registry_count(wf_model_registry(m)), 2 + 2 * 12 + 2 + 2);
    has(m, "positions.table", 40, 24);
    wf_model_free(m);
    set_keys(&c, "tied=true bias=false final_norm=false");
    m = model_of(&c, 1);
    ck_assert_int_eq(wf_registry_count(wf_model_registry(m)), 2 + 2 * 6);
    wf_model_free(m);
}
END_TEST

/* Linear maps uniform in +-1/sqrt(fan_in) and embeddings N(0, 1), as in PyTorch; scaled embeddings N(0, 1/d). */
START_TEST(initialisation)
{
    struct wf_config c = preset("encoder-attention");
    wf_model *m = model_of(&c, 1);
    ck_deviation(m, "embed.weight", 0.125);
    ck_deviation(m, "blocks.0.attn.qkv.weight", 0.0721688);
    ck_deviation(m, "blocks.5.ffn.down.weight", 0.0360844);
    ck_deviation(m, "head.weight", 0.0721688);
    wf_model_free(m);
    set_key(&c, "scale_embeddings", false);
    m = model_of(&c, 1);
    ck_deviation(m, "embed.weight", 1);
    wf_model_free(m);
}
END_TEST

/* --- weights ------------------------------------------------------------------------------------------------------- */

enum { B = 3, T = 37, H = 4, LAYERS = 2 };
static const int32_t lengths[B] = {37, 0, 5};

/* True if query t of row b may attend to key s in the case `which`. */
static bool may(int which, int b, int h, int t, int s)
{
    return (which % 2 == 0 || s < lengths[b]) && (which < 2 || s <= t) && (which < 4 || ((t + s + h) % 3 != 0 && t != 11));
}

START_TEST(weights_are_shares)
{
    struct wf_config c = small_encoder_config(0.3);
    wf_model *m = model_of(&c, 1);
    wf_tape *tape = new_tape();
    int32_t ids[B * T];
    static bool mask[B * H * T * T];
    random_ids(ids, B * T, key_of(&c, "vocab_size"), 1);
    for (int i = 0; i < B * H * T * T; i++)
        mask[i] = may(4, i / T / T / H, i / T / T % H, i / T % T, i % T);
    for (int which = 0; which < 6; which++)
        for (int mode = WF_INFER; mode <= WF_GRADIENTS; mode++) {
            wf_tensor *w[LAYERS];
            wf_tape_reset(tape, (wf_mode)mode, .seed = 1);
            wf_tensor *y = wf_encoder_forward(m, wf_ids(tape, ids, B, T), .lengths = which % 2 ? lengths : NULL, .causal = which >= 2,
                                              .mask = which >= 4 ? wf_bools(tape, mask, WF_SHAPE(B, H, T, T)) : NULL, .weights = w);
            ck_assert_msg(!wf_is_poison(y), "%s", wf_tape_error(tape)->message);
            for (int layer = 0; layer < LAYERS; layer++) {
                wf_real *x = elements_of(w[layer]);
                ck_assert_int_eq(wf_dim(w[layer], 1), H);
                for (int row = 0; row < B * H * T; row++) {
                    double sum = 0;
                    bool any = false;
                    for (int s = 0; s < T; s++) {
                        bool seen = may(which, row / T / H, row / T % H, row % T, s);
                        ck_assert_msg(seen ? x[row * T + s] > 0 : x[row * T + s] == 0, "case %d, row %d, key %d: %g", which, row, s,
                                      (double)x[row * T + s]);
                        any |= seen;
                        sum += x[row * T + s];
                    }
                    ck_assert_double_eq_tol(sum, any, sizeof(wf_real) == 8 ? 1e-14 : 1e-6);
                }
                wf_free(x);
            }
        }
    wf_tape_free(tape);
    wf_model_free(m);
}
END_TEST

/* --- bits ---------------------------------------------------------------------------------------------------------- */

/* Sentences of 1 to 300 tokens: alone, packed, in rows with any ids as padding, and with weights returned. */
START_TEST(neighbours_do_not_matter)
{
    enum { SENTENCES = 9, MOST = 300 };
    static const int32_t length[SENTENCES] = {1, 300, 8, 9, 2, 131, 33, 64, 7};
    static int32_t ids[SENTENCES * MOST], rows[SENTENCES * MOST];
    struct wf_config c = small_encoder_config(0);
    set_key(&c, "context", MOST);
    for (int norm = 0; norm < 2; norm++) {
        set_key(&c, "norm", norm ? WF_NORM_PRE : WF_NORM_POST);
        wf_model *m = model_of(&c, 1);
        wf_tape *tape = new_tape();
        int32_t offsets[SENTENCES + 1] = {0};
        size_t bytes = (size_t)key_of(&c, "d_model") * sizeof(wf_real);
        random_ids(ids, SENTENCES * MOST, key_of(&c, "vocab_size"), 1);
        random_ids(rows, SENTENCES * MOST, key_of(&c, "vocab_size"), 2);
        for (int i = 0; i < SENTENCES; i++) {
            offsets[i + 1] = offsets[i] + length[i];
            memcpy(rows + i * MOST, ids + offsets[i], (size_t)length[i] * sizeof *ids);
        }
        wf_tensor *w[LAYERS];
        wf_tape_reset(tape, WF_INFER);
        wf_real *packed =
            elements_of(wf_encoder_forward(m, wf_ids_of(tape, ids, WF_SHAPE(offsets[SENTENCES])), .packed = {offsets, SENTENCES}));
        wf_real *padded = elements_of(wf_encoder_forward(m, wf_ids(tape, rows, SENTENCES, MOST), .lengths = length));
        wf_real *looked = elements_of(wf_encoder_forward(m, wf_ids(tape, rows, SENTENCES, MOST), .lengths = length, .weights = w));
        for (int i = 0; i < SENTENCES; i++) {
            wf_tape_reset(tape, WF_INFER);
            wf_real *alone = elements_of(wf_encoder_forward(m, wf_ids(tape, ids + offsets[i], 1, length[i])));
            wf_real *one = elements_of(
                wf_encoder_forward(m, wf_ids_of(tape, ids + offsets[i], WF_SHAPE(length[i])), .packed = {(int32_t[]){0, length[i]}, 1}));
            const char *place = NULL;
            for (int64_t t = 0; t < length[i] && !place; t++) {
                const wf_real *x = alone + t * key_of(&c, "d_model");
                place = memcmp(x, one + t * key_of(&c, "d_model"), bytes) != 0                            ? "packed alone"
                        : memcmp(x, packed + (offsets[i] + t) * key_of(&c, "d_model"), bytes) != 0        ? "packed"
                        : memcmp(x, padded + ((int64_t)i * MOST + t) * key_of(&c, "d_model"), bytes) != 0 ? "in rows"
                        : memcmp(x, looked + ((int64_t)i * MOST + t) * key_of(&c, "d_model"), bytes) != 0 ? "in rows with weights"
                                                                                                          : NULL;
            }
            ck_assert_msg(!place, "a sentence of %d has other bits %s", length[i], place);
            wf_free(alone);
            wf_free(one);
        }
        wf_free(packed);
        wf_free(padded);
        wf_free(looked);
        wf_tape_free(tape);
        wf_model_free(m);
    }
}
END_TEST

/* Packed sentences can be causal too: a token's bits are those of the text up to it. */
START_TEST(packed_and_causal)
{
    struct wf_config c = small_encoder_config(0);
    wf_model *m = model_of(&c, 1);
    wf_tape *tape = new_tape();
    int32_t ids[30];
    const int32_t offsets[3] = {0, 10, 30};
    random_ids(ids, 30, key_of(&c, "vocab_size"), 1);
    wf_tape_reset(tape, WF_INFER);
    wf_real *x = elements_of(wf_encoder_logits(m, wf_ids_of(tape, ids, WF_SHAPE(30)), .packed = {offsets, 2}, .causal = true));
    wf_real *row = elements_of(wf_encoder_logits(m, wf_ids(tape, ids + 10, 1, 20), .causal = true));
    wf_real *start = elements_of(wf_encoder_logits(m, wf_ids(tape, ids + 10, 1, 7), .causal = true));
    wf_real *free = elements_of(wf_encoder_logits(m, wf_ids(tape, ids + 10, 1, 20)));
    ck_assert(memcmp(x + 10 * key_of(&c, "vocab_size"), row, sizeof *x * 20 * (size_t)key_of(&c, "vocab_size")) == 0);
    ck_assert(memcmp(start, row, sizeof *x * 7 * (size_t)key_of(&c, "vocab_size")) == 0);
    ck_assert(memcmp(free, row, sizeof *x * (size_t)key_of(&c, "vocab_size")) != 0);
    wf_free(x);
    wf_free(row);
    wf_free(start);
    wf_free(free);
    wf_tape_free(tape);
    wf_model_free(m);
}
END_TEST

/* --- training ------------------------------------------------------------------------------------------------------ */

/* A parameter of a layer as an operand. */
static wf_tensor *of(const wf_model *m, int layer, const char *name)
{
    char key[64];
    snprintf(key, sizeof key, "blocks.%d.%s", layer, name);
    return wf_registry_find(wf_model_registry(m), key);
}

static wf_tensor *linear(const wf_model *m, int layer, const char *name, wf_tensor *x)
{
    char weight[32], bias[32];
    snprintf(weight, sizeof weight, "%s.weight", name);
    snprintf(bias, sizeof bias, "%s.bias", name);
    return wf_linear(x, of(m, layer, weight), of(m, layer, bias));
}

static wf_tensor *norm(const wf_model *m, int layer, const char *name, wf_tensor *x)
{
    char weight[32], bias[32];
    snprintf(weight, sizeof weight, "%s.weight", name);
    snprintf(bias, sizeof bias, "%s.bias", name);
    return wf_layer_norm(x, of(m, layer, weight), of(m, layer, bias), 1e-5);
}

/* The preset's forward in ops, with its dropout. */
static wf_tensor *in_ops(const wf_model *m, wf_tensor *ids, double p)
{
    const wf_registry *r = wf_model_registry(m);
    wf_tensor *x = wf_scale(wf_embedding(wf_registry_find(r, "embed.weight"), ids), sqrt(24));
    x = wf_add(x, wf_slice(wf_registry_find(r, "positions.table"), 0, 0, wf_dim(ids, 1)));
    for (int i = 0; i < LAYERS; i++) {
        wf_tensor *qkv = linear(m, i, "attn.qkv", x);
        wf_tensor *a = wf_attention(wf_slice(qkv, -1, 0, 24), wf_slice(qkv, -1, 24, 24), wf_slice(qkv, -1, 48, 24), .heads = H);
        x = norm(m, i, "norm1", wf_add(x, wf_dropout(linear(m, i, "attn.out", a), p)));
        wf_tensor *h = wf_dropout(wf_relu(linear(m, i, "ffn.up", x)), p);
        x = norm(m, i, "norm2", wf_add(x, wf_dropout(linear(m, i, "ffn.down", h), p)));
    }
    return wf_layer_norm(x, wf_registry_find(r, "norm.weight"), wf_registry_find(r, "norm.bias"), 1e-5);
}

/* Dropout after attention, inside the feed-forward and after it, in each layer, and nowhere else: the same masks as by ops. */
START_TEST(dropout)
{
    struct wf_config c = small_encoder_config(0.3);
    wf_model *m = model_of(&c, 1);
    wf_tape *tape = new_tape();
    int32_t ids[2 * T];
    wf_real *last = NULL;
    random_ids(ids, 2 * T, 29, 1);
    for (uint64_t step = 0; step < 3; step++) {
        wf_tape_reset(tape, WF_TRAIN, .seed = 7, .step = step, .exact = true);
        wf_real *want = elements_of(in_ops(m, wf_ids(tape, ids, 2, T), 0.3));
        wf_tape_reset(tape, WF_TRAIN, .seed = 7, .step = step, .exact = true);
        wf_real *x = elements_of(wf_encoder_forward(m, wf_ids(tape, ids, 2, T)));
        for (int i = 0; i < 2 * T * 24; i++)
            ck_assert_double_eq_tol(x[i], want[i], sizeof(wf_real) == 8 ? 1e-13 : 1e-5);
        ck_assert(!last || memcmp(x, last, sizeof(wf_real) * 2 * T * 24) != 0);
        wf_free(want);
        wf_free(last);
        last = x;
    }
    wf_free(last);
    wf_tape_free(tape);
    wf_model_free(m);
}
END_TEST

enum { ROWS = 6, WIDTH = 11, CHOSEN = 17 };
static const int32_t row_offsets[ROWS + 1] = {0, 11, 22, 33, 44, 55, 66};

/* The loss and the gradients of a batch in parts of the given numbers of rows. packed: rows end to end. lost: each part with first_row
 * 0. */
static struct result run(const wf_model *m, wf_tape *tape, bool packed, const int *parts, bool lost)
{
    wf_registry *registry = wf_model_registry(m);
    struct result r = {0};
    int32_t ids[ROWS * WIDTH];
    random_ids(ids, ROWS * WIDTH, 29, 3);
    wf_grads_zero(wf_registry_grads(registry));
    for (int first = 0; *parts >= 0; first += *parts++) {
        int32_t places[CHOSEN], targets[CHOSEN];
        int64_t n = 0;
        double loss;
        for (int i = 0; i < CHOSEN; i++) { /* each fourth token, and beyond the end from the first again */
            int place = i * 4 % (ROWS * WIDTH) - first * WIDTH;
            if (place < 0 || place >= *parts * WIDTH)
                continue;
            places[n] = place;
            targets[n++] = i;
        }
        uint64_t row = (uint64_t)first * (packed ? WIDTH : 1);
        wf_tape_reset(tape, WF_TRAIN, .seed = 5, .step = 3, .first_row = lost ? 0 : row, .exact = true);
        wf_tensor *in =
            packed ? wf_ids_of(tape, ids + first * WIDTH, WF_SHAPE(*parts * WIDTH)) : wf_ids(tape, ids + first * WIDTH, *parts, WIDTH);
        wf_tensor *l =
            wf_encoder_loss(m, in, packed ? CALL(.packed = {row_offsets, *parts}) : NULL, places, targets, n, .normalizer = CHOSEN);
        loss = backward(l);
        r.loss += loss;
    }
    result_take(&r, registry);
    return r;
}

/* Dropout masks depend on the row (packed: the token) in the whole batch, so the parts add up to it. */
START_TEST(parts_are_the_whole)
{
    static const int splits[][8] = {{3, 3, -1}, {1, 1, 1, 1, 1, 1, -1}, {0, 4, 2, 0, -1}};
    const double tolerance = sizeof(wf_real) == 8 ? 1e-12 : 2e-6;
    struct wf_config c = small_encoder_config(0.3);
    wf_model *m = model_of(&c, 1);
    wf_tape *tape = new_tape();
    for (int packed = 0; packed < 2; packed++) {
        struct result whole = run(m, tape, packed, (int[]){ROWS, -1}, false);
        ck_other(&whole, run(m, tape, packed, splits[0], true));
        for (int i = 0; i < 3; i++)
            ck_same(packed ? "packed" : "in rows", i, &whole, run(m, tape, packed, splits[i], false), tolerance);
        free(whole.gradient);
    }
    wf_tape_free(tape);
    wf_model_free(m);
}
END_TEST

/* The mean of -log softmax of the logits at the places. Without places the loss is 0, and so are all gradients. */
START_TEST(loss_of_chosen_tokens)
{
    static const int32_t places[] = {3, 70, 3, 0, 36}, targets[] = {1, 0, 5, 28, 7};
    struct wf_config c = small_encoder_config(0);
    wf_model *m = model_of(&c, 1);
    wf_tape *tape = new_tape();
    int32_t ids[2 * T], ends[2] = {T, 35};
    double want = 0, loss, plain_value;
    wf_tensor *plain;
    random_ids(ids, 2 * T, key_of(&c, "vocab_size"), 1);
    wf_tape_reset(tape, WF_INFER);
    wf_real *logits = elements_of(wf_encoder_logits(m, wf_ids(tape, ids, 2, T), .lengths = ends));
    for (int i = 0; i < 5; i++)
        want += loss_of_id(logits + places[i] * 29, 29, targets[i]) / 5;
    wf_tensor *l =
        wf_encoder_loss(m, wf_ids(tape, ids, 2, T), CALL(.lengths = ends), places, targets, 5, .label_smoothing = 0.1, .plain = &plain);
    loss = item_of(l);
    plain_value = item_of(plain);
    ck_assert_double_eq_tol(plain_value, want, sizeof(wf_real) == 8 ? 1e-12 : 1e-5);
    ck_assert(fabs(loss - plain_value) > 1e-3);
    wf_free(logits);

    wf_grads *grads = wf_registry_grads(wf_model_registry(m));
    wf_tape_reset(tape, WF_TRAIN);
    wf_grads_zero(grads);
    l = wf_encoder_loss(m, wf_ids(tape, ids, 2, T), NULL, NULL, NULL, 0);
    loss = backward(l);
    ck_assert(loss == 0);
    for (int i = 0; i < wf_registry_count(wf_model_registry(m)); i++) {
        wf_array view;
        if (wf_registry_is_buffer(wf_model_registry(m), i))
            continue;
        ck_assert_int_eq(wf_grad(wf_registry_at(wf_model_registry(m), i), &view), WF_OK);
        for (int64_t k = 0; k < wf_array_count(&view); k++)
            ck_assert(((wf_real *)view.data)[k] == 0);
    }
    wf_tape_free(tape);
    wf_model_free(m);
}
END_TEST

WF_TEST_MAIN("encoder", parameters, initialisation, weights_are_shares, neighbours_do_not_matter, packed_and_causal, dropout,
             parts_are_the_whole, loss_of_chosen_tokens)
