/* SPDX-License-Identifier: MIT */
/* Sentence vectors: one for each line of text, from an encoder's vectors of its tokens (Reimers and Gurevych 2019). */
#ifndef WEFT_EMBED_H
#define WEFT_EMBED_H

#include <weft/encoder.h>
#include <weft/tokenizer.h>

WF_BEGIN_DECLS

enum wf_pooling {
    WF_POOL_MEAN, /* of all tokens, marks included */
    WF_POOL_CLS   /* the first token's */
};
struct wf_embedder_options {
    enum wf_pooling pooling;
    bool normalize;     /* to a length of 1; a vector of zeros stays zero */
    int64_t max_length; /* most ids of a sentence, marks included; 0: the model's context. More than that is WF_ERR_FORMAT */
    bool truncate;      /* a longer sentence is truncated (its special tokens stay); else it is an error */
    const char *name;   /* stands for the file in messages; NULL: "input" */
};
typedef struct wf_embedder wf_embedder;

/* The model and the tokenizer must outlive it. Sentences get the marks of the tokenizer's template ([CLS] ... [SEP]) where it has one;
 * its truncation and padding don't count: `max_length` and `truncate` do. A model that is no encoder is WF_ERR_ARGUMENT. One thread at
 * a time. NULL with *error. */
WF_API wf_embedder *wf_embedder_new(const wf_model *model, const wf_tokenizer *tokenizer, const struct wf_embedder_options *options,
                                    wf_error *error) WF_CHECKED;
WF_API void wf_embedder_free(wf_embedder *embedder);
WF_API int64_t wf_embedder_width(const wf_embedder *embedder); /* d */
/* lines [count], of lengths[count] bytes, UTF-8 -> out [count,d]. A sentence's vector has the same bits whatever stands beside it. An
 * empty line has the vector of its marks alone, or zeros where there are none. Errors name the line, from `first_line`. *truncated (may
 * be NULL) counts those that were cut. */
WF_API wf_status wf_embed(wf_embedder *embedder, const char *const *lines, const int64_t *lengths, int64_t count, int64_t first_line,
                          wf_real *out, int64_t *truncated, wf_error *error) WF_CHECKED;

/* Cosines between vectors: x [n,d], whose rows have length 1 (.normalize) or 0 -> out [count,n], of its rows `from` .. from+count-1 with
 * all. They lie in -1 .. 1, and that of a vector with itself is 1; a row of zeros has a cosine of 0 with every row. */
WF_API void wf_cosines(const wf_real *x, int64_t n, int64_t d, int64_t from, int64_t count, wf_real *out);

WF_END_DECLS

#endif
