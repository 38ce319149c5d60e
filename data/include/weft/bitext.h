/* SPDX-License-Identifier: MIT */
/* Parallel text: two files, aligned by line, and batches of their sentence pairs.
 *
 * Files may be larger than memory: 24 bytes per pair are kept in memory, mapped from the cache where there is one, so that the processes
 * of a machine share them. A line ends at "\n" only; the last line may lack it. White space
 * at both ends of a line (Unicode's White_Space, including "\r" and no-break spaces) and a byte order mark at the beginning of a file are
 * not part of the sentences. Opening encodes every line once (the survey) to find its length in ids and errors. Pairs that are not used
 * are counted by reason.
 *
 * A file may be replaced by renaming while it is open: the bitext keeps the old one until it is closed. A file that is modified or
 * truncated in place is detected by the next call that reads it, which returns an error. */
#ifndef WEFT_BITEXT_H
#define WEFT_BITEXT_H

#include <weft/pairs.h>
#include <weft/scans.h>
#include <weft/tokenizer.h>

WF_BEGIN_DECLS

typedef struct wf_bitext wf_bitext;

struct wf_bitext_options {
    const wf_tokenizer *source, *target; /* must outlive the bitext; the target's needs BOS and EOS */
    bool source_bos, source_eos;         /* special tokens around the source */
    int64_t max_length;                  /* of either side as the model sees it: the source with its special tokens, the target with one of
                                            BOS and EOS; longer pairs are skipped. 0: no limit */
    const char *cache;                   /* a folder that caches surveys, such as wf_cache_folder() (<weft/corpus.h>), by the content of
                                            files, tokenizers and options. NULL: no cache */
    bool (*progress)(void *ctx, int64_t done, int64_t total); /* bytes; false: WF_ERR_CANCELLED. May be NULL. */
    void *ctx;
    wf_scans *scans;  /* walks over the files that were made before; NULL: none */
    double max_ratio; /* of the lengths of a pair's sides in ids, special tokens excluded: a pair whose longer side has more than max_ratio
                         times the ids of the shorter one is skipped. At least 1; 0: no limit */
    bool deduplicate; /* of pairs with the same two sentences, byte for byte, the first is used and the others are skipped. Hashes find
                         them, and then their texts are compared, so that no other pair is lost. The survey takes 13 to 19 bytes a line
                         more for it */
};
struct wf_bitext_survey {
    int64_t lines, used;
    /* Skipped pairs by reason; their sum is lines - used. The first reason counts, in this order: a pair with an empty side counts as
     * empty, even if the other side is too long. */
    int64_t empty_source, empty_target, empty_both, long_source, long_target, long_both, over_ratio, duplicates;
    int64_t source_tokens, target_tokens;   /* of the used pairs: source with special tokens, target with EOS, without BOS */
    int64_t source_unknown, target_unknown; /* unknown tokens among them */
    int64_t longest_source, longest_target; /* in tokens, of all lines, counted in the same way */
    int64_t max_length;                     /* as in the options */
    double max_ratio;                       /* as in the options */
    uint64_t hash;                          /* of the content of both files */
    bool cached;                            /* was loaded from the cache */
};
/* Opens two files and surveys them on all threads; the result does not depend on their number. Close with wf_bitext_close; NULL on an
 * error. WF_ERR_FORMAT: an empty file, different numbers of lines (the message has both), no usable pair (with the counts by reason); with
 * file:line:byte: bytes that are not UTF-8, NUL, a word outside a vocabulary without an unknown token. WF_ERR_IO: a file cannot be opened,
 * or is a folder, a pipe or a device. WF_ERR_ARGUMENT: a tokenizer lacks a required special token, or its file sets truncation or padding.
 * An unusable cache is ignored. */
WF_API wf_status wf_bitext_open(const char *source, const char *target, const struct wf_bitext_options *options, wf_bitext **out,
                                wf_error *error) WF_CHECKED;
WF_API void wf_bitext_close(wf_bitext *bitext); /* NULL is allowed */
WF_API const struct wf_bitext_survey *wf_bitext_survey(const wf_bitext *bitext);
/* Lengths in ids of used pair `pair`, 0 .. used-1, in the order of the files: source with special tokens, target with EOS. */
WF_API void wf_bitext_lengths(const wf_bitext *bitext, int64_t pair, int64_t *source, int64_t *target);
/* Sets *out to a sentence of a used pair, trimmed as described above. side 0: source, 1: target. WF_ERR_FORMAT: the file was truncated. */
WF_API wf_status wf_bitext_text(const wf_bitext *bitext, int64_t pair, int side, struct wf_string *out, wf_error *error) WF_CHECKED;
/* A one-line summary: "28,988 pairs, 431,002 + 467,118 tokens; 12 skipped: 3 empty source, 9 source longer than 512"; unknown tokens, if
 * any, follow the tokens. Truncated to `size` bytes with its NUL; 500 bytes suffice. Returns text. */
WF_API char *wf_bitext_describe(const struct wf_bitext_survey *survey, char *text, size_t size);

/* --- batches by tokens --------------------------------------------------------------------------------------------- */
/* An epoch has every used pair once. Pairs are shuffled; windows of them are sorted by target length, then source length (with `side` by
 * target length only; the sort is stable) and divided into batches of a cost of at most `tokens`; the last batch of a window may be
 * smaller. Then the batches are shuffled. The result depends on (seed, epoch) only, on any machine and any number of threads, so that
 * (epoch, index) is a complete position in the data. Memory: 4 bytes per pair, 8 per batch and 4 per pair of a window, besides the
 * bitext. */
typedef struct wf_pair_batches wf_pair_batches;
struct wf_pair_batches_options {
    int64_t tokens;    /* maximum cost of a batch: pairs x (longest source + longest target). A pair that costs more is a batch alone.
                          0: one batch of all pairs */
    bool side;         /* the cost is pairs x the longer of the two instead */
    int64_t tolerance; /* a batch may exceed `tokens` by this much */
    int64_t window;    /* pairs that are sorted together; 0: all */
    uint64_t seed;
    bool in_order; /* for evaluation: sorted without shuffling, the same in each epoch */
};
/* Starts at the first batch of epoch 0. The bitext must outlive it. Several may use one bitext, but not from two threads at a time. Encodes
 * on the current number of threads, wf_threads(). WF_ERR_ARGUMENT: a negative number, or batches of more than 2^31 - 1 ids. *out is NULL
 * on an error. */
WF_API wf_status wf_pair_batches_new(wf_bitext *bitext, const struct wf_pair_batches_options *options, wf_pair_batches **out,
                                     wf_error *error) WF_CHECKED;
WF_API void wf_pair_batches_free(wf_pair_batches *batches); /* NULL is allowed */
/* The position of the next batch: epochs from 0, index within the epoch. After the last batch of an epoch it is (epoch + 1, 0). */
WF_API void wf_pair_batches_place(const wf_pair_batches *batches, int64_t *epoch, int64_t *index);
/* Sets the position; index may also be the epoch's number of batches, its end. WF_ERR_ARGUMENT for an invalid position, which changes
 * nothing. */
WF_API wf_status wf_pair_batches_seek(wf_pair_batches *batches, int64_t epoch, int64_t index, wf_error *error) WF_CHECKED;
/* The number of batches of the current epoch: that of the last batch returned, or before the first that of the position. It varies slightly
 * between epochs. */
WF_API int64_t wf_pair_batches_count(const wf_pair_batches *batches);
/* The next batch, continuing with the next epoch at the end of one; valid until the next call. Its pairs are sorted by length, shortest
 * targets first. Allocates only if a tokenizer needs more memory for a sentence than for the longest one. WF_ERR_FORMAT: a file was
 * modified after it was opened. After an error the position is unchanged. */
WF_API wf_status wf_pair_batches_next(wf_pair_batches *batches, struct wf_pairs *pairs, wf_error *error) WF_CHECKED;
/* The pairs of the last batch: its pair i is used pair index[i] of the bitext. Valid until the next call of wf_pair_batches_next. */
WF_API const int64_t *wf_pair_batches_index(const wf_pair_batches *batches);
/* Micro-batch `part` (from 0) of `parts` of the last batch: consecutive pairs, with about the same number of ids in each part. A part may
 * be empty (count 0). Offsets begin at 0; first_source and first_target are the numbers of ids of the batch before the part. Valid until
 * the next call of this function or of wf_pair_batches_next. */
WF_API void wf_pair_batches_part(wf_pair_batches *batches, int64_t part, int64_t parts, struct wf_pairs *pairs);

WF_END_DECLS

#endif
