/* SPDX-License-Identifier: MIT */
/* Shared by the tests of parallel text. */
#ifndef TESTS_DATA_BITEXT_TEST_H
#define TESTS_DATA_BITEXT_TEST_H

#include "data_test.h"

/* A tokenizer of the words w0 .. w59, with <unk> if `unknown`. */
static inline wf_tokenizer *words(bool unknown)
{
    static const char *const specials[] = {"<s>", "<pad>", "</s>", "<unk>"};
    char text[1000] = "";
    for (int i = 0; i < 60; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "w%d ", i);
    wf_tokenizer *t = NULL;
    if (unknown)
        ck_ok(wf_tokenizer_train(text, (int64_t)strlen(text), &t, error, .kind = WF_TOKENIZER_WORD, .specials = specials,
                                 .special_count = 4));
    else
        ck_ok(wf_tokenizer_train(text, (int64_t)strlen(text), &t, error, .kind = WF_TOKENIZER_WORD));
    return t;
}

/* Opens two texts; TEXTS gives the first four arguments of string literals. */
static inline wf_status open_texts(const char *source, int64_t source_bytes, const char *target, int64_t target_bytes,
                                   const struct wf_bitext_options *options, wf_bitext **out, wf_error *error)
{
    const char *a = test_file("a.en", source, (size_t)source_bytes), *b = test_file("b.de", target, (size_t)target_bytes);
    wf_status status = wf_bitext_open(a, b, options, out, error);
    ck_assert((status == WF_OK) == (*out != NULL));
    return status;
}

#define TEXTS(source, target) source, (int64_t)sizeof(source) - 1, target, (int64_t)sizeof(target) - 1

/* A corpus of `lines` pairs of 1 to `most` words a side, the same for the same seed. */
static inline void make_corpus(int64_t lines, int most, uint64_t seed, char **source, char **target)
{
    char **path[2] = {source, target};
    for (int side = 0; side < 2; side++) {
        wf_rng rng = wf_rng_new(seed, (uint64_t)side + 1);
        struct wf_string text = {0};
        text.data = malloc((size_t)(lines * most * 4 + 1));
        for (int64_t i = 0; i < lines; i++) {
            int count = 1 + (int)wf_rng_below(&rng, (uint64_t)most);
            for (int k = 0; k < count; k++)
                text.length += sprintf(text.data + text.length, "%sw%d", k ? " " : "", (int)wf_rng_below(&rng, 60));
            text.data[text.length++] = '\n';
        }
        *path[side] = test_file(side ? "corpus.target" : "corpus.source", text.data, (size_t)text.length);
        free(text.data);
    }
}

struct corpus {
    wf_tokenizer *tokenizer;
    char *source, *target;
    struct wf_bitext_options options;
    wf_bitext *bitext;
};

static inline void open_corpus(struct corpus *c, int64_t lines, int most)
{
    c->tokenizer = words(false);
    make_corpus(lines, most, 7, &c->source, &c->target);
    c->options = (struct wf_bitext_options){.source = c->tokenizer, .target = c->tokenizer, .source_eos = true};
    ck_ok(wf_bitext_open(c->source, c->target, &c->options, &c->bitext, error));
}

/* Opens and closes a corpus once more, with its present options; for sweep_memory. */
static inline wf_status reopened(void *corpus, wf_error *error)
{
    const struct corpus *c = corpus;
    wf_bitext *b;
    wf_status status = wf_bitext_open(c->source, c->target, &c->options, &b, error);
    ck_assert((status == WF_OK) == (b != NULL));
    wf_bitext_close(b);
    return status;
}

static inline void close_corpus(struct corpus *c)
{
    wf_bitext_close(c->bitext);
    wf_tokenizer_free(c->tokenizer);
}

#endif
