/* SPDX-License-Identifier: MIT */
/* Small encoder-decoders and random sentences for the tests of translating. */
#ifndef TESTS_TRANSLATE_TEST_H
#define TESTS_TRANSLATE_TEST_H

#include <math.h>

#include "../models/models_test.h"
#include <weft/internal/minmax.h>
#include <weft/translate.h>

enum { BOS = 0, EOS = 2, MOST_IDS = 64 };

static const char *const names[] = {"seq2seq-tiny", "seq2seq-postnorm", "transformer-base", "multi30k"};

struct sentences {
    int32_t ids[4096], offsets[300];
    int64_t count;
};

static inline struct wf_config pairs_config(const char *name, int64_t vocab)
{
    struct wf_config c = preset(name);
    set_keys(&c, "d_model=24 heads=4 d_ff=40 encoder_layers=2 decoder_layers=2 max_length=20 positions=0 dropout=0 extra_tokens=6 "
                 "max_tokens=0");
    set_key(&c, "vocab_size", vocab);
    set_key(&c, "source_vocab_size", key_of(&c, "shared") ? 0 : vocab + 3);
    return c;
}

/* After initialisation all tokens are about equally likely; larger weights make the model decide. */
static inline wf_model *decided_model(const struct wf_config *c, uint64_t seed, double factor)
{
    wf_model *m = model_of(c, seed);
    wf_real *values = wf_registry_values(wf_model_registry(m));
    int64_t n = wf_registry_slab(wf_model_registry(m));
    for (int64_t i = 0; i < n; i++)
        values[i] *= (wf_real)factor;
    return m;
}

static inline void random_sentences(struct sentences *s, const struct wf_config *c, int64_t count, int64_t longest, uint64_t seed)
{
    wf_rng rng = wf_rng_new(seed, 11);
    int64_t types = wf_config_shape(c).source_vocab_size;
    s->count = count;
    s->offsets[0] = 0;
    for (int64_t i = 0; i < count; i++) {
        int32_t length = 1 + (int32_t)wf_rng_below(&rng, (uint64_t)longest);
        s->offsets[i + 1] = s->offsets[i] + length;
        for (int32_t j = 0; j < length; j++)
            s->ids[s->offsets[i] + j] = (int32_t)wf_rng_below(&rng, (uint64_t)types);
    }
}

/* The sentences of s in another order: number i is number order[i] of s. */
static inline void reorder(const struct sentences *s, const int *order, struct sentences *out)
{
    out->count = s->count;
    out->offsets[0] = 0;
    for (int64_t i = 0; i < s->count; i++) {
        int32_t at = s->offsets[order[i]], length = s->offsets[order[i] + 1] - at;
        memcpy(out->ids + out->offsets[i], s->ids + at, (size_t)length * sizeof *s->ids);
        out->offsets[i + 1] = out->offsets[i] + length;
    }
}

static inline wf_translator *new_translator(const wf_model *m, const wf_tokenizer *source, const wf_tokenizer *target,
                                            struct wf_translator_options options)
{
    wf_error error = {0};
    wf_translator *t = wf_translator_new(m, source, target, &options, &error);
    ck_assert_msg(t != NULL, "%s", error.message);
    return t;
}

/* The same bits. */
static inline bool same_hypothesis(const struct wf_hypothesis *a, const struct wf_hypothesis *b)
{
    return a->length == b->length && a->finished == b->finished && memcmp(&a->score, &b->score, sizeof a->score) == 0 &&
           memcmp(&a->log_probability, &b->log_probability, sizeof a->score) == 0 &&
           (a->length == 0 || memcmp(a->ids, b->ids, (size_t)a->length * sizeof *a->ids) == 0);
}

#endif
