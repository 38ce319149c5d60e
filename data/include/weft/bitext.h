/* SPDX-License-Identifier: MIT */
/* Parallel text: two files, aligned by line, and batches of their pairs.
 *
 * The files are mapped, never read whole. Lines end at "\n"; a "\r" before it and white space at the edges, no-break spaces
 * too, belong to no sentence. Opening looks at every line once (the survey): its length in ids on both sides, and what is wrong.
 * Pairs that are not used are counted by reason, never dropped in silence. */
#ifndef WEFT_BITEXT_H
#define WEFT_BITEXT_H

#include <weft/tokenizer.h>

WF_BEGIN_DECLS

/* Pairs of sentences as a model takes them: packed, end to end, without padding. Sentence i of the source is
 * source[source_offsets[i] .. source_offsets[i+1]-1]; the target's offsets hold for input (<s> y1 .. yn) and target
 * (y1 .. yn </s>) alike. */
struct wf_pairs {
    int64_t count;
    const int32_t *source, *source_offsets;         /* offsets [count + 1] */
    const int32_t *input, *target, *target_offsets;
    int64_t first_source, first_target;             /* ids of the whole batch that stand before these: of micro-batches */
};

typedef struct wf_bitext wf_bitext;

struct wf_bitext_options {
    const wf_tokenizer *source, *target; /* must outlive the bitext; the target's needs BOS and EOS */
    bool source_bos, source_eos;         /* marks around the source */
    int64_t max_length;                  /* of a side in ids, marks included; longer pairs are left out. 0: no limit */
    const char *cache;                   /* a folder for surveys: found again by content of files, tokenizers and options. NULL: none */
    bool (*progress)(void *ctx, int64_t done, int64_t total); /* bytes; false: WF_ERR_CANCELLED. May be NULL. */
    void *ctx;
};
struct wf_bitext_survey {
    int64_t lines, used;
    int64_t empty_source, empty_target, empty_both, long_source, long_target, long_both; /* lines + ... : lines - used in all */
    int64_t source_tokens, target_tokens;         /* of the used pairs: marks included; target as the loss counts it (with EOS, without BOS) */
    int64_t source_unknown, target_unknown;       /* unknown tokens among them */
    int64_t longest_source, longest_target;       /* of all lines, in ids */
    uint64_t hash;                                /* of the content of both files */
    bool cached;                                  /* it was found in the cache */
};
/* WF_ERR_FORMAT: a different number of lines (both counts are in the message), bytes that are not UTF-8 (file:line:byte), no pair that
 * can be used (with the counts by reason). Words that the vocabulary lacks, where it has no unknown token: file:line and the
 * word. */
WF_API wf_status wf_bitext_open(const char *source, const char *target, const struct wf_bitext_options *options, wf_bitext **out,
                                wf_error *error) WF_CHECKED;
WF_API void wf_bitext_close(wf_bitext *bitext);
WF_API const struct wf_bitext_survey *wf_bitext_survey(const wf_bitext *bitext);
/* Lengths in ids of used pair `pair`, 0 .. used-1, in the order of the files: source with its marks, target with EOS. */
WF_API void wf_bitext_lengths(const wf_bitext *bitext, int64_t pair, int64_t *source, int64_t *target);
/* The sentence of a used pair as it stands in the file (trimmed as above); it belongs to the bitext. side 0: source, 1: target. */
WF_API const char *wf_bitext_text(const wf_bitext *bitext, int64_t pair, int side, int64_t *length);
/* One line for people: "29,000 pairs; 12 left out: 3 empty source, 9 source longer than 512"; returns text. */
WF_API char *wf_bitext_describe(const struct wf_bitext_survey *survey, char *text, size_t size);

/* --- batches by tokens --------------------------------------------------------------------------------------------- */
/* An epoch is every used pair once. The order of pairs is drawn from (seed, epoch); windows of it are sorted by target and source
 * length and cut into batches that cost at most `tokens`; what a window leaves over stays a batch; the batches of the
 * epoch are then put into an order drawn from the seed. All of it is a function of (seed, epoch), so that (epoch, index) is the
 * whole place in the data. */
typedef struct wf_pair_batches wf_pair_batches;
struct wf_pair_batches_options {
    int64_t tokens;    /* cost of a batch: pairs x (longest source + longest target). A pair that costs more is a batch. 0: all pairs are one */
    bool side;         /* pairs x the longer of both instead */
    int64_t tolerance; /* that much over `tokens` is allowed */
    int64_t window;    /* pairs; 0: all */
    uint64_t seed;
    bool in_order;     /* for evaluation: no drawing; sorted, the same each epoch */
};
WF_API wf_status wf_pair_batches_new(wf_bitext *bitext, const struct wf_pair_batches_options *options, wf_pair_batches **out,
                                     wf_error *error) WF_CHECKED;
WF_API void wf_pair_batches_free(wf_pair_batches *batches);
/* The place of the next batch: epochs from 0, index within the epoch. */
WF_API void wf_pair_batches_place(const wf_pair_batches *batches, int64_t *epoch, int64_t *index);
WF_API wf_status wf_pair_batches_seek(wf_pair_batches *batches, int64_t epoch, int64_t index, wf_error *error) WF_CHECKED;
WF_API int64_t wf_pair_batches_count(const wf_pair_batches *batches); /* of the epoch that is open */
/* The next batch, into the next epoch where one ends; valid until the next call. From the second epoch on nothing is allocated. */
WF_API wf_status wf_pair_batches_next(wf_pair_batches *batches, struct wf_pairs *pairs, wf_error *error) WF_CHECKED;
/* The pairs of the last batch in the order of the files: number i of the batch is used pair index[i]. */
WF_API const int64_t *wf_pair_batches_index(const wf_pair_batches *batches);
/* Micro-batch `part` of `parts` of the last batch: its pairs in runs of about the same number of ids. A part may be empty (count 0).
 * Valid until the next call of this function or of _next. */
WF_API void wf_pair_batches_part(wf_pair_batches *batches, int64_t part, int64_t parts, struct wf_pairs *pairs);

WF_END_DECLS

#endif
