/* SPDX-License-Identifier: MIT */
/* Shared by the tests of trainers of tokenizers: results of the package `tokenizers`, tests/golden/tokenizer_train/. */
#ifndef TESTS_DATA_TRAIN_TEST_H
#define TESTS_DATA_TRAIN_TEST_H

#include "../data/data_test.h"
#include <weft/internal/json.h>

/* Types, one a line, then merges as pairs of ids, one a line. *merges may be NULL. */
static inline struct wf_string listing(const wf_tokenizer *t, int64_t *merges)
{
    struct wf_string json = {0};
    wf_error problem = {0};
    ck_ok(wf_tokenizer_json(t, &json, error));
    json_t *file = wf_json_parse(json.data, json.length, "tokenizer", &problem), *pair;
    ck_assert_msg(file != NULL, "%s", problem.message);
    json_t *list = json_object_get(json_object_get(file, "model"), "merges");
    size_t room = (size_t)json.length + 24 * json_array_size(list) + 1, k;
    struct wf_string out = {.data = wf_alloc(room)};
    for (int64_t i = 0, length; i < wf_tokenizer_vocab_size(t); i++) {
        const char *piece = wf_tokenizer_token(t, (int32_t)i, &length);
        out.length += snprintf(out.data + out.length, room - (size_t)out.length, "%.*s\n", (int)length, piece);
    }
    json_array_foreach(list, k, pair)
    {
        int32_t id[2];
        for (size_t i = 0; i < 2; i++) {
            json_t *side = json_array_get(pair, i);
            id[i] = wf_tokenizer_id(t, json_string_value(side), (int64_t)json_string_length(side));
        }
        out.length += snprintf(out.data + out.length, room - (size_t)out.length, "%d %d\n", id[0], id[1]);
    }
    if (merges)
        *merges = (int64_t)json_array_size(list);
    json_decref(file);
    wf_string_free(&json);
    return out;
}

static inline char *train_golden(const char *name, const char *ending, int64_t *bytes)
{
    char file[128];
    snprintf(file, sizeof file, "../tokenizer_train/%s.%s", name, ending);
    return golden(file, bytes);
}

/* A case: its text and options, and what must come of it. */
struct train_case {
    char *text, *expect, *result; /* result: the listing, in expect */
    int64_t length;
    struct wf_tokenizer_options options;
    const char *special[8];
    int64_t types, merges;
};

static inline void case_open(struct train_case *c, const char *name)
{
    char text[64], kind[32], split[32], *line, *at;
    int64_t size, frequency, bytes;
    memset(c, 0, sizeof *c);
    c->expect = train_golden(name, "expect", &bytes);
    ck_assert_int_eq(sscanf(c->expect, "%63s %31s %ld %ld %31s", text, kind, &size, &frequency, split), 5);
    line = strchr(c->expect, '\n') + 1;
    at = strchr(line, '\n');
    *at++ = 0;
    for (char *word = strtok(line, " "); word; word = strtok(NULL, " "))
        c->special[c->options.special_count++] = word;
    ck_assert_int_eq(sscanf(at, "%ld %ld", &c->types, &c->merges), 2);
    c->result = strchr(at, '\n') + 1;
    ck_assert(wf_tokenizer_kind_parse(kind, &c->options.kind));
    c->options.vocab_size = size;
    c->options.min_frequency = frequency;
    c->options.specials = c->special;
    if (c->options.kind != WF_TOKENIZER_BYTE_BPE) {
        c->options.other_pre_tokenizer = strcmp(split, "punctuation") != 0; /* the default of bpe */
        c->options.pre_tokenizer = strcmp(split, "whitespace") == 0 ? WF_WHITESPACE : WF_METASPACE_ALONE;
    }
    if (strcmp(text, "story") == 0)
        c->text = golden("../story.txt", &c->length);
    else
        c->text = train_golden(text, "txt", &c->length);
}

static inline void case_close(struct train_case *c)
{
    wf_free(c->text);
    wf_free(c->expect);
}

/* Trains the case from memory and from a file, and compares both with the package's result. */
static inline void case_check(const char *name)
{
    struct train_case c;
    case_open(&c, name);
    const char *path = test_file("text.txt", c.text, (size_t)c.length);
    for (int file = 0; file < 2; file++) {
        wf_tokenizer *t;
        int64_t merges;
        if (file)
            ck_ok(wf_tokenizer_train_files_with(&path, 1, &c.options, &t, error));
        else
            ck_ok(wf_tokenizer_train_with(c.text, c.length, &c.options, &t, error));
        struct wf_string got = listing(t, &merges);
        ck_assert_msg(wf_tokenizer_vocab_size(t) == c.types && merges == c.merges, "%s: %ld types and %ld merges, not %ld and %ld", name,
                      wf_tokenizer_vocab_size(t), merges, c.types, c.merges);
        for (char *a = got.data, *b = c.result; *a || *b; a = strchr(a, '\n') + 1, b = strchr(b, '\n') + 1) {
            int n = (int)strcspn(a, "\n"), m = (int)strcspn(b, "\n");
            ck_assert_msg(n == m && !memcmp(a, b, (size_t)n), "%s: '%.*s' where tokenizers has '%.*s'", name, n, a, m, b);
        }
        wf_string_free(&got);
        wf_tokenizer_free(t);
    }
    case_close(&c);
}

/* A text of `lines` lines of made-up words. */
static inline struct wf_string made_up(int lines)
{
    struct wf_string text = {.data = wf_alloc((size_t)lines * 128 + 1)};
    uint64_t state = 1;
    for (int i = 0; i < lines; i++) {
        for (int k = 0; k < 10; k++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            uint32_t n = (uint32_t)(state >> 40);
            for (n %= 1000 << n % 8; n; n /= 9)
                text.data[text.length++] = (char)('a' + n % 9);
            text.data[text.length++] = k < 9 ? ' ' : '\n';
        }
    }
    text.data[text.length] = 0;
    return text;
}

#endif
