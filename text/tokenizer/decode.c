/* SPDX-License-Identifier: MIT */
/* Functions that look up ids, tokens and properties of a tokenizer. */
#include <stdio.h>
#include <string.h>

#include "internal.h"
#include <weft/internal/text.h>

static const char *const kind_names[] = {[WF_TOKENIZER_CHAR] = "char",
                                         [WF_TOKENIZER_WORD] = "word",
                                         [WF_TOKENIZER_BPE] = "bpe",
                                         [WF_TOKENIZER_BYTE_BPE] = "byte-bpe",
                                         [WF_TOKENIZER_WORDPIECE] = "wordpiece"};
enum { KINDS = sizeof kind_names / sizeof *kind_names };

wf_tokenizer_kind wf_tokenizer_kind_of(const wf_tokenizer *t)
{
    if (!t)
        return WF_TOKENIZER_CHAR;
    return t->kind;
}

const char *wf_tokenizer_kind_name(wf_tokenizer_kind kind)
{
    return (unsigned)kind < KINDS ? kind_names[kind] : "unknown";
}

bool wf_tokenizer_kind_parse(const char *name, wf_tokenizer_kind *out)
{
    if (!name || !out)
        return false;
    for (int i = 0; i < KINDS; i++)
        if (!strcmp(name, kind_names[i])) {
            *out = (wf_tokenizer_kind)i;
            return true;
        }
    return false;
}

int64_t wf_tokenizer_vocab_size(const wf_tokenizer *t)
{
    if (!t)
        return 0;
    return t->vocab.count;
}

const char *wf_tokenizer_token(const wf_tokenizer *t, int32_t id, int64_t *length)
{
    if (!t)
        return NULL;
    int64_t bytes = 0;
    const char *token = id < 0 || id >= t->vocab.count ? NULL : vocab_piece(&t->vocab, id, &bytes);
    if (length)
        *length = bytes;
    return token;
}

int32_t wf_tokenizer_id(const wf_tokenizer *t, const char *piece, int64_t length)
{
    if (!t || (!piece && length > 0))
        return -1;
    return length > 0 ? vocab_find(&t->vocab, piece, length) : -1;
}

const char *special_name(const struct vocab *pieces, int64_t below, enum wf_special special)
{
    static const char *const names[][5] = {[WF_SPECIAL_BOS] = {"<s>", "<bos>", "[CLS]"},
                                           [WF_SPECIAL_EOS] = {"</s>", "<eos>", "[SEP]", "<|endoftext|>", "<|end_of_text|>"},
                                           [WF_SPECIAL_PAD] = {"<pad>", "[PAD]"},
                                           [WF_SPECIAL_UNKNOWN] = {0},
                                           [WF_SPECIAL_MASK] = {"<mask>", "[MASK]"}};
    for (int i = 0; (unsigned)special < sizeof names / sizeof *names && i < 5 && names[special][i]; i++) {
        int32_t id = vocab_find(pieces, names[special][i], (int64_t)strlen(names[special][i]));
        if (id >= 0 && id < below)
            return names[special][i];
    }
    return NULL;
}

int32_t wf_tokenizer_special(const wf_tokenizer *t, enum wf_special special)
{
    if (!t)
        return -1;
    const char *name = special_name(&t->vocab, t->vocab.count, special);
    return special == WF_SPECIAL_UNKNOWN ? t->model.unknown_id : name ? vocab_find(&t->vocab, name, (int64_t)strlen(name)) : -1;
}

bool wf_tokenizer_gives_text(const wf_tokenizer *t)
{
    if (!t)
        return false;
    return t->decoder || t->kind == WF_TOKENIZER_CHAR || t->kind == WF_TOKENIZER_WORD;
}

char *wf_unknown_describe(int64_t unknown, int64_t tokens, char *text, size_t size)
{
    char some[WF_NUMBER_SIZE], all[WF_NUMBER_SIZE];
    int64_t tenths = tokens > 0 ? (int64_t)(1000 * (double)unknown / (double)tokens + 0.5)
                                : 0; /* an integer, because printf of a double would write the decimal point of the locale */
    snprintf(text, size, "unknown tokens: %s of %s (%s%d.%d %%)", wf_text_count(unknown, some), wf_text_count(tokens, all),
             tenths == 0 ? "<" : "", (int)(tenths / 10), tenths == 0 ? 1 : (int)(tenths % 10));
    return text;
}
