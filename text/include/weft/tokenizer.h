/* SPDX-License-Identifier: MIT */
/* Tokenizers: text to token ids and back. A tokenizer does not change once it is made, so that threads may share one.
 *
 * The file is Hugging Face's tokenizer.json and means the same here as in the package `tokenizers`: normalizer, splitting into
 * words, model, added tokens, template, truncation and padding, decoder. Ids are those of the package, with two exceptions: what the
 * vocabulary lacks and no unknown token stands for is an error here where its BPE drops it; characters that came after the Unicode
 * version of the installed utf8proc belong to no class. Kinds, by the file's model:
 *
 * - char: WordLevel, split at every code point; the vocabulary is the special tokens (by default none) and the sorted distinct code points
 *   of the text. Nothing is normalised. Without an unknown token a character that the vocabulary lacks is an error
 * - word: WordLevel over words. Without an unknown token in the vocabulary a new word is an error that names it
 * - bpe: byte-pair encoding (Sennrich et al. 2016) over characters, words marked by Metaspace or split by Whitespace
 * - byte-bpe: the same over bytes (Radford et al. 2019): gives back any text
 * - wordpiece: BERT's (read, not trained) */
#ifndef WEFT_TOKENIZER_H
#define WEFT_TOKENIZER_H

#include <weft/error.h>
#include <weft/strings.h>

WF_BEGIN_DECLS

typedef struct wf_tokenizer wf_tokenizer;

typedef enum wf_tokenizer_kind {
    WF_TOKENIZER_CHAR, /* the default */
    WF_TOKENIZER_WORD,
    WF_TOKENIZER_BPE,
    WF_TOKENIZER_BYTE_BPE,
    WF_TOKENIZER_WORDPIECE
} wf_tokenizer_kind;

/* Growing lists that encoding and decoding append to. Start them as {0}; free them with wf_tokens_free and
 * wf_string_free. To reuse the memory set count or length back to 0. */
struct wf_tokens {
    int32_t *id;
    int64_t count, capacity;
};
WF_API void wf_tokens_free(struct wf_tokens *tokens);

enum wf_pre_tokenizer {
    WF_METASPACE,  /* the default of bpe: a space becomes U+2581 at the front of a word, so that decoding gives back the text; punctuation
                      stands by itself, or many types would be words with a full stop (of 10,000 for Multi30k 1,325) */
    WF_WHITESPACE, /* the default of word: runs of letters or digits, runs of other signs (\w+|[^\w\s]+) */
    WF_METASPACE_ALONE, /* cut at spaces only: what `tokenizers` calls Metaspace */
    WF_RUNNING_TEXT     /* as WF_METASPACE, with the line end as a token, and nothing before the first word: decoding gives back every text.
                           For language models, which see lines one after the other */
};
struct wf_tokenizer_progress {
    const char *phase;   /* "reading", "merging" */
    int64_t done, total; /* bytes; merges */
};
struct wf_tokenizer_options {
    wf_tokenizer_kind kind;
    int64_t vocab_size;          /* types in all, specials too. 0: bpe 10,000, word as many as there are */
    int64_t min_frequency;       /* of a pair that is merged, of a word. 0: 1 */
    const char *const *specials; /* ids 0, 1, ...; NULL: char none, word <pad> <bos> <eos>, bpe <s> <pad> </s> <unk>, byte-bpe <s> <pad> </s> */
    int64_t special_count;
    bool other_pre_tokenizer; /* `pre_tokenizer` instead of the kind's default; word and bpe only */
    enum wf_pre_tokenizer pre_tokenizer;
    bool (*progress)(void *ctx, const struct wf_tokenizer_progress *progress); /* some times a second; false: WF_ERR_CANCELLED */
    void *ctx;
};

/* Makes a tokenizer from `length` bytes of text and puts it into *out (NULL on an error). The same text and options give the
 * same tokenizer; for bpe that of `tokenizers`' trainer. WF_ERR_FORMAT when the text is empty, is not UTF-8 or holds NUL;
 * WF_ERR_ARGUMENT for options that can't be, such as a vocabulary smaller than specials and characters need (says how many).
 * Free with wf_tokenizer_free. */
WF_API wf_status wf_tokenizer_train_with(const char *text, int64_t length, const struct wf_tokenizer_options *options, wf_tokenizer **out,
                                         wf_error *error) WF_CHECKED;
/* The same from files, line by line, of any size: what is held is the distinct words (char: the characters). Line
 * ends, "\r\n" too, belong to no word (WF_RUNNING_TEXT: "\n" is one). Bytes that are not UTF-8 are placed as file:line:byte. */
WF_API wf_status wf_tokenizer_train_files_with(const char *const *paths, int64_t count, const struct wf_tokenizer_options *options,
                                               wf_tokenizer **out, wf_error *error) WF_CHECKED;
#ifndef __cplusplus
#define wf_tokenizer_train(text, length, out, error, ...)                                                                                  \
    wf_tokenizer_train_with(text, length, &(struct wf_tokenizer_options){__VA_ARGS__}, out, error)
#define wf_tokenizer_train_files(paths, count, out, error, ...)                                                                            \
    wf_tokenizer_train_files_with(paths, count, &(struct wf_tokenizer_options){__VA_ARGS__}, out, error)
#endif

/* Reads a tokenizer.json. Nothing in it is trusted; what this library does not do is refused by name ("model Unigram", "normalizer Nmt", a
 * pattern that PCRE2 cannot match as Oniguruma would), never ignored. WF_ERR_IO, WF_ERR_FORMAT, WF_ERR_MEMORY. */
WF_API wf_status wf_tokenizer_load(const char *path, wf_tokenizer **out, wf_error *error) WF_CHECKED;
/* The same from memory; `name` stands for the file in messages. */
WF_API wf_status wf_tokenizer_parse(const char *json, int64_t length, const char *name, wf_tokenizer **out, wf_error *error) WF_CHECKED;

/* BERT's vocab.txt: a token a line, the first with id 0; white space at the end of a line does not belong to it. The tokenizer is that of
 * `tokenizers`' BertWordPieceTokenizer: text cleaned, spaces around ideographs, words split at spaces and punctuation, pieces inside a
 * word marked by ##, [CLS] ... [SEP] around what is encoded with its specials. */
struct wf_vocab_options {
    bool cased;         /* keeps capitals; default: lower case */
    bool whole_scripts; /* no spaces around ideographs (tokenize_chinese_chars false) */
    enum wf_accents { WF_ACCENTS_BY_CASE, WF_ACCENTS_STRIP, WF_ACCENTS_KEEP } accents; /* the default strips them unless cased */
    const char *unknown, *begin, *end, *pad, *mask; /* NULL: [UNK], [CLS], [SEP], [PAD], [MASK]; the first three must be there */
};
/* WF_ERR_IO, WF_ERR_FORMAT (file:line: not UTF-8, an empty line, a token twice; no [UNK], [CLS] or [SEP]), WF_ERR_MEMORY. */
WF_API wf_status wf_tokenizer_load_vocab_with(const char *path, const struct wf_vocab_options *options, wf_tokenizer **out,
                                              wf_error *error) WF_CHECKED;
#ifndef __cplusplus
#define wf_tokenizer_load_vocab(path, out, error, ...) \
    wf_tokenizer_load_vocab_with(path, &(struct wf_vocab_options){__VA_ARGS__}, out, error)
#endif

/* Writes a tokenizer.json: to a temporary name, synced, renamed. The bytes are those that `tokenizers` writes for it. */
WF_API wf_status wf_tokenizer_save(const wf_tokenizer *tokenizer, const char *path, wf_error *error) WF_CHECKED;
/* The same, appended to *out. */
WF_API wf_status wf_tokenizer_json(const wf_tokenizer *tokenizer, struct wf_string *out, wf_error *error) WF_CHECKED;

WF_API void wf_tokenizer_free(wf_tokenizer *tokenizer); /* NULL is fine */

WF_API wf_tokenizer_kind wf_tokenizer_kind_of(const wf_tokenizer *tokenizer);
WF_API const char *wf_tokenizer_kind_name(wf_tokenizer_kind kind); /* "char": as the command spells it */
WF_API bool wf_tokenizer_kind_parse(const char *name, wf_tokenizer_kind *out);
/* The same for the same pipeline, vocabulary and merges, whatever the file's layout: tells whether a tokenizer is the one that
 * something was made with. */
WF_API uint64_t wf_tokenizer_hash(const wf_tokenizer *tokenizer);

/* The id of the token that plays a part, found by its usual names (<s> <bos> [CLS]; </s> <eos> [SEP] <|endoftext|> <|end_of_text|>; <pad> [PAD];
 * the model's unknown token; <mask> [MASK]), or -1. */
enum wf_special { WF_SPECIAL_BOS, WF_SPECIAL_EOS, WF_SPECIAL_PAD, WF_SPECIAL_UNKNOWN, WF_SPECIAL_MASK };
WF_API int32_t wf_tokenizer_special(const wf_tokenizer *tokenizer, enum wf_special special);
WF_API int64_t wf_tokenizer_vocab_size(const wf_tokenizer *tokenizer);

/* The token's piece of text as the vocabulary holds it, NUL-terminated, *length bytes (length may be NULL); it belongs to
 * the tokenizer. NULL for an id outside 0 .. vocab_size-1. */
WF_API const char *wf_tokenizer_token(const wf_tokenizer *tokenizer, int32_t id, int64_t *length);
/* The id of a piece of `length` bytes, -1 when the vocabulary lacks it. */
WF_API int32_t wf_tokenizer_id(const wf_tokenizer *tokenizer, const char *piece, int64_t length);

/* Ids of words that were met before, so that they need not be found again: for callers that encode much. One thread at a time;
 * of fixed size (about `words` of them; of two words with the same place the later stays), so that encoding does not allocate. */
typedef struct wf_token_cache wf_token_cache;
WF_API wf_token_cache *wf_token_cache_new(const wf_tokenizer *tokenizer, int64_t words, wf_error *error) WF_CHECKED;
WF_API void wf_token_cache_free(wf_token_cache *cache);

struct wf_encode_options {
    bool specials;         /* adds what the template says, such as <s> ... </s> */
    int64_t *unknown;      /* if not NULL: the number of unknown tokens is added to it */
    wf_token_cache *cache; /* may be NULL */
    bool whole;            /* leaves out the file's truncation and padding */
    int64_t most;          /* above 0: a longer text loses ids, at the side that the file's truncation says (the end), until with its
                              specials so many are left; the file's own length is then not used */
    int64_t *cut;          /* if not NULL: the number of ids that `most` cost is added */
};
/* Appends the ids of `length` bytes of text to *out; an empty text appends nothing but the template's specials. On an error *out keeps
 * what it had before the call. What the vocabulary lacks becomes the unknown token, where there is one; else the message names the first
 * character or word that is not there, as U+00E9 and itself if it can be printed, with line and column (in characters, from 1) and offset
 * (in bytes, from 0). Bytes that are not UTF-8 are named the same way. Both are WF_ERR_FORMAT, as is a pattern of the file that takes too
 * many steps for one match, or more than a second and 5 microseconds a byte for the text, and a text that the file's steps make more than 32
 * times as long. Added tokens that stand in the
 * text ("</s>") are recognised, as `tokenizers` does. */
WF_API wf_status wf_tokenizer_encode_with(const wf_tokenizer *tokenizer, const char *text, int64_t length,
                                          const struct wf_encode_options *options, struct wf_tokens *out, wf_error *error) WF_CHECKED;
WF_API wf_status wf_tokenizer_encode(const wf_tokenizer *tokenizer, const char *text, int64_t length, struct wf_tokens *out,
                                     wf_error *error) WF_CHECKED; /* with the defaults */

struct wf_decode_options {
    bool specials; /* prints them; else they are left out */
};
/* Appends the text of `count` ids to *out, as the file's decoder says; without one tokens are joined by spaces. Bytes that make no
 * character become U+FFFD. On an error (an id outside the vocabulary, WF_ERR_ARGUMENT) *out keeps what it had. */
WF_API wf_status wf_tokenizer_decode_with(const wf_tokenizer *tokenizer, const int32_t *ids, int64_t count,
                                          const struct wf_decode_options *options, struct wf_string *out, wf_error *error) WF_CHECKED;
WF_API wf_status wf_tokenizer_decode(const wf_tokenizer *tokenizer, const int32_t *ids, int64_t count, struct wf_string *out,
                                     wf_error *error) WF_CHECKED; /* with the defaults */
/* The same for ids that come one by one, as from a model that generates: the texts that the pushes and the finish give are, one after the
 * other, that of wf_tokenizer_decode_with for all ids. Text that a later id may still change is held back: an unfinished character of
 * byte-level tokenizers, a run of byte-fallback tokens, the end of a word. */
typedef struct wf_decoder wf_decoder;
/* options: NULL for the defaults. The tokenizer must outlive the decoder. NULL without memory. */
WF_API wf_decoder *wf_decoder_new(const wf_tokenizer *tokenizer, const struct wf_decode_options *options, wf_error *error) WF_CHECKED;
/* Takes an id; *text (UTF-8, *length bytes, which may be 0, and a NUL) stays valid until the next call. An id outside the vocabulary is
 * WF_ERR_ARGUMENT and changes nothing; after another error the decoder can only be freed. */
WF_API wf_status wf_decoder_push(wf_decoder *decoder, int32_t id, const char **text, int64_t *length, wf_error *error) WF_CHECKED;
/* What was held back. The next push starts a new text. */
WF_API wf_status wf_decoder_finish(wf_decoder *decoder, const char **text, int64_t *length, wf_error *error) WF_CHECKED;
WF_API void wf_decoder_free(wf_decoder *decoder); /* NULL is fine */
/* Whether decoding gives words: the file has a decoder, or its tokens are whole words or characters. False for pieces of words (bpe,
 * byte-bpe, wordpiece) without a decoder: they come out as pieces with spaces between, and nothing tells which of them belong together. */
WF_API bool wf_tokenizer_gives_text(const wf_tokenizer *tokenizer);

WF_END_DECLS

#endif
