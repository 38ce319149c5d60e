/* SPDX-License-Identifier: MIT */
/* Parallel text: two files that are aligned by line, and batches of their sentence pairs.
 *
 * Files may be larger than memory. A bitext, the handle of a parallel text, keeps 24 bytes per pair in memory. With a cache it maps these
 * bytes from a file of the cache, so that the processes of a machine share them. Only "\n" ends a line, and the last line may lack it. A
 * sentence is a line without white space at both ends (Unicode's White_Space, which includes "\r" and no-break spaces). A byte order mark
 * at the beginning of a file belongs to no sentence. wf_bitext_open makes a survey of the files: it encodes every line once, to learn the
 * line's length in ids and to find errors. The survey skips pairs with an empty side and, depending on the options, pairs that are too
 * long, too unequal in length, or repeated. It counts the skipped pairs by reason. The other pairs are the used pairs.
 *
 * While a bitext is open, its files may be replaced by renaming: the bitext keeps reading the old files until it is closed. If a file is
 * modified or truncated in place, the next call that reads it returns an error. */
#ifndef WEFT_BITEXT_H
#define WEFT_BITEXT_H

#include <weft/pairs.h>
#include <weft/scans.h>
#include <weft/tokenizer.h>

WF_BEGIN_DECLS

typedef struct wf_bitext wf_bitext;

struct wf_bitext_options {
    const wf_tokenizer *source; /* must outlive the bitext */
    const wf_tokenizer *target; /* must outlive the bitext, and needs BOS and EOS */
    bool source_bos;            /* put BOS before each source sentence */
    bool source_eos;            /* put EOS after each source sentence */
    /* Maximum number of ids of a side; a pair with a longer side is skipped. 0: no limit. The number includes all special tokens of a
     * source, but only one of a target: the decoder's input is BOS and the sentence, and the ids that it must predict are the sentence and
     * EOS. */
    int64_t max_length;
    /* A folder in which surveys are cached, such as wf_cache_folder() (<weft/corpus.h>). A cached survey is found by the content of the
     * files, the tokenizers and the options. NULL: no cache. */
    const char *cache;
    /* Called with the bytes done and the bytes in all. It returns false to stop with WF_ERR_CANCELLED. May be NULL. */
    bool (*progress)(void *ctx, int64_t done, int64_t total);
    void *ctx;
    wf_scans *scans; /* wf_bitext_open reuses the scans in *scans, and adds its own (weft/scans.h); NULL: it shares no scans */
    /* A pair is skipped if its longer side has more than max_ratio times as many ids as its shorter side, without special tokens. The value
     * is at least 1, or 0 for no limit. */
    double max_ratio;
    /* Of several pairs with the same two sentences, byte for byte, only the first is used. The survey compares the texts of pairs that have
     * the same hash. With this option it takes 13 to 19 more bytes of memory per line, which are freed at its end. */
    bool deduplicate;
};
struct wf_bitext_survey {
    int64_t lines; /* number of lines of each file */
    int64_t used;  /* number of pairs that batches use */
    /* Skipped pairs by reason; their sum is lines - used. A pair counts once, under the first reason that applies, in the order of these
     * members. For example, a pair with an empty side counts as empty even if its other side is too long. */
    int64_t empty_source;
    int64_t empty_target;
    int64_t empty_both;
    int64_t long_source;
    int64_t long_target;
    int64_t long_both;
    int64_t over_ratio;
    int64_t duplicates;
    int64_t source_tokens;  /* number of source tokens in the used pairs, with special tokens */
    int64_t target_tokens;  /* number of target tokens in the used pairs, with EOS but without BOS */
    int64_t source_unknown; /* number of unknown tokens among source_tokens */
    int64_t target_unknown; /* number of unknown tokens among target_tokens */
    int64_t longest_source; /* most tokens of a source sentence, used or skipped, with special tokens */
    int64_t longest_target; /* most tokens of a target sentence, used or skipped, with EOS */
    int64_t max_length;     /* the option max_length */
    double max_ratio;       /* the option max_ratio */
    uint64_t hash;          /* hash of the content of both files */
    bool cached;            /* the survey was loaded from the cache */
};
/* Opens two files and surveys them on all threads. The result does not depend on the number of threads. The caller closes *out with
 * wf_bitext_close. On an error *out is NULL. Without a usable cached survey, all lines are encoded.
 *
 * WF_ERR_FORMAT: an empty file; different numbers of lines (the message has both); no usable pair (the message has the reasons).
 * WF_ERR_FORMAT with file:line:byte: a NUL, bytes that are not UTF-8, or a word that is not in the vocabulary, if the vocabulary has no
 * unknown token. WF_ERR_IO: a
 * file cannot be opened, or is a folder, a pipe or a device. WF_ERR_ARGUMENT: a tokenizer lacks a required special token, its file sets
 * truncation or padding, or an option is out of range. WF_ERR_MEMORY. WF_ERR_CANCELLED: `progress` returned false. */
WF_API wf_status wf_bitext_open(const char *source, const char *target, const struct wf_bitext_options *options, wf_bitext **out,
                                wf_error *error) WF_CHECKED;
WF_API void wf_bitext_close(wf_bitext *bitext); /* NULL is allowed */
/* The counts of the survey, valid until wf_bitext_close. */
WF_API const struct wf_bitext_survey *wf_bitext_survey(const wf_bitext *bitext);
/* Sets *source and *target to the number of ids of each side of used pair `pair`. Used pairs have the numbers 0 .. used-1, in the order of
 * the files. *source counts special tokens, *target counts EOS. */
WF_API void wf_bitext_lengths(const wf_bitext *bitext, int64_t pair, int64_t *source, int64_t *target);
/* Sets *out to a sentence of used pair `pair`, without white space at its ends. `side` is 0 for the source and 1 for the target.
 * WF_ERR_FORMAT: the file was truncated. WF_ERR_IO, WF_ERR_MEMORY. */
WF_API wf_status wf_bitext_text(const wf_bitext *bitext, int64_t pair, int side, struct wf_string *out, wf_error *error) WF_CHECKED;
/* Writes a one-line summary to text[0 .. size-1] and returns `text`. For example: "28,988 pairs, 431,002 + 467,118 tokens; 12 skipped: 3
 * empty source, 9 source longer than 512". If there are unknown tokens, the summary also says how many: "431,002 + 467,118 tokens (12 + 30
 * unknown)". A summary of `size` or more bytes is truncated, but still ends with NUL; 500 bytes always suffice. */
WF_API char *wf_bitext_describe(const struct wf_bitext_survey *survey, char *text, size_t size);

/* --- batches by tokens --------------------------------------------------------------------------------------------- */
/* An epoch contains every used pair once. To plan an epoch, pairs are shuffled and divided into windows. Each window is sorted by target
 * length and then by source length; with the option `side`, a stable sort by target length alone is used instead. Each sorted window is
 * divided into batches as large as the options `tokens` and `tolerance` allow; the last batch of a window may be smaller. Then the batches
 * are shuffled.
 *
 * The result depends only on the files, the options and the epoch, on any machine and with any number of threads. So (epoch, index) is a
 * complete position in the data. Besides the bitext, the plan of an epoch takes 4 bytes of memory per pair, 8 per batch, and 4 per pair of
 * a window. */
typedef struct wf_pair_batches wf_pair_batches;
struct wf_pair_batches_options {
    int64_t tokens;    /* maximum size of a batch, in ids: pairs x (longest source + longest target). A pair that exceeds the maximum
                          is a batch alone. 0: one batch of all pairs */
    bool side;         /* the size is pairs x (the larger of longest source and longest target) instead */
    int64_t tolerance; /* the size of a batch may exceed `tokens` by this number */
    int64_t window;    /* number of pairs that are sorted together; 0: all */
    uint64_t seed;
    bool in_order; /* pairs are sorted but not shuffled, and all epochs are the same; meant for evaluation */
};
/* Starts at the first batch of epoch 0. The bitext must outlive *out. Several wf_pair_batches may use one bitext, but not from two threads
 * at the same time. Later calls encode on as many threads as wf_threads() returns during this call. WF_ERR_ARGUMENT: a negative option, or
 * a batch could have more than 2^31 - 1 ids of one side. WF_ERR_MEMORY. On an error *out is NULL. */
WF_API wf_status wf_pair_batches_new(wf_bitext *bitext, const struct wf_pair_batches_options *options, wf_pair_batches **out,
                                     wf_error *error) WF_CHECKED;
WF_API void wf_pair_batches_free(wf_pair_batches *batches); /* NULL is allowed */
/* The position of the next batch: *epoch counts from 0, *index is the number of the batch in its epoch. After the last batch of an epoch
 * the position is (epoch + 1, 0). */
WF_API void wf_pair_batches_place(const wf_pair_batches *batches, int64_t *epoch, int64_t *index);
/* Sets the position of the next batch. `index` may also be the number of batches of the epoch, which is the position after the last batch.
 * WF_ERR_ARGUMENT for an invalid position; the position is then unchanged. */
WF_API wf_status wf_pair_batches_seek(wf_pair_batches *batches, int64_t epoch, int64_t index, wf_error *error) WF_CHECKED;
/* The number of batches of the current epoch, which varies slightly between epochs. The current epoch is that of the last batch returned,
 * or after wf_pair_batches_seek that of the new position. */
WF_API int64_t wf_pair_batches_count(const wf_pair_batches *batches);
/* Sets *pairs to the next batch, valid until the next call. After the last batch of an epoch the next epoch follows. Pairs of a batch are
 * sorted by length, shortest targets first. wf_pair_batches_new has allocated the memory that the tokenizers need for the longest
 * sentences; this call allocates memory only if a tokenizer needs more for a shorter sentence. WF_ERR_FORMAT: a file was modified after it
 * was opened. WF_ERR_IO, WF_ERR_MEMORY. After an error the position is unchanged. */
WF_API wf_status wf_pair_batches_next(wf_pair_batches *batches, struct wf_pairs *pairs, wf_error *error) WF_CHECKED;
/* The indices of the last batch's pairs: pair i of the batch is used pair index[i] of the bitext. Valid until the next call of
 * wf_pair_batches_next. */
WF_API const int64_t *wf_pair_batches_index(const wf_pair_batches *batches);
/* Sets *pairs to micro-batch `part`, 0 .. parts-1, of the last batch. A micro-batch is a run of consecutive pairs. All micro-batches have
 * about the same number of ids, and some may be empty (count 0). The offsets in *pairs begin at 0; first_source and first_target are the
 * numbers of source ids and target ids of the batch that come before the micro-batch. Valid until the next call of this function or of
 * wf_pair_batches_next. */
WF_API void wf_pair_batches_part(wf_pair_batches *batches, int64_t part, int64_t parts, struct wf_pairs *pairs);

WF_END_DECLS

#endif
