/* SPDX-License-Identifier: MIT */
#include <inttypes.h>

#include "bpe_words.h"
#include "unicode.h"
#include <weft/internal/utf8.h>
#include <weft/memory.h>

enum { POINTS = 0x110000 };

/* Marks the characters that occur, then numbers them: id[point] is the piece. Returns false without memory. */
static bool add_alphabet(const struct vocab *words, bool bytes, struct vocab *pieces, int32_t *id)
{
    uint32_t point;
    for (int byte = 0; bytes && byte < 256; byte++)
        id[unicode_of_byte((unsigned char)byte)] = 1;
    for (int32_t i = 0; i < words->count; i++) {
        int64_t length;
        const char *word = vocab_piece(words, i, &length);
        for (int64_t at = 0; at < length; id[point] = 1)
            at += wf_utf8_decode(word + at, length - at, &point);
    }
    for (point = 0; point < POINTS; point++) {
        char text[4];
        if (id[point] && (id[point] = vocab_add(pieces, text, wf_utf8_encode(point, text))) < 0)
            return false;
    }
    return true;
}

static wf_status out_of_memory(const struct vocab *words, wf_error *error)
{
    return wf_error_set(error, WF_ERR_MEMORY, "no memory for the characters of %" PRId64 " words", words->count);
}

wf_status bpe_words_of(struct bpe_words *out, const struct word_counts *counts, bool bytes, struct vocab *pieces, wf_error *error)
{
    const struct vocab *words = &counts->words;
    *out = (struct bpe_words){0};
    int32_t *id = wf_alloc_zero(POINTS, sizeof *id);
    int64_t symbols = 0, count = 0;
    if (!id || !add_alphabet(words, bytes, pieces, id)) {
        wf_free(id);
        return out_of_memory(words, error);
    }
    for (int64_t i = 0; i < words->start[words->count]; i++)
        symbols += (words->bytes[i] & 0xC0) != 0x80;
    out->symbol = wf_alloc((size_t)symbols * sizeof *out->symbol);
    out->start = wf_alloc((size_t)words->count * sizeof *out->start);
    out->length = wf_alloc((size_t)words->count * sizeof *out->length);
    out->times = wf_alloc((size_t)words->count * sizeof *out->times);
    if (!out->symbol || !out->start || !out->length || !out->times) {
        bpe_words_free(out);
        wf_free(id);
        return out_of_memory(words, error);
    }
    int64_t to = 0;
    for (int64_t i = 0; i < words->count; i++) {
        int64_t begin = to;
        uint32_t point;
        for (int64_t at = words->start[i], end = words->start[i + 1] - 1; at < end;) {
            at += wf_utf8_decode(words->bytes + at, end - at, &point);
            out->symbol[to++] = id[point];
        }
        if (to - begin > INT32_MAX / 2) {
            bpe_words_free(out);
            wf_free(id);
            return wf_error_set(error, WF_ERR_FORMAT, "a word has %" PRId64 " characters; at most %d are possible", to - begin,
                                INT32_MAX / 2);
        }
        if (to - begin < 2) {
            to = begin;
            continue;
        }
        out->start[count] = begin;
        out->length[count] = (int32_t)(to - begin);
        out->times[count++] = counts->times[i];
    }
    out->count = count;
    wf_free(id);
    return WF_OK;
}

void bpe_words_free(struct bpe_words *words)
{
    wf_free(words->symbol);
    wf_free(words->start);
    wf_free(words->length);
    wf_free(words->times);
    *words = (struct bpe_words){0};
}
