/* SPDX-License-Identifier: MIT */
/* Inside the room: parallel text from its survey to the batches. */
#ifndef WEFT_DATA_BITEXT_INTERNAL_H
#define WEFT_DATA_BITEXT_INTERNAL_H

#include <weft/bitext.h>
#include <weft/internal/map.h>
#include <weft/internal/string.h>

#include "text_file.h"

/* The data of a pair in memory. The ends of its sentences are found again when they are read. */
struct pair {
    int64_t at[2];   /* the first byte of the sentence in its file */
    uint32_t ids[2]; /* lengths, with special tokens: the target's has one of EOS and BOS */
};

struct bitext_side {
    struct text_file file;
    const wf_tokenizer *tokenizer;
    bool bos, eos; /* special tokens that count for the length: in the target one */
    int32_t bos_id, eos_id;
    uint64_t content;   /* hash */
    int64_t longest_at; /* where the longest sentence in bytes is, of those that are short enough in ids */
};

struct wf_bitext {
    struct bitext_side side[2];
    struct wf_bitext_survey survey;
    bool deduplicate;
    void *memory;      /* holds `pair`, if it was computed; */
    struct wf_map map; /* otherwise the file in the cache that holds it */
    struct pair *pair; /* read only, once surveyed */
};

/* Of each thread that encodes. If both sides have one tokenizer, they share its cache. */
struct encoder {
    wf_token_cache *cache[2];
    struct wf_tokens ids;
    struct wf_string text;
};
wf_status encoders_new(const struct wf_bitext *bitext, int count, struct encoder **out, wf_error *error) WF_CHECKED;
/* Encodes the longest sentences in bytes and in ids with each encoder, so that later sentences need no more memory. */
wf_status encoders_warm(const struct wf_bitext *bitext, int count, struct encoder *encoders, wf_error *error) WF_CHECKED;
void encoders_free(struct encoder *encoders, int count);

/* Reads the sentence of a used pair that begins at `at` into *out. */
wf_status bitext_sentence(const struct bitext_side *side, int64_t at, struct wf_string *out, wf_error *error) WF_CHECKED;

/* WF_ERR_FORMAT if one of the files has changed since it was opened. */
wf_status bitext_verify(struct wf_bitext *bitext, wf_error *error) WF_CHECKED;

/* --- survey.c --- */
/* Encodes every line: sets bitext->pair and the survey's counts. */
wf_status survey_encode(struct wf_bitext *bitext, const struct text_scan scan[2], struct text_progress *progress,
                        wf_error *error) WF_CHECKED;

/* --- repeats.c --- */
struct repeats {
    const struct wf_bitext *bitext;
    uint64_t *hash; /* [lines]: of both sentences; those of used pairs are at the front, as in bitext->pair */
    uint32_t *slot; /* open addressing: 0, or the number of a used pair, from 1 */
    uint64_t mask;
    struct wf_string text[2];
};
wf_status repeats_open(struct repeats *r, const struct wf_bitext *bitext, uint64_t *hash, wf_error *error) WF_CHECKED;
/* Whether the pair at `line` is one of the used ones, 0 .. used-1; if not, it is to become pair `used`. */
wf_status repeats_find(struct repeats *r, int64_t line, int64_t used, bool *found, wf_error *error) WF_CHECKED;
void repeats_close(struct repeats *r); /* also of {0}; leaves the hashes */

/* --- survey_cache.c --- */
/* Sets *found, the survey and the pairs, if the folder has them for this content, these tokenizers and options; a damaged or unreadable
 * file is ignored. The only error is WF_ERR_MEMORY. */
wf_status survey_cache_read(struct wf_bitext *bitext, const char *folder, int64_t lines, bool *found, wf_error *error) WF_CHECKED;
/* The pairs are then mapped from the file, and their memory is given back. */
wf_status survey_cache_write(struct wf_bitext *bitext, const char *folder, wf_error *error) WF_CHECKED;

/* --- pair_batches_plan.c: which pairs make which batch of an epoch --- */
struct pair_plan {
    const struct pair *pair;
    int64_t pairs, window, limit; /* limit: of a batch's cost */
    bool side, in_order;
    uint64_t seed;
    int64_t longest[2], shortest[2]; /* ids of the pairs */
    uint32_t *order, *spare;         /* [pairs]: the pairs, batch by batch; [window] */
    struct pair_run {
        uint32_t first, count; /* in `order` */
    } * run;
    int64_t runs, most_runs;
    int64_t most_pairs; /* of a batch */
};

/* Allocates what any epoch can need. options->tokens and window as the user gave them. */
wf_status pair_plan_new(const struct wf_bitext *bitext, const struct wf_pair_batches_options *options, struct pair_plan *plan,
                        wf_error *error) WF_CHECKED;
void pair_plan_free(struct pair_plan *plan);
void pair_plan_epoch(struct pair_plan *plan, int64_t epoch);

#endif
