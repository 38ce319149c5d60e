/* SPDX-License-Identifier: MIT */
/* Sentence vectors: one for each line of text, from an encoder's vectors of its tokens (Reimers and Gurevych 2019). */
#ifndef WEFT_EMBED_H
#define WEFT_EMBED_H

#include <weft/encoder.h>
#include <weft/tokenizer.h>

WF_BEGIN_DECLS

enum wf_pooling {
    WF_POOL_MEAN, /* mean of all tokens, special tokens included */
    WF_POOL_CLS   /* vector of the first token */
};
struct wf_embedder_options {
    enum wf_pooling pooling;
    bool normalize;     /* to Euclidean norm 1; a zero vector stays zero */
    int64_t max_length; /* maximum number of ids, special tokens included; 0: the model's context. A larger value is WF_ERR_FORMAT */
    bool truncate;      /* a longer sentence is truncated (its special tokens stay); else it is an error */
    const char *name;   /* name of the input in messages; NULL: "input" */
    int64_t *unknown;   /* if not NULL: the number of unknown tokens of the embedded lines is added to it */
    int64_t *tokens;    /* if not NULL: the number of all their tokens is added to it */
};
typedef struct wf_embedder wf_embedder;

/* The model and the tokenizer must outlive it. Sentences get the special tokens of the tokenizer's template ([CLS] ... [SEP]);
 * its settings of truncation and padding are ignored in favour of `max_length` and `truncate`. A model that is not an encoder is
 * WF_ERR_ARGUMENT. Use it from one thread at a time. NULL with *error. */
WF_API wf_embedder *wf_embedder_new(const wf_model *model, const wf_tokenizer *tokenizer, const struct wf_embedder_options *options,
                                    wf_error *error) WF_CHECKED;
WF_API void wf_embedder_free(wf_embedder *embedder);
WF_API int64_t wf_embedder_width(const wf_embedder *embedder); /* d, the width of a vector */
/* lines [count], of lengths[count] bytes, UTF-8 -> out [count,d]. The bits of a vector do not depend on the other lines. An
 * empty line has the vector of its special tokens, or zeros without any. Errors name the line, counted from `first_line`. *truncated
 * (may be NULL) counts truncated lines. */
WF_API wf_status wf_embed(wf_embedder *embedder, const char *const *lines, const int64_t *lengths, int64_t count, int64_t first_line,
                          wf_real *out, int64_t *truncated, wf_error *error) WF_CHECKED;

/* Cosines between vectors: x [n,d] with rows of norm 1 (.normalize) or 0 -> out [count,n], rows `from` .. from+count-1 against all rows.
 * They lie in -1 .. 1, exactly 1 for a vector with itself; a zero row has cosine 0 with every row. Fails with
 * WF_ERR_MEMORY alone; out then holds anything. */
WF_API wf_status wf_cosines(const wf_real *x, int64_t n, int64_t d, int64_t from, int64_t count, wf_real *out, wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
