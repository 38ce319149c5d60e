/* SPDX-License-Identifier: MIT */
/* weft generate RUN --prompt TEXT ... */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"

struct arguments {
    struct run_options on;
    const char *prompt;
    int64_t max_tokens, top_k, seed; /* -1: as the run says */
    double temperature, top_p;
    bool greedy, no_cache;
};

static bool print(void *unused, const char *text, int64_t length)
{
    fwrite(text, 1, (size_t)length, stdout);
    fflush(stdout);
    return !interrupted(unused) && !ferror(stdout);
}

static wf_status encode(const struct wf_run *run, const char *prompt, struct wf_tokens *ids, wf_error *error)
{
    int64_t unknown = 0;
    const struct wf_encode_options o = {.whole = true, .unknown = &unknown};
    wf_status status = prompt ? wf_tokenizer_encode_with(run->tokenizer, prompt, (int64_t)strlen(prompt), &o, ids, error) : WF_OK;
    if (status != WF_OK)
        wf_error_prefix(error, "the prompt");
    else if (unknown > 0)
        fprintf(stderr, "%s: warning: unknown tokens in the prompt: %" PRId64 " of %" PRId64 "; they are not printed\n", program(), unknown,
                ids->count);
    return status;
}

static wf_status check(const struct run_options *on, enum wf_model_kind kind, wf_error *error)
{
    if (kind == WF_MODEL_PAIRS)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s is a translation model: use weft translate %s < FILE", on->run, on->run);
    if (kind == WF_MODEL_ENCODER)
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "%s is an encoder and cannot generate: use weft embed %s < FILE, or weft attention %s --text TEXT", on->run,
                            on->run, on->run);
    return WF_OK;
}

static wf_status generate(void *arguments, wf_error *error)
{
    const struct arguments *a = arguments;
    struct wf_run run = {0};
    struct wf_tokens ids = {0};
    wf_tape *tape = NULL;
    watch_interrupts(WATCH_BRIEF);
    wf_status status = open_run(&a->on, &run, error);
    if (status == WF_OK)
        status = check(&a->on, wf_model_kind_of(run.model), error);
    if (status == WF_OK)
        status = encode(&run, a->prompt, &ids, error);
    if (status == WF_OK && !(tape = wf_tape_new(error)))
        status = error->code;
    if (status == WF_OK) {
        const struct wf_config *c = &run.config;
        struct wf_generate_options o = {
            .sampler = {.temperature = a->temperature > 0 ? a->temperature : c->generation.temperature,
                        .top_k = a->top_k >= 0 ? a->top_k : c->generation.top_k,
                        .top_p = a->top_p > 0 ? a->top_p : c->generation.top_p,
                        .greedy = a->greedy,
                        .seed = (uint64_t)a->seed},
            .max_tokens = a->max_tokens >= 0 ? a->max_tokens : c->generation.max_tokens,
        };
        o.no_cache = a->no_cache;
        status = wf_generate_text(run.model, run.tokenizer, tape, ids.id, ids.count, &o, print, NULL, error);
        fputc('\n', stdout);
        if (status == WF_OK && interrupted(NULL))
            status = wf_error_set(error, WF_ERR_CANCELLED, "interrupted");
    }
    wf_tokens_free(&ids);
    wf_tape_free(tape);
    wf_run_close(&run);
    return status;
}

int run_generate(int argc, char **argv)
{
    struct arguments a = {.max_tokens = -1, .top_k = -1, .seed = 1};
    const struct option_row options[] = {
        {"prompt", "TEXT", "text to continue (default: none; the model begins a text)", .text = &a.prompt},
        {"max-tokens", "N", "maximum number of tokens to generate", .number = &a.max_tokens, .low = 0, .high = 1000000000},
        {"temperature", "X", "softmax temperature; below 1 less random, above 1 more random", .real = &a.temperature, .least = 1e-6,
         .most = 1e6, .hint = "for the most likely token, which a temperature of 0 would be, give --greedy"},
        {"top-k", "K", "sample from the K most likely tokens; 0: all", .number = &a.top_k, .low = 0, .high = INT32_MAX},
        {"top-p", "P", "sample from the most likely tokens with a total probability of P", .real = &a.top_p, .least = 1e-9, .most = 1},
        {"greedy", NULL, "always take the most likely token", .flag = &a.greedy},
        {"no-cache", NULL, "compute each token from the whole context, to compare: the text is the same", .flag = &a.no_cache},
        {"seed", "N", "random seed (default 1)", .number = &a.seed, .low = 0, .high = INT64_MAX},
        RUN_ROWS(a.on),
        {0},
    };
    return run_command(
        &(struct command_line){"RUN", "Prints a prompt and the model's continuation. Defaults of sampling are in the run's config.json.",
                               options, &a.on.run, .too_few = "RUN is missing: weft generate RUN; RUN is the --out of weft train",
                               .too_many = "quote the prompt, --prompt 'TEXT'"},
        generate, &a, argc, argv);
}
