/* SPDX-License-Identifier: MIT */
/* Generation and beam search. The logits are computed by a function of the program, or by a language model of Weft. */
#ifndef WEFT_SEARCH_H
#define WEFT_SEARCH_H

#include <weft/generate.h>

WF_BEGIN_DECLS

/* A model for generation and beam search, given by a function that computes the logits of the next token. For example:
 *
 *   static wf_tensor *next(void *ctx, wf_tensor *ids, struct wf_cache *cache)
 *   {
 *       wf_tensor *x = my_forward(ctx, ids, cache);                          [R,T] -> [R,T,d]
 *       if (cache)
 *           wf_cache_advance(cache, wf_dim(ids, 1));
 *       return wf_linear_forward(&my->head, wf_reshape(wf_slice(x, 1, -1, 1), wf_dim(x, 0), -1));      [R,d] -> [R,V]
 *   }
 */
struct wf_next {
    /* Computes, from R rows of T ids each, ids [R,T], the logits [R,V] of the token that follows each row, on the tape of `ids`. If `cache`
     * is not NULL, it holds the earlier ids of the R rows, `ids` are those that follow, and the function must advance the cache by T. If
     * `cache` is NULL, `ids` are whole rows. */
    wf_tensor *(*next)(void *ctx, wf_tensor *ids, struct wf_cache *cache);
    /* Makes an empty cache for `rows` rows of `capacity` ids, as wf_cache_init does. NULL: the model has no cache, and each token is
     * computed from all ids before it. Beam search requires a cache. */
    wf_status (*cache)(void *ctx, struct wf_cache *cache, int64_t rows, int64_t capacity, wf_error *error);
    void *ctx;                   /* argument of both functions */
    int64_t vocab_size;          /* V, at most 2^31 - 1 */
    int64_t context;             /* maximum number of ids in a row, at most 2^31 - 1 */
    enum wf_precision precision; /* arithmetic of the model's matrix products */
    /* As `next`, but returns the logits after each of the T ids: [R,T,V]. Only the model that a draft is checked against needs it (weft/
     * generator.h); NULL: there is none. */
    wf_tensor *(*all)(void *ctx, wf_tensor *ids, struct wf_cache *cache);
};
/* Returns a struct wf_next for a language model. The model must outlive it. If the model is of another kind, the first call of .next sets
 * an error of the tape. */
WF_API struct wf_next wf_next_of(const wf_model *model);

/* Continues a prompt as wf_generate_with does, with the logits of a struct wf_next. */
WF_API wf_status wf_generate_next(const struct wf_next *model, wf_tape *tape, const int32_t *prompt, int64_t length,
                                  const struct wf_generate_options *options, int32_t *out, int64_t *count, wf_error *error) WF_CHECKED;

struct wf_beam_options {
    int64_t beam;                 /* beam width, at most 1,024; 1 is greedy search; 0: 4 */
    int64_t n_best;               /* maximum number of hypotheses to return, at most the beam width; 0: 1 */
    int64_t max_tokens;           /* maximum length of a hypothesis, its end token included; 0: up to the end of the context */
    double length_penalty;        /* the exponent A in score = log-probability / ((5 + length) / 6)^A (Wu et al. 2016); 0: no penalty */
    const int32_t *end;           /* the end token, which ends a hypothesis; NULL: every hypothesis has max_tokens ids */
    bool (*cancelled)(void *ctx); /* called after each step; true ends the search with WF_ERR_CANCELLED. May be NULL. */
    void *ctx;                    /* argument of `cancelled` */
};
struct wf_hypothesis {
    const int32_t *ids;     /* the ids, without the prompt and the end token; those of a translation are without BOS and EOS */
    int64_t length;         /* number of ids */
    double score;           /* the log-probability divided by the length penalty */
    double log_probability; /* log-probability of the ids and, if `finished`, of the end token, given the prompt or the source */
    bool finished;          /* the hypothesis ended with the end token; false: it reached the maximum length */
};
struct wf_hypotheses {
    struct wf_hypothesis *hypothesis; /* [count]: finished hypotheses, then those that are not finished, each from best to worst */
    int64_t count;
    void *memory; /* holds the ids */
};
/* Finds the likeliest continuations of prompt[length], which has at least one id. The search is that of wf_translate_with, which describes
 * it: each step considers the 2 x beam likeliest continuations (greedy search: the likeliest one) of the active hypotheses, which are
 * those that can still grow. If the vocabulary is very small, fewer than n_best hypotheses may be found. The tape is reset. Free *out with
 * wf_hypotheses_free; after an error it is empty. */
WF_API wf_status wf_beam_search_with(const struct wf_next *model, wf_tape *tape, const int32_t *prompt, int64_t length,
                                     const struct wf_beam_options *options, struct wf_hypotheses *out, wf_error *error) WF_CHECKED;
#ifndef __cplusplus
#define wf_beam_search(model, tape, prompt, length, out, error, ...)                                                                       \
    wf_beam_search_with(model, tape, prompt, length, &(struct wf_beam_options){__VA_ARGS__}, out, error)
#endif
/* Frees the hypotheses; a zeroed struct is allowed. */
WF_API void wf_hypotheses_free(struct wf_hypotheses *hypotheses);

WF_END_DECLS

#endif
