/* SPDX-License-Identifier: MIT */
/* weft generate RUN --prompt TEXT ...: continues a text with a language model. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weft/internal/string.h>

#include "cli.h"
#include "prompt.h"

struct arguments {
    struct run_options on;
    const char *prompt, *prompt_file;
    int64_t max_tokens; /* -1: the run's setting */
    int64_t top_k;      /* -1: the run's setting */
    int64_t seed;
    int64_t samples;
    double temperature; /* -1: the run's setting */
    double top_p;       /* 0: the run's setting */
    bool greedy, no_cache, json;
};

/* The state of the command, which all samples share. */
struct generation {
    const struct arguments *a;
    struct wf_run run;
    struct prompt prompt;
    struct wf_tokens ids; /* ids of the prompt */
    wf_tape *tape;
    struct wf_generate_options options;
    struct wf_generate_result result;
};

/* --- output -------------------------------------------------------------------------------------------------------- */

static bool print(void *unused, const char *text, int64_t length)
{
    fwrite(text, 1, (size_t)length, stdout);
    fflush(stdout);
    return !interrupted(unused) && !ferror(stdout);
}

static bool keep(void *text, const char *part, int64_t length)
{
    return wf_string_add(text, part, length) && !interrupted(NULL);
}

/* Finds where the continuation starts in `text`: at the end of the prompt's decoded text, or earlier if the new tokens have changed the end
 * of that text. */
static wf_status continuation_of(const struct generation *g, const struct wf_string *text, int64_t *at, wf_error *error)
{
    struct wf_string prompt = {0};
    wf_status status = wf_tokenizer_decode(g->run.tokenizer, g->ids.id, g->ids.count, &prompt, error);
    for (*at = 0; *at < prompt.length && *at < text->length && prompt.data[*at] == text->data[*at];)
        ++*at;
    while (*at > 0 && *at < text->length && (text->data[*at] & 0xc0) == 0x80) /* go back to the start of a UTF-8 character */
        --*at;
    wf_string_free(&prompt);
    return status;
}

static wf_status print_json(const struct generation *g, const struct wf_string *text, wf_error *error)
{
    static const char *const ends[] = {
        [WF_GENERATE_MAX_TOKENS] = "max_tokens", [WF_GENERATE_END_TOKEN] = "end_token", [WF_GENERATE_STOPPED] = "interrupted"};
    struct wf_string out = {0};
    const char *written = text->data ? text->data : "";
    int64_t at;
    wf_status status = continuation_of(g, text, &at, error);
    if (status != WF_OK)
        return status;
    wf_string_text(&out, "{\"prompt\": ");
    wf_string_json(&out, g->prompt.text, g->prompt.length);
    wf_string_text(&out, ", \"text\": ");
    wf_string_json(&out, written, text->length);
    wf_string_text(&out, ", \"continuation\": ");
    wf_string_json(&out, written + at, text->length - at);
    wf_string_format(&out, ", \"seed\": %" PRIu64 ", \"prompt_tokens\": %" PRId64 ", \"tokens\": %" PRId64 ", \"end\": \"%s\"}\n",
                     g->options.sampler.seed, g->ids.count, g->result.tokens, ends[g->result.end]);
    if (out.failed)
        status = wf_error_set(error, WF_ERR_MEMORY, "no memory for the JSON of a text");
    else
        fwrite(out.data, 1, (size_t)out.length, stdout);
    wf_string_free(&out);
    return status;
}

/* --- the command --------------------------------------------------------------------------------------------------- */

static wf_status encode(struct generation *g, wf_error *error)
{
    int64_t unknown = 0;
    const struct wf_encode_options o = {.whole = true, .unknown = &unknown};
    wf_status status = prompt_read(g->a->prompt, g->a->prompt_file, &g->prompt, error);
    if (status != WF_OK)
        return status;
    if (!g->prompt.given && input_waits())
        fprintf(stderr, "%s: standard input is not read: give --prompt -\n", program());
    if (g->prompt.given)
        status = wf_tokenizer_encode_with(g->run.tokenizer, g->prompt.text, g->prompt.length, &o, &g->ids, error);
    if (status != WF_OK)
        wf_error_prefix(error, "the prompt");
    else if (unknown > 0)
        fprintf(stderr, "%s: warning: unknown tokens in the prompt: %" PRId64 " of %" PRId64 "; they are not printed\n", program(), unknown,
                g->ids.count);
    return status;
}

/* Checks the options before the run is read. */
static wf_status check_options(const struct arguments *a, wf_error *error)
{
    if (a->prompt && a->prompt_file)
        return wf_error_set(error, WF_ERR_ARGUMENT, "--prompt and --prompt-file both give the prompt: leave one of the two out");
    if (a->seed > INT64_MAX - (a->samples - 1))
        return wf_error_set(error, WF_ERR_ARGUMENT, "--seed %lld leaves no seeds for %lld samples: give a smaller one", (long long)a->seed,
                            (long long)a->samples);
    return WF_OK;
}

static wf_status check(const struct run_options *on, enum wf_model_kind kind, wf_error *error)
{
    if (kind == WF_MODEL_PAIRS)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s is a translation model: use %s translate %s < FILE", on->run, program(), on->run);
    if (kind == WF_MODEL_ENCODER)
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "%s is an encoder and cannot generate: use %s embed %s < FILE, or %s attention %s --text TEXT", on->run,
                            program(), on->run, program(), on->run);
    return WF_OK;
}

static wf_status set_options(struct generation *g, wf_error *error)
{
    const struct arguments *a = g->a;
    const struct wf_generation *c = &g->run.config.generation;
    const double temperature = a->temperature >= 0 ? a->temperature : c->temperature;
    g->options = (struct wf_generate_options){
        .sampler = {.temperature = temperature,
                    .top_k = a->top_k >= 0 ? a->top_k : c->top_k,
                    .top_p = a->top_p > 0 ? a->top_p : c->top_p,
                    .greedy = a->greedy || temperature == 0},
        .max_tokens = a->max_tokens >= 0 ? a->max_tokens : c->max_tokens,
        .no_cache = a->no_cache,
        .result = &g->result,
        .end = g->run.ends > 0 ? g->run.end : NULL,
        .ends = g->run.ends,
    };
    if (a->samples > 1 && (g->options.sampler.greedy || g->options.sampler.top_k == 1))
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "--samples %lld would give the same text each time, because the most likely token is always taken (--greedy, a "
                            "temperature of 0, or a top-k of 1): leave one of them out",
                            (long long)a->samples);
    return WF_OK;
}

/* Generates and prints the sample with number `index`, counted from 0. */
static wf_status generate_one(struct generation *g, int64_t index, wf_error *error)
{
    const struct arguments *a = g->a;
    struct wf_string text = {0};
    g->options.sampler.seed = (uint64_t)(a->seed + index);
    if (a->samples > 1 && !a->json)
        printf("=== sample %lld of %lld, seed %lld ===\n", (long long)index + 1, (long long)a->samples, (long long)(a->seed + index));
    wf_status status = wf_generate_text(g->run.model, g->run.tokenizer, g->tape, g->ids.id, g->ids.count, &g->options,
                                        a->json ? keep : print, a->json ? &text : NULL, error);
    if (!a->json)
        fputc('\n', stdout);
    else if (status == WF_OK && text.failed)
        status = wf_error_set(error, WF_ERR_MEMORY, "no memory for a text");
    else if (status == WF_OK)
        status = print_json(g, &text, error);
    fflush(stdout);
    wf_string_free(&text);
    if (status == WF_OK && interrupted(NULL))
        status = wf_error_set(error, WF_ERR_CANCELLED, "interrupted");
    return status;
}

static wf_status generate(void *arguments, wf_error *error)
{
    const struct arguments *a = arguments;
    struct generation g = {.a = a};
    wf_status status = check_options(a, error);
    if (status == WF_OK)
        status = open_run(&a->on, &g.run, error);
    if (status == WF_OK)
        status = check(&a->on, wf_model_kind_of(g.run.model), error);
    if (status == WF_OK)
        status = set_options(&g, error);
    if (status == WF_OK)
        status = encode(&g, error);
    watch_interrupts(WATCH_BRIEF); /* before this call, while the user may type a prompt, an interruption ends the command at once */
    if (status == WF_OK && !(g.tape = wf_tape_new(error)))
        status = error->code;
    for (int64_t i = 0; status == WF_OK && i < a->samples && !ferror(stdout); i++)
        status = generate_one(&g, i, error);
    wf_tokens_free(&g.ids);
    prompt_free(&g.prompt);
    wf_tape_free(g.tape);
    wf_run_close(&g.run);
    return status;
}

int run_generate(int argc, char **argv)
{
    struct arguments a = {.max_tokens = -1, .top_k = -1, .seed = 1, .samples = 1, .temperature = -1};
    const struct option_row options[] = {
        {"prompt", "TEXT",
         "text to continue (default: none; the model begins a text); - reads standard input to its end and drops one final newline",
         .text = &a.prompt},
        {"prompt-file", "FILE", "read the prompt from a file; one final newline is dropped", .text = &a.prompt_file},
        {"max-tokens", "N", "maximum number of tokens to generate", .number = &a.max_tokens, .low = 0, .high = 1000000000},
        {"temperature", "X", "softmax temperature; below 1 less random, above 1 more random; 0: as --greedy", .real = &a.temperature,
         .least = 0, .most = 1e6},
        {"top-k", "K", "sample from the K most likely tokens; 0: all", .number = &a.top_k, .low = 0, .high = INT32_MAX},
        {"top-p", "P", "sample from the most likely tokens with a total probability of P", .real = &a.top_p, .least = 1e-9, .most = 1},
        {"greedy", NULL, "always take the most likely token", .flag = &a.greedy},
        {"no-cache", NULL, "compute each token from the whole context, to compare: the text is the same", .flag = &a.no_cache},
        {"seed", "N", "random seed (default 1)", .number = &a.seed, .low = 0, .high = INT64_MAX},
        {"samples", "N",
         "number of texts (default 1), with the seeds N, N+1, ... where N is --seed, so that each can be repeated alone; a line before "
         "each "
         "gives its number and its seed",
         .number = &a.samples, .low = 1, .high = 1000000000},
        {"json", NULL,
         "print one JSON object per text and line: prompt, text (with the prompt), continuation, seed, prompt_tokens, tokens (new ones), "
         "end "
         "(max_tokens or end_token)",
         .flag = &a.json},
        RUN_ROWS(a.on),
        {0},
    };
    return run_command(
        &(struct command_line){"RUN", "Prints a prompt and the model's continuation. Defaults of sampling are in the run's config.json.",
                               options, &a.on.run, .too_few = "RUN is missing: $0 generate RUN; RUN is the --out of $0 train",
                               .too_many = "quote the prompt, --prompt 'TEXT'"},
        generate, &a, argc, argv);
}
