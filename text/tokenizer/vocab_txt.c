/* SPDX-License-Identifier: MIT */
/* BERT's vocab.txt. It becomes the tokenizer.json that means the same, which goes through the one reader: what that checks holds here. */
#include <inttypes.h>
#include <string.h>

#include "internal.h"
#include "json_write.h"
#include "unicode.h"
#include <weft/file.h>
#include <weft/internal/text.h>
#include <weft/internal/utf8.h>
#include <weft/memory.h>

static const int64_t most_bytes = (int64_t)64 << 20;

struct vocab_file {
    const char *path;
    struct vocab vocab;
};

/* A line's token: without the white space at its end, a "\r" too. */
static int64_t trimmed(const char *line, int64_t length)
{
    while (length > 0) {
        int size = unicode_before(line, length), point_size;
        if (!(unicode_class(unicode_at(line, length - size, &point_size)) & CHAR_SPACE))
            break;
        length -= size;
    }
    return length;
}

static wf_status add_line(struct vocab_file *f, const char *line, int64_t length, wf_error *error)
{
    char quoted[WF_QUOTE_SIZE], token[80];
    int64_t number = f->vocab.count + 1, bad = wf_utf8_check(line, length);
    if (bad >= 0)
        return wf_error_set(error, WF_ERR_FORMAT, "%s:%" PRId64 ":%" PRId64 ": not UTF-8: byte 0x%02X: %s", f->path, number, bad + 1,
                            (unsigned char)line[bad], wf_utf8_fault(line + bad, length - bad));
    if (memchr(line, 0, (size_t)length))
        return wf_error_set(error, WF_ERR_FORMAT, "%s:%" PRId64 ": a NUL byte: this is no vocabulary", f->path, number);
    length = trimmed(line, length);
    if (length == 0)
        return wf_error_set(error, WF_ERR_FORMAT, "%s:%" PRId64 ": an empty line, where a token is expected", f->path, number);
    if (vocab_add(&f->vocab, line, length))
        return WF_OK;
    int64_t shown = length < (int64_t)sizeof token - 1 ? length : (int64_t)sizeof token - 1;
    memcpy(token, line, (size_t)shown);
    token[shown] = 0;
    return wf_error_set(error, WF_ERR_FORMAT, "%s:%" PRId64 ": the token %s is there twice, in line %" PRId64 " too", f->path, number,
                        wf_text_quote(token, quoted), (int64_t)vocab_find(&f->vocab, line, length) + 1);
}

static wf_status read_lines(struct vocab_file *f, const char *text, int64_t bytes, wf_error *error)
{
    int64_t lines = 0;
    for (int64_t i = 0; i < bytes; i++)
        lines += text[i] == '\n';
    if (bytes == 0)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: the vocabulary is empty", f->path);
    if (lines >= INT32_MAX / 2 || !vocab_reserve(&f->vocab, lines + 1, bytes))
        return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for a vocabulary of %" PRId64 " lines", f->path, lines);
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
    return vocab_find(&f->vocab, token, (int64_t)strlen(token));
}

static wf_status need(const struct vocab_file *f, const char *token, const char *what, wf_error *error)
{
    char quoted[WF_QUOTE_SIZE];
    return id_of(f, token) >= 0 ? WF_OK
                                : wf_error_set(error, WF_ERR_FORMAT, "%s: the vocabulary has no %s, the %s: this is not BERT's", f->path,
                                               wf_text_quote(token, quoted), what);
}

static void write_added(const struct vocab_file *f, const struct marks *m, struct json_writer *w)
{
    const char *const marks[] = {m->unknown, m->end, m->begin, m->pad, m->mask};
    json_open(w, "added_tokens", '[');
    for (int32_t id = 0; id < f->vocab.count; id++) { /* by id, as the file has them */
        int64_t length;
        const char *piece = vocab_piece(&f->vocab, id, &length);
        bool is_mark = false;
        for (int i = 0; i < 5; i++)
            is_mark |= strcmp(piece, marks[i]) == 0;
        if (!is_mark)
            continue;
        json_open(w, NULL, '{');
        json_put_int(w, "id", id);
        json_put_bytes(w, "content", piece, length);
        json_put_bool(w, "single_word", false);
        json_put_bool(w, "lstrip", false);
        json_put_bool(w, "rstrip", false);
        json_put_bool(w, "normalized", false);
        json_put_bool(w, "special", true);
        json_close(w, '}');
    }
    json_close(w, ']');
}

static void write_normalizer(const struct wf_vocab_options *o, struct json_writer *w)
{
    json_open(w, "normalizer", '{');
    json_put_string(w, "type", "BertNormalizer");
    json_put_bool(w, "clean_text", true);
    json_put_bool(w, "handle_chinese_chars", !o->whole_scripts);
    if (o->accents == WF_ACCENTS_BY_CASE)
        json_put_null(w, "strip_accents");
    else
        json_put_bool(w, "strip_accents", o->accents == WF_ACCENTS_STRIP);
    json_put_bool(w, "lowercase", !o->cased);
    json_close(w, '}');
    json_open(w, "pre_tokenizer", '{');
    json_put_string(w, "type", "BertPreTokenizer");
    json_close(w, '}');
}

static void write_mark(const char *key, const char *token, int32_t id, struct json_writer *w)
{
    json_open(w, key, '[');
    json_put_string(w, NULL, token);
    json_put_int(w, NULL, id);
    json_close(w, ']');
}

static void write_rest(const struct vocab_file *f, const struct marks *m, struct json_writer *w)
{
    json_open(w, "post_processor", '{');
    json_put_string(w, "type", "BertProcessing");
    write_mark("sep", m->end, id_of(f, m->end), w);
    write_mark("cls", m->begin, id_of(f, m->begin), w);
    json_close(w, '}');
    json_open(w, "decoder", '{');
    json_put_string(w, "type", "WordPiece");
    json_put_string(w, "prefix", "##");
    json_put_bool(w, "cleanup", true);
    json_close(w, '}');
    json_open(w, "model", '{');
    json_put_string(w, "type", "WordPiece");
    json_put_string(w, "unk_token", m->unknown);
    json_put_string(w, "continuing_subword_prefix", "##");
    json_put_int(w, "max_input_chars_per_word", 100);
    json_open(w, "vocab", '{');
    for (int32_t id = 0; id < f->vocab.count; id++) {
        int64_t length;
        const char *piece = vocab_piece(&f->vocab, id, &length);
        json_put_entry(w, piece, length, id);
    }
    json_close(w, '}');
    json_close(w, '}');
}

static wf_status build(const struct vocab_file *f, const struct wf_vocab_options *o, wf_tokenizer **out, wf_error *error)
{
    struct marks m = {o->unknown ? o->unknown : "[UNK]", o->begin ? o->begin : "[CLS]", o->end ? o->end : "[SEP]",
                      o->pad ? o->pad : "[PAD]", o->mask ? o->mask : "[MASK]"};
    wf_status status = need(f, m.unknown, "unknown token", error);
    if (status == WF_OK)
        status = need(f, m.begin, "mark of a text's beginning", error);
    if (status == WF_OK)
        status = need(f, m.end, "mark of its end", error);
    if (status != WF_OK)
        return status;
    struct wf_string json = {0};
    struct json_writer w = {.out = &json};
    json_open(&w, NULL, '{');
    json_put_string(&w, "version", "1.0");
    json_put_null(&w, "truncation");
    json_put_null(&w, "padding");
    write_added(f, &m, &w);
    write_normalizer(o, &w);
    write_rest(f, &m, &w);
    json_close(&w, '}');
    status = w.failed ? wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for the tokenizer", f->path)
                      : wf_tokenizer_parse(json.data, json.length, f->path, out, error);
    wf_string_free(&json);
    return status;
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
    vocab_free(&f.vocab);
    wf_free(text);
    return status;
}
