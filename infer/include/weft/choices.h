/* SPDX-License-Identifier: MIT */
/* Multiple-choice questions for language models: each choice is scored by its log-likelihood after the question's context, by the rules of
 * EleutherAI's lm-evaluation-harness for tasks of the type multiple_choice, so that the accuracies are comparable. */
#ifndef WEFT_CHOICES_H
#define WEFT_CHOICES_H

#include <weft/models.h>
#include <weft/tokenizer.h>

WF_BEGIN_DECLS

struct wf_question {
    const char *context;       /* UTF-8, NUL-terminated; may be empty */
    const char *const *choice; /* [choices]: UTF-8, none empty */
    int64_t choices;           /* at least 1 */
    int64_t answer;            /* index of the right choice */
    int64_t line;              /* line of the question in the file, for messages; 0: it is from no file */
};
struct wf_questions {
    struct wf_question *question; /* [count] */
    int64_t count;
    char *name;   /* the path of the file */
    void *memory; /* of all texts */
};
/* Reads a file of JSON lines: {"context": "...", "choices": ["...", ...], "answer": 0}, one question a line. Other keys are ignored, and so
 * are empty lines. Free *out with wf_questions_free, also after an error. WF_ERR_FORMAT, with file and line: a line is not such an object,
 * a key is missing, there are no choices or an empty one, the answer is no index of a choice. WF_ERR_IO, WF_ERR_MEMORY. */
WF_API wf_status wf_questions_load(const char *path, struct wf_questions *out, wf_error *error) WF_CHECKED;
WF_API void wf_questions_free(struct wf_questions *questions); /* a zeroed struct is allowed */

struct wf_choice_options {
    const char *name;       /* the file of the questions, for messages; NULL: none */
    double *log_likelihood; /* if not NULL, receives the log-likelihood in nats of every choice of every question, in their order */
    /* Ids before each context, such as `begin` of a struct wf_run: a model that was trained with a BOS token before each text predicts
     * badly without it. NULL: none, as lm-evaluation-harness has it for most models. */
    const int32_t *begin;
    int64_t begins;
    int64_t tokens; /* about how many tokens are computed at once; 0: 4096. Changes no bit of the results */
};
/* The accuracy over all questions. */
struct wf_choice_scores {
    int64_t questions;
    double acc;             /* share of the questions whose right choice has the largest log-likelihood (of equal ones the first) */
    double acc_stderr;      /* its standard error: sample deviation / sqrt(questions); NaN for one question */
    double acc_norm;        /* the same with log-likelihoods divided by the number of characters of the choice */
    double acc_norm_stderr; /* its standard error */
};
/* Scores `count` questions. The text of a choice is a space and the choice, or the choice alone if it begins with white space. White space
 * at the end of the context becomes part of the choice's text. Context and text are encoded together, without the template's special
 * tokens, and the ids after those of the context alone are scored: the sum of their log-probabilities is the log-likelihood. An empty
 * context is .begin, or if that is NULL the tokenizer's BOS token, or if it has none its end-of-text token. If context and choice are
 * longer than the model's context, ids are dropped at the beginning, .begin first, as lm-evaluation-harness does. `options` may be NULL.
 * The tape is reset.
 *
 * WF_ERR_FORMAT, with the question in the message: a text cannot be encoded, or a choice has no ids, or more than the model's context.
 * WF_ERR_ARGUMENT: the answer is no index of a choice, a choice is empty, or the tokenizer does not fit the model. WF_ERR_STATE: the model
 * is not a language model. */
WF_API wf_status wf_evaluate_choices(const wf_model *model, const wf_tokenizer *tokenizer, wf_tape *tape,
                                     const struct wf_question *questions, int64_t count, const struct wf_choice_options *options,
                                     struct wf_choice_scores *out, wf_error *error) WF_CHECKED;
/* The index of the choice with the largest of log_likelihood [choices]; if `normalized`, each is divided by the number of characters of the
 * choice first. Of equal ones the first. */
WF_API int64_t wf_choice_best(const struct wf_question *question, const double *log_likelihood, bool normalized);

WF_END_DECLS

#endif
