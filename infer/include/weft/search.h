/* SPDX-License-Identifier: MIT */
/* Generation and beam search with any forward: a function of the program, or a language model's. */
#ifndef WEFT_SEARCH_H
#define WEFT_SEARCH_H

#include <weft/generate.h>

WF_BEGIN_DECLS

/* A function that computes the logits of the next token.
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
    /* ids [R,T] -> logits of the last id of each row [R,V], on the tape of the ids. With a cache of R rows the ids follow those that it
     * holds, and the function advances it by T; without one (NULL) they are whole rows. */
    wf_tensor *(*next)(void *ctx, wf_tensor *ids, struct wf_cache *cache);
    /* Makes an empty cache, as wf_cache_init does. NULL: none, each token is computed from all ids before it. Beam search needs one. */
    wf_status (*cache)(void *ctx, struct wf_cache *cache, int64_t rows, int64_t capacity, wf_error *error);
    void *ctx;
    int64_t vocab_size, context; /* V, and the most ids of a row, at most 2^31 - 1 each */
};
/* The struct for a language model, which must outlive it. With another kind of model the first call is an error of the tape. */
WF_API struct wf_next wf_next_of(const wf_model *model);

/* As wf_generate_with. */
WF_API wf_status wf_generate_next(const struct wf_next *model, wf_tape *tape, const int32_t *prompt, int64_t length,
                                  const struct wf_generate_options *options, int32_t *out, int64_t *count, wf_error *error) WF_CHECKED;

struct wf_beam_options {
    int64_t beam;                 /* beam width, up to 1,024; 1: greedy; 0: 4 */
    int64_t n_best;               /* number of hypotheses returned, at most `beam`; 0: 1 */
    int64_t max_tokens;           /* of a hypothesis, with its end; 0: up to the end of the context */
    double length_penalty;        /* A: score = log-probability / ((5 + length) / 6)^A (Wu et al. 2016); 0: none */
    const int32_t *end;           /* the id that ends a hypothesis; NULL: all run to max_tokens */
    bool (*cancelled)(void *ctx); /* called after each step: true ends with WF_ERR_CANCELLED. May be NULL. */
    void *ctx;
};
struct wf_hypothesis {
    const int32_t *ids; /* without the prompt and the end, of translations without BOS and EOS */
    int64_t length;
    double score, log_probability; /* of what follows the prompt */
    bool finished;                 /* reached its end, not the maximum length */
};
struct wf_hypotheses {
    struct wf_hypothesis *hypothesis; /* [count], best first, finished ones before the others */
    int64_t count;
    void *memory;
};
/* The likeliest continuations of prompt[length], at least one id. Search as in wf_translate_with: each step considers the 2 x beam best
 * continuations of the active hypotheses (greedy: the best one), ties by the earlier hypothesis, then the smaller id. Fewer than n_best
 * are found where the vocabulary is too small for more. The tape is reset. Free *out with wf_hypotheses_free; on an error it is empty. */
WF_API wf_status wf_beam_search_with(const struct wf_next *model, wf_tape *tape, const int32_t *prompt, int64_t length,
                                     const struct wf_beam_options *options, struct wf_hypotheses *out, wf_error *error) WF_CHECKED;
#ifndef __cplusplus
#define wf_beam_search(model, tape, prompt, length, out, error, ...)                                                                       \
    wf_beam_search_with(model, tape, prompt, length, &(struct wf_beam_options){__VA_ARGS__}, out, error)
#endif
WF_API void wf_hypotheses_free(struct wf_hypotheses *hypotheses); /* a zeroed struct is allowed */

WF_END_DECLS

#endif
