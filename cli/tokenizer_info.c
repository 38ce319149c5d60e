/* SPDX-License-Identifier: MIT */
/* weft tokenizer info TOKENIZER.json [--json]: prints kind, vocabulary size, special tokens and pipeline. */
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

/* Describes a normalizer, pre-tokenizer, post-processor or decoder by its type, such as "NFC", or if it is a sequence by the types in it,
 * such as "NFKC, Lowercase". A missing one is "none". */
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

/* Returns an object such as {"<s>":0,...} with the ids of all added tokens that are special, or of all that are not special. */
static json_t *added_tokens(const json_t *file, bool special)
{
    size_t i;
    json_t *token, *out = json_object();
    json_array_foreach(json_object_get(file, "added_tokens"), i, token)
    {
        if (json_is_true(json_object_get(token, "special")) == special)
            json_object_set(out, json_string_value(json_object_get(token, "content")), json_object_get(token, "id"));
    }
    return out;
}

/* Returns an object with everything that the command prints, {"kind":"bpe",...}; NULL if there is no memory. */
static json_t *summarize(const wf_tokenizer *t, const json_t *file)
{
    static const char *const parts[] = {"normalizer", "pre_tokenizer", "post_processor", "decoder"};
    char text[256];
    json_t *out = json_pack("{s:s, s:I, s:I}", "kind", wf_tokenizer_kind_name(wf_tokenizer_kind_of(t)), "vocab_size",
                            (json_int_t)wf_tokenizer_vocab_size(t), "merges", (json_int_t)count_merges(file));
    for (int p = 0; p < 4; p++) {
        describe(json_object_get(file, parts[p]), text, sizeof text);
        json_object_set_new(out, parts[p], json_string(text));
    }
    json_object_set_new(out, "specials", added_tokens(file, true));
    json_object_set_new(out, "added", added_tokens(file, false));
    snprintf(text, sizeof text, "%016" PRIx64, wf_tokenizer_hash(t));
    json_object_set_new(out, "hash", json_string(text));
    return out;
}

static void print(json_t *summary)
{
    static const char *const rows[][2] = {{"kind", "kind"},
                                          {"vocab_size", "vocabulary size"},
                                          {"merges", "merges"},
                                          {"normalizer", "normalizer"},
                                          {"pre_tokenizer", "pre-tokenizer"},
                                          {"post_processor", "post-processor"},
                                          {"decoder", "decoder"},
                                          {"specials", "special token"},
                                          {"added", "added token"},
                                          {"hash", "hash"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *value = json_object_get(summary, rows[i][0]), *id;
        const char *token;
        if (json_is_string(value))
            printf("%s: %s\n", rows[i][1], json_string_value(value));
        if (json_is_integer(value))
            printf("%s: %lld\n", rows[i][1], (long long)json_integer_value(value));
        json_object_foreach(value, token, id) printf("%s: %s %lld\n", rows[i][1], token, (long long)json_integer_value(id));
    }
}

static wf_status info(void *arguments, wf_error *error)
{
    const struct arguments *a = arguments;
    wf_tokenizer *t;
    json_t *file = NULL, *summary = NULL;
    char *text = NULL;
    wf_status status = wf_tokenizer_load(a->tokenizer, &t, error);
    if (status == WF_OK && !(file = read_file(t, error)))
        status = error->code;
    if (status == WF_OK && !(text = wf_json_text(summary = summarize(t, file), 0, NULL, error)))
        status = error->code;
    if (status == WF_OK && a->json)
        puts(text);
    else if (status == WF_OK)
        print(summary);
    wf_free(text);
    json_decref(summary);
    json_decref(file);
    wf_tokenizer_free(t);
    return status;
}

int run_tokenizer_info(int argc, char **argv)
{
    struct arguments a = {0};
    const struct option_row options[] = {{"json", NULL, "print one JSON object", .flag = &a.json}, {0}};
    return run_command(&(struct command_line){"TOKENIZER.json", "Prints a tokenizer's kind, vocabulary size, special tokens and pipeline.",
                                              options, &a.tokenizer,
                                              .too_few = "TOKENIZER.json is missing: $0 tokenizer info TOKENIZER.json",
                                              .too_many = "$0 tokenizer info takes one file"},
                       info, &a, argc, argv);
}
