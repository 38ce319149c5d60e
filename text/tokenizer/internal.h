/* SPDX-License-Identifier: MIT */
/* Inside the room: what a tokenizer is made of, and how text goes through it:
 *
 *   text  ->  added tokens cut out (added_tokens.c)  ->  normalizer.c  ->  pre_tokenizer.c: words  ->  the model (bpe.c, wordpiece.c,
 *   word_level.c): ids  ->  template.c: ids with specials;          ids  ->  pieces  ->  decoder.c: text
 *
 * Each part reads itself from JSON, writes itself and runs itself. encode.c puts them together; json_read.c and json_write.c the file.
 * Characters that are tokens have a short way of their own, char.c. */
#ifndef WEFT_DATA_TOKENIZER_INTERNAL_H
#define WEFT_DATA_TOKENIZER_INTERNAL_H

#include <jansson.h>

#include <weft/internal/encode.h>
#include <weft/internal/string.h>
#include <weft/tokenizer.h>

#include "vocab.h"

struct normalizer;
struct pre_tokenizer;
struct template;
struct decoder;
struct pattern;

/* One of the three models. */
struct model {
    enum model_type { MODEL_WORD_LEVEL, MODEL_BPE, MODEL_WORDPIECE } type;
    const char *unknown;     /* the name of the unknown token; NULL: none */
    int32_t unknown_id;      /* -1: none, or not in the vocabulary */
    const char *prefix;      /* of pieces that do not begin a word; NULL: none */
    const char *suffix;      /* of the piece that ends a word; NULL: none */
    int64_t longest;         /* bytes of the longest piece */
    int64_t most_characters; /* WordPiece: a longer word is unknown */
    bool fuse_unknown, byte_fallback, ignore_merges;
    struct point_map points; /* pieces of one character */
    int32_t byte[256];       /* ids of <0x00> ... <0xFF>, -1 where there is none */
    struct merge {
        int32_t left, right, id; /* id: of their join */
    } * merge;                   /* best first */
    int64_t merges;
    struct merge_slot {
        int32_t left, right, rank; /* rank -1: empty */
    } * slot;
    uint64_t slot_mask;
};

struct added_token {
    int32_t id;
    const char *content, *match; /* match: what is looked for: the content, normalised where it asks for that */
    int64_t length, match_length;
    bool single_word, lstrip, rstrip, normalized, special;
};
/* Those that are looked for at the same stage, sorted by `match`. */
struct added_set {
    const struct added_token **token;
    int64_t count;
    bool first[256]; /* bytes that one begins with */
};

enum pad_side { PAD_RIGHT, PAD_LEFT };

struct wf_tokenizer {
    wf_tokenizer_kind kind;
    struct vocab vocab; /* the model's pieces, then added tokens that it lacks */
    int64_t model_size; /* pieces of the model */
    struct model model;
    struct added_token *added; /* by id */
    int64_t added_count;
    struct added_set raw, normalized; /* looked for before and after the normalizer */
    struct normalizer *normalizer;    /* these four may be NULL */
    struct pre_tokenizer *pre_tokenizer;
    struct template *template;
    struct decoder *decoder;
    bool tracks; /* the words depend on where in the text they came from */
    struct {
        bool on, left;
        int64_t length, stride;
        const char *strategy;
    } truncation;
    struct {
        bool on, left, fixed, multiple;
        int64_t length, multiple_of, type_id;
        int32_t id;
        const char *token;
    } padding;
    struct block *block;     /* the memory of all parts */
    struct pattern *pattern; /* all patterns, which PCRE2 must free */
};

/* Zeroed memory that lives as long as the tokenizer; NULL without memory. */
void *tokenizer_keep(wf_tokenizer *tokenizer, int64_t count, int64_t size);
/* A kept copy with a NUL after it. */
char *tokenizer_keep_text(wf_tokenizer *tokenizer, const char *text, int64_t length);

/* char.c: the tokenizer of these distinct code points. */
wf_status char_tokenizer(const uint32_t *points, int64_t count, wf_tokenizer **out, wf_error *error) WF_CHECKED;
wf_status char_train(const char *text, int64_t length, wf_tokenizer **out, wf_error *error) WF_CHECKED;
wf_status char_encode(const wf_tokenizer *tokenizer, const char *text, int64_t length, struct wf_tokens *out, struct wf_encode_fault *fault);

/* model.c */
struct scratch;
struct json_writer;
wf_status model_read(wf_tokenizer *tokenizer, json_t *model, int64_t more_pieces, int64_t more_bytes, const char *where, wf_error *error);
void model_write(const wf_tokenizer *tokenizer, struct json_writer *w);
/* What follows from vocabulary and merges: tables to look them up. */
wf_status model_index(wf_tokenizer *tokenizer, const char *where, wf_error *error);
/* Appends the ids of a word. WF_ERR_FORMAT: *fault is set, its offset counted from the word's first byte. */
wf_status model_word(const wf_tokenizer *tokenizer, struct scratch *s, const char *word, int64_t length, struct wf_tokens *out,
                     struct wf_encode_fault *fault);
wf_status bpe_word(const wf_tokenizer *tokenizer, struct scratch *s, const char *word, int64_t length, struct wf_tokens *out,
                   struct wf_encode_fault *fault);
wf_status wordpiece_word(const wf_tokenizer *tokenizer, struct scratch *s, const char *word, int64_t length, struct wf_tokens *out,
                         struct wf_encode_fault *fault);

/* Room for `more` further elements; false without memory. */
bool tokens_reserve(struct wf_tokens *tokens, int64_t more);

#endif
