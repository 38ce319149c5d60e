/* SPDX-License-Identifier: MIT */
/* Small encoder-decoders and random pairs, for the tests of translation models. */
#ifndef TESTS_PAIRS_TEST_H
#define TESTS_PAIRS_TEST_H

#include <math.h>

#include "models_test.h"
#include <weft/seq2seq.h>

/* A small model, every dropout on when p > 0. */
static inline struct wf_config small_pairs_config(const char *name, double p)
{
    struct wf_config c = preset(name);
    set_keys(&c, "d_model=24 heads=4 d_ff=40 encoder_layers=2 decoder_layers=2 max_length=64 positions=0 vocab_size=29");
    set_key(&c, "dropout", p);
    set_key(&c, "inner_dropout", p > 0);
    return c;
}

/* Sets a narrow model with this number of layers on each side, for texts of 64 tokens of 29 types. */
static inline void make_narrow(struct wf_config *c, int64_t layers)
{
    const bool both = wf_config_kind(c) == WF_MODEL_PAIRS;
    set_keys(c, "d_model=32 heads=4 d_ff=64 vocab_size=29");
    set_keys(c, both ? "max_length=64" : "context=64");
    set_key(c, both ? "encoder_layers" : "layers", layers);
    if (both)
        set_key(c, "decoder_layers", layers);
}

enum { MOST_PAIRS = 100, MOST_IDS = 4000 };
/* Random pairs and the arrays of their ids. */
struct some_pairs {
    struct wf_pairs pairs;
    int32_t source[MOST_IDS], input[MOST_IDS], target[MOST_IDS], source_offsets[MOST_PAIRS + 1], target_offsets[MOST_PAIRS + 1];
};

static inline void own_ids(struct some_pairs *p, int64_t count)
{
    p->pairs = (struct wf_pairs){.count = count,
                                 .source = p->source,
                                 .source_offsets = p->source_offsets,
                                 .input = p->input,
                                 .target = p->target,
                                 .target_offsets = p->target_offsets};
}

/* `count` pairs with sides of 1 to `longest` ids; a target is a function of its input and of the source's first id. */
static inline void random_pairs(struct some_pairs *p, int64_t count, int64_t longest, int64_t source_vocab, int64_t vocab, uint64_t seed)
{
    wf_rng rng = wf_rng_new(seed, wf_stream_of("pairs"));
    p->source_offsets[0] = p->target_offsets[0] = 0;
    ck_assert(count <= MOST_PAIRS && count * longest <= MOST_IDS);
    for (int64_t i = 0; i < count; i++) {
        p->source_offsets[i + 1] = p->source_offsets[i] + 1 + (int32_t)wf_rng_below(&rng, (uint64_t)longest);
        p->target_offsets[i + 1] = p->target_offsets[i] + 1 + (int32_t)wf_rng_below(&rng, (uint64_t)longest);
        for (int32_t k = p->source_offsets[i]; k < p->source_offsets[i + 1]; k++)
            p->source[k] = (int32_t)wf_rng_below(&rng, (uint64_t)source_vocab);
        for (int32_t k = p->target_offsets[i]; k < p->target_offsets[i + 1]; k++) {
            p->input[k] = (int32_t)wf_rng_below(&rng, (uint64_t)vocab);
            p->target[k] = (int32_t)((3 * p->input[k] + p->source[p->source_offsets[i]]) % vocab);
        }
    }
    own_ids(p, count);
}

/* A micro-batch of the pairs begin .. begin+count-1 of p. Its offsets are written to s and t, with room for count + 1. */
static inline struct wf_pairs part_of(const struct wf_pairs *p, int64_t begin, int64_t count, int32_t *s, int32_t *t)
{
    int32_t s0 = p->source_offsets[begin], t0 = p->target_offsets[begin];
    for (int64_t i = 0; i <= count; i++) {
        s[i] = p->source_offsets[begin + i] - s0;
        t[i] = p->target_offsets[begin + i] - t0;
    }
    return (struct wf_pairs){.count = count,
                             .source = p->source + s0,
                             .source_offsets = s,
                             .input = p->input + t0,
                             .target = p->target + t0,
                             .target_offsets = t,
                             .first_source = p->first_source + s0,
                             .first_target = p->first_target + t0};
}

#endif
