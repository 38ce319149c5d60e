/* SPDX-License-Identifier: MIT */
/* Text generation with language models. */
#ifndef WEFT_GENERATE_H
#define WEFT_GENERATE_H

#include <weft/models.h>
#include <weft/tokenizer.h>

WF_BEGIN_DECLS

/* Sampling of the next token: the logits are divided by the temperature and restricted to the k largest, then to the smallest set with
 * probability >= p (nucleus sampling, Holtzman et al. 2020). The random number depends on (seed, position) only. */
struct wf_sampler {
    double temperature; /* > 0; 0: 1 */
    int64_t top_k;      /* 0: all */
    double top_p;       /* in (0, 1]; 0: 1 */
    bool greedy;        /* the largest logit; of equal ones the smallest id */
    uint64_t seed;
};
/* Samples *id from logits [n]. order: scratch memory for n ids. WF_ERR_NUMERIC: a logit is NaN, or none is finite. */
WF_API wf_status wf_sample(const struct wf_sampler *sampler, const wf_real *logits, int64_t n, uint64_t position, int32_t *order,
                           int32_t *id, wf_error *error) WF_CHECKED;

/* Why a generation came to its end. */
enum wf_generate_end {
    WF_GENERATE_MAX_TOKENS, /* max_tokens were generated */
    WF_GENERATE_END_TOKEN,  /* the end-of-text token was sampled */
    WF_GENERATE_STOPPED     /* a callback returned false */
};
struct wf_generate_result {
    int64_t tokens; /* new ids, without the end-of-text token */
    enum wf_generate_end end;
};
struct wf_generate_options {
    struct wf_sampler sampler;
    int64_t max_tokens;
    bool no_cache; /* recomputes the whole window for every token, for tests; gives the same ids */
    /* Called with each new id; false ends the generation (not an error). May be NULL. */
    bool (*token)(void *ctx, int32_t id);
    void *ctx;
    const int32_t *end;                /* end-of-text token: when it is sampled, generation stops without returning it. NULL: none */
    struct wf_generate_result *result; /* may be NULL: set by each call that returns WF_OK */
};
/* Continues prompt[length] (at least one id) by up to max_tokens ids: *count ids in out[max_tokens], which may be NULL. When the context
 * is full, its oldest quarter is dropped and the rest recomputed, so that each token sees at least three quarters of a context. The tape
 * is reset. */
WF_API wf_status wf_generate_with(const wf_model *model, wf_tape *tape, const int32_t *prompt, int64_t length,
                                  const struct wf_generate_options *options, int32_t *out, int64_t *count, wf_error *error) WF_CHECKED;

/* The same as text: the callback `text` is called after the prompt and after each token with the next part of the text, in UTF-8 and
 * NUL-terminated; it returns false to stop. length may be 0: text that a later token may still change is held back, as in wf_decoder_push.
 * Together the parts are what wf_tokenizer_decode gives for the prompt and all new ids. Generation stops at the tokenizer's end-of-text
 * token (WF_SPECIAL_EOS), if it has one. An empty prompt is replaced by one token that is not printed: a line end, or if the tokenizer has
 * none its end-of-text token, its BOS, or id 0. options->token, ctx and end are ignored. */
WF_API wf_status wf_generate_text(const wf_model *model, const wf_tokenizer *tokenizer, wf_tape *tape, const int32_t *prompt,
                                  int64_t length, const struct wf_generate_options *options,
                                  bool (*text)(void *ctx, const char *text, int64_t length), void *ctx, wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
