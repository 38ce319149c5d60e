/* SPDX-License-Identifier: MIT */
/* Reads BERT's vocab.txt, and makes the JSON of an equivalent tokenizer.json, so that the same code reads and checks both. */
#include <inttypes.h>
#include <string.h>

#include "build.h"
#include "unicode.h"
#include <weft/internal/json.h>
#include <weft/internal/lines.h>
#include <weft/internal/needs.h>
#include <weft/internal/text.h>

static const int64_t most_bytes = (int64_t)64 << 20;

static wf_status add_line(struct vocab *pieces, const struct wf_lines *in, wf_error *error)
{
    char quoted[WF_QUOTE_SIZE];
    int64_t length = unicode_skip_space_back(in->text, 0, in->length);
    if (in->done > most_bytes)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: larger than %" PRId64 " MiB: this is no vocabulary", in->name, most_bytes >> 20);
    if (length == 0)
        return wf_error_set(error, WF_ERR_FORMAT, "%s:%" PRId64 ": an empty line, where a token is expected", in->name, in->line);
    int32_t id = vocab_add(pieces, in->text, length);
    if (id < 0)
        return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for a vocabulary of %" PRId64 " lines", in->name, in->line);
    if (id < in->line - 1)
        return wf_error_set(error, WF_ERR_FORMAT, "%s:%" PRId64 ": the token %s is listed twice, also in line %" PRId32, in->name, in->line,
                            wf_text_quote(vocab_piece(pieces, id, &length), quoted), id + 1);
    return WF_OK;
}

static wf_status read_lines(const char *path, struct vocab *pieces, wf_error *error)
{
    struct wf_lines in;
    wf_status status = wf_lines_open(&in, path, error);
    in.longest = most_bytes;
    while (status == WF_OK && (status = wf_lines_next(&in, error)) == WF_OK && in.text)
        if ((status = wf_lines_check(&in, error)) == WF_OK)
            status = add_line(pieces, &in, error);
    wf_lines_close(&in);
    if (status == WF_OK && pieces->count == 0)
        status = wf_error_set(error, WF_ERR_FORMAT, "%s: the vocabulary is empty", path);
    return status;
}

enum { UNKNOWN, BEGIN, END, PAD, MASK, SPECIALS };

static wf_status build(const char *path, struct tokenizer_table *table, const struct wf_vocab_options *o, wf_tokenizer **out,
                       wf_error *error)
{
    static const char *const usual[SPECIALS] = {"[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"};
    static const char *const required[SPECIALS] = {"unknown token", "token that begins a text", "token that ends a text"};
    const char *special[SPECIALS] = {o->unknown, o->begin, o->end, o->pad, o->mask};
    char quoted[WF_QUOTE_SIZE];
    int id[SPECIALS];
    for (int i = 0; i < SPECIALS; i++) {
        special[i] = special[i] ? special[i] : usual[i];
        id[i] = vocab_find(&table->pieces, special[i], (int64_t)strlen(special[i]));
        if (id[i] < 0 && required[i])
            return wf_error_set(error, WF_ERR_FORMAT, "%s: the vocabulary has no %s, the %s: this is not BERT's", path,
                                wf_text_quote(special[i], quoted), required[i]);
    }
    wf_json_init();
    wf_json_memory_clear();
    json_t *added = json_array(); /* sorted by id, as in files of Hugging Face's package tokenizers */
    for (int piece = 0; piece < table->pieces.count; piece++) {
        int i = 0;
        while (i < SPECIALS && id[i] != piece)
            i++;
        if (i < SPECIALS)
            json_array_append_new(added, build_added_token(special[i], piece));
    }
    json_t *root = json_pack("{s:s, s:o, s:{s:s}}", "version", "1.0", "added_tokens", added, "pre_tokenizer", "type", "BertPreTokenizer");
    json_t *accents = o->accents == WF_ACCENTS_BY_CASE ? json_null() : json_boolean(o->accents == WF_ACCENTS_STRIP);
    json_object_set_new(root, "normalizer",
                        json_pack("{s:s, s:b, s:b, s:o, s:b}", "type", "BertNormalizer", "clean_text", 1, "handle_chinese_chars",
                                  !o->whole_scripts, "strip_accents", accents, "lowercase", !o->cased));
    json_object_set_new(
        root, "post_processor",
        json_pack("{s:s, s:[s, i], s:[s, i]}", "type", "BertProcessing", "sep", special[END], id[END], "cls", special[BEGIN], id[BEGIN]));
    json_object_set_new(root, "decoder", json_pack("{s:s, s:s, s:b}", "type", "WordPiece", "prefix", "##", "cleanup", 1));
    json_object_set_new(root, "model",
                        json_pack("{s:s, s:s, s:s, s:i}", "type", "WordPiece", "unk_token", special[UNKNOWN], "continuing_subword_prefix",
                                  "##", "max_input_chars_per_word", 100));
    return build_tokenizer(root, table, path, out, error);
}

wf_status wf_tokenizer_load_vocab_with(const char *path, const struct wf_vocab_options *options, wf_tokenizer **out, wf_error *error)
{
    if (wf_needs(error, "out", out))
        return WF_ERR_ARGUMENT;
    *out = NULL;
    if (wf_needs(error, "path", path))
        return WF_ERR_ARGUMENT;
    struct tokenizer_table table = {0};
    wf_status status = read_lines(path, &table.pieces, error);
    if (status == WF_OK)
        status = build(path, &table, options, out, error);
    tokenizer_table_free(&table);
    return status;
}
