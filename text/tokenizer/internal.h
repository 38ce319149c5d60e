/* SPDX-License-Identifier: MIT */
/* The structure of a tokenizer. A text becomes ids in these steps:
 *
 *   text -> cut out added tokens (added_tokens.c) -> normalizer -> pre-tokenizer: words -> model: ids -> post-processor: add special ids
 *
 * and ids become text in these:   ids -> pieces -> decoder: text
 *
 * parts.def lists all parts. encode.c runs them in this order, and file.c reads and writes the file. Tokenizers of single characters need
 * no pipeline (char.c). */
#ifndef WEFT_TEXT_TOKENIZER_INTERNAL_H
#define WEFT_TEXT_TOKENIZER_INTERNAL_H

#include <weft/internal/string.h>
#include <weft/tokenizer.h>

#include "part.h"
#include "prefixes.h"
#include "vocab.h"

/* A word of more than WORD_WINDOW pieces is merged in windows. A window has WORD_WINDOW pieces at first. If the text after the
 * window can still change most of its pieces, the next window is twice as large, up to WORD_WINDOW_MOST pieces. The merges of a trained
 * tokenizer never need a window that is larger than that. */
enum { WORD_WINDOW = 1 << 16, WORD_WINDOW_MOST = 1 << 22 };

/* A model of any type. */
struct model {
    struct part part;
    const struct vocab *vocab; /* the tokenizer's vocabulary; its first `size` pieces belong to the model */
    int64_t size;
    struct text unknown;     /* the name of the unknown token */
    int32_t unknown_id;      /* id of the unknown token; -1 if `unknown` is not set or not in the vocabulary */
    struct text prefix;      /* "##" or another text that begins every piece that does not begin a word */
    struct text suffix;      /* "</w>" or another text that ends every piece that ends a word */
    struct point_map points; /* ids of the pieces of one character */
    int32_t byte[256];       /* ids of the pieces "<0x00>" to "<0xFF>", which stand for bytes; -1 for a byte without a piece */
    /* members that only BPE uses */
    bool fuse_unknown, byte_fallback, ignore_merges;
    struct merge {
        int32_t left;
        int32_t right;
        int32_t id; /* id of the piece that joins left and right */
    } * merge;      /* [merges], by rank */
    int64_t merges;
    struct merge_slot {
        int32_t left;
        int32_t right;
        int32_t rank; /* index into `merge`; -1: empty slot */
    } * slot;         /* hash table of the merges by (left, right), with open addressing */
    uint64_t slot_key, slot_mask;
    int slot_shift;
    /* members that only WordPiece uses */
    int64_t most_characters;   /* a word with more characters becomes the unknown token */
    struct prefixes pieces[2]; /* [0]: pieces that begin a word; [1]: pieces inside a word, without their prefix */
};

struct added_token {
    int32_t id;
    struct text content;
    const char *match; /* the text that is searched for: the content, normalised if `normalized` is set */
    int64_t match_length;
    bool single_word, lstrip, rstrip, normalized, special;
};

struct wf_tokenizer {
    wf_tokenizer_kind kind;
    bool plain;         /* the tokens are single characters, and the file has nothing else, so char.c encodes without the pipeline */
    struct vocab vocab; /* the model's pieces, then the added tokens that the model lacks */
    struct model model;
    struct added_token *added; /* [added_count], by ascending id */
    int64_t added_count;
    /* The value of a token in the next two sets is its index in `added`, minus INT32_MAX if the token is special. */
    struct prefixes raw;               /* added tokens to find before the normalizer */
    struct prefixes normalized;        /* added tokens to find after the normalizer */
    const struct part *normalizer;     /* NULL: the file has none */
    const struct part *pre_tokenizer;  /* NULL: the file has none */
    const struct part *post_processor; /* NULL: the file has none */
    const struct part *decoder;        /* NULL: the file has none */
    int64_t specials;                  /* number of special tokens that the post-processor adds */
    bool marks_first;                  /* the pre-tokenizer has a Metaspace that marks only the first word of a text */
    bool tracks; /* encoding records the origin of each byte, because a Metaspace must know which word begins the text */
    struct truncation {
        bool on;
        int direction, strategy;
        int64_t length, stride;
    } truncation;
    struct padding {
        bool on;
        int direction;
        int64_t fixed;       /* length to pad to; -1: that of the longest text of a batch */
        int64_t multiple_of; /* round the length up to a multiple of this; -1: do not */
        int64_t type_id;
        int32_t id;
        struct text token;
    } padding;
    struct block *block;     /* list of the memory blocks of all parts */
    struct pattern *pattern; /* list of all regular expressions, which only PCRE2 can free */
};
enum direction { DIRECTION_RIGHT, DIRECTION_LEFT };

/* A vocabulary that a trainer makes. Its first `specials` pieces are special tokens. For byte-level BPE the pieces are in the printable
 * form of the file, in which each byte is one of GPT-2's 256 characters. */
struct tokenizer_table {
    struct vocab pieces;
    int64_t specials;
    struct tokenizer_merge {
        int32_t left;  /* id of a piece */
        int32_t right; /* id of a piece; the joined text of both is a piece too */
    } * merge;         /* [merges], by rank */
    int64_t merges;
};
void tokenizer_table_free(struct tokenizer_table *table);

/* file.c: makes a tokenizer from the JSON value of a file, and releases `root`. If `table` is not NULL, vocabulary and merges come from the
 * table, which is left empty. */
wf_status tokenizer_of(json_t *root, struct tokenizer_table *table, const char *where, wf_tokenizer **out, wf_error *error) WF_CHECKED;

/* model.c */
void model_read(struct reader *r, json_t *object);
/* Fills the tables that all models derive from the vocabulary. */
void model_index(struct reader *r);
int32_t model_id(const struct model *m, const char *piece, int64_t length); /* the id of one of the model's pieces; -1: none */
/* A text while it is encoded. */
struct encoding {
    const wf_tokenizer *t;
    struct scratch *s;
    const struct wf_encode_options *options;
    struct wf_tokens *out;
    struct wf_encode_fault *fault;
};
/* Appends the unknown token in place of a word. WF_ERR_FORMAT if the model has no such token. */
wf_status model_unknown(const struct encoding *e);
extern const struct key_kind value_vocab;

/* added_tokens.c */
void added_tokens_read(struct reader *r, json_t *root);
json_t *added_tokens_write(const wf_tokenizer *t);
uint64_t added_tokens_hash(const wf_tokenizer *t, uint64_t hash);
/* Finds the text that each added token matches, and sorts these texts. The normalizer must have been read before. */
void added_tokens_index(struct reader *r);
/* Finds the next token of `set` in the text; the search begins at *search. Special tokens in the plain ranges of the options are skipped,
 * so the text must have its origins if there are such ranges. Returns the token, or NULL if there is none. Sets
 * [*begin, *end) to the range that the token takes, with the white space that it strips, and *search to the end of the token's own text.
 * `from` is the *end of the token found before: the range does not begin before it. */
const struct added_token *added_tokens_next(const struct encoding *e, const struct prefixes *set, const struct view *text, int64_t *search,
                                            int64_t from, int64_t *begin, int64_t *end);

/* decode.c: the first of a special token's usual names that is a piece with an id below `below`; NULL: none */
const char *special_name(const struct vocab *pieces, int64_t below, enum wf_special special);

/* normalize_points (normalizer_characters.c) replaces each character by what `put` appends for it. normal_form (normal_forms.c) converts
 * the text to NFD, to NFKD with `compatible`, to NFC with `compose`, or to NFKC with both, in time linear in the text. The only error is
 * WF_ERR_MEMORY, if there is no memory or an append fails (see flow_put). */
wf_status normalize_points(struct scratch *s, struct view *text, put_point *put);
wf_status normal_form(struct scratch *s, struct view *text, bool compatible, bool compose);

/* char.c */
wf_status char_encode(const wf_tokenizer *t, const char *text, int64_t length, struct wf_tokens *out, struct wf_encode_fault *fault);

bool pre_split_is_characters(const struct part *part); /* the part is a Split with the pattern [\s\S] and the behaviour Isolated */

/* Allocates memory for `more` further ids. False if there is no memory. */
bool tokens_reserve(struct wf_tokens *tokens, int64_t more);
wf_status tokens_add(struct wf_tokens *tokens, int32_t id); /* appends an id; WF_ERR_MEMORY */

#endif
