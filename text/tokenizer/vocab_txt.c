/* SPDX-License-Identifier: MIT */
/* BERT's vocab.txt. It becomes the tokenizer.json that means the same, which goes through the one reader: what that checks holds here. */
#include <inttypes.h>
#include <string.h>

#include "build.h"
#include "unicode.h"
#include <weft/file.h>
#include <weft/internal/json.h>
#include <weft/internal/text.h>
#include <weft/internal/utf8.h>
#include <weft/memory.h>

static const int64_t most_bytes = (int64_t)64 << 20;

struct vocab_file {
    const char *path;
    struct tokenizer_table table;
};

/* A line's token: without the white space at its end, a "\r" too. */
static int64_t trimmed(const char *line, int64_t length)
{
    while (length > 0) {
        int size = wf_utf8_before(line, length), point_size;
        if (!(unicode_class(wf_utf8_at(line, length - size, &point_size)) & CHAR_SPACE))
            break;
        length -= size;
    }
    return length;
}

static wf_status add_line(struct vocab_file *f, const char *line, int64_t length, wf_error *error)
{
    char quoted[WF_QUOTE_SIZE], token[80];
    int64_t number = f->table.pieces.count + 1, bad = wf_utf8_check(line, length);
    if (bad >= 0)
        return wf_error_set(error, WF_ERR_FORMAT, "%s:%" PRId64 ":%" PRId64 ": not UTF-8: byte 0x%02X: %s", f->path, number, bad + 1,
                            (unsigned char)line[bad], wf_utf8_fault(line + bad, length - bad));
    if (memchr(line, 0, (size_t)length))
        return wf_error_set(error, WF_ERR_FORMAT, "%s:%" PRId64 ": a NUL byte: this is no vocabulary", f->path, number);
    length = trimmed(line, length);
    if (length == 0)
        return wf_error_set(error, WF_ERR_FORMAT, "%s:%" PRId64 ": an empty line, where a token is expected", f->path, number);
    int32_t id = vocab_add(&f->table.pieces, line, length);
    if (id == number - 1)
        return WF_OK;
    if (id < 0)
        return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for a vocabulary of %" PRId64 " lines", f->path, number);
    int64_t shown = length < (int64_t)sizeof token - 1 ? length : (int64_t)sizeof token - 1;
    memcpy(token, line, (size_t)shown);
    token[shown] = 0;
    return wf_error_set(error, WF_ERR_FORMAT, "%s:%" PRId64 ": the token %s is there twice, in line %" PRId64 " too", f->path, number,
                        wf_text_quote(token, quoted), (int64_t)id + 1);
}

static wf_status read_lines(struct vocab_file *f, const char *text, int64_t bytes, wf_error *error)
{
    if (bytes == 0)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: the vocabulary is empty", f->path);
    wf_status status = WF_OK;
    for (int64_t at = 0; status == WF_OK && at < bytes;) {
        const char *end = memchr(text + at, '\n', (size_t)(bytes - at));
        int64_t length = end ? end - (text + at) : bytes - at;
        status = add_line(f, text + at, length, error);
        at += length + 1;
    }
    return status;
}

/* --- as a tokenizer.json ------------------------------------------------------------------------------------------- */

struct marks {
    const char *unknown, *begin, *end, *pad, *mask;
};

static int32_t id_of(const struct vocab_file *f, const char *token)
{
    return vocab_find(&f->table.pieces, token, (int64_t)strlen(token));
}

static wf_status need(const struct vocab_file *f, const char *token, const char *what, wf_error *error)
{
    char quoted[WF_QUOTE_SIZE];
    return id_of(f, token) >= 0 ? WF_OK
                                : wf_error_set(error, WF_ERR_FORMAT, "%s: the vocabulary has no %s, the %s: this is not BERT's", f->path,
                                               wf_text_quote(token, quoted), what);
}

/* By id, as the package writes them. */
static json_t *added_tokens(const struct vocab_file *f, const struct marks *m)
{
    const char *const marks[] = {m->unknown, m->end, m->begin, m->pad, m->mask};
    json_t *added = json_array();
    for (int32_t id = 0; id < f->table.pieces.count; id++) {
        const char *piece = vocab_piece(&f->table.pieces, id, &(int64_t){0});
        bool is_mark = false;
        for (int i = 0; i < 5; i++)
            is_mark |= strcmp(piece, marks[i]) == 0;
        if (is_mark)
            json_array_append_new(added, build_added_token(piece, id));
    }
    return added;
}

static wf_status build(struct vocab_file *f, const struct wf_vocab_options *o, wf_tokenizer **out, wf_error *error)
{
    struct marks m = {o->unknown ? o->unknown : "[UNK]", o->begin ? o->begin : "[CLS]", o->end ? o->end : "[SEP]",
                      o->pad ? o->pad : "[PAD]", o->mask ? o->mask : "[MASK]"};
    wf_status status = need(f, m.unknown, "unknown token", error);
    if (status == WF_OK)
        status = need(f, m.begin, "token that begins a text", error);
    if (status == WF_OK)
        status = need(f, m.end, "token that ends a text", error);
    if (status != WF_OK)
        return status;
    wf_json_init();
    wf_json_memory_clear();
    json_t *root = json_pack("{s:s, s:{s:s}}", "version", "1.0", "pre_tokenizer", "type", "BertPreTokenizer");
    json_t *accents = o->accents == WF_ACCENTS_BY_CASE ? json_null() : json_boolean(o->accents == WF_ACCENTS_STRIP);
    json_object_set_new(root, "added_tokens", added_tokens(f, &m));
    json_object_set_new(root, "normalizer",
                        json_pack("{s:s, s:b, s:b, s:o, s:b}", "type", "BertNormalizer", "clean_text", 1, "handle_chinese_chars",
                                  !o->whole_scripts, "strip_accents", accents, "lowercase", !o->cased));
    json_object_set_new(root, "post_processor",
                        json_pack("{s:s, s:[s, i], s:[s, i]}", "type", "BertProcessing", "sep", m.end, (int)id_of(f, m.end), "cls", m.begin,
                                  (int)id_of(f, m.begin)));
    json_object_set_new(root, "decoder", json_pack("{s:s, s:s, s:b}", "type", "WordPiece", "prefix", "##", "cleanup", 1));
    json_object_set_new(root, "model",
                        json_pack("{s:s, s:s, s:s, s:i}", "type", "WordPiece", "unk_token", m.unknown, "continuing_subword_prefix", "##",
                                  "max_input_chars_per_word", 100));
    return build_tokenizer(root, &f->table, f->path, out, error);
}

wf_status wf_tokenizer_load_vocab_with(const char *path, const struct wf_vocab_options *options, wf_tokenizer **out, wf_error *error)
{
    struct vocab_file f = {.path = path};
    wf_error local = {0};
    int64_t bytes;
    *out = NULL;
    char *text = wf_file_load(path, most_bytes, &bytes, &local);
    if (!text)
        return wf_error_set(error, local.code, "%s", local.message);
    wf_status status = read_lines(&f, text, bytes, error);
    if (status == WF_OK)
        status = build(&f, options, out, error);
    tokenizer_table_free(&f.table);
    wf_free(text);
    return status;
}
