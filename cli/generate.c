/* SPDX-License-Identifier: MIT */
/* weft generate RUN --prompt TEXT ...: continues texts with a language model. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weft/internal/minmax.h>
#include <weft/internal/runtime.h>

#include "generation.h"

enum { BATCH = 16 };

/* Checks the options before the run is read. */
static wf_status check_options(const struct generate_arguments *a, wf_error *error)
{
    if (a->prompt && a->prompt_file)
        return wf_error_set(error, WF_ERR_ARGUMENT, "--prompt and --prompt-file both give the prompt: leave one of the two out");
    if (a->input && (a->prompt || a->prompt_file))
        return wf_error_set(error, WF_ERR_ARGUMENT, "--input gives the prompts, a line each: leave --%s out",
                            a->prompt ? "prompt" : "prompt-file");
    if (a->seed > INT64_MAX - (a->samples - 1))
        return wf_error_set(error, WF_ERR_ARGUMENT, "--seed %lld leaves no seeds for %lld samples: give a smaller one", (long long)a->seed,
                            (long long)a->samples);
    if ((a->system || a->template) && !a->chat)
        return wf_error_set(error, WF_ERR_ARGUMENT, "--%s applies to --chat", a->system ? "system" : "template");
    if (a->logprobs >= 0 && !a->json)
        return wf_error_set(error, WF_ERR_ARGUMENT, "--logprobs adds members to the JSON of a text: give --json, too");
    if (a->batch > 0 && !a->input && a->samples == 1)
        return wf_error_set(error, WF_ERR_ARGUMENT, "--batch applies to --input and --samples, which ask for several texts");
    if (a->guesses > 0 && !a->draft)
        return wf_error_set(error, WF_ERR_ARGUMENT, "--draft-tokens applies to --draft FOLDER");
    if (a->draft && (a->input || a->samples > 1 || a->no_cache))
        return wf_error_set(error, WF_ERR_ARGUMENT, "--draft works for one text at a time, with a cache: leave --%s out",
                            a->input         ? "input"
                            : a->samples > 1 ? "samples"
                                             : "no-cache");
    return WF_OK;
}

static wf_status check_kind(const struct run_options *on, enum wf_model_kind kind, wf_error *error)
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
    const struct generate_arguments *a = g->a;
    g->options = (struct wf_generate_options){
        .sampler = sampling_of(&a->sampling, &g->run),
        .max_tokens = a->max_tokens >= 0 ? a->max_tokens : g->run.config.generation.max_tokens,
        .end = g->run.ends > 0 ? g->run.end : NULL,
        .ends = g->run.ends,
        .stop = a->stop,
        .stops = a->stops,
    };
    if (a->samples > 1 && (g->options.sampler.greedy || g->options.sampler.top_k == 1))
        return wf_error_set(
            error, WF_ERR_ARGUMENT,
            "--samples %lld would give the same text each time, because the most likely token is always taken (--greedy, a "
            "temperature of 0, a top-k of 1, or generation_config.json without \"do_sample\": true): leave --samples out, or "
            "give --temperature 1",
            (long long)a->samples);
    return WF_OK;
}

/* With --chat: reads the chat template. An answer ends where it ends in a conversation. */
static wf_status open_template(struct generation *g, wf_error *error)
{
    if (!g->a->chat)
        return WF_OK;
    g->form = wf_chat_template_load(g->a->on.run, g->a->template, error);
    if (!g->form)
        return error->code;
    g->options.ends = wf_chat_ends(g->form, &g->run, g->end);
    g->options.end = g->end;
    if (g->options.ends == 0)
        g->options.end = NULL;
    return WF_OK;
}

/* Reads the draft and checks that it can guess the model's tokens. */
static wf_status open_draft(struct generation *g, wf_error *error)
{
    const struct generate_arguments *a = g->a;
    if (!a->draft)
        return WF_OK;
    wf_status status =
        wf_run_open_with(&g->draft, a->draft, &(struct wf_run_options){.stored = WF_STORED_AS_FILE, .map = map_of(&a->on)}, error);
    if (status == WF_OK)
        status = check_kind(&(struct run_options){.run = a->draft}, wf_model_kind_of(g->draft.model), error);
    if (status == WF_OK && wf_tokenizer_hash(g->draft.tokenizer) != wf_tokenizer_hash(g->run.tokenizer))
        status = wf_error_set(error, WF_ERR_ARGUMENT, "the draft %s has another tokenizer than %s: both must have the same", a->draft,
                              a->on.run);
    if (status == WF_OK && a->on.precision_given)
        status = wf_model_set_precision(g->draft.model, (enum wf_precision)a->on.precision, error);
    return status;
}

int64_t generation_rows(const struct generate_arguments *a)
{
    const int64_t batch = a->batch > 0 ? a->batch : BATCH;
    return a->input ? batch : WF_MIN(a->samples, batch);
}

/* Says what the weights take, and the cache for texts of the length that is asked for, without their prompts, which are not read yet. */
static void tell_memory(const struct generation *g)
{
    const struct wf_model_bytes m = wf_model_bytes(g->run.model), d = wf_model_bytes(g->draft.model);
    const int64_t tokens = WF_MIN(wf_model_shape_of(g->run.model)->context, g->options.max_tokens), rows = generation_rows(g->a);
    char weights[WF_NUMBER_SIZE], in_file[WF_NUMBER_SIZE], token[WF_NUMBER_SIZE], all[WF_NUMBER_SIZE];
    const int64_t mapped = m.mapped + d.mapped;
    if (m.weights + d.weights < 1 << 25) /* of small models nobody asks */
        return;
    fprintf(stderr, "%s: memory: weights %s%s%s%s; cache %s a token, up to %s for %lld text%s of %lld tokens, and more for prompts\n",
            program(), wf_text_bytes(m.weights + d.weights, weights), mapped ? " (" : "", mapped ? wf_text_bytes(mapped, in_file) : "",
            mapped ? " stay in the file)" : "", wf_text_bytes(m.token + d.token, token),
            wf_text_bytes((m.token + d.token) * tokens * rows, all), (long long)rows, plural(rows), (long long)tokens);
}

static wf_status open_generator(struct generation *g, wf_error *error)
{
    const struct generate_arguments *a = g->a;
    const struct wf_next model = wf_next_of(g->run.model), draft = a->draft ? wf_next_of(g->draft.model) : (struct wf_next){0};
    if (!(g->tape = wf_tape_new(error)))
        return error->code;
    const struct wf_generator_options o = {
        .rows = generation_rows(a), .no_cache = a->no_cache, .draft = a->draft ? &draft : NULL, .guesses = a->guesses};
    g->generator = wf_generator_new(&model, g->tape, &o, error);
    return g->generator ? WF_OK : error->code;
}

static wf_status generate(void *arguments, wf_error *error)
{
    const struct generate_arguments *a = arguments;
    struct generation g = {.a = a};
    wf_status status = check_options(a, error);
    if (status == WF_OK)
        status = open_run(&a->on, &g.run, error);
    if (status == WF_OK)
        status = check_kind(&a->on, wf_model_kind_of(g.run.model), error);
    if (status == WF_OK)
        status = sampling_check(a->on.run, &g.run, error);
    if (status == WF_OK)
        status = set_options(&g, error);
    if (status == WF_OK)
        status = open_template(&g, error);
    if (status == WF_OK)
        status = open_draft(&g, error);
    if (status == WF_OK)
        status = prompt_read(a->prompt, a->prompt_file, &g.prompt, error);
    if (status == WF_OK && !g.prompt.given && !a->input && input_waits())
        fprintf(stderr, "%s: standard input is not read: give --prompt -, or --input - for a prompt a line\n", program());
    watch_interrupts(WATCH_BRIEF); /* before this call, while the user may type a prompt, an interruption ends the command at once */
    if (status == WF_OK) {
        tell_memory(&g);
        status = open_generator(&g, error);
    }
    if (status == WF_OK)
        status = generate_texts(&g, error);
    wf_generator_free(g.generator);
    wf_tape_free(g.tape);
    prompt_free(&g.prompt);
    wf_chat_template_free(g.form);
    wf_run_close(&g.draft);
    wf_run_close(&g.run);
    return status;
}

static bool take_stop(const char *option, const char *value, void *to)
{
    struct generate_arguments *a = to;
    const int most = sizeof a->stop / sizeof *a->stop - 1;
    if (a->stops == most)
        return fail_usage("--%s can be given %d times at most", option, most), false;
    if (!*value)
        return fail_usage("--%s: the text is empty", option), false;
    a->stop[a->stops++] = value;
    return true;
}

int run_generate(int argc, char **argv)
{
    struct generate_arguments a = {.max_tokens = -1, .sampling = SAMPLING_DEFAULTS, .seed = 1, .samples = 1, .logprobs = -1};
    const struct option_row options[] = {
        {"prompt", "TEXT",
         "text to continue (default: none; the model begins a text); - reads standard input to its end and drops one final newline",
         .text = &a.prompt},
        {"prompt-file", "FILE", "read the prompt from a file; one final newline is dropped", .text = &a.prompt_file},
        {"input", "FILE",
         "read a prompt from each line; - reads standard input. Several texts are computed at once, each the same as alone, and printed in "
         "order, each after a line with its number",
         .text = &a.input},
        {"chat", NULL,
         "each prompt is a user's message, which is put into the model's chat template; only the answer is printed. $0 chat is for "
         "conversations",
         .flag = &a.chat},
        {"system", "TEXT", "with --chat: the system message (default: that of the template, if it has one)", .text = &a.system},
        {"template", "NAME", "with --chat: a template instead of the one in FOLDER, as for $0 chat", .text = &a.template},
        {"max-tokens", "N",
         "maximum number of tokens to generate (default: max_tokens of the run's config.json, or max_new_tokens of a folder's "
         "generation_config.json, or 500)",
         .number = &a.max_tokens, .low = 0, .high = 1000000000},
        {"stop", "TEXT", "end before this text; may be given up to 16 times", .take = take_stop, .to = &a, .repeatable = true},
        SAMPLING_ROWS(a.sampling),
        {"no-cache", NULL, "compute each token from the whole context, to compare: the text is the same", .flag = &a.no_cache},
        {"seed", "N", "random seed (default 1)", .number = &a.seed, .low = 0, .high = INT64_MAX},
        {"samples", "N",
         "number of texts for each prompt (default 1), with the seeds N, N+1, ... where N is --seed, so that each can be repeated alone; a "
         "line before each gives its number and its seed",
         .number = &a.samples, .low = 1, .high = 1000000000},
        {"batch", "N", "texts that are computed at once, with --input or --samples (default 16); does not change the texts",
         .number = &a.batch, .low = 1, .high = 4096},
        {"draft", "FOLDER",
         "a smaller model with the same tokenizer, which proposes tokens that RUN then checks several at a time: the text is the same, and "
         "comes faster if many of them are right",
         .text = &a.draft},
        {"draft-tokens", "N", "maximum number of tokens that the draft guesses at a time (default 8)", .number = &a.guesses, .low = 1,
         .high = 64},
        {"json", NULL,
         "print one JSON object per text and line: line (with --input), prompt, text (with the prompt), continuation, seed, prompt_tokens, "
         "log_probability (of the continuation), tokens (new ones), end (max_tokens, end_token or stop)",
         .flag = &a.json},
        {"logprobs", "N",
         "add log_probabilities to the JSON: for each new token id, token and log_probability, and top with the N likeliest tokens",
         .number = &a.logprobs, .low = 0, .high = 100},
        RUN_ROWS(a.on),
        {0},
    };
    return run_command(
        &(struct command_line){"RUN",
                               "Prints a prompt and the model's continuation. Defaults of sampling are in the run's config.json, or in a "
                               "Hugging Face folder's "
                               "generation_config.json.",
                               options, &a.on.run,
                               .too_few = "RUN is missing: $0 generate RUN; RUN is the --out of $0 train, or a Hugging Face folder",
                               .too_many = "quote the prompt, --prompt 'TEXT'"},
        generate, &a, argc, argv);
}
