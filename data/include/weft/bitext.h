/* SPDX-License-Identifier: MIT */
/* Parallel text: two files, aligned by line, and batches of their pairs.
 *
 * The files are never read whole; what is held is 24 bytes a pair. Lines end at "\n" and at nothing else, a last line may lack
 * it; white space at the edges (Unicode's White_Space: a "\r", no-break spaces) belongs to no sentence, and neither does a byte order
 * mark at the start of the file. Opening looks at every line once (the survey): its length in ids on both sides, and
 * what is wrong. Pairs that are not used are counted by reason, never dropped in silence.
 *
 * A file may be replaced while it is in use (written beside it and renamed): the old one stays until the bitext is closed. One that is
 * written to in its place, or cut short, is noticed by the next call that reads it, and refused. */
#ifndef WEFT_BITEXT_H
#define WEFT_BITEXT_H

#include <weft/pairs.h>
#include <weft/tokenizer.h>

WF_BEGIN_DECLS

typedef struct wf_bitext wf_bitext;

struct wf_bitext_options {
    const wf_tokenizer *source, *target; /* must outlive the bitext; the target's needs BOS and EOS */
    bool source_bos, source_eos;         /* marks around the source */
    int64_t max_length;                  /* of a side as a model sees it: the source with its marks, the target with one of its two; longer
                                            pairs are left out. 0: no limit */
    const char *cache;                   /* a folder for surveys, such as wf_cache_folder() (weft/corpus.h): found again by content of files,
                                            tokenizers and options. NULL: none */
    bool (*progress)(void *ctx, int64_t done, int64_t total); /* bytes; false: WF_ERR_CANCELLED. May be NULL. */
    void *ctx;
};
struct wf_bitext_survey {
    int64_t lines, used;
    int64_t empty_source, empty_target, empty_both, long_source, long_target, long_both; /* together lines - used; empty goes first */
    int64_t source_tokens, target_tokens;   /* of the used pairs: marks included; target as the loss counts it (with EOS, without BOS) */
    int64_t source_unknown, target_unknown; /* unknown tokens among them */
    int64_t longest_source, longest_target; /* of all lines, counted like the tokens */
    int64_t max_length;                     /* as in the options */
    uint64_t hash;                          /* of the content of both files */
    bool cached;                            /* it was found in the cache */
};
/* Opens two files and surveys them on all threads; the result does not depend on their number. Close with wf_bitext_close; NULL on an error.
 * WF_ERR_FORMAT: an empty file, a different number of lines (both counts are in the message), bytes that are not UTF-8, NUL and words that
 * a vocabulary without an unknown token lacks (file:line:byte), no pair that can be used (with the counts by reason).
 * WF_ERR_IO: a file can't be opened, or is a folder, a pipe or a device. WF_ERR_ARGUMENT: a tokenizer lacks a mark that is asked for, or
 * its file makes it cut or pad sentences. A cache that can't be read or written is done without. */
WF_API wf_status wf_bitext_open(const char *source, const char *target, const struct wf_bitext_options *options, wf_bitext **out,
                                wf_error *error) WF_CHECKED;
WF_API void wf_bitext_close(wf_bitext *bitext); /* NULL is fine */
WF_API const struct wf_bitext_survey *wf_bitext_survey(const wf_bitext *bitext);
/* Lengths in ids of used pair `pair`, 0 .. used-1, in the order of the files: source with its marks, target with EOS. */
WF_API void wf_bitext_lengths(const wf_bitext *bitext, int64_t pair, int64_t *source, int64_t *target);
/* The sentence of a used pair as it stands in the file, trimmed as above, into *out, whose text before it is lost. side 0: source, 1: target.
 * WF_ERR_FORMAT where the file was cut short. */
WF_API wf_status wf_bitext_text(const wf_bitext *bitext, int64_t pair, int side, struct wf_string *out, wf_error *error) WF_CHECKED;
/* One line for people: "28,988 pairs, 431,002 + 467,118 tokens; 12 left out: 3 empty source, 9 source longer than 512", with the unknown
 * tokens behind the tokens where there are some. Cut to `size` with its NUL; 400 bytes hold all. Returns text. */
WF_API char *wf_bitext_describe(const struct wf_bitext_survey *survey, char *text, size_t size);

/* --- batches by tokens --------------------------------------------------------------------------------------------- */
/* An epoch is every used pair once. The order of pairs is drawn from (seed, epoch); windows of it are sorted by target length, then source
 * length (with `side` by target length alone), pairs of equal lengths staying as drawn, and cut into batches that cost at most `tokens`;
 * what a window leaves over stays a batch; the batches of the epoch are then put into an order drawn from the seed. All of it is a function
 * of (seed, epoch), the same on every machine and for every number of threads, so that (epoch, index) is the whole place in the data.
 * Besides the bitext's it holds 4 bytes a pair, 8 a batch and 4 for each pair of a window. */
typedef struct wf_pair_batches wf_pair_batches;
struct wf_pair_batches_options {
    int64_t tokens;    /* cost of a batch: pairs x (longest source + longest target). A pair that costs more is one. 0: all pairs are one */
    bool side;         /* pairs x the longer of both instead */
    int64_t tolerance; /* that much over `tokens` is allowed */
    int64_t window;    /* pairs; 0: all */
    uint64_t seed;
    bool in_order;     /* for evaluation: nothing is drawn; sorted, the same each epoch */
};
/* At the first batch of epoch 0. The bitext must outlive it; two of them on one bitext are independent, but not for two threads at once. It
 * encodes with as many threads as wf_threads() gives now. WF_ERR_ARGUMENT: a negative number, or a batch that could hold more
 * than 2^31 - 1 ids. NULL on an error. */
WF_API wf_status wf_pair_batches_new(wf_bitext *bitext, const struct wf_pair_batches_options *options, wf_pair_batches **out,
                                     wf_error *error) WF_CHECKED;
WF_API void wf_pair_batches_free(wf_pair_batches *batches); /* NULL is fine */
/* The place of the next batch: epochs from 0, index within the epoch. Behind the last batch of an epoch it is (epoch + 1, 0). */
WF_API void wf_pair_batches_place(const wf_pair_batches *batches, int64_t *epoch, int64_t *index);
/* Goes to a place; index may be the epoch's count too, its end. WF_ERR_ARGUMENT when there is no such place: then it stays where it was. */
WF_API wf_status wf_pair_batches_seek(wf_pair_batches *batches, int64_t epoch, int64_t index, wf_error *error) WF_CHECKED;
/* The number of batches of the epoch of the last batch (before the first: of the place). It differs a little from epoch to epoch. */
WF_API int64_t wf_pair_batches_count(const wf_pair_batches *batches);
/* The next batch, into the next epoch where one ends; valid until the next call. Its pairs are sorted by length, the shortest targets
 * first. Nothing is allocated, unless a tokenizer wants more for a sentence than it did for the longest. WF_ERR_FORMAT: a file was
 * changed since it was opened. After an error the place is as before. */
WF_API wf_status wf_pair_batches_next(wf_pair_batches *batches, struct wf_pairs *pairs, wf_error *error) WF_CHECKED;
/* The pairs of the last batch: number i of it is used pair index[i] of the bitext. Valid until the next call of _next. */
WF_API const int64_t *wf_pair_batches_index(const wf_pair_batches *batches);
/* Micro-batch `part` (from 0) of `parts` of the last batch: a run of its pairs, all runs of about the same number of ids. A part may be
 * empty (count 0). Offsets begin at 0; first_source and first_target say how many ids of the batch stand before. Valid until the next call
 * of this function or of _next. */
WF_API void wf_pair_batches_part(wf_pair_batches *batches, int64_t part, int64_t parts, struct wf_pairs *pairs);

WF_END_DECLS

#endif
