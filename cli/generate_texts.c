/* SPDX-License-Identifier: MIT */
/* Generates the texts of `weft generate` and prints them in the order of their prompts. A single text is printed as it comes. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weft/internal/grow.h>
#include <weft/internal/string.h>
#include <weft/internal/text.h>
#include <weft/memory.h>

#include "generation.h"
#include "line_input.h"

/* The texts that are generated or wait to be printed, in order, and the next one. */
struct texts {
    struct generation *g;
    struct answer **answer; /* [count]; those that are printed are NULL; the first `printed` ones are done with */
    int64_t count, capacity, printed;
    struct wf_lines in; /* of --input */
    bool ended;         /* there are no more texts */
    int64_t sample;     /* number of the next sample of the present prompt */
    struct wf_string prompt;
    struct wf_tokens ids;
    int64_t line; /* number of the present prompt's line; 0 without --input */
    int64_t prompt_unknown;
    wf_error wrong;     /* of a prompt */
    double first_token; /* time of the first new token, seconds */
};

/* --- prompts in ---------------------------------------------------------------------------------------------------- */

/* The ids of a conversation of one message, the prompt. */
static wf_status encode_message(struct texts *t, wf_error *error)
{
    const struct generation *g = t->g;
    const char *system = g->a->system;
    struct wf_chat_message message[2] = {{WF_CHAT_SYSTEM, system, system ? (int64_t)strlen(system) : 0},
                                         {WF_CHAT_USER, t->prompt.data ? t->prompt.data : "", t->prompt.length}};
    const bool without = system == NULL;
    wf_status status = wf_chat_encode(g->form, g->run.tokenizer, message + without, 2 - without, &t->ids, error);
    if (status != WF_OK && t->line > 0)
        wf_error_prefix(error, "%s:%" PRId64, t->in.name, t->line);
    return status;
}

static wf_status encode(struct texts *t, wf_error *error)
{
    const struct wf_encode_options o = {.whole = true, .specials = t->g->run.begins, .unknown = &t->prompt_unknown};
    const wf_tokenizer *tokenizer = t->g->run.tokenizer;
    t->ids.count = 0;
    t->prompt_unknown = 0;
    if (t->g->a->chat)
        return encode_message(t, error);
    if (t->g->a->input)
        return line_input_encode(&t->in, tokenizer, &o, &t->ids, error);
    if (!t->g->prompt.given)
        return WF_OK;
    wf_status status = wf_tokenizer_encode_with(tokenizer, t->g->prompt.text, t->g->prompt.length, &o, &t->ids, error);
    if (status != WF_OK)
        wf_error_prefix(error, "the prompt");
    return status;
}

/* Says what of a prompt the model does not see. */
static void warn(struct texts *t)
{
    const int64_t context = wf_model_shape_of(t->g->run.model)->context, more = t->ids.count - context;
    char where[64] = "";
    if (t->line > 0)
        snprintf(where, sizeof where, " in line %" PRId64, t->line);
    if (t->prompt_unknown > 0 || more > 0)
        display_clear(&t->g->display);
    if (t->prompt_unknown > 0)
        fprintf(stderr, "%s: warning: unknown tokens in the prompt%s: %" PRId64 " of %" PRId64 "; they are not printed\n", program(), where,
                t->prompt_unknown, t->ids.count);
    if (more > 0)
        fprintf(stderr,
                "%s: warning: the prompt%s has %" PRId64 " tokens, but the context %" PRId64 ": the first %" PRId64 " are not seen\n",
                program(), where, t->ids.count, context, more);
}

/* Reads the next prompt, or sets t->ended. While texts are generated, waits only for a line that has begun. */
static wf_status next_prompt(struct texts *t, bool *waits, wf_error *error)
{
    const struct generation *g = t->g;
    int64_t lines = 0, bytes;
    wf_status status = WF_OK;
    *waits = false;
    if (!g->a->input) {
        t->ended = t->line < 0;
        t->line = -1;
    } else {
        if (wf_generator_active(g->generator) > 0 && !line_input_ready(&t->in)) {
            *waits = true;
            return WF_OK;
        }
        status = line_input_wait(&t->in, 1, 1, &lines, &bytes, error);
        if (status == WF_OK && lines > 0)
            status = wf_lines_next(&t->in, error);
        t->ended = status == WF_OK && lines == 0;
        t->line = t->in.line;
    }
    if (status != WF_OK || t->ended)
        return status;
    wf_string_cut(&t->prompt, 0);
    if (!wf_string_add(&t->prompt, g->a->input ? t->in.text : g->prompt.text, g->a->input ? t->in.length : g->prompt.length))
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for a prompt");
    status = encode(t, error);
    if (status == WF_OK)
        warn(t);
    return status;
}

static wf_status add_answer(struct texts *t, wf_error *error)
{
    struct generation *g = t->g;
    struct answer *a = wf_grow(&t->answer, &t->capacity, t->count + 1, sizeof *t->answer) ? wf_alloc_zero(1, sizeof *a) : NULL;
    if (!a)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for a text");
    *a = (struct answer){.tokenizer = g->run.tokenizer,
                         .tops = g->a->logprobs,
                         .line = t->line > 0 ? t->line : 0,
                         .seed = (uint64_t)(g->a->seed + t->sample),
                         .answer_only = g->a->chat,
                         .stream = !g->a->json && !g->a->input && g->a->samples == 1};
    wf_string_add(&a->prompt, t->prompt.data ? t->prompt.data : "", t->prompt.length);
    if (a->prompt.failed || !wf_grow(&a->ids.id, &a->ids.capacity, t->ids.count + 1, sizeof *a->ids.id)) {
        answer_free(a), wf_free(a);
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for a text");
    }
    memcpy(a->ids.id, t->ids.id ? t->ids.id : a->ids.id, (size_t)t->ids.count * sizeof *a->ids.id);
    a->ids.count = t->ids.count;
    struct wf_generate_options o = g->options;
    o.sampler.seed = a->seed;
    o.done = answer_done;
    o.scored = g->a->json ? answer_score : NULL;
    o.scored_ctx = a;
    o.tops = g->a->logprobs > 0 ? g->a->logprobs : 0;
    a->muted = g->a->chat; /* the prompt's text is given out in this call */
    wf_status status = wf_generator_add_text(g->generator, g->run.tokenizer, a->ids.id, a->ids.count, &o, answer_text, a, error);
    a->muted = false;
    if (status == WF_OK)
        t->answer[t->count++] = a;
    else
        answer_free(a), wf_free(a);
    if (status != WF_OK && t->line > 0)
        wf_error_prefix(error, "%s:%" PRId64, t->in.name, t->line);
    t->sample = (t->sample + 1) % g->a->samples;
    return status;
}

/* Adds texts until all rows are taken, or until no prompt is there. If a prompt is wrong, no more are read, and t->wrong has the error. */
static void fill(struct texts *t, int64_t rows)
{
    wf_error *error = &t->wrong;
    wf_status status = WF_OK;
    bool waits = false;
    while (status == WF_OK && !t->ended && !waits && wf_generator_active(t->g->generator) < rows) {
        if (t->sample == 0)
            status = next_prompt(t, &waits, error);
        if (status == WF_OK && !t->ended && !waits)
            status = add_answer(t, error);
    }
    t->ended |= status != WF_OK;
}

/* --- texts out ----------------------------------------------------------------------------------------------------- */

static wf_status print_answer(const struct texts *t, const struct answer *a, wf_error *error)
{
    const struct generate_arguments *given = t->g->a;
    const long long line = (long long)a->line, seed = (long long)a->seed, number = seed - given->seed + 1;
    if (given->json)
        return answer_print_json(a, error);
    if (a->text.failed)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for a text");
    if (a->line > 0 && given->samples > 1)
        printf("=== prompt %lld, sample %lld of %lld, seed %lld ===\n", line, number, (long long)given->samples, seed);
    else if (a->line > 0)
        printf("=== prompt %lld ===\n", line);
    else if (given->samples > 1)
        printf("=== sample %lld of %lld, seed %lld ===\n", number, (long long)given->samples, seed);
    fwrite(a->text.data ? a->text.data : "", 1, (size_t)a->text.length, stdout);
    fputc('\n', stdout);
    return WF_OK;
}

/* Prints the texts that are done, up to the first one that is not; with `all`, at an interruption, those after it too. */
static wf_status print_done(struct texts *t, bool all, wf_error *error)
{
    wf_status status = WF_OK;
    const int64_t before = t->printed;
    for (; status == WF_OK && t->printed < t->count && (all || t->answer[t->printed]->done); t->printed++) {
        struct answer *a = t->answer[t->printed];
        if (!a->done)
            continue;
        display_make_way(&t->g->display);
        status = print_answer(t, a, error);
        t->answer[t->printed] = NULL;
        answer_free(a);
        wf_free(a);
    }
    if (t->printed > before && (fflush(stdout) != 0 || ferror(stdout)) && status == WF_OK)
        status = wf_error_set(error, WF_ERR_IO, "the texts can't be written");
    return status;
}

static void show(struct texts *t)
{
    const struct wf_generator_counts c = wf_generator_counts(t->g->generator);
    const double seconds = display_seconds(&t->g->display);
    char texts[WF_NUMBER_SIZE];
    display_show(&t->g->display, t->g->a->input ? line_input_share(&t->in, (double)t->in.done) : -1, false, "%s texts  %.1f tokens/s",
                 wf_text_count(t->printed, texts), seconds > 0 ? (double)c.tokens / seconds : 0);
}

/* One line about the speed: of the prompt and of the new tokens, or of several texts together. */
static void report(const struct texts *t)
{
    const struct wf_generator_counts c = wf_generator_counts(t->g->generator);
    const double seconds = display_seconds(&t->g->display), first = t->first_token;
    char texts[WF_NUMBER_SIZE], tokens[WF_NUMBER_SIZE], time[DISPLAY_TIME];
    if (c.tokens == 0 || !(t->g->a->input || t->g->a->draft || isatty(STDERR_FILENO)))
        return;
    if (t->count > 1)
        fprintf(stderr, "%s: %s texts, %s tokens in %s: %.1f tokens/s\n", program(), wf_text_count(t->count, texts),
                wf_text_count(c.tokens, tokens), display_time(seconds, time), (double)c.tokens / seconds);
    else
        fprintf(stderr, "%s: prompt: %lld token%s, %.1f tokens/s; new: %lld token%s, %.1f tokens/s\n", program(), (long long)c.prompt,
                plural(c.prompt), (double)c.prompt / first, (long long)c.tokens, plural(c.tokens),
                c.tokens > 1 ? (double)(c.tokens - 1) / (seconds - first) : 0);
    if (c.guesses > 0)
        fprintf(stderr, "%s: draft: %lld of %lld guesses were right; %.2f tokens for each pass of the model\n", program(),
                (long long)c.right, (long long)c.guesses, (double)c.tokens / (double)c.passes);
}

static wf_status run(struct texts *t, wf_error *error)
{
    struct generation *g = t->g;
    const int64_t rows = generation_rows(g->a);
    wf_status status = WF_OK;
    fill(t, rows);
    while (status == WF_OK && !ferror(stdout) && !interrupted(NULL) && (wf_generator_active(g->generator) > 0 || t->printed < t->count)) {
        status = wf_generator_step(g->generator, error);
        if (t->first_token == 0 && wf_generator_counts(g->generator).tokens > 0)
            t->first_token = display_seconds(&g->display);
        if (status == WF_OK)
            status = print_done(t, false, error);
        if (status == WF_OK)
            fill(t, rows);
        if (rows > 1)
            show(t);
    }
    display_clear(&g->display);
    if (status == WF_OK && interrupted(NULL)) {
        if (t->printed < t->count && t->answer[t->printed]->stream)
            fputc('\n', stdout);
        else if (rows > 1)
            status = print_done(t, true, error);
        if (status == WF_OK)
            status = wf_error_set(error, WF_ERR_CANCELLED, "interrupted");
    }
    if (status == WF_OK && t->wrong.code != WF_OK) /* the texts before it are printed */
        status = wf_error_set(error, t->wrong.code, "%s", t->wrong.message);
    return status;
}

wf_status generate_texts(struct generation *g, wf_error *error)
{
    struct texts t = {.g = g, .in.fd = -1};
    wf_status status = g->a->input ? line_input_open(&t.in, strcmp(g->a->input, "-") == 0 ? NULL : g->a->input, error) : WF_OK;
    if (g->a->input || g->a->samples > 1)
        display_open_beside_output(&g->display);
    else {
        display_open(&g->display); /* for its clock */
        g->display.off = true;
    }
    if (status == WF_OK)
        status = run(&t, error);
    if (status == WF_OK)
        report(&t);
    wf_generator_free(g->generator); /* its texts point to the answers */
    g->generator = NULL;
    for (int64_t i = 0; i < t.count; i++) {
        if (t.answer[i])
            answer_free(t.answer[i]);
        wf_free(t.answer[i]);
    }
    wf_free(t.answer);
    wf_string_free(&t.prompt);
    wf_tokens_free(&t.ids);
    wf_lines_close(&t.in);
    return status;
}
