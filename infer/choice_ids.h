/* SPDX-License-Identifier: MIT */
/* Multiple-choice questions as ids. */
#ifndef INFER_CHOICE_IDS_H
#define INFER_CHOICE_IDS_H

#include <weft/choices.h>

/* The ids of a question: those of the context, ids.id[at .. at+count-1], which all choices share. */
struct asked {
    int64_t at, count;
    int64_t first;   /* index of the question's first choice among all choices */
    int64_t choices; /* number of its choices */
    int64_t longest; /* number of ids of the longest choice */
};
struct choice_ids {
    struct wf_tokens ids;
    struct asked *asked;  /* [questions] */
    int64_t *at, *length; /* [choices]: the ids of each choice, after the context */
    int64_t choices;      /* number of all choices */
};
/* Encodes the questions for a model with this context. The options are checked already. Free *out with choice_ids_free, also after an
 * error. */
wf_status choice_ids_make(struct choice_ids *out, const wf_tokenizer *tokenizer, const struct wf_question *questions, int64_t count,
                          int64_t context, const struct wf_choice_options *options, wf_error *error);
void choice_ids_free(struct choice_ids *c);

#endif
