/* SPDX-License-Identifier: MIT */
/* weft translate RUN < source > translations */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weft/internal/text.h>

#include "cli.h"

enum { KEY_BEAM = 1000, KEY_PENALTY, KEY_N_BEST, KEY_MAX, KEY_BATCH, KEY_TOO_LONG, KEY_LANGUAGE, KEY_TOKENS, KEY_WEIGHTS, KEY_THREADS };

static const struct argp_option options[] = {
    {"beam", KEY_BEAM, "N", 0, "hypotheses that are followed; 1 is greedy (default: beam of the run's config.json)", 0},
    {"length-penalty", KEY_PENALTY, "A", 0,
     "score = log-probability / ((5 + length) / 6)^A, from 0 (default: length_penalty of the run's config.json)", 0},
    {"n-best", KEY_N_BEST, "N", 0,
     "print the N best of each line as INDEX ||| TEXT ||| SCORE, lines counted from 0; at most the beam; of an empty line one, without "
     "text",
     0},
    {"max-tokens", KEY_MAX, "N", 0,
     "the most tokens of a translation (default: max_tokens of the run's config.json, where that is 0 max_length); nor has it more than "
     "extra_tokens beyond its source",
     0},
    {"batch", KEY_BATCH, "N", 0, "sentences translated side by side (default 64); does not change the result", 0},
    {"too-long", KEY_TOO_LONG, "truncate|error", 0, "a line longer than the model takes loses its end (default), or is an error", 0},
    {"language", KEY_LANGUAGE, "LANG", 0,
     "how the words of a word-level model are put together: en, fr, it, ga, cs and ko have rules of their own; others, such as de, "
     "have the common ones (default)",
     0},
    {"keep-tokens", KEY_TOKENS, NULL, 0, "leave blanks between the words of a word-level model", 0},
    {"weights", KEY_WEIGHTS, "best|FILE", 0, "other weights than the run's latest", 0},
    {"threads", KEY_THREADS, "N", 0, THREADS_HELP, 0},
    {0},
};

struct arguments {
    const char *run, *weights, *language;
    int64_t beam, n_best, max_tokens, batch, threads; /* 0: as the run says */
    bool has_penalty, refuse, keep_tokens;
    double penalty;
};

static error_t parse_option(int key, char *value, struct argp_state *state)
{
    struct arguments *a = state->input;
    bool fine = true;
    switch (key) {
    case KEY_BEAM: fine = parse_int("beam", value, 1, 1024, &a->beam); break;
    case KEY_PENALTY:
        fine = parse_real("length-penalty", value, 0, 100, &a->penalty);
        a->has_penalty = true;
        break;
    case KEY_N_BEST: fine = parse_int("n-best", value, 1, 1024, &a->n_best); break;
    case KEY_MAX: fine = parse_int("max-tokens", value, 1, INT64_C(1000000000), &a->max_tokens); break;
    case KEY_BATCH: fine = parse_int("batch", value, 1, 65536, &a->batch); break;
    case KEY_TOO_LONG:
        a->refuse = strcmp(value, "error") == 0;
        if (!a->refuse && strcmp(value, "truncate") != 0)
            return fail_usage("--too-long: '%s' is neither truncate nor error", value), EINVAL;
        break;
    case KEY_LANGUAGE:
        a->language = value;
        if (strspn(value, "abcdefghijklmnopqrstuvwxyz") != strlen(value) || strlen(value) < 2 || strlen(value) > 3)
            return fail_usage("--language: '%s' is no code of a language, such as en or de", value), EINVAL;
        break;
    case KEY_TOKENS: a->keep_tokens = true; break;
    case KEY_WEIGHTS: a->weights = value; break;
    case KEY_THREADS: fine = parse_int("threads", value, 1, 256, &a->threads); break;
    case ARGP_KEY_ARG:
        if (a->run)
            return fail_usage("'%s' is one argument too many: the text comes from standard input, < FILE", value), EINVAL;
        a->run = value;
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return fine ? 0 : EINVAL;
}

static const struct argp argp = {options, parse_option, "RUN",
                                 "Translates standard input to standard output, line for line; an empty line gives an empty line. What is "
                                 "there is translated at once, so that it works in a conversation too.",
                                 NULL, NULL, NULL};

/* --- standard input, as much as is there --------------------------------------------------------------------------- */

enum {
    WINDOW_LINES = 2048, /* are sorted by length together */
    WINDOW_BYTES = 1 << 22,
    CHUNK = 1 << 16,
    MOST_LINE = 1 << 26, /* bytes */
    PAUSE = 5            /* milliseconds without more input after which what is there is translated */
};

struct input {
    char *data;
    int64_t length, room;
    int64_t lines, seen; /* line ends in the first `seen` bytes */
    bool ended;
};

static wf_status read_more(struct input *in, wf_error *error)
{
    if (in->room - in->length < CHUNK) {
        int64_t room = 2 * in->room + CHUNK;
        char *data = wf_realloc(in->data, (size_t)room);
        if (!data)
            return wf_error_set(error, WF_ERR_MEMORY, "no memory for standard input");
        in->data = data;
        in->room = room;
    }
    ssize_t got = read(STDIN_FILENO, in->data + in->length, CHUNK);
    if (got < 0 && errno != EINTR && errno != EAGAIN)
        return wf_error_set(error, WF_ERR_IO, "standard input can't be read: %s", strerror(errno));
    in->ended = got == 0;
    in->length += got > 0 ? got : 0;
    return WF_OK;
}

static void count_lines(struct input *in)
{
    for (const char *at; in->lines < WINDOW_LINES && in->seen < in->length; in->lines++) {
        at = memchr(in->data + in->seen, '\n', (size_t)(in->length - in->seen));
        if (!at)
            break;
        in->seen = at + 1 - in->data;
    }
}

/* Waits for a whole line, then takes what comes without a pause, up to a window. *length bytes of whole lines; 0 at the end. */
static wf_status next_window(struct input *in, int64_t *length, wf_error *error)
{
    in->lines = in->seen = 0;
    for (;;) {
        count_lines(in);
        if (in->lines == WINDOW_LINES || in->ended || (in->lines > 0 && in->length >= WINDOW_BYTES))
            break;
        if (in->lines == 0 && in->length >= MOST_LINE)
            return wf_error_set(error, WF_ERR_FORMAT, "standard input has no line end in %d bytes: it is no text in lines", MOST_LINE);
        struct pollfd ready = {.fd = STDIN_FILENO, .events = POLLIN};
        int count = poll(&ready, 1, in->lines > 0 ? PAUSE : -1);
        if (interrupted(NULL))
            return wf_error_set(error, WF_ERR_CANCELLED, "interrupted");
        if (count == 0)
            break;
        wf_status status = count > 0 ? read_more(in, error) : WF_OK;
        if (status != WF_OK)
            return status;
    }
    /* the last line may do without its end */
    *length = in->lines < WINDOW_LINES && in->ended ? in->length : in->seen;
    return WF_OK;
}

static void drop(struct input *in, int64_t length)
{
    in->length -= length;
    memmove(in->data, in->data + length, (size_t)in->length);
}

/* --- what is printed ----------------------------------------------------------------------------------------------- */

static void print_lines(const struct wf_line_translations *t, int64_t first, bool list)
{
    for (int64_t i = 0; i < t->count; i++)
        for (int64_t k = 0; k < t->n_best; k++) {
            const struct wf_line_translation *l = &t->translation[i * t->n_best + k];
            if (!l->text)
                continue;
            if (list)
                printf("%lld ||| ", (long long)(first + i));
            fwrite(l->text, 1, (size_t)l->length, stdout);
            if (list)
                printf(" ||| %.6f", l->score);
            putchar('\n');
        }
}

static const char *s(int64_t count)
{
    return count == 1 ? "" : "s";
}

/* What was lost, once. */
static void report(const struct wf_translator_counts *c, int64_t max_length)
{
    char part[WF_NUMBER_SIZE], all[WF_NUMBER_SIZE], most[WF_NUMBER_SIZE];
    if (c->truncated > 0)
        fprintf(stderr, "weft: %s of %s line%s lost the end: more ids than the model takes, %s\n", wf_text_count(c->truncated, part),
                wf_text_count(c->lines, all), s(c->lines), wf_text_count(max_length, most));
    if (c->unknown > 0)
        fprintf(stderr, "weft: unknown to the model: %s of %s token%s of the source\n", wf_text_count(c->unknown, part),
                wf_text_count(c->tokens, all), s(c->tokens));
    if (c->unfinished > 0)
        fprintf(stderr, "weft: %s of %s translation%s stopped at the most tokens that one may have\n", wf_text_count(c->unfinished, part),
                wf_text_count(c->lines, all), s(c->lines));
}

static wf_status stream(wf_translator *translator, const struct arguments *a, struct input *in, wf_error *error)
{
    wf_status status = WF_OK;
    for (int64_t length = 0; status == WF_OK && (status = next_window(in, &length, error)) == WF_OK && length > 0; drop(in, length)) {
        struct wf_line_translations lines;
        int64_t first = wf_translator_counts(translator).lines;
        status = wf_translator_lines(translator, in->data, length, &lines, error);
        print_lines(&lines, first, a->n_best > 0);
        if (fflush(stdout) != 0 || ferror(stdout))
            return status == WF_OK ? wf_error_set(error, WF_ERR_IO, "the translations can't be written") : status;
    }
    if (status == WF_ERR_CANCELLED) {
        wf_error_clear(error);
        int64_t done = wf_translator_counts(translator).lines;
        wf_error_set(error, status, "interrupted after %lld line%s", (long long)done, done == 1 ? "" : "s");
    }
    return status;
}

/* What the run has no use for, or can't do, by the names of the options. */
static wf_status check(const struct arguments *a, const struct wf_run *run, wf_error *error)
{
    if (!wf_model_translates(run->model)) /* the translator says so */
        return WF_OK;
    int64_t beam = a->beam ? a->beam : run->config.beam > 0 ? run->config.beam : 1;
    if (a->n_best > beam)
        return wf_error_set(error, WF_ERR_ARGUMENT, "--n-best %lld is more than the beam, which is %lld: add --beam %lld",
                            (long long)a->n_best, (long long)beam, (long long)a->n_best);
    enum wf_tokenizer_kind kind = wf_tokenizer_kind_of(run->tokenizer);
    if ((a->language || a->keep_tokens) && kind != WF_TOKENIZER_WORD)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s is about models whose tokens are words; those of %s are %s",
                            a->language ? "--language" : "--keep-tokens", a->run, wf_tokenizer_kind_name(kind));
    warn_of_pieces(run->tokenizer, a->run);
    return WF_OK;
}

static wf_status translate(const struct arguments *a, wf_error *error)
{
    struct wf_run run;
    struct input in = {0};
    wf_status status = wf_run_open(&run, a->run, a->weights, error);
    if (status != WF_OK)
        return status;
    if ((status = check(a, &run, error)) != WF_OK) {
        wf_run_close(&run);
        return status;
    }
    struct wf_translator_options o = {
        .search = {.beam = a->beam,
                   .has_length_penalty = a->has_penalty,
                   .length_penalty = a->penalty,
                   .max_tokens = a->max_tokens,
                   .n_best = a->n_best,
                   .batch = a->batch,
                   .cancelled = interrupted},
        .truncate = !a->refuse,
        .keep_tokens = a->keep_tokens,
        .language = a->language,
        .name = "standard input",
    };
    wf_translator *translator = wf_translator_new(run.model, run.source_tokenizer, run.tokenizer, &o, error);
    status = translator ? stream(translator, a, &in, error) : error->code;
    if (translator) {
        struct wf_translator_counts counts = wf_translator_counts(translator);
        report(&counts, run.config.max_length);
    }
    wf_translator_free(translator);
    wf_free(in.data);
    wf_run_close(&run);
    return status;
}

int run_translate(int argc, char **argv)
{
    struct arguments a = {0};
    int code = parse(&argp, argc, argv, &a);
    if (code >= 0)
        return code;
    if (!a.run)
        return fail_usage("which run? weft translate RUN < source; RUN is the --out of weft train");
    wf_error error = {0};
    watch_interrupts();
    if (start(a.threads, &error) != WF_OK || translate(&a, &error) != WF_OK)
        return ferror(stdout) ? EXIT_FAILED : fail(&error); /* main says what is wrong with standard output */
    return EXIT_DONE;
}
