/* SPDX-License-Identifier: MIT */
/* Masking for masked-language modelling (Devlin et al. 2019, section 3.1). Each ordinary token is selected with probability `rate`. Of the
 * selected tokens 80 % become the mask token, 10 % become a random ordinary token, and 10 % stay unchanged. */
#ifndef WEFT_MASKING_H
#define WEFT_MASKING_H

#include <weft/batches.h>
#include <weft/tokenizer.h>

WF_BEGIN_DECLS

/* Special tokens are those that the tokenizer's file marks as special, and the tokens for beginning, end, padding, unknown and mask. All
 * other tokens are ordinary. A special token is never selected, and never drawn as a random token. */
struct wf_masking {
    int32_t mask;      /* the id of the mask token */
    int32_t begin;     /* id of the start token ([CLS] or <s>); -1: none */
    int32_t end;       /* id of the end token ([SEP] or </s>); -1: none */
    int32_t *ordinary; /* [ordinary_count]: ids of the ordinary tokens, ascending */
    int64_t ordinary_count;
    bool *special; /* [vocab_size]: whether an id is a special token */
    int64_t vocab_size;
    uint64_t threshold; /* rate * 2^32: a token is selected if its random number of 32 bits is below this */
    uint32_t key[2];    /* key of the random numbers, derived from the seed */
};

/* Sets *masking. `rate` is above 0 and below 1. The tokenizer may be freed after the call. The caller frees *masking with wf_masking_free.
 * WF_ERR_ARGUMENT: `rate` is out of range. WF_ERR_FORMAT: the tokenizer has no mask token (<mask> or [MASK]), or no ordinary token.
 * WF_ERR_MEMORY. On an error *masking is empty. */
WF_API wf_status wf_masking_init(struct wf_masking *masking, const wf_tokenizer *tokenizer, double rate, uint64_t seed,
                                 wf_error *error) WF_CHECKED;
WF_API void wf_masking_free(struct wf_masking *masking); /* frees the memory and leaves *masking empty */

/* Masks ids [rows,cols] in place. They are rows first_row .. first_row+rows-1 of the batch of `step`. For each selected token, in the order
 * of `ids`, the next entry of `places` becomes its index in `ids`, and the next entry of `targets` its original id. The caller provides
 * rows * cols entries in `places` and in `targets`. Returns the number of selected tokens. The random choices depend only on (seed, step,
 * row, column), so a run can resume at any step, and a batch can be computed in several calls. Rows and columns are below 2^32. Every id
 * must be in the vocabulary. Allocates nothing. */
WF_API int64_t wf_masking_hide(const struct wf_masking *masking, int64_t step, int64_t first_row, int64_t rows, int64_t cols, int32_t *ids,
                               int32_t *places, int32_t *targets);
/* Puts a start token before and an end token after each row: ids [rows,cols] becomes ids [rows,cols+2] in place, so the caller provides
 * memory for rows * (cols + 2) ids. Call it before wf_masking_hide, which never selects these two tokens. WF_ERR_ARGUMENT: the tokenizer
 * has no start token or no end token; `ids` is then unchanged. */
WF_API wf_status wf_masking_frame(const struct wf_masking *masking, int64_t rows, int64_t cols, int32_t *ids, wf_error *error) WF_CHECKED;
/* The number of ordinary tokens in `ids`. */
WF_API int64_t wf_masking_ordinary(const struct wf_masking *masking, struct wf_id_view ids);

WF_END_DECLS

#endif
