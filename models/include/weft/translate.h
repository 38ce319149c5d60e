/* SPDX-License-Identifier: MIT */
/* Translating: greedy and beam search over batches of sentences, and over lines of text. Hypotheses don't depend on what else is in
 * the batch, on its order or its size. */
#ifndef WEFT_TRANSLATE_H
#define WEFT_TRANSLATE_H

#include <weft/seq2seq.h>

WF_BEGIN_DECLS

struct wf_translate_options {
    int64_t beam;          /* hypotheses that are followed; 1: greedy. 0: the model's */
    bool has_length_penalty;
    double length_penalty; /* score = log-probability / ((5 + length) / 6)^A (Wu et al. 2016); length counts EOS. Else the model's */
    int64_t max_tokens;    /* the most ids of a hypothesis, EOS included; 0: the model's (max_length) */
    int64_t n_best;        /* hypotheses that are returned, at most `beam`. 0: 1 */
    int64_t batch;         /* sentences decoded side by side; 0: 64. Does not change the result. */
    bool (*cancelled)(void *ctx); /* looked at after each step: true ends with WF_ERR_CANCELLED. May be NULL. */
    void *ctx;
};
struct wf_hypothesis {
    const int32_t *ids;      /* without BOS and EOS */
    int64_t length;
    double score, log_probability;
    bool finished;           /* ended by EOS, not by the limit */
};
/* Translations of `count` sentences, n_best each: hypothesis[i * n_best + k], the best first. Freed with wf_translations_free. */
struct wf_translations {
    struct wf_hypothesis *hypothesis;
    int64_t count, n_best;
    void *memory;
};
/* Sentences with their marks, end to end. Search: at each step the 2 x beam best continuations of the live hypotheses; those that end with
 * EOS are put aside, the best others live on. It stops when `beam` hypotheses have ended and the best of them beats what the best
 * live one could still reach, or at min(source length + extra_tokens, max_tokens). The tape is reset. A sentence longer than the model's max_length is
 * WF_ERR_ARGUMENT with its number. */
WF_API wf_status wf_translate_with(const wf_model *model, wf_tape *tape, const int32_t *ids, const int32_t *offsets, int64_t count,
                                   int32_t bos, int32_t eos, const struct wf_translate_options *options, struct wf_translations *out,
                                   wf_error *error) WF_CHECKED;
WF_API void wf_translations_free(struct wf_translations *translations); /* of zeros: fine */

WF_END_DECLS

#endif
