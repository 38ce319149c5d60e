/* SPDX-License-Identifier: MIT */
/* The state of `weft generate`, which its files share: generate.c (options, models, memory) and generate_texts.c (prompts in, texts out).
 */
#ifndef WEFT_CLI_GENERATION_H
#define WEFT_CLI_GENERATION_H

#include <weft/generator.h>

#include <weft/chat.h>

#include "answer.h"
#include "cli.h"
#include "display.h"
#include "prompt.h"
#include "sampling.h"

struct generate_arguments {
    struct run_options on;
    const char *prompt, *prompt_file, *input, *draft;
    const char *system, *template; /* with --chat */
    const char *stop[17];
    int stops;
    int64_t max_tokens; /* -1: the run's setting */
    int64_t seed;
    int64_t samples;
    int64_t batch;    /* 0: the default */
    int64_t logprobs; /* -1: not given */
    int64_t guesses;
    struct sampling_options sampling;
    bool no_cache, json, chat;
};

struct generation {
    const struct generate_arguments *a;
    struct wf_run run, draft;
    struct prompt prompt;
    struct wf_generate_options options; /* of all texts; the seed differs */
    wf_chat_template *form;             /* of --chat */
    int32_t end[WF_CHAT_ENDS];          /* tokens that end an answer */
    wf_tape *tape;
    wf_generator *generator;
    struct display display;
};

/* The number of texts that are computed at once. */
int64_t generation_rows(const struct generate_arguments *a);
/* Generates and prints all texts. */
wf_status generate_texts(struct generation *g, wf_error *error) WF_CHECKED;

#endif
