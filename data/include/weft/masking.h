/* SPDX-License-Identifier: MIT */
/* Hiding tokens that an encoder is to find again (Devlin et al. 2019, section 3.1): each ordinary token is chosen with probability
 * `rate`; of the chosen 80 % become the mask token, 10 % an ordinary token drawn at random, 10 % stay as they are. */
#ifndef WEFT_MASKING_H
#define WEFT_MASKING_H

#include <weft/batches.h>
#include <weft/tokenizer.h>

WF_BEGIN_DECLS

/* Special tokens are never chosen and never drawn: those that the tokenizer's file calls special, and the marks of beginning, end and
 * padding, the unknown and the mask token. All others are ordinary. */
struct wf_masking {
    int32_t mask;           /* the id of the mask token */
    int32_t *ordinary;      /* [ordinary_count] ids, ascending */
    int64_t ordinary_count;
    bool *special;          /* [types] */
    int64_t types;
    uint64_t threshold;     /* a token is chosen when 32 random bits are below: rate times 2^32 */
    uint32_t key[2];        /* of the random numbers, made of the seed */
};

/* 0 < rate < 1. WF_ERR_FORMAT for a tokenizer without a mask token (<mask> or [MASK]), or without an ordinary token. The tokenizer need
 * not outlive it. On an error *masking is empty. */
WF_API wf_status wf_masking_init(struct wf_masking *masking, const wf_tokenizer *tokenizer, double rate, uint64_t seed,
                                 wf_error *error) WF_CHECKED;
WF_API void wf_masking_free(struct wf_masking *masking); /* leaves it empty */

/* Hides tokens of rows first_row .. first_row+rows-1 of the batch of `step`, in place: ids [rows,cols]. For chosen token i places[i] is its
 * place, counted from 0 over ids, and targets[i] what stood there; places ascend. Returns how many were chosen; both have
 * room for rows * cols. What happens to a token is a function of (seed, step, row, column) alone, as with wf_crops: a run resumes
 * at a step, and a batch is the same whole or in parts. Rows and columns are below 2^32. It allocates nothing. Every id must be one of
 * the tokenizer's. */
WF_API int64_t wf_masking_hide(const struct wf_masking *masking, int64_t step, int64_t first_row, int64_t rows, int64_t cols, int32_t *ids,
                               int32_t *places, int32_t *targets);
/* How many of them can be chosen at all. */
WF_API int64_t wf_masking_ordinary(const struct wf_masking *masking, struct wf_id_view ids);

WF_END_DECLS

#endif
