/* SPDX-License-Identifier: MIT */
/* Tokenizers: text to token ids and back. A tokenizer is immutable, so that threads may share it.
 *
 * The file format is Hugging Face's tokenizer.json: normalizer, pre-tokenizer, model, added tokens, template, truncation, padding and
 * decoder. Ids are the same as those of the Python package `tokenizers`, with two exceptions: a character outside the vocabulary of a BPE
 * tokenizer without an unknown token is an error here, while the package drops it; characters that are newer than the Unicode version of
 * the installed utf8proc have no character class. Kinds:
 *
 * - char: every code point is a token. The vocabulary is the special tokens (by default none) and the sorted distinct code points of the
 *   text. No normalisation. Without an unknown token a character outside the vocabulary is an error
 * - word: every word is a token. Without an unknown token a word outside the vocabulary is an error that names it
 * - bpe: byte-pair encoding (Sennrich et al. 2016) over characters, with the pre-tokenizer Metaspace or Whitespace
 * - byte-bpe: byte-pair encoding over bytes (Radford et al. 2019); every text can be encoded and is restored exactly
 * - wordpiece: BERT's subwords; can be loaded, but not trained */
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

/* A growing list of ids. Initialize it with {0}, free it with wf_tokens_free; to reuse its memory set count to 0. (Decoding appends to a
 * wf_string in the same way: <weft/strings.h>.) */
struct wf_tokens {
    int32_t *id;
    int64_t count, capacity;
};
WF_API void wf_tokens_free(struct wf_tokens *tokens);

enum wf_pre_tokenizer {
    WF_METASPACE,       /* default of bpe: a space becomes U+2581 at the beginning of the next word, so that decoding restores the text;
                           punctuation is split off, or many entries would be words with a full stop (1,325 of 10,000 for Multi30k) */
    WF_WHITESPACE,      /* default of word: runs of letters or digits, runs of other characters (\w+|[^\w\s]+) */
    WF_METASPACE_ALONE, /* splits at spaces only: Metaspace of `tokenizers` */
    WF_RUNNING_TEXT     /* for language models, which see consecutive lines: as WF_METASPACE, but the line end is a token and the first word
                           has no U+2581, so that decoding restores every text */
};
struct wf_tokenizer_progress {
    const char *phase;   /* "reading", "merging" */
    int64_t done, total; /* bytes; merges */
};
struct wf_tokenizer_options {
    wf_tokenizer_kind kind;
    int64_t vocab_size;    /* maximum vocabulary size, special tokens included. 0: bpe 10,000, word no limit */
    int64_t min_frequency; /* bpe: of a merged pair; word: of a word. 0: 1 */
    const char *const
        *specials; /* ids 0, 1, ...; NULL: char none, word <pad> <bos> <eos>, bpe <s> <pad> </s> <unk>, byte-bpe <s> <pad> </s> */
    int64_t special_count;
    bool other_pre_tokenizer; /* use `pre_tokenizer` instead of the kind's default; word and bpe only */
    enum wf_pre_tokenizer pre_tokenizer;
    bool (*progress)(void *ctx, const struct wf_tokenizer_progress *progress); /* a few times a second; false: WF_ERR_CANCELLED */
    void *ctx;
    int64_t *long_words; /* if not NULL: the number of words of more than 2 MiB is added to it. They are no words of a language; bpe
                            counts the pairs in pieces of 2 MiB, word leaves them out */
};

/* Trains a tokenizer on `length` bytes of text. The same text and options give the same tokenizer; for bpe it is that of the trainer of
 * `tokenizers`. WF_ERR_FORMAT: the text is empty, is not UTF-8 or contains a NUL. WF_ERR_ARGUMENT: invalid options, such as a vocab_size
 * that is too small for the special tokens and characters (the message has the minimum). *out is NULL on an error; free it with
 * wf_tokenizer_free. */
WF_API wf_status wf_tokenizer_train_with(const char *text, int64_t length, const struct wf_tokenizer_options *options, wf_tokenizer **out,
                                         wf_error *error) WF_CHECKED;
/* The same from files of any size, read in blocks of lines, or of parts of a long line; only the distinct words (char: the characters) are
 * kept in memory. Line ends ("\n" and "\r\n") are not part of words (WF_RUNNING_TEXT: "\n" is a token). Errors in the text give
 * file:line:byte. */
WF_API wf_status wf_tokenizer_train_files_with(const char *const *paths, int64_t count, const struct wf_tokenizer_options *options,
                                               wf_tokenizer **out, wf_error *error) WF_CHECKED;
#ifndef __cplusplus
#define wf_tokenizer_train(text, length, out, error, ...)                                                                                  \
    wf_tokenizer_train_with(text, length, &(struct wf_tokenizer_options){__VA_ARGS__}, out, error)
#define wf_tokenizer_train_files(paths, count, out, error, ...)                                                                            \
    wf_tokenizer_train_files_with(paths, count, &(struct wf_tokenizer_options){__VA_ARGS__}, out, error)
#endif

/* Loads a tokenizer.json. Files from untrusted sources are safe to load. Unsupported parts are errors that name them ("model Unigram",
 * "normalizer Nmt", a pattern that PCRE2 would match differently from Oniguruma). WF_ERR_IO, WF_ERR_FORMAT, WF_ERR_MEMORY. */
WF_API wf_status wf_tokenizer_load(const char *path, wf_tokenizer **out, wf_error *error) WF_CHECKED;
/* The same from memory; `name` is used in messages instead of the path. */
WF_API wf_status wf_tokenizer_parse(const char *json, int64_t length, const char *name, wf_tokenizer **out, wf_error *error) WF_CHECKED;

/* BERT's vocab.txt: one token per line, the first with id 0; white space at the end of a line is ignored. The tokenizer is the same as
 * BertWordPieceTokenizer of `tokenizers`: it cleans the text, puts spaces around ideographs, splits words at spaces and punctuation, and
 * prefixes subwords inside a word with ##; special tokens are [CLS] ... [SEP]. */
struct wf_vocab_options {
    bool cased;         /* keeps upper case; default: converts to lower case */
    bool whole_scripts; /* no spaces around ideographs (tokenize_chinese_chars false) */
    enum wf_accents { WF_ACCENTS_BY_CASE, WF_ACCENTS_STRIP, WF_ACCENTS_KEEP } accents; /* default: strips them unless cased */
    const char *unknown, *begin, *end, *pad, *mask; /* NULL: [UNK], [CLS], [SEP], [PAD], [MASK]; the first three are required */
};
/* WF_ERR_IO, WF_ERR_FORMAT (file:line: not UTF-8, an empty line, a duplicate token; missing [UNK], [CLS] or [SEP]), WF_ERR_MEMORY. */
WF_API wf_status wf_tokenizer_load_vocab_with(const char *path, const struct wf_vocab_options *options, wf_tokenizer **out,
                                              wf_error *error) WF_CHECKED;
#ifndef __cplusplus
#define wf_tokenizer_load_vocab(path, out, error, ...)                                                                                     \
    wf_tokenizer_load_vocab_with(path, &(struct wf_vocab_options){__VA_ARGS__}, out, error)
#endif

/* Saves a tokenizer.json: written under a temporary name, synced and renamed. The bytes are the same as those that `tokenizers` writes. */
WF_API wf_status wf_tokenizer_save(const wf_tokenizer *tokenizer, const char *path, wf_error *error) WF_CHECKED;
/* The same text, appended to *out. */
WF_API wf_status wf_tokenizer_json(const wf_tokenizer *tokenizer, struct wf_string *out, wf_error *error) WF_CHECKED;

WF_API void wf_tokenizer_free(wf_tokenizer *tokenizer); /* NULL is allowed */

WF_API wf_tokenizer_kind wf_tokenizer_kind_of(const wf_tokenizer *tokenizer);
WF_API const char *wf_tokenizer_kind_name(wf_tokenizer_kind kind);             /* "char", as in the command and in config.json */
WF_API bool wf_tokenizer_kind_parse(const char *name, wf_tokenizer_kind *out); /* false for an unknown name */
/* A hash of pipeline, vocabulary and merges that does not depend on the file's formatting; identifies the tokenizer that weights or ids
 * were made with. */
WF_API uint64_t wf_tokenizer_hash(const wf_tokenizer *tokenizer);

/* The id of a special token, found by its usual names, or -1. BOS: <s> <bos> [CLS]; EOS: </s> <eos> [SEP] <|endoftext|> <|end_of_text|>;
 * PAD: <pad> [PAD]; UNKNOWN: the model's unknown token; MASK: <mask> [MASK]. */
enum wf_special { WF_SPECIAL_BOS, WF_SPECIAL_EOS, WF_SPECIAL_PAD, WF_SPECIAL_UNKNOWN, WF_SPECIAL_MASK };
WF_API int32_t wf_tokenizer_special(const wf_tokenizer *tokenizer, enum wf_special special);
WF_API int64_t wf_tokenizer_vocab_size(const wf_tokenizer *tokenizer);

/* The token as the vocabulary stores it, NUL-terminated, *length bytes (length may be NULL); owned by the tokenizer. NULL for an id outside
 * 0 .. vocab_size-1. */
WF_API const char *wf_tokenizer_token(const wf_tokenizer *tokenizer, int32_t id, int64_t *length);
/* The id of a token of `length` bytes; -1 if it is not in the vocabulary. */
WF_API int32_t wf_tokenizer_id(const wf_tokenizer *tokenizer, const char *piece, int64_t length);

/* A cache of the ids of about `words` words, for callers that encode much text. Its size is fixed, so that encoding does not allocate; a
 * word replaces another one in the same slot. Use it from one thread at a time. */
typedef struct wf_token_cache wf_token_cache;
WF_API wf_token_cache *wf_token_cache_new(const wf_tokenizer *tokenizer, int64_t words, wf_error *error) WF_CHECKED;
WF_API void wf_token_cache_free(wf_token_cache *cache);

struct wf_encode_options {
    bool specials;         /* adds the template's special tokens, such as <s> ... </s> */
    int64_t *unknown;      /* if not NULL: the number of unknown tokens is added to it */
    wf_token_cache *cache; /* may be NULL */
    bool whole;            /* ignores the file's truncation and padding */
    int64_t most;          /* above 0: maximum number of ids, special tokens included, instead of the file's maximum; longer texts are
                              truncated at the side given in the file (default: the end) */
    int64_t *cut;          /* if not NULL: the number of ids removed because of `most` is added to it */
    bool (*cancelled)(
        void *ctx); /* called now and then in a long text, from the same thread: true ends with WF_ERR_CANCELLED. May be NULL. */
    void *ctx;
};
/* Appends the ids of `length` bytes of text to *out; for an empty text only the template's special tokens. Added tokens in the text
 * ("</s>") are recognised, as in `tokenizers`. A word or character outside the vocabulary becomes the unknown token; without an unknown
 * token it is an error that names the first one (as U+00E9, and itself if it is printable) with line and column (in characters, from 1) and
 * offset (in bytes, from 0). Bytes that are not UTF-8 are reported in the same way. Both are WF_ERR_FORMAT. So are, against malicious
 * files: a pattern that exceeds the limit of steps for one match, or for a text the limit of one second plus 5 microseconds per byte; and
 * normalisation that makes a text more than 32 times as long; and a word of more than 65,536 characters that can only be merged as a whole
 * and has more than four million (only merges that no trainer makes ask for that; other words of any length take little memory). On an
 * error *out is unchanged. */
WF_API wf_status wf_tokenizer_encode_with(const wf_tokenizer *tokenizer, const char *text, int64_t length,
                                          const struct wf_encode_options *options, struct wf_tokens *out, wf_error *error) WF_CHECKED;
WF_API wf_status wf_tokenizer_encode(const wf_tokenizer *tokenizer, const char *text, int64_t length, struct wf_tokens *out,
                                     wf_error *error) WF_CHECKED; /* with the defaults */

struct wf_decode_options {
    bool specials; /* prints special tokens; otherwise they are omitted */
};
/* Appends the text of `count` ids to *out, by the file's decoder; without a decoder tokens are joined by spaces. Invalid UTF-8 becomes
 * U+FFFD. An id outside the vocabulary is WF_ERR_ARGUMENT. On an error *out is unchanged. */
WF_API wf_status wf_tokenizer_decode_with(const wf_tokenizer *tokenizer, const int32_t *ids, int64_t count,
                                          const struct wf_decode_options *options, struct wf_string *out, wf_error *error) WF_CHECKED;
WF_API wf_status wf_tokenizer_decode(const wf_tokenizer *tokenizer, const int32_t *ids, int64_t count, struct wf_string *out,
                                     wf_error *error) WF_CHECKED; /* with the defaults */
/* A streaming decoder, for ids that arrive one by one, as in generation. The concatenated texts of all pushes and the finish are the text
 * of wf_tokenizer_decode_with for all ids. Text that a later id may still change is held back: an incomplete character of a byte-level
 * tokenizer, a run of byte-fallback tokens, the end of a word. */
typedef struct wf_decoder wf_decoder;
/* options: NULL for the defaults. The tokenizer must outlive the decoder. NULL if out of memory. */
WF_API wf_decoder *wf_decoder_new(const wf_tokenizer *tokenizer, const struct wf_decode_options *options, wf_error *error) WF_CHECKED;
/* Decodes one more id into *text: UTF-8, NUL-terminated, *length bytes (which may be 0), valid until the next call. An id outside the
 * vocabulary is WF_ERR_ARGUMENT and has no effect; after any other error the decoder can only be freed. */
WF_API wf_status wf_decoder_push(wf_decoder *decoder, int32_t id, const char **text, int64_t *length, wf_error *error) WF_CHECKED;
/* Gives the text that was held back. The next push starts a new text. */
WF_API wf_status wf_decoder_finish(wf_decoder *decoder, const char **text, int64_t *length, wf_error *error) WF_CHECKED;
WF_API void wf_decoder_free(wf_decoder *decoder); /* NULL is allowed */
/* Whether decoding restores words: the file has a decoder, or its tokens are whole words or characters. False for subwords (bpe, byte-bpe,
 * wordpiece) without a decoder, which are decoded to subwords separated by spaces. */
WF_API bool wf_tokenizer_gives_text(const wf_tokenizer *tokenizer);

WF_END_DECLS

#endif
