/* SPDX-License-Identifier: MIT */
/* weft evaluate FOLDER --choices FILE: the accuracy of a language model on multiple-choice questions. */
#include "evaluate_choices.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weft/internal/files.h>
#include <weft/internal/hash.h>
#include <weft/internal/string.h>

#include "cli.h"

/* Refuses to write the details over the questions. */
static wf_status check_details(const struct choices *c, wf_error *error)
{
    if (wf_path_same(c->details, c->file))
        return wf_error_set(error, WF_ERR_ARGUMENT, "--details %s would replace the questions: choose another file", c->details);
    return WF_OK;
}

wf_status choices_open(struct choices *c, wf_error *error)
{
    int64_t all = 0;
    wf_status status = check_details(c, error);
    if (status == WF_OK)
        status = wf_questions_load(c->file, &c->questions, error);
    for (int64_t i = 0; status == WF_OK && i < c->questions.count; i++)
        all += c->questions.question[i].choices;
    if (status == WF_OK && !(c->log_likelihood = wf_alloc((size_t)all * sizeof *c->log_likelihood)))
        status = wf_error_set(error, WF_ERR_MEMORY, "no memory for %lld choices", (long long)all);
    return status;
}

uint64_t choices_hash(const struct choices *c)
{
    uint64_t hash = 0;
    for (int64_t i = 0; i < c->questions.count; i++) {
        const struct wf_question *q = &c->questions.question[i];
        hash = wf_hash(q->context, (int64_t)strlen(q->context) + 1, hash);
        hash = wf_hash(&q->answer, sizeof q->answer, hash);
        for (int64_t k = 0; k < q->choices; k++)
            hash = wf_hash(q->choice[k], (int64_t)strlen(q->choice[k]) + 1, hash);
    }
    return hash;
}

/* Writes a line for each question: {"line": 1, "answer": 0, "best": 0, "best_norm": 1, "log_likelihood": [-1.5, -2.25]}. */
static wf_status write_details(const struct choices *c, wf_error *error)
{
    struct wf_string text = {0};
    const double *score = c->log_likelihood;
    for (int64_t i = 0; i < c->questions.count; i++) {
        const struct wf_question *q = &c->questions.question[i];
        wf_string_format(&text, "{\"line\": %lld, \"answer\": %lld, \"best\": %lld, \"best_norm\": %lld, \"log_likelihood\": [",
                         (long long)q->line, (long long)q->answer, (long long)wf_choice_best(q, score, false),
                         (long long)wf_choice_best(q, score, true));
        for (int64_t k = 0; k < q->choices; k++) {
            wf_string_text(&text, k > 0 ? ", " : "");
            wf_string_double(&text, *score++);
        }
        wf_string_text(&text, "]}\n");
    }
    wf_status status = text.failed ? wf_error_set(error, WF_ERR_MEMORY, "no memory for %s", c->details)
                                   : wf_file_save(c->details, text.data, text.length, error);
    wf_string_free(&text);
    return status;
}

wf_status choices_evaluate(struct choices *c, wf_dist *dist, const struct wf_run *run, wf_tape *tape, const struct wf_progress *progress,
                           wf_error *error)
{
    const struct wf_choice_options o = {
        .name = c->file, .log_likelihood = c->log_likelihood, .begin = run->begin, .begins = c->begins ? run->begins : 0};
    const struct wf_questions *q = &c->questions;
    wf_status status =
        wf_evaluate_choices_on(dist, run->model, run->tokenizer, tape, q->question, q->count, &o, progress, &c->scores, error);
    for (int64_t i = 0, k = 0; status == WF_OK && i < q->count; k += q->question[i++].choices)
        for (int64_t n = 0; n < q->question[i].choices; n++)
            if (status == WF_OK && !isfinite(c->log_likelihood[k + n]))
                status = wf_error_set(error, WF_ERR_NUMERIC, "%s:%lld: a log-likelihood is %g: the weights are damaged", c->file,
                                      (long long)q->question[i].line, c->log_likelihood[k + n]);
    return status == WF_OK && c->details && wf_dist_rank(dist) == 0 ? write_details(c, error) : status;
}

/* Prints a number, or null for NaN. */
static void print_number(const char *name, double value)
{
    if (isnan(value))
        printf("\"%s\": null", name);
    else
        printf("\"%s\": %.17g", name, value);
}

void choices_print(const struct choices *c, bool json)
{
    const struct wf_choice_scores *s = &c->scores;
    const struct {
        const char *name;
        double value, deviation;
    } rows[] = {{"acc", s->acc, s->acc_stderr}, {"acc_norm", s->acc_norm, s->acc_norm_stderr}};
    for (int i = 0; i < 2; i++) {
        char deviation[32];
        snprintf(deviation, sizeof deviation, "%s_stderr", rows[i].name);
        if (!json) {
            printf("%s %.4f", rows[i].name, rows[i].value);
            printf(isnan(rows[i].deviation) ? "\n" : " +- %.4f\n", rows[i].deviation);
            continue;
        }
        printf("%s", i == 0 ? "{" : ", ");
        print_number(rows[i].name, rows[i].value);
        printf(", ");
        print_number(deviation, rows[i].deviation);
    }
    printf(json ? ", \"questions\": %lld}\n" : "questions %lld\n", (long long)s->questions);
}

void choices_close(struct choices *c)
{
    wf_free(c->log_likelihood);
    wf_questions_free(&c->questions);
}
