/* SPDX-License-Identifier: MIT */
/* weft tokenizer info TOKENIZER.json [--json] */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weft/internal/json.h>
#include <weft/internal/string.h>

#include "cli.h"

struct arguments {
    const char *tokenizer;
    bool json;
};

static json_t *read_file(const wf_tokenizer *tokenizer, wf_error *error)
{
    struct wf_string text = {0};
    json_t *file = NULL;
    if (wf_tokenizer_json(tokenizer, &text, error) == WF_OK)
        file = wf_json_parse(text.data, text.length, "the tokenizer", error);
    wf_string_free(&text);
    return file;
}

static int64_t count_merges(const json_t *file)
{
    return (int64_t)json_array_size(json_object_get(json_object_get(file, "model"), "merges"));
}

wf_status tokenizer_merges(const wf_tokenizer *tokenizer, int64_t *merges, wf_error *error)
{
    json_t *file = read_file(tokenizer, error);
    *merges = count_merges(file);
    json_decref(file);
    return file ? WF_OK : error->code;
}

/* A part of the pipeline by the names of its types: "none", "NFC", "NFKC, Lowercase". */
static void describe(const json_t *part, char *text, size_t size)
{
    static const char *const lists[] = {"normalizers", "pretokenizers", "processors", "decoders"};
    const char *type = json_string_value(json_object_get(part, "type"));
    const json_t *list = NULL;
    for (size_t i = 0; i < sizeof lists / sizeof *lists && !list; i++)
        list = json_object_get(part, lists[i]);
    snprintf(text, size, "%s", type ? type : "none");
    for (size_t i = 0, used = 0; i < json_array_size(list) && used < size; i++) {
        type = json_string_value(json_object_get(json_array_get(list, i), "type"));
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", type ? type : "?");
    }
}

static const char *const parts[][2] = {
    {"normalizer", "normalizer"}, {"pre_tokenizer", "pre-tokenizer"}, {"post_processor", "post-processor"}, {"decoder", "decoder"}};
enum { PARTS = sizeof parts / sizeof *parts };

static void print(const wf_tokenizer *t, const json_t *file)
{
    char text[256];
    size_t i;
    json_t *token;
    printf("kind: %s\nvocabulary size: %" PRId64 "\nmerges: %" PRId64 "\n", wf_tokenizer_kind_name(wf_tokenizer_kind_of(t)),
           wf_tokenizer_vocab_size(t), count_merges(file));
    for (int p = 0; p < PARTS; p++) {
        describe(json_object_get(file, parts[p][0]), text, sizeof text);
        printf("%s: %s\n", parts[p][1], text);
    }
    json_array_foreach(json_object_get(file, "added_tokens"), i, token)
    {
        printf("%s token: %s %lld\n", json_is_true(json_object_get(token, "special")) ? "special" : "added",
               json_string_value(json_object_get(token, "content")), (long long)json_integer_value(json_object_get(token, "id")));
    }
    printf("hash: %016" PRIx64 "\n", wf_tokenizer_hash(t));
}

/* {"<s>":0,...} of the added tokens that are special, or of those that are not. */
static void add_tokens(struct wf_string *s, const char *key, const json_t *file, bool special)
{
    size_t i;
    json_t *token;
    const char *comma = "";
    wf_string_format(s, ",\"%s\":{", key);
    json_array_foreach(json_object_get(file, "added_tokens"), i, token)
    {
        const json_t *content = json_object_get(token, "content");
        if (json_is_true(json_object_get(token, "special")) != special)
            continue;
        wf_string_text(s, comma);
        wf_string_json(s, json_string_value(content), (int64_t)json_string_length(content));
        wf_string_format(s, ":%lld", (long long)json_integer_value(json_object_get(token, "id")));
        comma = ",";
    }
    wf_string_char(s, '}');
}

static wf_status print_json(const wf_tokenizer *t, const json_t *file, wf_error *error)
{
    char text[256];
    struct wf_string s = {0};
    wf_string_format(&s, "{\"kind\":\"%s\",\"vocab_size\":%" PRId64 ",\"merges\":%" PRId64, wf_tokenizer_kind_name(wf_tokenizer_kind_of(t)),
                     wf_tokenizer_vocab_size(t), count_merges(file));
    for (int p = 0; p < PARTS; p++) {
        describe(json_object_get(file, parts[p][0]), text, sizeof text);
        wf_string_format(&s, ",\"%s\":", parts[p][0]);
        wf_string_json(&s, text, (int64_t)strlen(text));
    }
    add_tokens(&s, "specials", file, true);
    add_tokens(&s, "added", file, false);
    wf_string_format(&s, ",\"hash\":\"%016" PRIx64 "\"}", wf_tokenizer_hash(t));
    bool fine = !s.failed;
    if (fine)
        puts(s.data);
    wf_string_free(&s);
    return fine ? WF_OK : wf_error_set(error, WF_ERR_MEMORY, "no memory for JSON");
}

static wf_status info(void *arguments, wf_error *error)
{
    const struct arguments *a = arguments;
    wf_tokenizer *t;
    json_t *file = NULL;
    wf_status status = wf_tokenizer_load(a->tokenizer, &t, error);
    if (status == WF_OK && !(file = read_file(t, error)))
        status = error->code;
    if (status == WF_OK && a->json)
        status = print_json(t, file, error);
    else if (status == WF_OK)
        print(t, file);
    json_decref(file);
    wf_tokenizer_free(t);
    return status;
}

int run_tokenizer_info(int argc, char **argv)
{
    struct arguments a = {0};
    const struct option_row options[] = {FLAG_ROW("json", &a.json, "print one JSON object"), {0}};
    return run_command(&(struct command_line){"TOKENIZER.json", "Prints a tokenizer's kind, vocabulary size, special tokens and pipeline.",
                                              options, &a.tokenizer, .too_few = "which tokenizer? weft tokenizer info TOKENIZER.json",
                                              .too_many = "weft tokenizer info takes one file"},
                       info, &a, argc, argv);
}
