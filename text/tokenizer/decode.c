/* SPDX-License-Identifier: MIT */
/* Ids to text, and what a tokenizer tells about itself. */
#include <inttypes.h>
#include <string.h>

#include "pipeline.h"
#include <weft/memory.h>

static const char *const kind_names[] = {[WF_TOKENIZER_CHAR] = "char",
                                         [WF_TOKENIZER_WORD] = "word",
                                         [WF_TOKENIZER_BPE] = "bpe",
                                         [WF_TOKENIZER_BYTE_BPE] = "byte-bpe",
                                         [WF_TOKENIZER_WORDPIECE] = "wordpiece"};
enum { KINDS = sizeof kind_names / sizeof *kind_names };

wf_tokenizer_kind wf_tokenizer_kind_of(const wf_tokenizer *t)
{
    return t->kind;
}

const char *wf_tokenizer_kind_name(wf_tokenizer_kind kind)
{
    return (unsigned)kind < KINDS ? kind_names[kind] : "unknown";
}

bool wf_tokenizer_kind_parse(const char *name, wf_tokenizer_kind *out)
{
    for (int i = 0; i < KINDS; i++)
        if (!strcmp(name, kind_names[i])) {
            *out = (wf_tokenizer_kind)i;
            return true;
        }
    return false;
}

int64_t wf_tokenizer_vocab_size(const wf_tokenizer *t)
{
    return t->vocab.count;
}

const char *wf_tokenizer_token(const wf_tokenizer *t, int32_t id, int64_t *length)
{
    int64_t bytes = 0;
    const char *token = id < 0 || id >= t->vocab.count ? NULL : vocab_piece(&t->vocab, id, &bytes);
    if (length)
        *length = bytes;
    return token;
}

int32_t wf_tokenizer_id(const wf_tokenizer *t, const char *piece, int64_t length)
{
    return length > 0 ? vocab_find(&t->vocab, piece, length) : -1;
}

int32_t wf_tokenizer_special(const wf_tokenizer *t, enum wf_special special)
{
    static const char *const names[][3] = {[WF_SPECIAL_BOS] = {"<s>", "<bos>", "[CLS]"},
                                           [WF_SPECIAL_EOS] = {"</s>", "<eos>", "[SEP]"},
                                           [WF_SPECIAL_PAD] = {"<pad>", "[PAD]", NULL},
                                           [WF_SPECIAL_UNKNOWN] = {NULL, NULL, NULL},
                                           [WF_SPECIAL_MASK] = {"<mask>", "[MASK]", NULL}};
    if (special == WF_SPECIAL_UNKNOWN)
        return t->model.unknown_id;
    if ((unsigned)special >= sizeof names / sizeof *names)
        return -1;
    for (int i = 0; i < 3 && names[special][i]; i++) {
        int32_t id = wf_tokenizer_id(t, names[special][i], (int64_t)strlen(names[special][i]));
        if (id >= 0)
            return id;
    }
    return -1;
}

/* The added token with this id, or NULL; they are sorted by it. */
static const struct added_token *added(const wf_tokenizer *t, int32_t id)
{
    int64_t low = 0, high = t->added_count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (t->added[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < t->added_count && t->added[low].id == id ? t->added + low : NULL;
}

/* Characters need no list of pieces. */
static wf_status join(const wf_tokenizer *t, const int32_t *ids, int64_t count, struct wf_string *out)
{
    int64_t bytes = 0, length;
    for (int64_t i = 0; i < count; i++) {
        vocab_piece(&t->vocab, ids[i], &length);
        bytes += length;
    }
    if (!wf_string_reserve(out, bytes))
        return WF_ERR_MEMORY;
    for (int64_t i = 0; i < count; i++) {
        const char *piece = vocab_piece(&t->vocab, ids[i], &length);
        wf_string_add(out, piece, length);
    }
    return WF_OK;
}

static wf_status decode(const wf_tokenizer *t, const int32_t *ids, int64_t count, bool specials, struct wf_string *out)
{
    struct pieces pieces = {.most = INT64_MAX};
    wf_status status = WF_OK;
    for (int64_t i = 0; status == WF_OK && i < count; i++) {
        int64_t length;
        const char *piece = vocab_piece(&t->vocab, ids[i], &length);
        const struct added_token *token = added(t, ids[i]);
        if (token && token->special && !specials)
            continue;
        if (token) { /* as it stands in the normalised text */
            piece = token->match;
            length = token->match_length;
        }
        if (!pieces_begin(&pieces) || !pieces_add(&pieces, piece, length))
            status = WF_ERR_MEMORY;
    }
    if (status == WF_OK && pieces.count > 0)
        status = decoder_run(t->decoder, &pieces, out);
    wf_string_free(&pieces.bytes);
    wf_free(pieces.end);
    return status;
}

wf_status wf_tokenizer_decode_with(const wf_tokenizer *t, const int32_t *ids, int64_t count, const struct wf_decode_options *options,
                                   struct wf_string *out, wf_error *error)
{
    for (int64_t i = 0; i < count; i++)
        if (ids[i] < 0 || ids[i] >= t->vocab.count)
            return wf_error_set(error, WF_ERR_ARGUMENT, "token %" PRId64 " of %" PRId64 " is %d, outside the vocabulary 0 .. %" PRId64,
                                i + 1, count, (int)ids[i], t->vocab.count - 1);
    int64_t before = out->length;
    wf_status status = t->kind == WF_TOKENIZER_CHAR ? join(t, ids, count, out) : decode(t, ids, count, options->specials, out);
    if (status == WF_OK)
        return WF_OK;
    out->length = before;
    if (out->data)
        out->data[before] = 0;
    if (status == WF_ERR_FORMAT)
        return wf_error_set(error, status, "a pattern of the tokenizer's decoder takes too long on these %" PRId64 " tokens", count);
    return wf_error_set(error, status, "no memory for the text of %" PRId64 " tokens", count);
}

wf_status wf_tokenizer_decode(const wf_tokenizer *t, const int32_t *ids, int64_t count, struct wf_string *out, wf_error *error)
{
    return wf_tokenizer_decode_with(t, ids, count, &(struct wf_decode_options){0}, out, error);
}

bool wf_tokenizer_gives_text(const wf_tokenizer *t)
{
    return t->decoder || t->kind == WF_TOKENIZER_CHAR || t->kind == WF_TOKENIZER_WORD;
}
