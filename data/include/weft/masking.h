/* SPDX-License-Identifier: MIT */
/* Masking for masked-language modelling (Devlin et al. 2019, section 3.1): each ordinary token is selected with probability `rate`; of
 * the selected tokens 80 % become the mask token, 10 % a random ordinary token, and 10 % stay unchanged. */
#ifndef WEFT_MASKING_H
#define WEFT_MASKING_H

#include <weft/batches.h>
#include <weft/tokenizer.h>

WF_BEGIN_DECLS

/* Special tokens are never selected or drawn: those marked special in the tokenizer's file, and the tokens for beginning, end, padding,
 * unknown and mask. All others are ordinary. */
struct wf_masking {
    int32_t mask;       /* the id of the mask token */
    int32_t begin, end; /* the ids of the start and end tokens ([CLS] and [SEP], or <s> and </s>); -1: none */
    int32_t *ordinary;  /* [ordinary_count] ids, ascending */
    int64_t ordinary_count;
    bool *special; /* [vocab_size] */
    int64_t vocab_size;
    uint64_t threshold; /* rate times 2^32: a token is selected if 32 random bits are below */
    uint32_t key[2];    /* of the random numbers, derived from the seed */
};

/* 0 < rate < 1. WF_ERR_FORMAT for a tokenizer without a mask token (<mask> or [MASK]), or without an ordinary token. The tokenizer need
 * not outlive it. On an error *masking is empty. */
WF_API wf_status wf_masking_init(struct wf_masking *masking, const wf_tokenizer *tokenizer, double rate, uint64_t seed,
                                 wf_error *error) WF_CHECKED;
WF_API void wf_masking_free(struct wf_masking *masking); /* leaves it empty */

/* Masks rows first_row .. first_row+rows-1 of the batch of `step`, in place: ids [rows,cols]. For selected token i places[i] is its index
 * into ids, ascending, and targets[i] its original id; both have room for rows * cols. Returns the number of selected tokens. The masks
 * depend on (seed, step, row, column) only: a run can resume at any step, and a batch may be computed in parts. Rows and columns are below
 * 2^32. Nothing is allocated. Every id must be in the vocabulary. */
WF_API int64_t wf_masking_hide(const struct wf_masking *masking, int64_t step, int64_t first_row, int64_t rows, int64_t cols, int32_t *ids,
                               int32_t *places, int32_t *targets);
/* Puts start and end tokens around rows: ids [rows,cols], with room for [rows,cols+2], become rows of cols + 2. Before wf_masking_hide,
 * which never selects these two. WF_ERR_ARGUMENT without a start or an end token; ids is as it was then. */
WF_API wf_status wf_masking_frame(const struct wf_masking *masking, int64_t rows, int64_t cols, int32_t *ids, wf_error *error) WF_CHECKED;
/* The number of ordinary tokens. */
WF_API int64_t wf_masking_ordinary(const struct wf_masking *masking, struct wf_id_view ids);

WF_END_DECLS

#endif
