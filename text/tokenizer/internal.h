/* SPDX-License-Identifier: MIT */
/* The structure of a tokenizer, and the way of a text through it:
 *
 *   text  ->  added tokens cut out (added_tokens.c)  ->  normalizer  ->  pre-tokenizer: words  ->  model: ids  ->  post-processor: ids with
 *   specials;          ids  ->  pieces  ->  decoder: text
 *
 * The parts are those of parts.def. encode.c puts them together, file.c reads and writes the file. Characters that are tokens have a short
 * way, char.c. */
#ifndef WEFT_TEXT_TOKENIZER_INTERNAL_H
#define WEFT_TEXT_TOKENIZER_INTERNAL_H

#include <weft/internal/string.h>
#include <weft/tokenizer.h>

#include "part.h"
#include "prefixes.h"
#include "vocab.h"

/* A longer word is merged in windows of so many pieces, or of more, up to the second, where the merges of a window depend on text far
 * behind it. No tokenizer that was trained needs more. */
enum { WORD_WINDOW = 1 << 16, WORD_WINDOW_MOST = 1 << 22 };

/* The fields of all models. */
struct model {
    struct part part;
    const struct vocab *vocab; /* the tokenizer's, of which the first `size` pieces are the model's */
    int64_t size;
    struct text unknown;     /* the name of the unknown token */
    int32_t unknown_id;      /* -1: none, or not in the vocabulary */
    struct text prefix;      /* of pieces that do not begin a word */
    struct text suffix;      /* of the piece that ends a word */
    struct point_map points; /* pieces of one character */
    int32_t byte[256];       /* ids of <0x00> ... <0xFF>, -1 where there is none */
    /* BPE */
    bool fuse_unknown, byte_fallback, ignore_merges;
    struct merge {
        int32_t left, right, id; /* id: of their join */
    } * merge;                   /* best first */
    int64_t merges;
    struct merge_slot {
        int32_t left, right, rank; /* rank -1: empty */
    } * slot;
    uint64_t slot_key, slot_mask;
    int slot_shift;
    /* WordPiece */
    int64_t most_characters;   /* a longer word is unknown */
    struct prefixes pieces[2]; /* those that begin a word; those that do not, without the prefix */
};

struct added_token {
    int32_t id;
    struct text content;
    const char *match; /* what is looked for: the content, normalised where it asks for that */
    int64_t match_length;
    bool single_word, lstrip, rstrip, normalized, special;
};

struct wf_tokenizer {
    wf_tokenizer_kind kind;
    bool plain;         /* characters, and nothing else: they need no pipeline */
    struct vocab vocab; /* the model's pieces, then added tokens that it lacks */
    struct model model;
    struct added_token *added; /* by id */
    int64_t added_count;
    struct prefixes raw, normalized; /* places in `added`: what is looked for before and after the normalizer */
    const struct part *normalizer, *pre_tokenizer, *post_processor, *decoder; /* these may be NULL */
    int64_t specials;                                                         /* how many the post-processor adds */
    bool marks_first;                                                         /* a Metaspace marks the text's first word only */
    bool tracks;                                                              /* the words depend on where in the text they came from */
    struct truncation {
        bool on;
        int direction, strategy;
        int64_t length, stride;
    } truncation;
    struct padding {
        bool on;
        int direction;
        int64_t fixed, multiple_of, type_id; /* fixed: -1 for the longest of a batch; multiple_of: -1 for none */
        int32_t id;
        struct text token;
    } padding;
    struct block *block;     /* the memory of all parts */
    struct pattern *pattern; /* all patterns, which PCRE2 must free */
};
enum direction { DIRECTION_RIGHT, DIRECTION_LEFT };

/* A vocabulary in the making; the first `specials` of its pieces are special tokens. Of byte BPE the pieces are in the printable form of
 * the file (GPT-2's 256 characters). */
struct tokenizer_table {
    struct vocab pieces;
    int64_t specials;
    struct tokenizer_merge {
        int32_t left, right; /* pieces; their join is a piece too */
    } * merge;               /* best first */
    int64_t merges;
};
void tokenizer_table_free(struct tokenizer_table *table);

/* file.c: the tokenizer of a file's value; the reference is taken. A table that is not NULL gives vocabulary and merges, and is emptied. */
wf_status tokenizer_of(json_t *root, struct tokenizer_table *table, const char *where, wf_tokenizer **out, wf_error *error) WF_CHECKED;

/* model.c */
void model_read(struct reader *r, json_t *object);
/* Derived from the vocabulary, for all models. */
void model_index(struct reader *r);
int32_t model_id(const struct model *m, const char *piece, int64_t length); /* of the model's pieces, or -1 */
/* A text on its way to ids. */
struct encoding {
    const wf_tokenizer *t;
    struct scratch *s;
    wf_token_cache *cache;
    struct wf_tokens *out;
    struct wf_encode_fault *fault;
};
wf_status model_unknown(const struct encoding *e); /* for a whole word; an error without an unknown token */
extern const struct key_kind value_vocab;

/* added_tokens.c */
void added_tokens_read(struct reader *r, json_t *root);
json_t *added_tokens_write(const wf_tokenizer *t);
uint64_t added_tokens_hash(const wf_tokenizer *t, uint64_t hash);
/* Finds what they match as, after the normalizer is known, and sorts them for the search. */
void added_tokens_index(struct reader *r);
/* The next one at data[*search ..] of those in `set`: [*begin, *end) and the token, NULL for none. `from` is where the last one ended. */
const struct added_token *added_tokens_next(const wf_tokenizer *t, const struct prefixes *set, const char *data, int64_t length,
                                            int64_t *search, int64_t from, int64_t *begin, int64_t *end);

/* decode.c: the first of a special token's usual names that is a piece with an id less than `below`, or NULL */
const char *special_name(const struct vocab *pieces, int64_t below, enum wf_special special);

/* normalizer_characters.c: each character becomes what `put` makes of it. normal_forms.c: NFD, or with `compatible` NFKD, or with `compose`
 * NFC and NFKC; linear in the text. WF_ERR_MEMORY. */
wf_status normalize_points(struct scratch *s, struct view *text, put_point *put);
wf_status normal_form(struct scratch *s, struct view *text, bool compatible, bool compose);

/* char.c */
wf_status char_encode(const wf_tokenizer *t, const char *text, int64_t length, struct wf_tokens *out, struct wf_encode_fault *fault);

bool pre_split_is_characters(const struct part *part); /* Split at [\s\S], Isolated */

/* Room for `more` further elements; false without memory. */
bool tokens_reserve(struct wf_tokens *tokens, int64_t more);
wf_status tokens_add(struct wf_tokens *tokens, int32_t id); /* WF_ERR_MEMORY */

#endif
