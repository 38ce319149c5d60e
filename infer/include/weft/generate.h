/* SPDX-License-Identifier: MIT */
/* Sampling from language models. */
#ifndef WEFT_GENERATE_H
#define WEFT_GENERATE_H

#include <weft/models.h>
#include <weft/tokenizer.h>

WF_BEGIN_DECLS

/* How the next token is drawn from logits: divided by the temperature, cut to the k largest, then to the smallest set of
 * probability >= p (Holtzman et al. 2020), then drawn. The draw is a function of (seed, position) alone. */
struct wf_sampler {
    double temperature; /* > 0; 0: 1 */
    int64_t top_k;      /* 0: all */
    double top_p;       /* in (0, 1]; 0: 1 */
    bool greedy;        /* the largest logit; of equal ones the smallest id */
    uint64_t seed;
};
/* The id drawn from logits [n] for place `position`. order is scratch for n ids. WF_ERR_NUMERIC: a NaN among the logits,
 * or none that is finite. */
WF_API wf_status wf_sample(const struct wf_sampler *sampler, const wf_real *logits, int64_t n, uint64_t position, int32_t *order,
                           int32_t *id, wf_error *error) WF_CHECKED;

struct wf_generate_options {
    struct wf_sampler sampler;
    int64_t max_tokens;
    bool no_cache; /* computes the whole window again for every token: for tests; the same ids, bit for bit */
    /* Called with each new id; false ends the generation (not an error). May be NULL. */
    bool (*token)(void *ctx, int32_t id);
    void *ctx;
    const int32_t *end; /* the token that ends a text: drawn, it ends the generation and is not part of it. NULL: none does */
};
/* Continues prompt[length] (at least one id) by up to max_tokens ids, written to out (room for max_tokens; may be NULL), *count
 * of them. When the context is full the window slides: the oldest quarter is dropped and the rest computed anew, so each
 * token sees between three quarters of a context and a whole one. The tape is reset. */
WF_API wf_status wf_generate_with(const wf_model *model, wf_tape *tape, const int32_t *prompt, int64_t length,
                                  const struct wf_generate_options *options, int32_t *out, int64_t *count, wf_error *error) WF_CHECKED;

/* The same as text: `text` gets it in parts, in UTF-8 and NUL-terminated, after the prompt and after each token (length may be 0: a part
 * that a later token may still change waits for it, as in wf_decoder_push); false ends the generation. The parts are what
 * wf_tokenizer_decode gives for prompt and new ids at once. The generation ends at the tokenizer's end-of-text token
 * (WF_SPECIAL_EOS), where it has one. An empty prompt starts a text: after a line end, or where the tokenizer has none after the token for
 * the end or the beginning of a text, or id 0; it is not part of the text. options->token, ctx and end are not used. */
WF_API wf_status wf_generate_text(const wf_model *model, const wf_tokenizer *tokenizer, wf_tape *tape, const int32_t *prompt,
                                  int64_t length, const struct wf_generate_options *options,
                                  bool (*text)(void *ctx, const char *text, int64_t length), void *ctx, wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
