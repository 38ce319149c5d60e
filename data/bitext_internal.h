/* SPDX-License-Identifier: MIT */
/* Internal to data/: parallel text, from its survey to its batches. The survey encodes every line once. It skips pairs with an empty side
 * and, as the options say, pairs that are too long, too unequal in length, or repeated. The other pairs are the used pairs. */
#ifndef WEFT_DATA_BITEXT_INTERNAL_H
#define WEFT_DATA_BITEXT_INTERNAL_H

#include <weft/bitext.h>
#include <weft/internal/map.h>
#include <weft/internal/string.h>

#include "text_file.h"

/* A sentence pair in memory. Only the start of each sentence is kept: the end is found again when the sentence is read. */
struct pair {
    int64_t at[2];   /* the offset of the sentence's first byte in its file */
    uint32_t ids[2]; /* number of ids: the source counts its special tokens, the target counts its EOS but not its BOS */
};

struct bitext_side {
    struct text_file file;
    const wf_tokenizer *tokenizer;
    bool bos; /* lengths count a BOS token: an option for the source, false for the target */
    bool eos; /* lengths count an EOS token: an option for the source, true for the target */
    int32_t bos_id;
    int32_t eos_id;
    uint64_t content;   /* hash of the file's content */
    int64_t longest_at; /* offset of the sentence with the most bytes, among those of at most max_length ids */
};

struct wf_bitext {
    struct bitext_side side[2];
    struct wf_bitext_survey survey;
    bool deduplicate;
    void *memory;      /* holds `pair` if the survey was computed, else NULL */
    struct wf_map map; /* the cached file that holds `pair` if the survey was loaded from it */
    struct pair *pair; /* during the survey [lines]; after it [survey.used], the used pairs, read-only */
};

/* The data that one thread needs to encode sentences. If both sides have the same tokenizer, cache[0] and cache[1] are the same. */
struct encoder {
    wf_token_cache *cache[2];
    struct wf_tokens ids;
    struct wf_string text;
};
wf_status encoders_new(const struct wf_bitext *bitext, int count, struct encoder **out, wf_error *error) WF_CHECKED;
/* With each encoder, encodes two sentences of each side: the one with the most bytes and the one with the most ids. The encoders then hold
 * enough memory for all other sentences. */
wf_status encoders_warm(const struct wf_bitext *bitext, int count, struct encoder *encoders, wf_error *error) WF_CHECKED;
void encoders_free(struct encoder *encoders, int count);

/* Reads a sentence into *out: the one whose first byte is at offset `at` of the side's file. */
wf_status bitext_sentence(const struct bitext_side *side, int64_t at, struct wf_string *out, wf_error *error) WF_CHECKED;

/* WF_ERR_FORMAT if one of the files has changed since it was opened. */
wf_status bitext_verify(struct wf_bitext *bitext, wf_error *error) WF_CHECKED;

/* --- survey.c --- */
/* Encodes every line, and sets bitext->pair and the counts of the survey. */
wf_status survey_encode(struct wf_bitext *bitext, const struct text_scan scan[2], struct text_progress *progress,
                        wf_error *error) WF_CHECKED;

/* --- repeats.c: finds pairs whose sentences an earlier used pair has --- */
struct repeats {
    const struct wf_bitext *bitext;
    uint64_t *hash;           /* [lines]: a hash of the sentences of each line; entry i < used becomes the hash of used pair i */
    uint32_t *slot;           /* hash table with open addressing: 0 for an empty slot, or 1 + the index of a used pair */
    uint64_t mask;            /* the number of slots, which is a power of two, minus 1 */
    struct wf_string text[2]; /* the two sentences that are compared */
};
wf_status repeats_open(struct repeats *r, const struct wf_bitext *bitext, uint64_t *hash, wf_error *error) WF_CHECKED;
/* Sets *found if a used pair 0 .. used-1 has the same sentences as the pair at `line`. Otherwise enters that pair into the table as pair
 * `used`. */
wf_status repeats_find(struct repeats *r, int64_t line, int64_t used, bool *found, wf_error *error) WF_CHECKED;
void repeats_close(struct repeats *r); /* *r may be {0}; does not free `hash`, which is the caller's */

/* --- survey_cache.c --- */
/* Loads the survey and the pairs, and sets *found, if the folder holds them for the same content, tokenizers and options. A damaged or
 * unreadable file is ignored. The only error is WF_ERR_MEMORY. */
wf_status survey_cache_read(struct wf_bitext *bitext, const char *folder, int64_t lines, bool *found, wf_error *error) WF_CHECKED;
/* Writes the survey and the pairs to the cache. Then maps the pairs from that file and frees bitext->memory. If the file cannot be written,
 * the pairs stay in memory. The only error is WF_ERR_MEMORY. */
wf_status survey_cache_write(struct wf_bitext *bitext, const char *folder, wf_error *error) WF_CHECKED;

/* --- pair_batches_plan.c: assigns the pairs of an epoch to batches --- */
struct pair_plan {
    const struct pair *pair;
    int64_t pairs;
    int64_t window; /* pairs that are sorted together */
    int64_t limit;  /* maximum cost of a batch of several pairs */
    bool side;      /* the cost counts the longer side only, not the sum of both */
    bool in_order;
    uint64_t seed;
    int64_t longest[2];  /* most ids of a used pair, by side */
    int64_t shortest[2]; /* fewest ids of a used pair, by side */
    uint32_t *order;     /* [pairs]: indices of pairs, batch by batch */
    uint32_t *spare;     /* [window]: scratch memory of the sort */
    struct pair_run {
        uint32_t first; /* index into `order` of the batch's first pair */
        uint32_t count; /* number of pairs in the batch */
    } * run;            /* [most_runs]: the batches of the epoch, as ranges of `order` */
    int64_t runs;       /* number of batches of the planned epoch */
    int64_t most_runs;  /* most batches that an epoch can have */
    int64_t most_pairs; /* most pairs that a batch can have */
};

/* Allocates enough memory for every epoch. options->tokens and options->window are the user's values, so 0 means no limit. */
wf_status pair_plan_new(const struct wf_bitext *bitext, const struct wf_pair_batches_options *options, struct pair_plan *plan,
                        wf_error *error) WF_CHECKED;
void pair_plan_free(struct pair_plan *plan);
void pair_plan_epoch(struct pair_plan *plan, int64_t epoch);

#endif
