/* SPDX-License-Identifier: MIT */
/* Files that are made to cost time or memory: each is refused in a line, or costs what a plain one does. */
#include <time.h>

#include "../data/data_test.h"
#include <weft/internal/hash.h>
#include <weft/internal/string.h>

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Far above what they take, far below what they took. */
enum { SECONDS = 20 };

#define WORDS "{\"type\": \"WordLevel\", \"vocab\": {\"a\": 0, \"b\": 1}, \"unk_token\": \"a\"}"

static wf_status parse(const char *json, int64_t length, wf_tokenizer **out, wf_error *error)
{
    double start = seconds();
    wf_status status = wf_tokenizer_parse(json, length, "x.json", out, error);
    ck_assert_msg(seconds() - start < SECONDS, "%g s", seconds() - start);
    return status;
}

/* {"version": ..., "model": WORDS, KEY: VALUE} */
static wf_status parse_with(const char *model, const char *key, const struct wf_string *value, wf_tokenizer **out, wf_error *error)
{
    struct wf_string json = {0};
    wf_string_format(&json, "{\"version\": \"1.0\", \"model\": %s, \"%s\": ", model, key);
    wf_string_add(&json, value->data, value->length);
    wf_string_text(&json, "}");
    ck_assert(!json.failed);
    wf_status status = parse(json.data, json.length, out, error);
    wf_string_free(&json);
    return status;
}

static wf_status encode(const wf_tokenizer *t, const char *text, int64_t length, struct wf_tokens *ids, wf_error *error)
{
    double start = seconds();
    wf_status status = wf_tokenizer_encode_with(t, text, length, &(struct wf_encode_options){.specials = true}, ids, error);
    ck_assert_msg(seconds() - start < SECONDS, "%g s", seconds() - start);
    return status;
}

static void repeat(struct wf_string *s, const char *text, int64_t times, const char *between)
{
    for (int64_t i = 0; i < times; i++) {
        wf_string_text(s, i ? between : "");
        wf_string_text(s, text);
    }
}

/* A sequence of a step so many times over, as JSON. */
static struct wf_string sequence(const char *list, const char *step, int64_t times)
{
    struct wf_string value = {0};
    wf_string_format(&value, "{\"type\": \"Sequence\", \"%s\": [", list);
    repeat(&value, step, times, ", ");
    wf_string_text(&value, "]}");
    return value;
}

/* A tokenizer of this model that isolates what the pattern matches. */
static wf_tokenizer *isolating(const char *model, const char *regex)
{
    wf_tokenizer *t;
    struct wf_string value = {0};
    wf_string_format(&value, "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"%s\"}, \"behavior\": \"Isolated\"}", regex);
    ck_ok(parse_with(model, "pre_tokenizer", &value, &t, error));
    wf_string_free(&value);
    return t;
}

/* "$A $A" thirty times over makes 2^30 times the text. */
START_TEST(templates_that_double)
{
    static const char twice[] = "{\"type\": \"TemplateProcessing\", \"single\": [{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}, "
                                "{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}], \"pair\": [], \"special_tokens\": {}}";
    for (int times = 1; times <= 30; times += times < 5 ? 1 : 25) {
        wf_tokenizer *t;
        struct wf_string value = sequence("processors", twice, times);
        struct wf_tokens ids = {0};
        if (times <= 4) {
            ck_ok(parse_with(WORDS, "post_processor", &value, &t, error));
            ck_ok(encode(t, "b", 1, &ids, error));
            ck_assert_int_eq(ids.count, 1 << times);
            wf_tokenizer_free(t);
        } else {
            ck_fails(parse_with(WORDS, "post_processor", &value, &t, error), WF_ERR_FORMAT, "x.json: the post_processor repeats a text");
        }
        wf_tokens_free(&ids);
        wf_string_free(&value);
    }
}
END_TEST

/* A vocabulary with a piece of 20,000 letters, that nearly matches at each place of a word of as many. */
START_TEST(long_words_of_wordpiece)
{
    enum { LETTERS = 20000 };
    wf_tokenizer *t;
    struct wf_string json = {0}, word = {0};
    struct wf_tokens ids = {0};
    repeat(&word, "a", LETTERS, "");
    wf_string_text(&json,
                   "{\"version\": \"1.0\", \"model\": {\"type\": \"WordPiece\", \"unk_token\": \"u\", \"continuing_subword_prefix\": "
                   "\"##\", \"max_input_chars_per_word\": 1000000, \"vocab\": {\"u\": 0, \"a\": 1, \"##a\": 2, \"");
    wf_string_add(&json, word.data, word.length);
    wf_string_text(&json, "b\": 3, \"##");
    wf_string_add(&json, word.data, word.length);
    wf_string_text(&json, "b\": 4}}}");
    ck_ok(parse(json.data, json.length, &t, error));
    ck_ok(encode(t, word.data, word.length, &ids, error));
    ck_assert_int_eq(ids.count, LETTERS);
    ck_assert(ids.id[0] == 1 && ids.id[1] == 2 && ids.id[LETTERS - 1] == 2);
    wf_tokens_free(&ids);
    wf_string_free(&json);
    wf_string_free(&word);
    wf_tokenizer_free(t);
}
END_TEST

START_TEST(many_steps)
{
    static const struct {
        const char *key, *list, *step, *message;
    } cases[] = {
        {"normalizer", "normalizers", "{\"type\": \"Prepend\", \"prepend\": \"b\"}", "x.json: the normalizer has more than 256 steps"},
        {"pre_tokenizer", "pretokenizers", "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true}",
         "x.json: the pre_tokenizer has more than 256 steps"},
        {"decoder", "decoders", "{\"type\": \"Replace\", \"pattern\": {\"String\": \"a\"}, \"content\": \"aa\"}",
         "x.json: the decoder has more than 256 steps"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wf_tokenizer *t;
        struct wf_string value = sequence(cases[i].list, cases[i].step, 60000);
        ck_fails(parse_with(WORDS, cases[i].key, &value, &t, error), WF_ERR_FORMAT, cases[i].message);
        wf_string_free(&value);
    }
}
END_TEST

/* Each of 256 steps doubles the text. */
START_TEST(steps_that_double)
{
    static const char twice[] = "{\"type\": \"Replace\", \"pattern\": {\"String\": \"b\"}, \"content\": \"bb\"}";
    static const char *const keys[] = {"normalizer", "decoder"}, *const lists[] = {"normalizers", "decoders"};
    for (int i = 0; i < 2; i++) {
        wf_tokenizer *t;
        struct wf_string value = sequence(lists[i], twice, 255), text = {0};
        struct wf_tokens ids = {0};
        ck_ok(parse_with(WORDS, keys[i], &value, &t, error));
        if (i == 0)
            ck_fails(encode(t, "b", 1, &ids, error), WF_ERR_FORMAT, "makes the text more than 32 times as long");
        else
            ck_fails(wf_tokenizer_decode(t, (const int32_t[]){1}, 1, &text, error), WF_ERR_FORMAT,
                     "makes the text of these tokens more than 32 times as long");
        wf_string_free(&value);
        wf_string_free(&text);
        wf_tokens_free(&ids);
        wf_tokenizer_free(t);
    }
}
END_TEST

static void add_token(struct wf_string *s, int64_t id, const char *content, bool normalized)
{
    wf_string_format(s,
                     "%s{\"id\": %lld, \"content\": \"%s\", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, "
                     "\"normalized\": %s, \"special\": true}",
                     s->length > 1 ? ", " : "", (long long)id, content, normalized ? "true" : "false");
}

/* Thousands of added tokens go through as many steps of a normalizer as there may be. */
START_TEST(added_tokens_times_steps)
{
    const int tokens = sampled() ? 5000 : 20000;
    wf_tokenizer *t;
    struct wf_string json = {0}, added = {0};
    wf_string_text(&added, "[");
    for (int i = 0; i < tokens; i++) {
        char content[32];
        snprintf(content, sizeof content, "<token-%d>", i);
        add_token(&added, 2 + i, content, true);
    }
    wf_string_text(&added, "]");
    for (int steps = 256; steps <= tokens; steps += tokens - 256) {
        json.length = 0;
        wf_string_format(&json, "{\"version\": \"1.0\", \"model\": %s, \"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [", WORDS);
        repeat(&json, "{\"type\": \"Lowercase\"}", steps - 1, ", ");
        wf_string_text(&json, "]}, \"added_tokens\": ");
        wf_string_add(&json, added.data, added.length);
        wf_string_text(&json, "}");
        if (steps > 256) {
            ck_fails(parse(json.data, json.length, &t, error), WF_ERR_FORMAT, "x.json: the normalizer has more than 256 steps");
            continue;
        }
        ck_ok(parse(json.data, json.length, &t, error));
        wf_tokenizer_free(t);
    }
    wf_string_free(&json);
    wf_string_free(&added);
}
END_TEST

START_TEST(long_added_tokens)
{
    wf_tokenizer *t;
    struct wf_string content = {0}, value = {0}, text = {0};
    struct wf_tokens ids = {0};
    repeat(&content, "a", 20000, "");
    wf_string_text(&value, "[");
    add_token(&value, 2, content.data, false);
    wf_string_text(&value, "]");
    ck_fails(parse_with(WORDS, "added_tokens", &value, &t, error), WF_ERR_FORMAT, "is longer than 1000 bytes; shorten it");
    /* The longest that there may be, which nearly match at each place of a text. */
    value.length = 0;
    wf_string_text(&value, "[");
    for (int i = 0; i < 900; i++) {
        content.length = i + 1;
        content.data[i] = 'c';
        content.data[i + 1] = 0;
        add_token(&value, 2 + i, content.data, false);
        content.data[i] = 'a';
    }
    wf_string_text(&value, "]");
    ck_ok(parse_with(WORDS, "added_tokens", &value, &t, error));
    repeat(&text, "a", 100000, "");
    ck_ok(encode(t, text.data, text.length, &ids, error));
    ck_assert_int_eq(ids.count, 1); /* a word without spaces */
    wf_tokens_free(&ids);
    wf_string_free(&content);
    wf_string_free(&value);
    wf_string_free(&text);
    wf_tokenizer_free(t);
}
END_TEST

/* All ways to cut a text, and all of the rest of it from each place. */
START_TEST(patterns)
{
    static const char *const regex[] = {"(?:a|aa)+[bc]", "a{0,400}a{0,400}b", "(a+)+$"};
    struct wf_string text = {0};
    repeat(&text, "a", sampled() ? 25000 : 100000, "");
    for (size_t i = 0; i < sizeof regex / sizeof *regex; i++) {
        wf_tokenizer *t;
        struct wf_string value = {0};
        struct wf_tokens ids = {0};
        wf_error problem = {0};
        wf_string_format(&value,
                         i % 2 ? "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"%s\"}, \"behavior\": \"Isolated\"}"
                               : "{\"type\": \"Replace\", \"pattern\": {\"Regex\": \"%s\"}, \"content\": \"a\"}",
                         regex[i]);
        ck_ok(parse_with(WORDS, i % 2 ? "pre_tokenizer" : "normalizer", &value, &t, error));
        wf_status status = encode(t, text.data, text.length, &ids, &problem);
        ck_assert_msg(status == WF_OK || (status == WF_ERR_FORMAT && strstr(problem.message, "takes too long here")), "%s: %s", regex[i],
                      problem.message);
        wf_tokens_free(&ids);
        wf_string_free(&value);
        wf_tokenizer_free(t);
    }
    wf_string_free(&text);
}
END_TEST

/* Windows of a text do not change what matches: in a long text each line gives what it gives alone. */
START_TEST(windows_change_nothing)
{
    static const char *const regex[] = {"\\\\s+(?!\\\\S)|\\\\S+", "(?<=b)a+|b", "^a*|b$", "(?m:.{3})", "a(?=a{20}b)", "b*"};
    enum { TIMES = 3000 };
    for (size_t i = 0; i < sizeof regex / sizeof *regex; i++) {
        wf_tokenizer *t =
            isolating("{\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \" \": 2, \"\\n\": 3, \"ab\": 4, \"aa\": 5, \"aaaa\": 6}, "
                      "\"merges\": [[\"a\", \"b\"], [\"a\", \"a\"], [\"aa\", \"aa\"]]}",
                      regex[i]);
        struct wf_string line = {0}, text = {0};
        struct wf_tokens one = {0}, many = {0};
        for (int n = 0; n < 40; n++) {
            line.length = one.count = many.count = text.length = 0;
            repeat(&line, "a", n, "");
            wf_string_text(&line, n % 3 ? "b  " : "bb");
            repeat(&line, "a", 40 - n, "");
            wf_string_text(&line, "\n");
            repeat(&text, line.data, TIMES / 10, "");
            ck_ok(encode(t, text.data, 10 * line.length, &one, error));
            ck_ok(encode(t, text.data, text.length, &many, error));
            /* from the second line on all lines are alike, but for the last */
            int64_t each = many.count / (TIMES / 10);
            for (int64_t k = 0; k < one.count - each - 20; k++)
                ck_assert_int_eq(one.id[k], many.id[k]);
            for (int64_t k = 2 * each; k + 2 * each < many.count && many.count % each == 0; k++)
                ck_assert_int_eq(many.id[k], many.id[k - each]);
        }
        wf_tokens_free(&one);
        wf_tokens_free(&many);
        wf_string_free(&line);
        wf_string_free(&text);
        wf_tokenizer_free(t);
    }
}
END_TEST

/* The end of a window is not the end of the text for a pattern. */
START_TEST(windows_are_no_ends)
{
    static const char *const regex[] = {"$", "(?!x)", "b*(?!x)", "(?<=x)(?=b|$)", "x{500}b", "(?<!x)$|b\\b"};
    for (size_t i = 0; i < sizeof regex / sizeof *regex; i++) {
        wf_tokenizer *t = isolating(WORDS, regex[i]);
        struct wf_string text = {0};
        int64_t words[2];
        for (int k = 0; k < 2; k++) { /* a word is an id, known or not */
            struct wf_tokens ids = {0};
            text.length = 0;
            for (int line = 0; line < 3; line++) {
                repeat(&text, "x", k ? 3000 : 600, "");
                wf_string_text(&text, line == 1 ? "b" : "bb\n");
            }
            ck_ok(encode(t, text.data, text.length, &ids, error));
            words[k] = ids.count;
            wf_tokens_free(&ids);
        }
        ck_assert_msg(words[0] == words[1] && words[0] < 20, "%s: %d and %d words", regex[i], (int)words[0], (int)words[1]);
        wf_string_free(&text);
        wf_tokenizer_free(t);
    }
}
END_TEST

/* Merges in an order that no trainer gives can make a word depend on text far behind it. */
START_TEST(words_that_are_too_long)
{
    enum { LENGTH = 5 << 20 };
    wf_tokenizer *t;
    struct wf_string json = {0};
    struct wf_tokens ids = {0};
    /* In the order of a trainer the merge of a and b comes first. */
    wf_string_text(&json, "{\"version\": \"1.0\", \"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": 2, \"aab\": 3}, "
                          "\"merges\": [[\"a\", \"ab\"], [\"a\", \"b\"]]}}");
    ck_ok(parse(json.data, json.length, &t, error));
    char *text = wf_alloc(LENGTH);
    memset(text, 'a', LENGTH);
    ck_fails(encode(t, text, LENGTH, &ids, error), WF_ERR_FORMAT, "make a word here depend on more than 4194304 characters");
    text[100000] = text[200000] = 'b';
    ck_ok(encode(t, text, 300000, &ids, error));
    ck_assert_int_eq(ids.count, 300000 - 4);
    ck_assert_int_eq(ids.id[100000 - 2], 3);
    wf_tokens_free(&ids);
    wf_free(text);
    wf_string_free(&json);
    wf_tokenizer_free(t);
}
END_TEST

/* The tables of vocabulary and merges are hashed with random keys. */
START_TEST(keys_of_tables)
{
    uint64_t key = wf_hash_key();
    ck_assert(key != wf_hash_key() && wf_hash_key() != wf_hash_key());
    ck_assert(wf_hash("the", 3, key) != wf_hash("the", 3, key + 1));
}
END_TEST

/* The same in all versions: weights name their tokenizer by it. */
START_TEST(hash_of_the_content)
{
    static const struct {
        const char *file;
        uint64_t hash;
    } golden_hashes[] = {{"bpe_metaspace", 0x1C054ABCA75CCCD0},
                         {"byte_gpt4", 0x5F6814345DC6A00D},
                         {"wordpiece", 0x98CD663057E5845F},
                         {"word_delimiter", 0xC7D281BBA2F8F5D2},
                         {"limited", 0x9C02AFEBA15DA683}};
    for (size_t i = 0; i < sizeof golden_hashes / sizeof *golden_hashes; i++) {
        wf_tokenizer *t, *compact;
        int64_t bytes;
        char *name = wf_format("../tokenizers/%s.json", golden_hashes[i].file), *data = golden(name, &bytes);
        ck_ok(wf_tokenizer_parse(data, bytes, name, &t, error));
        ck_assert_msg(wf_tokenizer_hash(t) == golden_hashes[i].hash, "%s: 0x%016llX", golden_hashes[i].file,
                      (unsigned long long)wf_tokenizer_hash(t));
        /* Another layout of the file is the same content. */
        for (int64_t k = 0; k < bytes; k++)
            if (data[k] == '\n')
                data[k] = ' ';
        ck_ok(wf_tokenizer_parse(data, bytes, name, &compact, error));
        ck_assert_uint_eq(wf_tokenizer_hash(compact), wf_tokenizer_hash(t));
        wf_tokenizer_free(t);
        wf_tokenizer_free(compact);
        wf_free(name);
        wf_free(data);
    }
}
END_TEST

WF_TEST_MAIN("tokenizer_hostile", templates_that_double, long_words_of_wordpiece, many_steps, steps_that_double, added_tokens_times_steps,
             long_added_tokens, patterns, windows_change_nothing, windows_are_no_ends, words_that_are_too_long, keys_of_tables,
             hash_of_the_content)
