/* SPDX-License-Identifier: MIT */
/* Running text as ids: what language models and encoders are trained on and evaluated with.
 *
 * A text is read in blocks and encoded once, on all threads; the memory that it takes does not grow with the text. Its ids lie in a file of
 * the cache, 16 bits each where the vocabulary has at most 65,536 entries and 32 bits else, found again by what they depend on: content of
 * the texts, tokenizer, versions of Weft, utf8proc and PCRE2. They are mapped, not read. Where the cache can't be written they are held in
 * memory, and encoded again the next time.
 *
 * Each file is a document. Its ids are those that wf_tokenizer_encode_with (with `whole`) gives for all of it at once; between two
 * documents stands the tokenizer's end-of-text token, where it has one. */
#ifndef WEFT_CORPUS_H
#define WEFT_CORPUS_H

#include <weft/batches.h>
#include <weft/tokenizer.h>

WF_BEGIN_DECLS

struct wf_corpus_options {
    const wf_tokenizer *tokenizer; /* need not outlive the ids */
    const char *cache;             /* a folder, such as wf_cache_folder(); NULL: nothing is kept */
    bool (*progress)(void *ctx, int64_t done, int64_t total); /* bytes, some times a second; false: WF_ERR_CANCELLED. May be NULL. */
    void *ctx;
};

/* The ids of a text. */
struct wf_text_ids {
    struct wf_id_view ids;
    int64_t characters; /* code points, byte order marks left out: for loss per character */
    int64_t unknown;    /* unknown tokens among the ids */
    uint64_t hash;      /* of the ids: the same for the same ids */
    bool cached;        /* found in the cache */
    void *store;        /* what holds them */
};
/* The files one after the other. What is kept of them: every byte, line ends included ("\r\n" stays two characters), but for a byte order
 * mark (EF BB BF) at the start of a file. A pipe is read into memory. WF_ERR_FORMAT, placed as file:line:byte (from 1, in the file as it
 * lies on the disk): bytes that are not UTF-8, NUL, what a vocabulary without an unknown token lacks; an empty file, and one that is changed
 * while it is read. WF_ERR_IO, WF_ERR_MEMORY; WF_ERR_ARGUMENT without files. On an error *out is empty. */
WF_API wf_status wf_text_ids_open(const char *const *paths, int64_t files, const struct wf_corpus_options *options, struct wf_text_ids *out,
                                  wf_error *error) WF_CHECKED;
WF_API void wf_text_ids_close(struct wf_text_ids *ids); /* leaves it empty */

/* A language model's corpus: training and validation. Without validation files the last tenth of the training text is held out: what
 * trains is its first floor(0.9 n) code points, cut before encoding, so that no token spans both. For tinyshakespeare: 1,003,854 of
 * 1,115,394. Each part must have at least context + 1 tokens (`context` inputs and, one further, their targets); if one has not, the error
 * gives both lengths and what to do (WF_ERR_ARGUMENT). Errors as above. On an error *out is empty. */
struct wf_corpus {
    struct wf_text_ids train, valid;
};
WF_API wf_status wf_corpus_open(const char *const *train, int64_t train_files, const char *const *valid, int64_t valid_files,
                                int64_t context, const struct wf_corpus_options *options, struct wf_corpus *out,
                                wf_error *error) WF_CHECKED;
WF_API void wf_corpus_close(struct wf_corpus *corpus); /* leaves it empty */

/* Where Weft's command keeps what it computed once, surveys of parallel texts and ids: $XDG_CACHE_HOME/weft, or ~/.cache/weft. NULL where
 * neither is known, without memory, and with WEFT_CACHE_LIMIT=0. Freed with wf_free.
 *
 * The files of a cache folder together take at most $WEFT_CACHE_LIMIT bytes (a number, or one with K, M, G or T after it; without it 10G or
 * a tenth of the disk, whichever is less): those that were not used for longest go when a new one is written, but none that is in use.
 * Several processes may share the folder. Each file is written under another name and renamed; one that is damaged is ignored. */
WF_API char *wf_cache_folder(void) WF_CHECKED;

WF_END_DECLS

#endif
