/* SPDX-License-Identifier: MIT */
/* A text of `weft generate`: what is known of it when it is done, and how it is printed. */
#ifndef WEFT_CLI_ANSWER_H
#define WEFT_CLI_ANSWER_H

#include <weft/generator.h>
#include <weft/strings.h>

struct answer {
    const wf_tokenizer *tokenizer;
    struct wf_string prompt; /* the prompt's text */
    struct wf_tokens ids;    /* the prompt's ids */
    struct wf_string text;   /* prompt and continuation, as the model writes them */
    struct wf_string scores; /* JSON of the tokens' log-probabilities */
    int64_t tops;            /* for each token so many of the likeliest ones are listed; -1: the tokens are not listed */
    double log_probability;  /* of all tokens that were chosen */
    int64_t line;            /* number of the prompt's line, from 1; 0: there is one prompt */
    uint64_t seed;
    struct wf_generate_result result;
    bool stream;      /* the text is printed as it comes, and not kept */
    bool answer_only; /* the text is without the prompt */
    bool muted;       /* what comes is not kept and not printed */
    bool done;
};

/* Callbacks of a generator, with a struct answer as ctx. */
bool answer_text(void *answer, const char *text, int64_t length);
void answer_score(void *answer, const struct wf_token_score *score);
void answer_done(void *answer, const struct wf_generate_result *result);

/* Prints the answer as a JSON object in one line. */
wf_status answer_print_json(const struct answer *answer, wf_error *error) WF_CHECKED;
void answer_free(struct answer *answer);

#endif
