/* SPDX-License-Identifier: MIT */
/* weft tokenizer info TOKENIZER.json [--json] */
#include "tokenizer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weft/internal/json.h>

json_t *tokenizer_file(const wf_tokenizer *tokenizer, wf_error *error)
{
    struct wf_string text = {0};
    json_t *file = NULL;
    if (wf_tokenizer_json(tokenizer, &text, error) == WF_OK)
        file = wf_json_parse(text.data, text.length, "the tokenizer", error);
    wf_string_free(&text);
    return file;
}

int64_t tokenizer_merges(const json_t *file)
{
    return (int64_t)json_array_size(json_object_get(json_object_get(file, "model"), "merges"));
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
           wf_tokenizer_vocab_size(t), tokenizer_merges(file));
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

static wf_status print_json(const wf_tokenizer *t, const json_t *file, wf_error *error)
{
    char text[256];
    size_t i;
    json_t *token, *object = json_object(), *specials = json_object(), *added = json_object();
    wf_status status = wf_json_set_string(object, "kind", wf_tokenizer_kind_name(wf_tokenizer_kind_of(t)), error);
    if (status == WF_OK)
        status = wf_json_set_int(object, "vocab_size", wf_tokenizer_vocab_size(t), error);
    if (status == WF_OK)
        status = wf_json_set_int(object, "merges", tokenizer_merges(file), error);
    for (int p = 0; status == WF_OK && p < PARTS; p++) {
        describe(json_object_get(file, parts[p][0]), text, sizeof text);
        status = wf_json_set_string(object, parts[p][0], text, error);
    }
    json_array_foreach(json_object_get(file, "added_tokens"), i, token)
    {
        if (status == WF_OK)
            status = wf_json_set_int(json_is_true(json_object_get(token, "special")) ? specials : added,
                                     json_string_value(json_object_get(token, "content")), json_integer_value(json_object_get(token, "id")),
                                     error);
    }
    if (status == WF_OK)
        status = wf_json_set_new(object, "specials", json_incref(specials), error);
    if (status == WF_OK)
        status = wf_json_set_new(object, "added", json_incref(added), error);
    snprintf(text, sizeof text, "%016" PRIx64, wf_tokenizer_hash(t));
    if (status == WF_OK)
        status = wf_json_set_string(object, "hash", text, error);
    char *line = status == WF_OK ? wf_json_text(object, 0, NULL, error) : NULL;
    if (line)
        puts(line);
    wf_free(line);
    json_decref(object);
    json_decref(specials);
    json_decref(added);
    return line ? WF_OK : error->code;
}

int run_tokenizer_info(int argc, char **argv)
{
    const char *name = NULL;
    bool json = false;
    const struct command_line line = {.usage = "TOKENIZER.json",
                                      .help = "Prints a tokenizer's kind, vocabulary size, special tokens and pipeline.",
                                      .options = (const struct option_row[]){FLAG_ROW("json", &json, "print one JSON object"), {0}},
                                      .argument = &name,
                                      .most = 1,
                                      .too_many = "weft tokenizer info takes one file"};
    int code = parse(&line, argc, argv);
    if (code >= 0)
        return code;
    if (!name)
        return fail_usage("which tokenizer? weft tokenizer info TOKENIZER.json");
    wf_error error = {0};
    wf_tokenizer *t;
    json_t *file = NULL;
    wf_status status = wf_tokenizer_load(name, &t, &error);
    if (status == WF_OK && !(file = tokenizer_file(t, &error)))
        status = error.code;
    if (status == WF_OK && json)
        status = print_json(t, file, &error);
    else if (status == WF_OK)
        print(t, file);
    json_decref(file);
    wf_tokenizer_free(t);
    return status == WF_OK ? EXIT_DONE : fail(&error);
}
