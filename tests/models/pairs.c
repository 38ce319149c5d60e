/* SPDX-License-Identifier: MIT */
/* Encoder-decoders: the loss of fresh models, decoding step by step, weights, errors. */
#include "pairs_test.h"

#include <weft/op.h>
#include <weft/run.h>

/* A batch of the document that the preset is from: 2 pairs of 5 random ids a side. Targets are the ids after the inputs. */
static void document_batch(struct some_pairs *p, uint64_t seed)
{
    int32_t source[10], target[12];
    random_ids(source, 10, 1000, 2 * seed);
    random_ids(target, 12, 1000, 2 * seed + 1);
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 5; k++) {
            p->source[5 * i + k] = source[5 * i + k];
            p->input[5 * i + k] = target[6 * i + k];
            p->target[5 * i + k] = target[6 * i + k + 1];
        }
    for (int i = 0; i <= 2; i++)
        p->source_offsets[i] = p->target_offsets[i] = 5 * i;
    own_ids(p, 2);
}

static double loss_of(const wf_model *m, wf_tape *tape, const struct wf_pairs *pairs, wf_mode mode, uint64_t step)
{
    wf_tape_reset(tape, mode, .seed = 1, .step = step);
    wf_tensor *loss = wf_pairs_loss(m, tape, pairs);
    return mode == WF_INFER ? item_of(loss) : backward(loss);
}

START_TEST(first_loss_of_fresh_models)
{
    enum { MODELS = sizeof(wf_real) == 8 ? 10 : 100 };
    static struct some_pairs p;
    struct wf_config c = preset("seq2seq-postnorm");
    set_key(&c, "positions", set_key(&c, "max_length", 8)); /* unused rows of the table */
    wf_tape *tape = new_tape();
    double sum = 0, least = 1e9, most = 0;
    for (int i = 0; i < MODELS; i++) {
        wf_model *m = model_of(&c, 100 + (uint64_t)i);
        document_batch(&p, (uint64_t)i);
        double loss = loss_of(m, tape, &p.pairs, WF_INFER, 0);
        sum += loss;
        least = fmin(least, loss);
        most = fmax(most, loss);
        wf_model_free(m);
    }
    ck_assert_msg(fabs(sum / MODELS - 7.07) <= (MODELS < 100 ? 0.3 : 0.1), "mean of the first losses: %g (%g to %g)", sum / MODELS, least,
                  most);
    ck_assert(least > 6.3 && most < 7.9); /* four deviations of 0.18 */
    wf_tape_free(tape);
}
END_TEST

START_TEST(the_loss_falls)
{
    static struct some_pairs p;
    struct wf_config c = preset("seq2seq-postnorm");
    struct wf_optimizer opt;
    set_key(&c, "positions", set_key(&c, "max_length", 8));
    wf_model *m = model_of(&c, 7);
    wf_tape *tape = new_tape();
    ck_ok(wf_adam_init(&opt, wf_model_registry(m), error, .lr = c.training.lr, .beta1 = c.training.beta1, .beta2 = c.training.beta2,
                       .eps = c.training.eps));
    document_batch(&p, 3);
    double first = 0, last = 1e9;
    for (int s = 0; s < 60; s++) {
        double loss = loss_of(m, tape, &p.pairs, WF_TRAIN, (uint64_t)s);
        if (s % 20 == 0) {
            ck_assert_msg(loss < last, "step %d: %g after %g", s, loss, last);
            last = loss;
        }
        first = s == 0 ? loss : first;
        ck_ok(wf_clip_norm(wf_registry_grads(wf_model_registry(m)), c.training.clip, NULL, error));
        ck_ok(wf_adam_step(&opt, error));
    }
    ck_assert_msg(last < first - 2, "%g to %g", first, last);
    wf_optimizer_free(&opt);
    wf_tape_free(tape);
    wf_model_free(m);
}
END_TEST

static wf_real *logits_of(const wf_model *m, wf_tape *tape, const struct wf_pairs *p, const struct wf_seq2seq_weights *weights)
{
    int64_t n = p->target_offsets[p->count] * key_of(wf_model_config(m), "vocab_size");
    wf_real *out = wf_alloc((size_t)n * sizeof *out);
    wf_tape_reset(tape, WF_INFER);
    read_values(wf_pairs_logits(m, tape, p, weights), out, n);
    return out;
}

static void same(const wf_real *a, const wf_real *b, int64_t n, const char *what)
{
    for (int64_t i = 0; i < n; i++)
        ck_assert_msg(a[i] == b[i], "%s: number %lld is %.17g, not %.17g", what, (long long)i, (double)a[i], (double)b[i]);
}

/* A pair's logits have the same bits alone and beside other pairs. */
START_TEST(neighbours_do_not_matter)
{
    static struct some_pairs p;
    static const char *const names[] = {"seq2seq-tiny", "seq2seq-postnorm", "multi30k"};
    for (int i = 0; i < 3; i++) {
        struct wf_config c = small_pairs_config(names[i], 0);
        wf_model *m = model_of(&c, 2);
        wf_tape *tape = new_tape();
        random_pairs(&p, 40, 30, key_of(&c, "vocab_size"), key_of(&c, "vocab_size"), 5);
        wf_real *all = logits_of(m, tape, &p.pairs, NULL);
        for (int64_t k = 0; k < p.pairs.count; k += 7) {
            int32_t s[2], t[2];
            struct wf_pairs one = part_of(&p.pairs, k, 1, s, t);
            wf_real *alone = logits_of(m, tape, &one, NULL);
            same(alone, all + p.target_offsets[k] * key_of(&c, "vocab_size"), t[1] * key_of(&c, "vocab_size"), names[i]);
            wf_free(alone);
        }
        wf_free(all);
        wf_tape_free(tape);
        wf_model_free(m);
    }
}
END_TEST

/* Three sentences with 2, 0 and 3 rows: rows grow step by step from prefixes, are reordered within their sentence, and one sentence
 * leaves. The logits of every step have the bits of those of the whole targets. */
static void step_by_step(const char *name)
{
    enum { SENTENCES = 3, ROWS = 5, T = 12 };
    struct wf_config c = small_pairs_config(name, 0);
    wf_model *m = model_of(&c, 4);
    wf_tape *tape = new_tape();
    struct wf_cache cache;
    static struct some_pairs p;
    int32_t row_of[ROWS] = {0, 0, 2, 2, 2}, row_offsets[SENTENCES + 1] = {0, 2, 2, 5}, text[ROWS][T], source_offsets[SENTENCES + 1];
    int64_t rows = ROWS, done = 0, V = key_of(&c, "vocab_size");
    random_pairs(&p, SENTENCES, 20, V, V, 8);
    memcpy(source_offsets, p.source_offsets, sizeof source_offsets);
    for (int r = 0; r < ROWS; r++)
        random_ids(text[r], T, V, 50 + (uint64_t)r);
    ck_ok(wf_model_cache(m, &cache, ROWS, error));
    ck_assert(cache.layers == 2 && cache.capacity == key_of(&c, "max_length"));
    wf_tape_reset(tape, WF_INFER);
    wf_tensor *kv[2], *memory = wf_model_encode(m, tape, p.source, (struct wf_packed){source_offsets, SENTENCES});
    wf_model_memory(m, memory, kv);
    wf_tape *other = new_tape();
    wf_tape_mark mark = wf_tape_here(tape);
    for (int step = 0; done < T; step++) {
        int32_t ids[ROWS * T];
        int64_t length = step == 0 ? 3 : step == 4 ? 2 : 1;
        wf_real *have = wf_alloc((size_t)(rows * V) * sizeof *have);
        for (int64_t r = 0; r < rows; r++)
            memcpy(ids + r * length, text[r] + done, (size_t)length * sizeof *ids);
        wf_tensor *y = wf_model_decode(m, wf_ids(tape, ids, rows, length), &cache, kv, (struct wf_packed){row_offsets, SENTENCES},
                                       (struct wf_packed){source_offsets, SENTENCES});
        read_values(y, have, rows * V);
        wf_tape_rewind(tape, mark, NULL);
        done += length;
        for (int64_t r = 0; r < rows; r++) {
            int32_t s[2], t[2];
            struct wf_pairs whole = part_of(&p.pairs, row_of[r], 1, s, t);
            whole.input = text[r];
            t[1] = (int32_t)done;
            wf_real *want = logits_of(m, other, &whole, NULL);
            same(have + r * V, want + (done - 1) * V, V, name);
            wf_free(want);
        }
        wf_free(have);
        if (step == 1) { /* as a beam does */
            static const int32_t from[ROWS] = {1, 1, 4, 2, 2};
            int32_t copy[ROWS][T];
            memcpy(copy, text, sizeof copy);
            for (int r = 0; r < ROWS; r++) {
                memcpy(text[r], copy[from[r]], (size_t)done * sizeof **text);
                random_ids(text[r] + done, T - done, V, 70 + (uint64_t)r);
            }
            ck_ok(wf_cache_select(&cache, from, ROWS, error));
        }
        if (step == 2) { /* the first sentence is done: its rows go, the last one's stay */
            ck_ok(wf_cache_select(&cache, (int32_t[]){2, 3, 4}, 3, error));
            memmove(text[0], text[2], 3 * sizeof text[0]);
            rows = 3;
            row_of[0] = 2;
            row_of[1] = 2;
            row_offsets[1] = row_offsets[2] = 0;
            row_offsets[3] = 3;
        }
    }
    wf_cache_free(&cache);
    wf_tape_free(tape);
    wf_tape_free(other);
    wf_model_free(m);
}

START_TEST(steps_equal_the_whole)
{
    step_by_step("seq2seq-tiny");
    step_by_step("seq2seq-postnorm");
    step_by_step("transformer-base");
}
END_TEST

static void sums_to_one(wf_tensor *w, int64_t heads, int64_t T, int64_t S, bool causal)
{
    wf_array a;
    a = view_of(w);
    ck_assert(a.ndim == 4 && a.dim[0] == 1 && a.dim[1] == heads && a.dim[2] == T && a.dim[3] == S);
    for (int64_t h = 0; h < heads; h++)
        for (int64_t t = 0; t < T; t++) {
            double sum = 0;
            for (int64_t s = 0; s < S; s++) {
                double x = (double)((const wf_real *)a.data)[h * a.stride[1] + t * a.stride[2] + s * a.stride[3]];
                ck_assert(x >= 0 && (!causal || s <= t || x == 0));
                sum += x;
            }
            ck_assert_msg(fabs(sum - 1) < 1e-5, "weights add up to %.9g", sum);
        }
}

START_TEST(weights_of_a_pair)
{
    static struct some_pairs p;
    for (int pre = 0; pre < 2; pre++) {
        struct wf_config c = small_pairs_config(pre ? "multi30k" : "seq2seq-postnorm", 0);
        wf_model *m = model_of(&c, 3);
        wf_tape *tape = new_tape();
        wf_tensor *encoder[2], *decoder[2], *cross[2];
        struct wf_seq2seq_weights all = {encoder, decoder, cross}, one = {.cross = cross};
        int32_t s[2], t[2];
        random_pairs(&p, 6, 25, key_of(&c, "vocab_size"), key_of(&c, "vocab_size"), 9);
        struct wf_pairs pair = part_of(&p.pairs, 3, 1, s, t);
        wf_real *plain = logits_of(m, tape, &pair, NULL), *cross_only = logits_of(m, tape, &pair, &one);
        wf_real *with = logits_of(m, tape, &pair, &all);
        for (int i = 0; i < 2; i++) {
            sums_to_one(encoder[i], key_of(&c, "heads"), s[1], s[1], false);
            sums_to_one(decoder[i], key_of(&c, "heads"), t[1], t[1], true);
            sums_to_one(cross[i], key_of(&c, "heads"), t[1], s[1], false);
        }
        double apart = 0, norm = 0;
        for (int64_t i = 0; i < t[1] * key_of(&c, "vocab_size"); i++) {
            apart = fmax(apart, fabs((double)(with[i] - plain[i])));
            norm = fmax(norm, fabs((double)plain[i]));
        }
        ck_assert_msg(apart <= (sizeof(wf_real) == 8 ? 1e-13 : 1e-5) * norm, "looking changes the logits by %g", apart);
        same(cross_only, with, t[1] * key_of(&c, "vocab_size"), "with some of the weights");
        wf_tape_reset(tape, WF_INFER);
        ck_assert(wf_is_poison(wf_pairs_logits(m, tape, &p.pairs, &all)));
        ck_assert_str_eq(wf_tape_error(tape)->message + strlen(c.model), ": attention weights require exactly one pair, not 6");
        wf_free(plain);
        wf_free(cross_only);
        wf_free(with);
        wf_tape_free(tape);
        wf_model_free(m);
    }
}
END_TEST

/* A language model and an encoder-decoder in calls for the other kind. */
START_TEST(the_wrong_kind_of_model)
{
    static struct some_pairs p;
    struct wf_config lm = small_config("char-rms", 16, 29), c = small_pairs_config("multi30k", 0);
    wf_model *language = model_of(&lm, 1), *m = model_of(&c, 1);
    wf_tape *tape = new_tape();
    struct wf_cache cache;
    int32_t ids[4] = {1, 2, 3, 4}, offsets[2] = {0, 4}, out[4];
    const struct wf_packed packed = {offsets, 1};
    int64_t count;
    struct wf_evaluation e;
    wf_tensor *kv[2] = {0};
    random_pairs(&p, 3, 5, 29, 29, 1);
    ck_assert(wf_model_kind_of(language) != WF_MODEL_PAIRS && wf_model_kind_of(m) == WF_MODEL_PAIRS);
    const char *no_pairs = "char-rms is not an encoder-decoder: use the functions of weft/models.h or weft/encoder.h";
    poisoned(tape, wf_pairs_logits(language, tape, &p.pairs, NULL), WF_ERR_STATE, no_pairs);
    poisoned(tape, wf_pairs_loss(language, tape, &p.pairs), WF_ERR_STATE, no_pairs);
    poisoned(tape, wf_model_encode(language, tape, ids, packed), WF_ERR_STATE, no_pairs);
    ck_ok(wf_model_cache(language, &cache, 1, error));
    poisoned(tape, wf_model_decode(language, wf_ids(tape, ids, 1, 1), &cache, kv, packed, packed), WF_ERR_STATE, no_pairs);
    wf_cache_free(&cache);
    const char *no_text = "multi30k is an encoder-decoder";
    poisoned(tape, wf_model_logits(m, wf_ids(tape, ids, 1, 4), NULL), WF_ERR_STATE, no_text);
    poisoned(tape, wf_model_next(m, wf_ids(tape, ids, 1, 4), NULL), WF_ERR_STATE, no_text);
    poisoned(tape, wf_model_loss(m, wf_ids(tape, ids, 1, 4), wf_ids(tape, ids, 1, 4)), WF_ERR_STATE, no_text);
    const char *no_language = "multi30k is not a language model";
    ck_fails(wf_model_evaluate(m, tape, wf_id_view_of(ids, 4), 0, &e, error), WF_ERR_STATE, no_language);
    ck_fails(wf_generate_with(m, tape, ids, 4, &(struct wf_generate_options){.max_tokens = 2}, out, &count, error), WF_ERR_STATE,
             no_language);
    wf_tape_free(tape);
    wf_model_free(language);
    wf_model_free(m);
}
END_TEST

START_TEST(impossible_pairs)
{
    static struct some_pairs p;
    struct wf_config c = small_pairs_config("multi30k", 0);
    wf_model *m = model_of(&c, 1);
    wf_tape *tape = new_tape();
    struct wf_cache cache;
    wf_tensor *kv[2];
    int32_t long_offsets[2] = {0, 65}, falling[3] = {0, 4, 2}, late[2] = {1, 4}, ids[140] = {0};
    random_pairs(&p, 2, 5, 29, 29, 1);
    wf_tape_reset(tape, WF_INFER);
    struct wf_pairs bad = p.pairs;
    bad.source_offsets = falling;
    poisoned(tape, wf_pairs_logits(m, tape, &bad, NULL), WF_ERR_ARGUMENT,
             "source: offsets[2] = 2 after 4, but offsets of 2 sequences must begin with 0, never fall");
    bad = p.pairs, bad.count = 1, bad.target_offsets = late;
    poisoned(tape, wf_pairs_loss(m, tape, &bad), WF_ERR_ARGUMENT, "target: offsets[0] = 1, but");
    bad = p.pairs, bad.count = -1;
    poisoned(tape, wf_pairs_loss(m, tape, &bad), WF_ERR_ARGUMENT, "-1 sentences");
    poisoned(tape, wf_model_encode(m, tape, ids, (struct wf_packed){long_offsets, 1}), WF_ERR_SHAPE,
             "sequence 0 has length 65, but the model has 64 positions");
    p.source[0] = 29;
    poisoned(tape, wf_pairs_loss(m, tape, &p.pairs), WF_ERR_ARGUMENT, "29");
    p.source[0] = 0;
    ck_ok(wf_model_cache(m, &cache, 2, error));
    static const struct {
        int32_t rows, length, offsets[3];
        wf_status status;
        const char *says;
    } calls[] = {{3, 1, {0, 1, 3}, WF_ERR_SHAPE, "2 rows"},
                 {2, 1, {0, 1, 3}, WF_ERR_ARGUMENT, "translations: offsets[2] = 3 after 1, but"},
                 {2, 65, {0, 1, 2}, WF_ERR_SHAPE, "65 positions"}};
    const struct wf_packed sources = {p.source_offsets, 2};
    for (int i = 0; i < 3; i++) {
        wf_model_memory(m, wf_model_encode(m, tape, p.source, sources), kv);
        wf_tensor *y = wf_model_decode(m, wf_ids(tape, ids, calls[i].rows, calls[i].length), &cache, kv,
                                       (struct wf_packed){calls[i].offsets, 2}, sources);
        poisoned(tape, y, calls[i].status, calls[i].says);
    }
    ck_assert(cache.length[0] == 0 && cache.length[1] == 0);
    wf_cache_free(&cache);
    wf_tape_free(tape);
    wf_model_free(m);
}
END_TEST

WF_TEST_MAIN("pairs", first_loss_of_fresh_models, the_loss_falls, neighbours_do_not_matter, steps_equal_the_whole, weights_of_a_pair,
             the_wrong_kind_of_model, impossible_pairs)
