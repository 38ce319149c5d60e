/* SPDX-License-Identifier: MIT */
/* Sentence vectors: against PyTorch (tests/golden/make_bert.py), with the same bits beside any other sentences, and errors. */
#include <weft/embed.h>
#include <weft/tokenizer.h>

#include "../golden/bert.h"
#include "../models/memory_test.h"

enum { S = BERT_SENTENCES, D = BERT_D, MANY = 300 };

struct subject {
    struct wf_config config;
    wf_model *model;
    wf_tokenizer *tokenizer;
    const char *line[S];
    int64_t length[S];
    char *text;
};

static void setup(struct subject *r)
{
    r->config = bert_config();
    r->model = bert_model(&r->config);
    ck_ok(wf_tokenizer_load_vocab(bert_path("vocab.txt"), &r->tokenizer, error));
    r->text = bert_sentences(r->line, r->length);
}

static void teardown(struct subject *r)
{
    wf_model_free(r->model);
    wf_tokenizer_free(r->tokenizer);
    wf_free(r->text);
}

static wf_embedder *embedder(const struct subject *r, struct wf_embedder_options o)
{
    wf_error error = {0};
    wf_embedder *e = wf_embedder_new(r->model, r->tokenizer, &o, &error);
    ck_assert_msg(e != NULL, "%s", error.message);
    ck_assert_int_eq(wf_embedder_width(e), D);
    return e;
}

START_TEST(vectors_are_those_of_pytorch)
{
    static const struct wf_embedder_options ways[] = {{.pooling = WF_POOL_MEAN, .normalize = true, .max_length = 20, .truncate = true},
                                                      {.pooling = WF_POOL_CLS, .max_length = 20, .truncate = true}};
    struct subject r;
    setup(&r);
    wf_safetensors *file = bert_open("outputs.safetensors");
    for (int way = 0; way < 2; way++) {
        wf_embedder *e = embedder(&r, ways[way]);
        wf_real out[S * D];
        int64_t truncated = 7;
        ck_ok(wf_embed(e, r.line, r.length, S, 1, out, &truncated, error));
        ck_assert_int_eq(truncated, 1);
        for (int i = 0; i < S; i++) {
            char key[64];
            wf_array a = wf_array_contiguous(out + i * D, WF_REAL, WF_SHAPE(D));
            snprintf(key, sizeof key, "sentence.%d.%s", i, way == 0 ? "mean" : "cls");
            golden_near(file, key, &a, golden_tolerance());
        }
        wf_embedder_free(e);
    }
    wf_safetensors_close(file);
    teardown(&r);
}
END_TEST

/* Lines of many lengths, so that there are several batches and lanes. A line's bits are the same in another order, alone, and with
 * another number of threads. */
START_TEST(a_sentence_has_its_own_bits)
{
    static const char *const words[] = {"the", "dog", "sleeps", "under", "a", "table", "rain", "cab", "über", "."};
    static char text[MANY][160];
    static wf_real all[MANY * D], other[MANY * D];
    const char *line[MANY], *turned[MANY];
    int64_t length[MANY], turned_length[MANY];
    struct subject r;
    setup(&r);
    wf_rng rng = wf_rng_new(3, 1);
    for (int i = 0; i < MANY; i++) {
        int count = (int)wf_rng_below(&rng, 11);
        for (int w = 0; w < count; w++)
            snprintf(text[i] + strlen(text[i]), sizeof text[i] - strlen(text[i]), "%s ", words[wf_rng_below(&rng, 10)]);
        line[i] = turned[MANY - 1 - i] = text[i];
        length[i] = turned_length[MANY - 1 - i] = (int64_t)strlen(text[i]);
    }
    wf_embedder *e = embedder(&r, (struct wf_embedder_options){.normalize = true});
    ck_ok(wf_embed(e, line, length, MANY, 1, all, NULL, error));
    for (int threads = 1; threads <= 3; threads++) {
        ck_ok(wf_set_threads(threads, error));
        ck_ok(wf_embed(e, turned, turned_length, MANY, 1, other, NULL, error));
        for (int i = 0; i < MANY; i++)
            ck_assert_int_eq(memcmp(all + i * D, other + (MANY - 1 - i) * D, D * sizeof *all), 0);
    }
    for (int i = 0; i < MANY; i += 17) {
        ck_ok(wf_embed(e, &line[i], &length[i], 1, 1, other, NULL, error));
        ck_assert_int_eq(memcmp(all + i * D, other, D * sizeof *all), 0);
        ck_ok(wf_embed(e, &line[i], &length[i], MANY - i, 1, other, NULL, error));
        ck_assert_int_eq(memcmp(all + i * D, other, (size_t)(MANY - i) * D * sizeof *all), 0);
    }
    ck_ok(wf_embed(e, NULL, NULL, 0, 1, NULL, NULL, error));
    wf_embedder_free(e);
    teardown(&r);
}
END_TEST

/* The truncation and padding in the tokenizer's file are for other programs: max_length counts here. */
START_TEST(truncation_and_padding_of_the_tokenizer_dont_count)
{
    struct subject r;
    struct wf_string json = {0};
    wf_tokenizer *padded;
    wf_real plain[S * D], with[S * D];
    setup(&r);
    ck_ok(wf_tokenizer_json(r.tokenizer, &json, error));
    const char *none = "\"truncation\": null,\n  \"padding\": null,", *at = strstr(json.data, none);
    ck_assert_ptr_nonnull(at);
    struct wf_string changed = {.data = malloc((size_t)json.length + 512)};
    changed.length =
        snprintf(changed.data, (size_t)json.length + 512, "%.*s%s%s", (int)(at - json.data), json.data,
                 "\"truncation\": {\"max_length\": 4, \"strategy\": \"LongestFirst\", \"stride\": 0}, \"padding\": {\"strategy\": "
                 "{\"Fixed\": 19}, \"direction\": \"Right\", \"pad_to_multiple_of\": null, \"pad_id\": 0, \"pad_type_id\": 0, "
                 "\"pad_token\": \"[PAD]\"},",
                 at + strlen(none));
    ck_ok(wf_tokenizer_parse(changed.data, changed.length, "padded", &padded, error));
    struct wf_tokens ids = {0};
    ck_ok(
        wf_tokenizer_encode_with(padded, "the dog sleeps under the table", 30, &(struct wf_encode_options){.specials = true}, &ids, error));
    ck_assert_int_eq(ids.count, 19); /* it does pad */
    wf_tokens_free(&ids);
    wf_embedder *e = embedder(&r, (struct wf_embedder_options){.truncate = true, .max_length = 20});
    ck_ok(wf_embed(e, r.line, r.length, S, 1, plain, NULL, error));
    wf_embedder_free(e);
    wf_tokenizer *own = r.tokenizer;
    r.tokenizer = padded;
    e = embedder(&r, (struct wf_embedder_options){.truncate = true, .max_length = 20});
    ck_ok(wf_embed(e, r.line, r.length, S, 1, with, NULL, error));
    wf_embedder_free(e);
    ck_assert_int_eq(memcmp(plain, with, sizeof plain), 0);
    r.tokenizer = own;
    wf_tokenizer_free(padded);
    free(changed.data);
    wf_string_free(&json);
    teardown(&r);
}
END_TEST

START_TEST(lines_that_cannot_be)
{
    struct subject r;
    wf_real out[2 * D];
    setup(&r);
    wf_embedder *m = embedder(&r, (struct wf_embedder_options){.max_length = 5});
    const char *line[] = {"the dog", "the dog sleeps.", "\xff"};
    int64_t length[] = {7, 15, 1}, truncated;
    ck_fails(wf_embed(m, line, length, 2, 10, out, NULL, error), WF_ERR_FORMAT,
             "input:11: the line has 6 tokens, more than the maximum of 5");
    ck_fails(wf_embed(m, line + 2, length + 2, 1, 3, out, NULL, error), WF_ERR_FORMAT, "input:3:1: not UTF-8: byte 0xFF");
    ck_fails(wf_embed(m, line + 1, length + 1, 2, 3, out, NULL, error), WF_ERR_FORMAT, "input:3:"); /* the first bad line */
    ck_ok(wf_embed(m, line, length, 1, 1, out, &truncated, error));                                 /* and goes on */
    ck_assert_int_eq(truncated, 0);
    wf_embedder_free(m);

    struct wf_config gpt = small_config("char-rms", 16, 30);
    wf_model *language = model_of(&gpt, 1);
    ck_fails_null(wf_embedder_new(language, r.tokenizer, &(struct wf_embedder_options){0}, error), WF_ERR_ARGUMENT,
                  "char-rms is not an encoder");
    wf_model_free(language);
    static const struct {
        struct wf_embedder_options options;
        const char *message;
    } bad[] = {{{.max_length = 25}, "max_length: 25 is out of range: 1 to 24"},
               {{.max_length = -1}, "max_length: -1"},
               {{.max_length = 2}, "max_length: 2 leaves no room besides the 2 special tokens"},
               {{.pooling = (enum wf_pooling)2}, "pooling 2 is unknown"}};
    for (int i = 0; i < 4; i++)
        ck_fails_null(wf_embedder_new(r.model, r.tokenizer, &bad[i].options, error), WF_ERR_ARGUMENT, bad[i].message);
    teardown(&r);

    struct wf_config fewer = bert_config(); /* a tokenizer with more entries than the model */
    set_key(&fewer, "vocab_size", BERT_TYPES - 1);
    wf_model *small = model_of(&fewer, 1);
    ck_ok(wf_tokenizer_load_vocab(bert_path("vocab.txt"), &r.tokenizer, error));
    ck_fails_null(wf_embedder_new(small, r.tokenizer, &(struct wf_embedder_options){0}, error), WF_ERR_ARGUMENT,
                  "vocabulary size mismatch: tokenizer 42, model 41");
    wf_tokenizer_free(r.tokenizer);
    wf_model_free(small);
}
END_TEST

/* An encoder of the zoo, whose tokenizer has no special tokens: an empty line has no tokens and a vector of zeros. */
START_TEST(an_encoder_of_ours)
{
    struct wf_config c = small_config("encoder-attention", 16, 6);
    wf_tokenizer *words;
    wf_real out[3 * 24];
    wf_error problem = {0};
    const char *text = "a b c d e a b", *line[] = {"a b", "", "e"};
    int64_t length[] = {3, 0, 1};
    ck_ok(wf_tokenizer_train(text, (int64_t)strlen(text), &words, error, .kind = WF_TOKENIZER_WORD, .specials = (const char *[]){"<unk>"},
                             .special_count = 1));
    set_key(&c, "vocab_size", wf_tokenizer_vocab_size(words));
    wf_model *m = model_of(&c, 2);
    wf_embedder *e = wf_embedder_new(m, words, &(struct wf_embedder_options){.normalize = true}, &problem);
    ck_assert_msg(e != NULL, "%s", problem.message);
    memset(out, 1, sizeof out);
    ck_ok(wf_embed(e, line, length, 3, 1, out, NULL, error));
    for (int i = 0; i < 3; i++) {
        double squares = 0;
        for (int j = 0; j < 24; j++)
            squares += (double)out[i * 24 + j] * (double)out[i * 24 + j];
        ck_assert(i == 1 ? squares == 0 : fabs(squares - 1) < 1e-5);
    }
    wf_embedder_free(e);
    wf_model_free(m);
    wf_tokenizer_free(words);
}
END_TEST

static wf_status embed_lines(void *ctx, wf_error *error)
{
    const struct subject *r = ctx;
    wf_real out[S * D];
    wf_embedder *e = wf_embedder_new(r->model, r->tokenizer, &(struct wf_embedder_options){.truncate = true, .normalize = true}, error);
    wf_status status = e ? wf_embed(e, r->line, r->length, S, 1, out, NULL, error) : error->code;
    wf_embedder_free(e);
    return status;
}

/* Nothing is allocated after the first calls; any allocation may fail. */
START_TEST(memory)
{
    struct subject r;
    wf_real out[S * D];
    setup(&r);
    wf_embedder *e = embedder(&r, (struct wf_embedder_options){.truncate = true, .normalize = true});
    for (int i = 0; i < 3; i++) /* the tape has two sets of records */
        ck_ok(wf_embed(e, r.line, r.length, S, 1, out, NULL, error));
    int64_t before = wf_alloc_count();
    ck_ok(wf_embed(e, r.line, r.length, S, 1, out, NULL, error));
    ck_assert_int_eq(wf_alloc_count(), before);
    wf_embedder_free(e);
    ck_assert_int_gt(sweep_memory(embed_lines, &r), 4);
    teardown(&r);
}
END_TEST

START_TEST(cosines_without_memory)
{
    enum { N = 300, WIDTH = 64 };
    ck_ok(wf_init(error, .threads = 1));
    wf_real *x = calloc(N * WIDTH, sizeof *x), *out = calloc((size_t)N * N, sizeof *out);
    for (int i = 0; i < N; i++)
        x[i * WIDTH + i % WIDTH] = 1;
    wf_scratch_drop();
    wf_alloc_fail_after(0);
    ck_fails(wf_cosines(x, N, WIDTH, 0, N, out, error), WF_ERR_MEMORY, "300 vectors");
    wf_alloc_fail_after(-1);
    ck_ok(wf_cosines(x, N, WIDTH, 0, N, out, error));
    for (int i = 0; i < N * N; i++)
        ck_assert(out[i] == (i / N % WIDTH == i % N % WIDTH));
    free(x), free(out);
}
END_TEST

WF_TEST_MAIN("models/embed", vectors_are_those_of_pytorch, a_sentence_has_its_own_bits, truncation_and_padding_of_the_tokenizer_dont_count,
             lines_that_cannot_be, an_encoder_of_ours, memory, cosines_without_memory)
