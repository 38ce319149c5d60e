/* SPDX-License-Identifier: MIT */
/* Running text as ids, for training and evaluating language models and encoders.
 *
 * A text is read in blocks and encoded once, on all threads. The ids are stored in a file of the cache, which is mapped into memory, so the
 * memory for encoding does not grow with the text. An id takes 16 bits if the vocabulary has at most 65,536 entries, else 32 bits. A file
 * of the cache is found by everything that the ids depend on: the content of the texts, the tokenizer, and the versions of Weft, utf8proc
 * and PCRE2. Without a cache, or if it cannot be written, the ids stay in memory, and the next call encodes the text again.
 *
 * Each file is a document. Its ids are those that wf_tokenizer_encode_with gives for the whole file, with `whole` set. If the tokenizer has
 * an end-of-text token, one such token is put between two documents. */
#ifndef WEFT_CORPUS_H
#define WEFT_CORPUS_H

#include <weft/batches.h>
#include <weft/scans.h>
#include <weft/tokenizer.h>

WF_BEGIN_DECLS

struct wf_corpus_options {
    const wf_tokenizer *tokenizer; /* may be freed after the call */
    const char *cache;             /* a folder such as wf_cache_folder(); NULL: no cache */
    /* Called a few times a second with the bytes done and the bytes in all. It returns false to stop with WF_ERR_CANCELLED. May be NULL. */
    bool (*progress)(void *ctx, int64_t done, int64_t total);
    void *ctx;
    wf_scans *scans; /* the call reuses the scans in *scans, and adds its own (weft/scans.h); NULL: it shares no scans */
};

/* The ids of a text. */
struct wf_text_ids {
    struct wf_id_view ids;
    int64_t characters; /* number of code points, without byte order marks; for a loss per character */
    int64_t unknown;    /* number of unknown tokens among the ids */
    uint64_t hash;      /* hash of the ids */
    bool cached;        /* the ids were loaded from the cache */
    void *store;        /* owns the ids */
};
/* Encodes the files in order. Every byte is encoded except for a byte order mark (EF BB BF) at the beginning of a file. Line ends are
 * encoded too: "\r\n" stays two characters. A pipe is read into memory. The caller frees *out with wf_text_ids_close.
 *
 * WF_ERR_FORMAT with file:line:byte (from 1, as in the file): bytes that are not UTF-8, NUL, or a word or character outside a vocabulary
 * that has no unknown token. WF_ERR_FORMAT also for an empty file, and for a file that is modified while it is read. WF_ERR_IO,
 * WF_ERR_MEMORY, WF_ERR_CANCELLED. WF_ERR_ARGUMENT: `files` is below 1. On an error *out is empty. */
WF_API wf_status wf_text_ids_open(const char *const *paths, int64_t files, const struct wf_corpus_options *options, struct wf_text_ids *out,
                                  wf_error *error) WF_CHECKED;
WF_API void wf_text_ids_close(struct wf_text_ids *ids); /* frees the ids and leaves *ids empty; {0} is allowed */

/* The corpus of a language model or an encoder: training text and validation text. */
struct wf_corpus {
    struct wf_text_ids train, valid;
};
/* Opens a corpus, which the caller frees with wf_corpus_close. If there are no validation files (`valid_files` is 0), the last tenth of the
 * training text becomes the validation text: training uses the first floor(0.9 n) of its n code points. In tinyshakespeare these are
 * 1,003,854 of 1,115,394. The text is divided before it is encoded, so that no token belongs to both texts. WF_ERR_ARGUMENT: one of the two
 * texts has fewer than context + 1 tokens (`context` inputs, and targets one position later); the message has the number of tokens, the
 * minimum and a remedy. The other errors are those of wf_text_ids_open. On an error *out is empty. */
WF_API wf_status wf_corpus_open(const char *const *train, int64_t train_files, const char *const *valid, int64_t valid_files,
                                int64_t context, const struct wf_corpus_options *options, struct wf_corpus *out,
                                wf_error *error) WF_CHECKED;
WF_API void wf_corpus_close(struct wf_corpus *corpus); /* frees both texts and leaves *corpus empty */

/* Trains a tokenizer as wf_tokenizer_train_files_with does, with a cache for the tokenizer. Later calls with the same texts and options
 * load the tokenizer from the folder `cache` (NULL: no cache), after one scan of the texts. The scan is added to `scans` (may be NULL), so
 * that calls that encode the same texts can reuse it. If the cache cannot be written, the next call trains the tokenizer again. The errors
 * are those of wf_tokenizer_train_files_with. */
WF_API wf_status wf_tokenizer_train_cached(const char *const *paths, int64_t count, const struct wf_tokenizer_options *options,
                                           const char *cache, wf_scans *scans, wf_tokenizer **out, wf_error *error) WF_CHECKED;

/* The folder in which the command `weft` caches ids, trained tokenizers and surveys of parallel texts: $XDG_CACHE_HOME/weft, or
 * ~/.cache/weft. *folder is NULL if neither XDG_CACHE_HOME nor HOME is an absolute path, if WEFT_CACHE_LIMIT is 0, and after an error. The
 * caller frees *folder with wf_free. WF_ERR_MEMORY; WF_ERR_ARGUMENT for an invalid WEFT_CACHE_LIMIT.
 *
 * A cache folder takes at most WEFT_CACHE_LIMIT bytes. The variable is a number, or a number with K, M, G or T. By default the limit is 10G
 * or a tenth of the disk, whichever is less. A call that writes a new file first deletes the least recently used files, except for files in
 * use. Several processes may share the folder: each file is written under a temporary name and then renamed. Damaged files are ignored. */
WF_API wf_status wf_cache_folder(char **folder, wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
