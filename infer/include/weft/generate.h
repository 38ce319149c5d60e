/* SPDX-License-Identifier: MIT */
/* Generates text with a language model. */
#ifndef WEFT_GENERATE_H
#define WEFT_GENERATE_H

#include <weft/models.h>
#include <weft/tokenizer.h>

WF_BEGIN_DECLS

/* How the next token is chosen from the logits. The logits are divided by the temperature. Then the candidates are restricted to the tokens
 * with the top_k largest logits. Of these only the likeliest are kept: the smallest set that has at least the share top_p of the
 * probability of all top_k candidates (nucleus sampling, Holtzman et al. 2020). One of the remaining candidates is drawn at random, in
 * proportion to its probability. The random number depends only on the seed and the position. */
struct wf_sampler {
    double temperature; /* divisor of the logits, above 0; 0: the default 1 */
    int64_t top_k;      /* number of candidates; 0: all tokens */
    double top_p;       /* above 0, at most 1; 0: the default 1 */
    bool greedy;        /* always takes the largest logit; among equal logits the smallest id */
    uint64_t seed;
};
/* Chooses *id from logits [n] for the token at `position`. The function uses order [n] as scratch memory. WF_ERR_NUMERIC: a logit is NaN,
 * or no logit is finite. WF_ERR_ARGUMENT: n is 0, or a setting of the sampler is out of its range. */
WF_API wf_status wf_sample(const struct wf_sampler *sampler, const wf_real *logits, int64_t n, uint64_t position, int32_t *order,
                           int32_t *id, wf_error *error) WF_CHECKED;

/* Why a generation ended. */
enum wf_generate_end {
    WF_GENERATE_MAX_TOKENS, /* max_tokens ids were generated */
    WF_GENERATE_END_TOKEN,  /* the end-of-text token was chosen */
    WF_GENERATE_STOPPED     /* a callback returned false */
};
struct wf_generate_result {
    int64_t tokens; /* number of new ids, without the end-of-text token */
    enum wf_generate_end end;
};
struct wf_generate_options {
    struct wf_sampler sampler;
    int64_t max_tokens; /* maximum number of new ids */
    bool no_cache;      /* computes all ids of the context again for each token, which gives the same new ids; for tests */
    /* Called with each new id. If it returns false, generation ends without an error. May be NULL. */
    bool (*token)(void *ctx, int32_t id);
    void *ctx;          /* argument of `token` */
    const int32_t *end; /* the end-of-text token: when it is chosen, generation ends without returning it. NULL: there is none */
    struct wf_generate_result *result; /* set by each call that returns WF_OK; may be NULL */
    int ends;                          /* `end` is a list of this many tokens, each of which ends the text; 0 stands for 1 */
    int64_t types;                     /* only ids below this number are chosen; 0: all ids of the vocabulary */
};
/* Continues prompt[length], which has at least one id, by up to max_tokens ids. These ids are written to out[max_tokens], which may be
 * NULL, and *count is set to their number. When the context is full, its oldest quarter is dropped and the remaining ids are computed
 * again. So each token is computed from at least three quarters of a context (or from the whole text before it, if that is shorter). The
 * tape is reset. */
WF_API wf_status wf_generate_with(const wf_model *model, wf_tape *tape, const int32_t *prompt, int64_t length,
                                  const struct wf_generate_options *options, int32_t *out, int64_t *count, wf_error *error) WF_CHECKED;

/* Continues a prompt as wf_generate_with does, and returns text. The callback `text` is called after each id of the prompt and after each
 * new id with the next piece of the text: UTF-8, NUL-terminated, `length` bytes. A piece may be empty, because text that a later token may
 * still change is held back, as in wf_decoder_push. If the callback returns false, generation ends. All pieces together are the text that
 * wf_tokenizer_decode gives for the prompt and all new ids.
 *
 * If `end` is NULL, generation also ends at the tokenizer's end-of-text token (WF_SPECIAL_EOS), if the tokenizer has one. A model may have
 * more rows than the tokenizer has tokens: these ids are never chosen. An empty prompt (length 0) is replaced by one token that is not
 * printed: a line end, or if the tokenizer cannot encode that, its end-of-text token, its BOS token, or id 0. The members `token`, `ctx`
 * and `types` of the options are ignored. */
WF_API wf_status wf_generate_text(const wf_model *model, const wf_tokenizer *tokenizer, wf_tape *tape, const int32_t *prompt,
                                  int64_t length, const struct wf_generate_options *options,
                                  bool (*text)(void *ctx, const char *text, int64_t length), void *ctx, wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
