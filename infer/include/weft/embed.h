/* SPDX-License-Identifier: MIT */
/* Sentence vectors: one vector for each line of text, computed from the vectors that an encoder gives for the line's tokens (Reimers and
 * Gurevych 2019). */
#ifndef WEFT_EMBED_H
#define WEFT_EMBED_H

#include <weft/encoder.h>
#include <weft/tokenizer.h>

WF_BEGIN_DECLS

enum wf_pooling {
    WF_POOL_MEAN, /* the mean of all token vectors, special tokens included */
    WF_POOL_CLS   /* the vector of the first token */
};
struct wf_embedder_options {
    enum wf_pooling pooling;
    bool normalize;     /* scales each vector to Euclidean norm 1; a zero vector stays zero */
    int64_t max_length; /* maximum number of ids in a sentence, special tokens included, up to the model's context; 0: the context */
    bool truncate;      /* truncates longer sentences but keeps their special tokens; false: a longer sentence is WF_ERR_FORMAT */
    const char *name;   /* name of the input in messages; NULL: "input" */
    int64_t *unknown;   /* if not NULL: each call of wf_embed adds the number of unknown tokens to *unknown */
    int64_t *tokens;    /* if not NULL: each call of wf_embed adds the number of all tokens to *tokens */
};
typedef struct wf_embedder wf_embedder;

/* Makes an embedder, which computes sentence vectors; `options` may be NULL. The model and the tokenizer must outlive the embedder. Each
 * sentence gets the special tokens of the tokenizer's template ([CLS] ... [SEP]). The tokenizer's own settings of truncation and padding
 * are ignored; `max_length` and `truncate` replace them. Use an embedder from one thread at a time. Returns NULL with *error set;
 * WF_ERR_ARGUMENT: the model is not an encoder, its vocabulary is smaller than the tokenizer's, or `max_length` is out of range. */
WF_API wf_embedder *wf_embedder_new(const wf_model *model, const wf_tokenizer *tokenizer, const struct wf_embedder_options *options,
                                    wf_error *error) WF_CHECKED;
WF_API void wf_embedder_free(wf_embedder *embedder);
/* The width d of a vector. */
WF_API int64_t wf_embedder_width(const wf_embedder *embedder);
/* Computes the vectors of `count` lines -> out [count,d]. Line i has lengths[i] bytes of UTF-8. The bits of a vector do not depend on the
 * other lines. The vector of an empty line is that of its special tokens, or zero if the tokenizer adds no special tokens. Error messages
 * give the number of the line; the first of the `count` lines has the number `first_line`. *truncated (may be NULL) is set to the number of
 * truncated lines. */
WF_API wf_status wf_embed(wf_embedder *embedder, const char *const *lines, const int64_t *lengths, int64_t count, int64_t first_line,
                          wf_real *out, int64_t *truncated, wf_error *error) WF_CHECKED;

/* Computes cosines between rows of x [n,d] -> out [count,n]. Row i of out has the cosines of row `from` + i of x with all rows of x. Each
 * row of x must have norm 1 (see .normalize) or be zero. The cosines lie in -1 .. 1. A zero row has cosine 0 with every row, and the
 * cosine of any other row with itself is exactly 1. WF_ERR_MEMORY: no memory for the product; the contents of `out` are then undefined. */
WF_API wf_status wf_cosines(const wf_real *x, int64_t n, int64_t d, int64_t from, int64_t count, wf_real *out, wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
