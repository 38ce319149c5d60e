/* SPDX-License-Identifier: MIT */
/* Generates text with a language model. */
#ifndef WEFT_GENERATE_H
#define WEFT_GENERATE_H

#include <weft/models.h>
#include <weft/tokenizer.h>

WF_BEGIN_DECLS

/* How the next token is chosen from the logits. First the penalties change the logits (wf_penalize). The logits are then divided by the
 * temperature, and the candidates are restricted to the tokens with the top_k largest logits. Of these only the likeliest are kept: the
 * smallest set that has at least the share top_p of the probability of all top_k candidates (nucleus sampling, Holtzman et al. 2020), and
 * of this set the tokens that are at least min_p times as likely as the likeliest (Nguyen et al. 2024). One of the remaining candidates is
 * drawn at random, in proportion to its probability. The random number depends only on the seed and the position. */
struct wf_sampler {
    double temperature; /* divisor of the logits, above 0; 0: the default 1 */
    int64_t top_k;      /* number of candidates; 0: all tokens */
    double top_p;       /* above 0, at most 1; 0: the default 1 */
    bool greedy;        /* always takes the largest logit; among equal logits the smallest id */
    uint64_t seed;
    double min_p;              /* at most 1; 0: no limit */
    double repetition_penalty; /* of tokens that the prompt or the text has; above 0; 0: the default 1, which changes nothing */
    double presence_penalty;   /* of tokens that the text has; 0: none */
    double frequency_penalty;  /* of tokens that the text has, for each time; 0: none */
};
/* Chooses *id from logits [n] for the token at `position`. The function uses order [n] as scratch memory. WF_ERR_NUMERIC: a logit is NaN,
 * or no logit is finite. WF_ERR_ARGUMENT: n is 0, or a setting of the sampler is out of its range. */
WF_API wf_status wf_sample(const struct wf_sampler *sampler, const wf_real *logits, int64_t n, uint64_t position, int32_t *order,
                           int32_t *id, wf_error *error) WF_CHECKED;
/* Applies the sampler's penalties to logits [n], in place. `ids` are the ids before the token that is chosen: the prompt, and from `prompt`
 * on the new ids. The logit x of each token among all ids becomes x / repetition_penalty if x > 0, else x * repetition_penalty (Keskar et
 * al. 2019, as in transformers); the logit of a token that occurs k > 0 times among the new ids is then reduced by presence_penalty
 * + k * frequency_penalty (as in OpenAI's interface). Ids at or above n are ignored. times [n] is scratch memory. WF_ERR_ARGUMENT: a
 * penalty is not finite, or repetition_penalty is negative. */
WF_API wf_status wf_penalize(const struct wf_sampler *sampler, wf_real *logits, int64_t n, const int32_t *ids, int64_t count,
                             int64_t prompt, int32_t *times, wf_error *error) WF_CHECKED;

/* Why a generation ended. */
enum wf_generate_end {
    WF_GENERATE_MAX_TOKENS, /* max_tokens ids were generated */
    WF_GENERATE_END_TOKEN,  /* the end-of-text token was chosen */
    WF_GENERATE_STOPPED,    /* a callback returned false */
    WF_GENERATE_STOP_TEXT   /* the text reached one of the stop texts */
};
struct wf_generate_result {
    int64_t tokens; /* number of new ids, without the end-of-text token */
    enum wf_generate_end end;
};
/* A token that was chosen. Probabilities are those of the model: without penalties, temperature, or a restriction of the candidates. */
struct wf_token_score {
    int32_t id;
    double log_probability;
    const int32_t *top;                /* [tops]: the likeliest ids, from the likeliest on; equal ones in ascending order */
    const double *top_log_probability; /* [tops] */
    int64_t tops;
};
typedef struct wf_generator wf_generator; /* weft/generator.h */
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
    /* Called with each token that is chosen, the end-of-text token too, before `token`, with the argument `scored_ctx`. May be NULL. */
    void (*scored)(void *ctx, const struct wf_token_score *score);
    void *scored_ctx;
    int64_t tops;            /* how many of the likeliest tokens `scored` gets; at most 100 */
    const char *const *stop; /* [stops]: texts that end the generation, for wf_generate_text */
    int stops;
    /* Called when a text that was given to wf_generator_add is done, with `ctx`. The other functions do not call it. May be NULL. */
    void (*done)(void *ctx, const struct wf_generate_result *result);
    /* The generator to use, with one row, of the same model. It keeps the cache: if the next prompt begins with ids that the last text had,
     * they are not computed again. NULL: one for this call. */
    wf_generator *generator;
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
 * and `types` of the options are ignored.
 *
 * Generation ends before the first place where the new text has one of the stop texts. A stop text is not returned, and text that may be
 * the beginning of one is held back until that is decided. Stop texts are not searched in the prompt. */
WF_API wf_status wf_generate_text(const wf_model *model, const wf_tokenizer *tokenizer, wf_tape *tape, const int32_t *prompt,
                                  int64_t length, const struct wf_generate_options *options,
                                  bool (*text)(void *ctx, const char *text, int64_t length), void *ctx, wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
