/* SPDX-License-Identifier: MIT */
/* The WordPiece model. It takes the longest piece that the word begins with, then the longest piece that the rest begins with, and so on.
 * Pieces inside a word have a prefix ("##"). If the rest begins with no piece, the whole word becomes the unknown token. */
#include <string.h>

#include "internal.h"
#include <weft/internal/utf8.h>

static wf_status wordpiece(const struct encoding *e, const char *word, int64_t length)
{
    const struct model *m = &e->t->model;
    struct wf_tokens *out = e->out;
    int64_t before = out->count, characters = wf_utf8_count(word, length);
    if (characters > m->most_characters)
        return model_unknown(e);
    if (!tokens_reserve(out, characters))
        return WF_ERR_MEMORY;
    for (int64_t at = 0; at < length;) {
        const struct prefix *piece = prefixes_find(&m->pieces[at > 0], word + at, length - at);
        if (!piece) {
            out->count = before;
            return model_unknown(e);
        }
        out->id[out->count++] = piece->value;
        at += piece->length;
    }
    return WF_OK;
}

/* Collects the pieces that begin with `prefix`, and stores them without it. */
static void index_pieces(struct reader *r, const struct model *m, const struct text *prefix, struct prefixes *out)
{
    out->prefix = reader_keep(r, m->size, sizeof *out->prefix);
    for (int32_t id = 0; out->prefix && id < m->size; id++) {
        int64_t length;
        const char *piece = vocab_piece(m->vocab, id, &length);
        if (length > prefix->length && !memcmp(piece, prefix->data, (size_t)prefix->length))
            out->prefix[out->count++] = (struct prefix){piece + prefix->length, length - prefix->length, id};
    }
    prefixes_sort(out);
}

static void ready(struct reader *r, void *part)
{
    struct model *m = part;
    index_pieces(r, m, &(struct text){"", 0}, &m->pieces[0]);
    index_pieces(r, m, &m->prefix, &m->pieces[1]);
    model_index(r);
}

const struct part_type model_wordpiece = {"WordPiece", PART_MODEL,
                                          .keys = KEYS({"unk_token", &value_text, offsetof(struct model, unknown)},
                                                       {"continuing_subword_prefix", &value_text, offsetof(struct model, prefix)},
                                                       {"max_input_chars_per_word", &value_count, offsetof(struct model, most_characters)},
                                                       {"vocab", &value_vocab}),
                                          .ready = ready, .word = wordpiece};
