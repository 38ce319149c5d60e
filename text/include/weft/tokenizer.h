/* SPDX-License-Identifier: MIT */
/* Tokenizers: text to ids and back. A tokenizer never changes, so threads may share it.
 *
 * The file format is Hugging Face's tokenizer.json: normalizer, pre-tokenizer, model, added tokens, template, truncation, padding and
 * decoder. Ids are those of the Python package `tokenizers`, with two exceptions. If a BPE tokenizer has no unknown token, a character
 * outside its vocabulary is an error here, while the package drops it. A character that is newer than the Unicode version of the installed
 * utf8proc belongs to no class of characters, so it is not a letter either. The kinds of tokenizers are:
 *
 * - char: every code point is a token. The vocabulary is the special tokens (by default none) and the text's distinct code points, sorted.
 *   The text is not normalised. Without an unknown token, a character outside the vocabulary is an error.
 * - word: every word is a token. Without an unknown token, a word outside the vocabulary is an error, and the message names the word.
 * - bpe: byte-pair encoding (Sennrich et al. 2016) of characters, with the pre-tokenizer Metaspace or Whitespace.
 * - byte-bpe: byte-pair encoding of bytes (Radford et al. 2019). Every text can be encoded, and decoding restores it exactly.
 * - wordpiece: BERT's subwords. They can be loaded but not trained. */
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

/* A growing list of ids. Initialise it with {0}, and free it with wf_tokens_free. To reuse its memory, set `count` to 0. (wf_string of
 * <weft/strings.h> does the same for text.) */
struct wf_tokens {
    int32_t *id;
    int64_t count;
    int64_t capacity;
};
WF_API void wf_tokens_free(struct wf_tokens *tokens);

enum wf_pre_tokenizer {
    /* The default of bpe: a space becomes U+2581 at the start of the next word, so that decoding restores the text. Punctuation is split
     * off. Otherwise many entries of the vocabulary would be words with a full stop (1,325 of 10,000 for Multi30k). */
    WF_METASPACE,
    WF_WHITESPACE,      /* the default of word: runs of letters or digits, and runs of other characters (\w+|[^\w\s]+) */
    WF_METASPACE_ALONE, /* splits only at spaces, as Metaspace of `tokenizers` */
    /* For language models, whose text is consecutive lines. As WF_METASPACE, but a line end is a token and the first word of the text gets
     * no U+2581, so that decoding restores every text. */
    WF_RUNNING_TEXT
};
struct wf_tokenizer_progress {
    const char *phase; /* "reading" or "merging" */
    int64_t done;      /* bytes read, or merges made */
    int64_t total;     /* bytes to read (0: not known), or merges to make */
};
struct wf_tokenizer_options {
    wf_tokenizer_kind kind;
    /* Maximum vocabulary size, with special tokens. 0: 10,000 for bpe and byte-bpe, no limit for word. For char the vocabulary is never
     * limited. */
    int64_t vocab_size;
    int64_t min_frequency; /* minimum number of occurrences of a merged pair (bpe, byte-bpe) or of a word (word). 0: 1 */
    /* [special_count]: special tokens, which get the ids 0, 1, ... NULL: none for char; <pad> <bos> <eos> for word; <s> <pad> </s> <unk>
     * for bpe; <s> <pad> </s> for byte-bpe. */
    const char *const *specials;
    int64_t special_count;
    bool other_pre_tokenizer; /* use `pre_tokenizer` instead of the kind's default; only for word and bpe */
    enum wf_pre_tokenizer pre_tokenizer;
    /* Called a few times a second. It returns false to stop with WF_ERR_CANCELLED. May be NULL. */
    bool (*progress)(void *ctx, const struct wf_tokenizer_progress *progress);
    void *ctx;
    /* If not NULL, the number of words of more than 2 MiB is added to *long_words. Such words, as in DNA sequences, belong to no language.
     * For bpe and byte-bpe they are cut into pieces of 2 MiB, and pairs that cross a cut are not counted; for word they are left out of the
     * vocabulary. */
    int64_t *long_words;
};

/* Trains a tokenizer on `length` bytes of text. The same text and options give the same tokenizer. For bpe this is the tokenizer that the
 * trainer of `tokenizers` gives. `options` may be NULL. The caller frees *out with wf_tokenizer_free. WF_ERR_FORMAT: the text is empty, is
 * not UTF-8 or contains NUL. WF_ERR_ARGUMENT: invalid options, such as a vocab_size that is too small for the special tokens and characters
 * (the message has the minimum). WF_ERR_MEMORY, WF_ERR_CANCELLED. On an error *out is NULL. */
WF_API wf_status wf_tokenizer_train_with(const char *text, int64_t length, const struct wf_tokenizer_options *options, wf_tokenizer **out,
                                         wf_error *error) WF_CHECKED;
/* Trains as wf_tokenizer_train_with does, on `count` files of any size. The files are read in blocks of lines, and a very long line is
 * divided, so memory grows only with the number of distinct words (for char with that of distinct characters). Line ends ("\n" and "\r\n")
 * are not part of words; with WF_RUNNING_TEXT "\n" is a token. Errors in the text are reported with file:line:byte. WF_ERR_IO: a file
 * cannot be read. */
WF_API wf_status wf_tokenizer_train_files_with(const char *const *paths, int64_t count, const struct wf_tokenizer_options *options,
                                               wf_tokenizer **out, wf_error *error) WF_CHECKED;
#ifndef __cplusplus
#define wf_tokenizer_train(text, length, out, error, ...)                                                                                  \
    wf_tokenizer_train_with(text, length, &(struct wf_tokenizer_options){__VA_ARGS__}, out, error)
#define wf_tokenizer_train_files(paths, count, out, error, ...)                                                                            \
    wf_tokenizer_train_files_with(paths, count, &(struct wf_tokenizer_options){__VA_ARGS__}, out, error)
#endif

/* Loads a tokenizer.json. A file from an untrusted source is safe to load. A part of the file that Weft does not support is an error, and
 * the message names the part ("model Unigram", "normalizer Nmt", or a pattern that PCRE2 would match differently from Oniguruma). The
 * caller frees *out with wf_tokenizer_free. WF_ERR_IO, WF_ERR_FORMAT, WF_ERR_MEMORY. On an error *out is NULL. */
WF_API wf_status wf_tokenizer_load(const char *path, wf_tokenizer **out, wf_error *error) WF_CHECKED;
/* Does the same as wf_tokenizer_load for `length` bytes of JSON in memory. Messages have `name` instead of the path. */
WF_API wf_status wf_tokenizer_parse(const char *json, int64_t length, const char *name, wf_tokenizer **out, wf_error *error) WF_CHECKED;

/* Options for BERT's vocab.txt, which has one token per line; the first token has id 0. White space at the end of a line is ignored. The
 * tokenizer is that of BertWordPieceTokenizer in `tokenizers`: it cleans the text, puts spaces around ideographs, splits words at spaces
 * and punctuation, and marks subwords inside a word with ##. Special tokens are [CLS] before and [SEP] after the text. */
struct wf_vocab_options {
    bool cased;         /* keep upper case; by default it becomes lower case */
    bool whole_scripts; /* put no spaces around ideographs (tokenize_chinese_chars=False in the package) */
    enum wf_accents {
        WF_ACCENTS_BY_CASE, /* the default: strip accents unless `cased` is set */
        WF_ACCENTS_STRIP,   /* strip accents */
        WF_ACCENTS_KEEP     /* keep accents */
    } accents;
    const char *unknown; /* name of the unknown token, which the vocabulary must have; NULL: [UNK] */
    const char *begin;   /* name of the token before a text, which the vocabulary must have; NULL: [CLS] */
    const char *end;     /* name of the token after a text, which the vocabulary must have; NULL: [SEP] */
    const char *pad;     /* name of the padding token; NULL: [PAD] */
    const char *mask;    /* name of the mask token; NULL: [MASK] */
};
/* Loads a vocab.txt. The caller frees *out with wf_tokenizer_free. WF_ERR_FORMAT: a line is not UTF-8, is empty or repeats a token (the
 * message has file:line), or the vocabulary lacks a required special token. WF_ERR_IO, WF_ERR_MEMORY. On an error *out is NULL. */
WF_API wf_status wf_tokenizer_load_vocab_with(const char *path, const struct wf_vocab_options *options, wf_tokenizer **out,
                                              wf_error *error) WF_CHECKED;
#ifndef __cplusplus
#define wf_tokenizer_load_vocab(path, out, error, ...)                                                                                     \
    wf_tokenizer_load_vocab_with(path, &(struct wf_vocab_options){__VA_ARGS__}, out, error)
#endif

/* Makes a tokenizer with further tokens: the ids of the old ones stay, and those of the `count` new ones follow in their order. They are
 * added tokens that are not special, found in a text by their exact spelling. A tokenizer of characters gets single characters as
 * characters of its vocabulary (those before the first longer token). A text that the tokenizer encodes as one token already, or
 * with which its vocabulary spells a token, is skipped, and so is a repeated one. added [count] (may be NULL) becomes whether each was
 * added. The caller frees *out with wf_tokenizer_free. WF_ERR_ARGUMENT: a token is empty or not UTF-8. WF_ERR_MEMORY. On an error *out is
 * NULL. */
WF_API wf_status wf_tokenizer_extend(const wf_tokenizer *tokenizer, const char *const *tokens, int64_t count, bool *added,
                                     wf_tokenizer **out, wf_error *error) WF_CHECKED;

/* Saves a tokenizer.json, with the same bytes that `tokenizers` writes. The file is written under a temporary name, synced, and then
 * renamed. WF_ERR_IO, WF_ERR_MEMORY. */
WF_API wf_status wf_tokenizer_save(const wf_tokenizer *tokenizer, const char *path, wf_error *error) WF_CHECKED;
/* Appends to *out the text that wf_tokenizer_save writes. WF_ERR_MEMORY; *out is then unchanged. */
WF_API wf_status wf_tokenizer_json(const wf_tokenizer *tokenizer, struct wf_string *out, wf_error *error) WF_CHECKED;

WF_API void wf_tokenizer_free(wf_tokenizer *tokenizer); /* NULL is allowed */

WF_API wf_tokenizer_kind wf_tokenizer_kind_of(const wf_tokenizer *tokenizer);
/* The name of a kind as in the command and in config.json, such as "byte-bpe"; "unknown" for any other value. */
WF_API const char *wf_tokenizer_kind_name(wf_tokenizer_kind kind);
WF_API bool wf_tokenizer_kind_parse(const char *name, wf_tokenizer_kind *out); /* returns false for an unknown name */
/* A hash of everything that ids and texts depend on: the normalizer and the other parts, the vocabulary and the merges. It does not depend
 * on the formatting of the file. Files of weights store this hash, to identify the tokenizer that the model was trained with. */
WF_API uint64_t wf_tokenizer_hash(const wf_tokenizer *tokenizer);

/* Special tokens, which are recognised by their usual names. */
enum wf_special {
    WF_SPECIAL_BOS,     /* <s> <bos> [CLS] */
    WF_SPECIAL_EOS,     /* </s> <eos> [SEP] <|endoftext|> <|end_of_text|> */
    WF_SPECIAL_PAD,     /* <pad> [PAD] */
    WF_SPECIAL_UNKNOWN, /* the unknown token that the model names */
    WF_SPECIAL_MASK     /* <mask> [MASK] */
};
/* The id of a special token; -1: the tokenizer has none. */
WF_API int32_t wf_tokenizer_special(const wf_tokenizer *tokenizer, enum wf_special special);
WF_API int64_t wf_tokenizer_vocab_size(const wf_tokenizer *tokenizer); /* ids are 0 .. vocab_size-1 */

/* The token as the vocabulary stores it, with a NUL at its end. Sets *length (`length` may be NULL) to its number of bytes. The tokenizer
 * owns the text. Returns NULL for an id outside 0 .. vocab_size-1. */
WF_API const char *wf_tokenizer_token(const wf_tokenizer *tokenizer, int32_t id, int64_t *length);
/* The id of the token that consists of the `length` bytes of `piece`; -1 if it is not in the vocabulary. */
WF_API int32_t wf_tokenizer_id(const wf_tokenizer *tokenizer, const char *piece, int64_t length);

/* A cache of the ids of about `words` words, for callers that encode much text. Its size is fixed, so encoding never allocates memory for
 * the cache: a new word replaces the word that was in the same slot. Only one thread at a time may use a cache. The tokenizer must outlive
 * the cache. Returns NULL on an error: WF_ERR_MEMORY, or WF_ERR_ARGUMENT for `words` below 1 or above 2^24. */
typedef struct wf_token_cache wf_token_cache;
WF_API wf_token_cache *wf_token_cache_new(const wf_tokenizer *tokenizer, int64_t words, wf_error *error) WF_CHECKED;
WF_API void wf_token_cache_free(wf_token_cache *cache);

/* The bytes begin .. end-1 of a text. */
struct wf_text_range {
    int64_t begin, end;
};
struct wf_encode_options {
    bool specials;         /* add the template's special tokens, such as <s> ... </s> */
    int64_t *unknown;      /* if not NULL, the number of unknown tokens is added to *unknown */
    wf_token_cache *cache; /* made for this tokenizer; may be NULL */
    bool whole;            /* ignore the truncation and padding of the file */
    /* Above 0: the maximum number of ids, with special tokens, instead of the file's maximum. Longer texts are truncated on the side that
     * the file names (by default at the end). */
    int64_t most;
    int64_t *cut; /* if not NULL, the number of ids removed because of `most` is added to *cut */
    /* Called at intervals during a long text, by the calling thread. It returns true to stop with WF_ERR_CANCELLED. May be NULL. */
    bool (*cancelled)(void *ctx);
    void *ctx;
    /* [plains]: ranges of the text, ascending and disjoint, in which special tokens count as plain text: a special token in the text is not
     * recognised if any of its bytes lies in one of these ranges. So a user's text within a template cannot bring in the tokens of the
     * template. Added tokens that the file does not mark as special are recognised everywhere. NULL: no ranges. */
    const struct wf_text_range *plain;
    int64_t plains;
};
/* Appends the ids of `length` bytes of text to *out. An empty text has only the template's special tokens. Added tokens in the text
 * ("</s>") are recognised, as in `tokenizers`. A word or character outside the vocabulary becomes the unknown token.
 *
 * WF_ERR_FORMAT: the vocabulary lacks a word or character and there is no unknown token. The message names the first such word or character
 * (a character as U+00E9, and also literally if it is printable). WF_ERR_FORMAT also for bytes that are not UTF-8. These messages have line
 * and column (in characters, from 1) and offset (in bytes, from 0). Three limits protect against malicious tokenizer files; a text that
 * exceeds one of them is WF_ERR_FORMAT too:
 *
 * - A pattern (a regular expression of the file) may take a limited number of steps per match, and for a whole text one second plus 5
 *   microseconds per byte.
 * - Normalisation may make a text at most 32 times as long, plus 64 KiB.
 * - A word of more than four million pieces must be divisible into windows that are merged separately. With the merges of a tokenizer that
 *   was trained this is always possible.
 *
 * WF_ERR_MEMORY, WF_ERR_CANCELLED. WF_ERR_ARGUMENT: the cache was made for another tokenizer. On an error *out is unchanged. */
WF_API wf_status wf_tokenizer_encode_with(const wf_tokenizer *tokenizer, const char *text, int64_t length,
                                          const struct wf_encode_options *options, struct wf_tokens *out, wf_error *error) WF_CHECKED;
/* wf_tokenizer_encode_with with the default options. */
WF_API wf_status wf_tokenizer_encode(const wf_tokenizer *tokenizer, const char *text, int64_t length, struct wf_tokens *out,
                                     wf_error *error) WF_CHECKED;

struct wf_decode_options {
    bool specials; /* write special tokens; by default they are left out */
};
/* Appends the text of `count` ids to *out, as the decoder in the tokenizer's file makes it. If the file has no decoder, tokens are joined
 * by spaces. Invalid UTF-8 becomes U+FFFD. `options` may be NULL. WF_ERR_ARGUMENT: an id is outside the vocabulary. WF_ERR_MEMORY.
 * WF_ERR_FORMAT: the decoder of a malicious file takes too long, or makes the text more than 32 times as long, plus 64 KiB. On an error
 * *out is unchanged. */
WF_API wf_status wf_tokenizer_decode_with(const wf_tokenizer *tokenizer, const int32_t *ids, int64_t count,
                                          const struct wf_decode_options *options, struct wf_string *out, wf_error *error) WF_CHECKED;
/* wf_tokenizer_decode_with with the default options. */
WF_API wf_status wf_tokenizer_decode(const wf_tokenizer *tokenizer, const int32_t *ids, int64_t count, struct wf_string *out,
                                     wf_error *error) WF_CHECKED;
/* A streaming decoder, for ids that arrive one by one, as in generation. The texts that all calls of wf_decoder_push and then
 * wf_decoder_finish give are, one after the other, the text that wf_tokenizer_decode_with gives for all ids. The decoder holds back text
 * that a later id may still change, for example an incomplete character of a byte-level tokenizer, a run of byte-fallback tokens, or the
 * end of a word. */
typedef struct wf_decoder wf_decoder;
/* Makes a decoder. `options` is NULL for the defaults. The tokenizer must outlive the decoder. Returns NULL if there is no memory. */
WF_API wf_decoder *wf_decoder_new(const wf_tokenizer *tokenizer, const struct wf_decode_options *options, wf_error *error) WF_CHECKED;
/* Decodes one more id. *text is UTF-8 with a NUL at its end, and valid until the next call; *length is its number of bytes, which may be 0.
 * An id outside the vocabulary is WF_ERR_ARGUMENT and has no effect. After any other error the decoder can only be freed. */
WF_API wf_status wf_decoder_push(wf_decoder *decoder, int32_t id, const char **text, int64_t *length, wf_error *error) WF_CHECKED;
/* Returns the text that was held back, as wf_decoder_push does. The next push starts a new text. */
WF_API wf_status wf_decoder_finish(wf_decoder *decoder, const char **text, int64_t *length, wf_error *error) WF_CHECKED;
WF_API void wf_decoder_free(wf_decoder *decoder); /* NULL is allowed */
/* Returns whether decoding gives complete words. This is so if the file has a decoder, or if tokens are whole words or characters. It is
 * not so for subwords (bpe, byte-bpe, wordpiece) without a decoder, which are decoded to subwords with spaces between them. */
WF_API bool wf_tokenizer_gives_text(const wf_tokenizer *tokenizer);

WF_END_DECLS

#endif
