/* SPDX-License-Identifier: MIT */
/* tokenizer.json: against files and ids that the package `tokenizers` made, and against hostile files. */
#include "../data/data_test.h"
#include <weft/internal/minmax.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size); /* tests/fuzz/tokenizer.c */

static const char *const names[] = {"ascii", "unix_and_dos", "scripts", "emoji", "controls", "planes"};

static char *golden_of(const char *name, const char *ending, int64_t *bytes)
{
    char file[64];
    snprintf(file, sizeof file, "%s.%s", name, ending);
    return golden(file, bytes);
}

START_TEST(the_same_as_tokenizers)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int64_t text_bytes, json_bytes, ids_bytes;
        char *text = golden_of(names[i], "txt", &text_bytes), *json = golden_of(names[i], "json", &json_bytes);
        char *ids_text = golden_of(names[i], "ids", &ids_bytes), *next = ids_text;
        wf_tokenizer *trained, *loaded;
        struct wf_string own = {0}, back = {0};
        struct wf_tokens ids = {0}, ids2 = {0};
        ck_ok(wf_tokenizer_train(text, text_bytes, &trained, error));
        ck_ok(wf_tokenizer_json(trained, &own, error));
        ck_assert_msg(has_bytes(&own, json, json_bytes), "%s: other bytes than tokenizers'", names[i]);
        ck_ok(wf_tokenizer_parse(json, json_bytes, names[i], &loaded, error));
        ck_ok(wf_tokenizer_encode(trained, text, text_bytes, &ids, error));
        ck_ok(wf_tokenizer_encode(loaded, text, text_bytes, &ids2, error));
        ck_assert_int_eq(ids.count, ids2.count);
        for (int64_t k = 0; k < ids.count; k++) {
            ck_assert_int_eq(ids.id[k], strtol(next, &next, 10));
            ck_assert_int_eq(ids.id[k], ids2.id[k]);
        }
        ck_assert_str_eq(next, "\n");
        ck_ok(wf_tokenizer_decode(loaded, ids.id, ids.count, &back, error));
        ck_assert(has_bytes(&back, text, text_bytes));
        wf_tokenizer_free(trained);
        wf_tokenizer_free(loaded);
        wf_string_free(&own);
        wf_string_free(&back);
        wf_tokens_free(&ids);
        wf_tokens_free(&ids2);
        wf_free(text);
        wf_free(json);
        wf_free(ids_text);
    }
}
END_TEST

START_TEST(saves_and_loads)
{
    wf_tokenizer *t, *again;
    struct wf_string json = {0};
    int64_t bytes;
    char *path = test_file("tokenizer.json", NULL, 0);
    ck_ok(wf_tokenizer_train("h\xC3\xA9llo\r\n", 8, &t, error));
    ck_ok(wf_tokenizer_save(t, path, error));
    ck_ok(wf_tokenizer_save(t, path, error));
    ck_ok(wf_tokenizer_load(path, &again, error));
    ck_assert_int_eq(wf_tokenizer_vocab_size(again), 6);
    ck_ok(wf_tokenizer_json(again, &json, error));
    wf_error problem = {0};
    char *file = wf_file_load(path, 1 << 20, &bytes, &problem);
    ck_assert(file && has_bytes(&json, file, bytes));
    wf_tokenizer_free(again);
    ck_fails(wf_tokenizer_load("/nonexistent/tokenizer.json", &again, error), WF_ERR_IO, "/nonexistent/tokenizer.json");
    ck_assert_ptr_null(again);
    ck_fails(wf_tokenizer_save(t, "/nonexistent/tokenizer.json", error), WF_ERR_IO, "/nonexistent/");
    ck_fails(wf_tokenizer_load(test_file("empty", "", 0), &again, error), WF_ERR_FORMAT, "empty");
    wf_free(file);
    wf_string_free(&json);
    wf_tokenizer_free(t);
}
END_TEST

/* `text` with its first `from` replaced by `to`. */
static char *replaced(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    ck_assert_msg(at != NULL, "no %s", from);
    return wf_format("%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

static wf_status parse(const char *json, wf_tokenizer **out, wf_error *error)
{
    return wf_tokenizer_parse(json, (int64_t)strlen(json), "x.json", out, error);
}

#define ADDED(id, content)                                                                                                                 \
    "{\"id\": " id ", \"content\": \"" content                                                                                             \
    "\", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": false, \"special\": true}"

START_TEST(refuses_by_name)
{
    static const struct {
        const char *from, *to, *message;
    } cases[] = {
        {"\"1.0\"", "\"2.0\"", "version \"2.0\""},
        {"\"WordLevel\"", "\"Unigram\"", "model \"Unigram\""},
        {"\"WordLevel\"", "\"BPE\"", "\"merges\""},
        {"\"WordLevel\"", "\"WordPiece\"", "\"continuing_subword_prefix\""},
        {"\"WordLevel\"", "7", "type"},
        {"\"truncation\": null", "\"truncation\": {\"max_length\": 5}", "strategy"},
        {"\"truncation\": null", "\"truncation\": {\"max_length\": 5, \"stride\": 0, \"strategy\": \"OnlySecond\"}",
         "key \"strategy\": \"OnlySecond\" is none of LongestFirst, OnlyFirst"},
        {"\"padding\": null", "\"padding\": {\"strategy\": \"BatchLongest\"}", "direction"},
        {"\"padding\": null", "\"padding\": 5", "padding"},
        {"\"added_tokens\": []", "\"added_tokens\": [{\"id\": 0, \"content\": \"<pad>\"}]", "single_word"},
        {"\"added_tokens\": []", "\"added_tokens\": [" ADDED("4", "<pad>") "]", "added token \"<pad>\" has the id 4"},
        {"\"added_tokens\": []", "\"added_tokens\": [" ADDED("3", "<pad>") ", " ADDED("3", "<pad>") "]", "\"<pad>\" is listed twice"},
        {"\"added_tokens\": []", "\"added_tokens\": [" ADDED("3", "") "]", "empty"},
        {"\"added_tokens\": []", "\"added_tokens\": [7]", "not an object"},
        {"\"normalizer\": null", "\"normalizer\": {\"type\": \"Nmt\"}", "normalizer \"Nmt\""},
        {"\"normalizer\": null", "\"normalizer\": {\"type\": \"Precompiled\", \"precompiled_charsmap\": \"\"}",
         "normalizer \"Precompiled\""},
        {"\"normalizer\": null", "\"normalizer\": \"NFC\"", "normalizer"},
        {"\"normalizer\": null", "\"normalizer\": {\"type\": \"NFC\", \"form\": 1}", "form"},
        {"\"normalizer\": null", "\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"Nmt\"}]}", "normalizer \"Nmt\""},
        {"\"normalizer\": null", "\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [null]}", "a step of the normalizer"},
        {"\"normalizer\": null", "\"normalizer\": {\"type\": \"Strip\"}", "strip_left"},
        {"\"post_processor\": null", "\"post_processor\": {\"type\": \"TemplateProcessing\"}", "single"},
        {"\"post_processor\": null", "\"post_processor\": {\"type\": \"BertProcessing\", \"sep\": [\"x\", 9], \"cls\": [\"y\", 1]}",
         "the id 9"},
        {"\"post_processor\": null", "\"post_processor\": {\"type\": \"Other\"}", "post_processor \"Other\""},
        {"\"type\": \"Split\"", "\"type\": \"UnicodeScripts\"", "pre_tokenizer \"UnicodeScripts\""},
        {"\"type\": \"Split\"", "\"type\": \"Whitespace\"", "pattern"},
        {"\"Split\"", "\"Split\", \"extra\": 1", "extra"},
        {"[\\\\s\\\\S]", "(", "the pattern \"(\" is not supported"},
        {"[\\\\s\\\\S]", "[a&&b]", "an intersection"},
        {"[\\\\s\\\\S]", "[\\\\W]", "an escape"},
        {"[\\\\s\\\\S]", "(*COMMIT)a", "a callout"},
        {"[\\\\s\\\\S]", "(?<=a+)b", "not supported"},
        {"[\\\\s\\\\S]", "(?i:'s|Fi)", "where case does not count"},
        {"[\\\\s\\\\S]", "(?i)[a\xC3\x9F]", "where case does not count"},
        {"\"Regex\"", "\"Glob\"", "a pattern must be"},
        {"Isolated", "Doubled", "\"Doubled\""},
        {"\"invert\": false", "\"invert\": 0", "invert"},
        {"\"Fuse\"", "\"CTC\"", "decoder \"CTC\""},
        {"\"Fuse\"", "\"Fuse\", \"more\": true", "more"},
        {"\"<unk>\"", "\"<unk>\", \"dropout\": 0.1", "dropout"},
        {"\"version\"", "\"vendor\": 1, \"version\"", "vendor"},
        {"\"a\": 0", "\"b\": 0", "b"},
        {"\"a\": 0", "\"a\": 1", "the id 1 of token"},
        {"\"a\": 0", "\"a\": 3", "\"a\" is not an integer from 0 to 2"},
        {"\"a\": 0", "\"a\": -1", "\"a\" is not an integer"},
        {"\"a\": 0", "\"a\": 0.0", "\"a\" is not an integer"},
        {"\"a\": 0", "\"a\": \"0\"", "\"a\" is not an integer"},
        {"\"a\": 0", "\"a\": 99999999999999999999", "x.json"},
        {"\"a\": 0", "\"\\u0000\": 0", "x.json"},
        {"\"a\": 0", "\"\\ud800\": 0", "x.json"},
        {"\"a\": 0", "\"\xC0\x80\": 0", "x.json"},
        {"\"model\"", "\"module\"", "model"},
        {"\"vocab\"", "\"words\"", "words"},
        {"}\n}", "}\n} x", "x.json:"},
    };
    wf_tokenizer *t, *bad;
    struct wf_string json = {0};
    ck_ok(wf_tokenizer_train("abc", 3, &t, error));
    ck_ok(wf_tokenizer_json(t, &json, error));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *changed = replaced(json.data, cases[i].from, cases[i].to);
        ck_fails(parse(changed, &bad, error), WF_ERR_FORMAT, cases[i].message);
        ck_fails(parse(changed, &bad, error), WF_ERR_FORMAT, "x.json");
        ck_assert_ptr_null(bad);
        wf_free(changed);
    }
    static const char *const others[] = {"", "[]", "3", "null", "{}", "{\"model\": []}", "{\"model\": {\"type\": \"WordLevel\"}}"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_fails(parse(others[i], &bad, error), WF_ERR_FORMAT, "x.json");
    char *empty = replaced(json.data, "\"a\": 0,\n      \"b\": 1,\n      \"c\": 2\n", "");
    ck_fails(parse(empty, &bad, error), WF_ERR_FORMAT, "the vocabulary is empty");
    wf_free(empty);
    wf_string_free(&json);
    wf_tokenizer_free(t);
}
END_TEST

/* Some keys may be left out or stand in another order: the tokenizer is the same. */
START_TEST(accepts_what_means_the_same)
{
    static const char text[] =
        "{\"model\":{\"unk_token\":\"[UNK]\",\"vocab\":{\"b\":0,\"a\":1},\"type\":\"WordLevel\"},\"decoder\":{\"type\":\"Fuse\"},"
        "\"pre_tokenizer\":{\"behavior\":\"Isolated\",\"pattern\":{\"Regex\":\"[\\\\s\\\\S]\"},\"type\":\"Split\"},"
        "\"version\":\"1.0\",\"normalizer\":null}";
    wf_tokenizer *t;
    ck_ok(wf_tokenizer_parse(text, sizeof text - 1, "x", &t, error));
    ck_assert_int_eq(wf_tokenizer_id(t, "b", 1), 0);
    ck_assert_int_eq(wf_tokenizer_id(t, "a", 1), 1);
    wf_tokenizer_free(t);
}
END_TEST

START_TEST(mutations)
{
    static const char *const pieces[] = {"{",       "}",           "[",        "]",         "\"",      ":",     ",",
                                         "null",    "true",        "0",        "-1",        "1e9",     "2",     "\\u0000",
                                         "\\ud83d", "\xFF",        "\"type\"", "\"vocab\"", "\"BPE\"", "\"a\"", "\xF0\x9F\x98\x80",
                                         "\n",      "99999999999", ""};
    static const char *const files[] = {"../tokenizers/split_removed.json", "../tokenizers/word_delimiter.json",
                                        "../tokenizers/limited.json",       "../tokenizers/byte_gpt4.json",
                                        "../tokenizers/bpe_suffix.json",    "../tokenizers/word.json"};
    enum { FILES = sizeof files / sizeof *files };
    wf_rng rng = wf_rng_new(7, wf_stream_of("tokenizer mutations"));
    int64_t live = -1, accepted = 0;
    for (int round = 0; round < 6000; round++) {
        int64_t bytes;
        char *json = round % 2 ? golden(files[round / 2 % FILES], &bytes) : golden_of(names[round / 2 % 6], "json", &bytes);
        char *work = wf_alloc((size_t)bytes + 256);
        memcpy(work, json, (size_t)bytes);
        int64_t length = bytes;
        for (uint64_t edit = wf_rng_below(&rng, 3); edit < 3 && length > 0; edit++) {
            int64_t at = (int64_t)wf_rng_below(&rng, (uint64_t)length);
            switch (wf_rng_below(&rng, 5)) {
            case 0: /* another byte */
                work[at] = (char)wf_rng_next(&rng);
                break;
            case 1: /* cut */
                length = at;
                break;
            case 2: { /* delete a stretch */
                int64_t n = 1 + (int64_t)wf_rng_below(&rng, 12);
                n = WF_MIN(n, length - at);
                memmove(work + at, work + at + n, (size_t)(length - at - n));
                length -= n;
                break;
            }
            case 3: { /* insert a piece */
                const char *piece = pieces[wf_rng_below(&rng, sizeof pieces / sizeof *pieces)];
                int64_t n = (int64_t)strlen(piece);
                memmove(work + at + n, work + at, (size_t)(length - at));
                memcpy(work + at, piece, (size_t)n);
                length += n;
                break;
            }
            default: { /* swap two bytes */
                int64_t other = (int64_t)wf_rng_below(&rng, (uint64_t)length);
                char byte = work[at];
                work[at] = work[other];
                work[other] = byte;
            }
            }
        }
        /* A block of exactly this size, so that a read past it is seen by the sanitizers. */
        char *exact = wf_alloc((size_t)length);
        memcpy(exact, work, (size_t)length);
        wf_tokenizer *t;
        LLVMFuzzerTestOneInput((const uint8_t *)exact, (size_t)length);
        accepted += wf_tokenizer_parse(exact, length, "x", &t, NULL) == WF_OK;
        wf_tokenizer_free(t);
        wf_free(exact);
        wf_free(work);
        wf_free(json);
        if (live < 0)
            live = wf_alloc_live();
        ck_assert_int_eq(wf_alloc_live(), live);
    }
    /* Harmless edits, such as of white space, are rare but do occur. */
    ck_assert_msg(accepted > 0 && accepted < 3000, "%d", (int)accepted);
}
END_TEST

static wf_status save_and_load(void *ctx, wf_error *error)
{
    wf_tokenizer *t, *again = NULL;
    wf_status status = wf_tokenizer_train("ab\xC3\xA9", 4, &t, error);
    if (status == WF_OK)
        status = wf_tokenizer_save(t, ctx, error);
    if (status == WF_OK)
        status = wf_tokenizer_load(ctx, &again, error);
    if (status == WF_OK)
        ck_assert_int_eq(wf_tokenizer_vocab_size(again), 3);
    wf_tokenizer_free(t);
    wf_tokenizer_free(again);
    return status;
}

START_TEST(no_memory)
{
    char *path = test_file("tokenizer.json", NULL, 0);
    ck_assert_int_ge(sweep_memory(save_and_load, path), 20);
}
END_TEST

WF_TEST_MAIN("tokenizer_file", the_same_as_tokenizers, saves_and_loads, refuses_by_name, accepts_what_means_the_same, mutations, no_memory)
