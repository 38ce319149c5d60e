/* SPDX-License-Identifier: MIT */
/* Running text as ids, for training and evaluating language models and encoders.
 *
 * A text is read in blocks and encoded once, on all threads, in memory that does not grow with its size. The ids are stored in a memory-
 * mapped file of the cache, in 16 bits each if the vocabulary has at most 65,536 entries, else in 32 bits. The cache's key is everything
 * that they depend on: the content of the texts, the tokenizer, the versions of Weft, utf8proc and PCRE2. If the cache cannot be written,
 * the ids are kept in memory, and the text is encoded again next time.
 *
 * Each file is a document. Its ids are those of wf_tokenizer_encode_with (with `whole`) for the whole file. Between two documents there is
 * the tokenizer's end-of-text token, if it has one. */
#ifndef WEFT_CORPUS_H
#define WEFT_CORPUS_H

#include <weft/batches.h>
#include <weft/scans.h>
#include <weft/tokenizer.h>

WF_BEGIN_DECLS

struct wf_corpus_options {
    const wf_tokenizer *tokenizer;                            /* need not outlive the ids */
    const char *cache;                                        /* a folder, such as wf_cache_folder(); NULL: no cache */
    bool (*progress)(void *ctx, int64_t done, int64_t total); /* bytes, a few times a second; false: WF_ERR_CANCELLED. May be NULL. */
    void *ctx;
    wf_scans *scans; /* walks over the texts that were made before; NULL: none */
};

/* The ids of a text. */
struct wf_text_ids {
    struct wf_id_view ids;
    int64_t characters; /* code points, without byte order marks: for loss per character */
    int64_t unknown;    /* number of unknown tokens among the ids */
    uint64_t hash;      /* of the ids */
    bool cached;        /* loaded from the cache */
    void *store;        /* owns the ids */
};
/* Encodes the files in order. Every byte is encoded, line ends included ("\r\n" stays two characters), except for a byte order mark
 * (EF BB BF) at the beginning of a file. A pipe is read into memory. WF_ERR_FORMAT with file:line:byte (from 1, as on disk): bytes that are
 * not UTF-8, NUL, a word or character outside a vocabulary without an unknown token; also an empty file, and a file that is modified while
 * it is read. WF_ERR_IO, WF_ERR_MEMORY; WF_ERR_ARGUMENT without files. On an error *out is empty. */
WF_API wf_status wf_text_ids_open(const char *const *paths, int64_t files, const struct wf_corpus_options *options, struct wf_text_ids *out,
                                  wf_error *error) WF_CHECKED;
WF_API void wf_text_ids_close(struct wf_text_ids *ids); /* leaves it empty */

/* The corpus of a language model: training and validation text. Without validation files the last tenth of the training text is held out:
 * training uses its first floor(0.9 n) code points, for tinyshakespeare 1,003,854 of 1,115,394. The text is divided before encoding, so
 * that no token spans both parts. Each part must have at least context + 1 tokens (`context` inputs, and targets one position later);
 * otherwise WF_ERR_ARGUMENT, with both lengths and what to do. Errors as above. On an error *out is empty. */
struct wf_corpus {
    struct wf_text_ids train, valid;
};
WF_API wf_status wf_corpus_open(const char *const *train, int64_t train_files, const char *const *valid, int64_t valid_files,
                                int64_t context, const struct wf_corpus_options *options, struct wf_corpus *out,
                                wf_error *error) WF_CHECKED;
WF_API void wf_corpus_close(struct wf_corpus *corpus); /* leaves it empty */

/* wf_tokenizer_train_files_with, and the tokenizer is cached in `cache` (a folder; NULL: no cache): the same texts and options load it from
 * there the next time, after one walk over the texts, which is left in `scans` (may be NULL) for the calls that encode them. A cache that
 * cannot be written only means that it is trained again. */
WF_API wf_status wf_tokenizer_train_cached(const char *const *paths, int64_t count, const struct wf_tokenizer_options *options,
                                           const char *cache, wf_scans *scans, wf_tokenizer **out, wf_error *error) WF_CHECKED;

/* The folder in which the command `weft` caches ids, trained tokenizers and surveys of parallel texts: $XDG_CACHE_HOME/weft, or
 * ~/.cache/weft. NULL if neither is known, with WEFT_CACHE_LIMIT=0, and after an error: WF_ERR_MEMORY, or WF_ERR_ARGUMENT for an invalid
 * $WEFT_CACHE_LIMIT. Free with wf_free.
 *
 * A cache folder takes at most $WEFT_CACHE_LIMIT bytes (a number, or a number with K, M, G or T; by default 10G or a tenth of the disk,
 * whichever is less): writing a new file deletes those that have not been used for the longest time, except files in use. Several processes
 * may share the folder. Each file is written under a temporary name and renamed; damaged files are ignored. */
WF_API wf_status wf_cache_folder(char **folder, wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
