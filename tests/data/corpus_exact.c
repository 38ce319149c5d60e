/* SPDX-License-Identifier: MIT */
/* A text that is encoded in blocks, on any number of threads, has the ids of the whole text: with every golden tokenizer, over texts made
 * of the pieces that those were made to be hard for. */
#include <jansson.h>

#include "data_test.h"
#include <weft/runtime.h>

struct calls {
    int64_t done, blocks;
};

static bool count_blocks(void *ctx, int64_t done, int64_t total)
{
    struct calls *c = ctx;
    c->blocks += done > c->done && total > 0;
    c->done = done;
    return true;
}

/* Returns in how many turns it was encoded, 0 where it can't be. */
static int64_t ck_exact(const char *name, const wf_tokenizer *t, const struct wf_string *text, const char *path)
{
    struct wf_tokens whole = {0};
    struct wf_encode_options all = {.whole = true};
    struct calls calls = {0};
    struct wf_corpus_options o = {.tokenizer = t, .progress = count_blocks, .ctx = &calls};
    struct wf_text_ids ids;
    wf_error first = {0}, second = {0};
    wf_status status = wf_tokenizer_encode_with(t, text->data, text->length, &all, &whole, &first);
    ck_assert_int_eq(wf_text_ids_open(&path, 1, &o, &ids, &second), status);
    if (status == WF_OK) {
        int32_t *got = wf_alloc((size_t)(ids.ids.count + 1) * sizeof *got);
        wf_id_view_copy(ids.ids, 0, ids.ids.count, got);
        for (int64_t i = 0; i < ids.ids.count && i < whole.count; i++)
            if (got[i] != whole.id[i])
                ck_abort_msg("%s: id %lld is %d, not %d", name, (long long)i, (int)got[i], (int)whole.id[i]);
        ck_assert_msg(ids.ids.count == whole.count, "%s: %lld ids, not %lld", name, (long long)ids.ids.count, (long long)whole.count);
        wf_free(got);
    }
    wf_text_ids_close(&ids);
    wf_tokens_free(&whole);
    return status == WF_OK ? calls.blocks : 0;
}

/* A text of more than one megabyte out of pieces that the tokenizer knows. */
static void make_text(const wf_tokenizer *t, json_t *texts, unsigned seed, struct wf_string *out)
{
    static const char *const between[] = {" ", "\n", " ", "\n\n", ".\n", "", ", ", " \n", "\r\n", "  "};
    struct wf_tokens ids = {0};
    out->length = 0;
    while (out->length < 1100000) {
        seed = seed * 1664525u + 1013904223u;
        json_t *text = json_array_get(texts, (seed >> 8) % json_array_size(texts));
        wf_error problem = {0};
        ids.count = 0;
        const char *data = json_string_value(text), *gap = between[(seed >> 24) % 10];
        int64_t length = (int64_t)json_string_length(text);
        if (memchr(data, 0, (size_t)length) || wf_tokenizer_encode(t, data, length, &ids, &problem) != WF_OK)
            continue;
        for (const char *part[] = {data, gap}, **p = part; p < part + 2; p++) {
            int64_t size = *p == data ? length : (int64_t)strlen(gap);
            int64_t need = out->length + size + 1;
            if (need > out->capacity) {
                out->capacity = 2 * need;
                out->data = wf_realloc(out->data, (size_t)out->capacity);
            }
            memcpy(out->data + out->length, *p, (size_t)size);
            out->length += size;
        }
    }
    wf_tokens_free(&ids);
}

START_TEST(blocks_have_the_ids_of_the_whole)
{
    char *path = golden_path("../tokenizers/texts.json");
    json_t *texts = json_load_file(path, JSON_ALLOW_NUL, NULL);
    ck_assert_ptr_nonnull(texts);
    wf_free(path);
    int64_t cut = 0, taken = 0;
    for (size_t k = 0; k < GOLDEN_TOKENIZERS; k += sampled() ? 4 : 1, taken++) {
        const char *name = golden_tokenizers[k];
        wf_tokenizer *t = golden_tokenizer(name);
        struct wf_string text = {0};
        make_text(t, texts, (unsigned)k, &text);
        const char *file = test_file("text", text.data, (size_t)text.length);
        ck_ok(wf_set_threads(1 + (int)taken % 2, error));
        int64_t turns = ck_exact(name, t, &text, file);
        if (getenv("VERBOSE"))
            printf("%s: %lld bytes in %lld turns\n", name, (long long)text.length, (long long)turns);
        cut += turns > 1;
        wf_string_free(&text);
        wf_tokenizer_free(t);
    }
    ck_assert_int_eq(cut, taken); /* all of them in blocks */
    json_decref(texts);
}
END_TEST

/* Prose, with what this library trains: all of them take it in blocks. */
START_TEST(trained_tokenizers)
{
    enum { WORDS = 220000 };
    struct wf_string text = {0};
    static const char *const word[] = {"the", "people", "of",      "Rome,",         "speak!", "I",
                                       "am",  "no",     "orator;", "l\xC3\xA4ngst", "1599",   "'tis"};
    unsigned seed = 7;
    text.data = wf_alloc(10 * WORDS);
    for (int i = 0; i < WORDS; i++) {
        seed = seed * 1664525u + 1013904223u;
        text.length += sprintf(text.data + text.length, "%s%s", word[(seed >> 8) % 12], i % 11 == 10 ? i % 5 ? "\n" : ".\n\n" : " ");
    }
    const char *file = test_file("text", text.data, (size_t)text.length);
    for (int kind = 0; kind < 4; kind++) {
        wf_tokenizer *t;
        ck_ok(wf_tokenizer_train(text.data, 20000, &t, error, .kind = (wf_tokenizer_kind)kind, .vocab_size = kind ? 300 : 0));
        for (int threads = 1; threads < 4; threads += sampled() ? 2 : 1) {
            ck_ok(wf_set_threads(threads, error));
            int64_t turns = ck_exact(wf_tokenizer_kind_name((wf_tokenizer_kind)kind), t, &text, file);
            ck_assert_int_ge(turns, threads == 1 ? 3 : 1);
        }
        wf_tokenizer_free(t);
    }
    wf_string_free(&text);
}
END_TEST

WF_TEST_MAIN("corpus_exact", blocks_have_the_ids_of_the_whole, trained_tokenizers)
