/* SPDX-License-Identifier: MIT */
/* weft translate RUN < source > translations */
#include <stdio.h>
#include <string.h>

#include <weft/internal/text.h>

#include "display.h"
#include "line_input.h"

enum { KEY_BEAM = 1000, KEY_PENALTY, KEY_N_BEST, KEY_MAX, KEY_BATCH, KEY_TOO_LONG, KEY_LANGUAGE, KEY_TOKENS };

static const struct argp_option options[] = {
    {"beam", KEY_BEAM, "N", 0, "beam width; 1 is greedy (default: beam of the run's config.json)", 0},
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
    {"batch", KEY_BATCH, "N", 0, "sentences per batch (default 64); does not change the result", 0},
    {"too-long", KEY_TOO_LONG, "truncate|error", 0, "a line longer than the model takes is truncated (default), or an error", 0},
    {"language", KEY_LANGUAGE, "LANG", 0,
     "language of the translations, for joining the words of a word-level model: en joins contractions such as 's and n't; others, such "
     "as de, have the common rules (default)",
     0},
    {"keep-tokens", KEY_TOKENS, NULL, 0, "leave blanks between the words of a word-level model", 0},
    {0},
};

struct arguments {
    struct run_options on;
    const char *language;
    int64_t beam, n_best, max_tokens, batch; /* 0: as the run says */
    bool has_penalty, refuse, keep_tokens;
    double penalty;
};

static error_t parse_option(int key, char *value, struct argp_state *state)
{
    struct arguments *a = state->input;
    bool fine = true;
    switch (key) {
    case KEY_BEAM:
        fine = parse_int("beam", value, 1, 1024, &a->beam);
        break;
    case KEY_PENALTY:
        fine = parse_real("length-penalty", value, 0, 100, &a->penalty);
        a->has_penalty = true;
        break;
    case KEY_N_BEST:
        fine = parse_int("n-best", value, 1, 1024, &a->n_best);
        break;
    case KEY_MAX:
        fine = parse_int("max-tokens", value, 1, INT64_C(1000000000), &a->max_tokens);
        break;
    case KEY_BATCH:
        fine = parse_int("batch", value, 1, 65536, &a->batch);
        break;
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
    case KEY_TOKENS:
        a->keep_tokens = true;
        break;
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &a->on;
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return fine ? 0 : EINVAL;
}

static const struct argp argp = {options,
                                 parse_option,
                                 "RUN",
                                 "Translates standard input to standard output, line for line; an empty line gives an empty line. What is "
                                 "there is translated at once, so that it works in a conversation too.",
                                 run_children,
                                 NULL,
                                 NULL};

enum { WINDOW_LINES = 2048 /* are sorted by length together */, WINDOW_BYTES = 1 << 22 };

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

static const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

/* What was lost, once. */
static void report(const struct wf_translator_counts *c, int64_t max_length)
{
    char part[WF_NUMBER_SIZE], all[WF_NUMBER_SIZE], most[WF_NUMBER_SIZE];
    if (c->truncated > 0)
        fprintf(stderr, "weft: truncated %s of %s line%s to %s tokens\n", wf_text_count(c->truncated, part), wf_text_count(c->lines, all),
                plural(c->lines), wf_text_count(max_length, most));
    if (c->unknown > 0)
        fprintf(stderr, "weft: unknown tokens: %s of %s token%s of the source\n", wf_text_count(c->unknown, part),
                wf_text_count(c->tokens, all), plural(c->tokens));
    if (c->unfinished > 0)
        fprintf(stderr, "weft: %s of %s translation%s reached the maximum length\n", wf_text_count(c->unfinished, part),
                wf_text_count(c->lines, all), plural(c->lines));
}

struct streaming {
    wf_translator *translator;
    struct wf_lines in;
    double before; /* bytes that were given out before those which are translated now */
    struct display display;
};

/* Sentences of the window are done. */
static void show(void *ctx, int64_t done, int64_t count)
{
    struct streaming *s = ctx;
    double part = (double)done / (double)count;
    int64_t lines = wf_translator_counts(s->translator).lines;
    display_show_lines(&s->display, line_input_share(&s->in, s->before + part * ((double)s->in.done - s->before)),
                       lines + (int64_t)(part * (double)s->in.ends));
}

static wf_status stream(struct streaming *s, const struct arguments *a, wf_error *error)
{
    wf_status status = line_input_open(&s->in, NULL, error);
    while (status == WF_OK) {
        struct wf_line_translations lines;
        int64_t count, bytes, first = wf_translator_counts(s->translator).lines;
        s->before = (double)s->in.done;
        status = line_input_wait(&s->in, WINDOW_LINES, WINDOW_BYTES, &count, &bytes, error);
        if (status == WF_OK && count > 0)
            status = wf_lines_block(&s->in, bytes, error);
        if (status != WF_OK || count == 0)
            break;
        status = wf_translator_lines(s->translator, s->in.text - s->in.mark, s->in.length + s->in.mark, &lines, error);
        display_make_way(&s->display);
        print_lines(&lines, first, a->n_best > 0);
        if (fflush(stdout) != 0 || ferror(stdout))
            return status == WF_OK ? wf_error_set(error, WF_ERR_IO, "the translations can't be written") : status;
    }
    if (status == WF_ERR_CANCELLED) {
        wf_error_clear(error);
        int64_t done = wf_translator_counts(s->translator).lines;
        wf_error_set(error, status, "interrupted after %lld line%s", (long long)done, done == 1 ? "" : "s");
    }
    return status;
}

/* What the run has no use for, or can't do, by the names of the options. */
static wf_status check(const struct arguments *a, const struct wf_run *run, wf_error *error)
{
    if (!wf_model_translates(run->model)) /* the translator says so */
        return WF_OK;
    int64_t beam = a->beam ? a->beam : run->config.generation.beam > 0 ? run->config.generation.beam : 1;
    if (a->n_best > beam)
        return wf_error_set(error, WF_ERR_ARGUMENT, "--n-best %lld is more than the beam, which is %lld: add --beam %lld",
                            (long long)a->n_best, (long long)beam, (long long)a->n_best);
    enum wf_tokenizer_kind kind = wf_tokenizer_kind_of(run->tokenizer);
    if ((a->language || a->keep_tokens) && kind != WF_TOKENIZER_WORD)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s is about models whose tokens are words; those of %s are %s",
                            a->language ? "--language" : "--keep-tokens", a->on.run, wf_tokenizer_kind_name(kind));
    warn_of_pieces(run->tokenizer, a->on.run);
    return WF_OK;
}

static wf_status translate(const struct arguments *a, wf_error *error)
{
    struct wf_run run;
    struct streaming s = {.in.fd = -1};
    wf_status status = wf_run_open(&run, a->on.run, a->on.weights, error);
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
                   .cancelled = interrupted,
                   .progress = show,
                   .ctx = &s},
        .truncate = !a->refuse,
        .keep_tokens = a->keep_tokens,
        .language = a->language,
        .name = "standard input",
    };
    s.translator = wf_translator_new(run.model, run.source_tokenizer, run.tokenizer, &o, error);
    if (s.translator) {
        display_open_beside_output(&s.display);
        status = stream(&s, a, error);
        display_clear(&s.display);
        struct wf_translator_counts counts = wf_translator_counts(s.translator);
        report(&counts, wf_config_shape(&run.config).context);
    } else {
        status = error->code;
    }
    wf_translator_free(s.translator);
    wf_lines_close(&s.in);
    wf_run_close(&run);
    return status;
}

int run_translate(int argc, char **argv)
{
    struct arguments a = {.on.one = "the text comes from standard input, < FILE"};
    int code = parse(&argp, argc, argv, &a);
    if (code >= 0)
        return code;
    if (!a.on.run)
        return fail_usage("which run? weft translate RUN < source; RUN is the --out of weft train");
    wf_error error = {0};
    watch_interrupts(WATCH_BRIEF);
    if (start(a.on.threads, &error) != WF_OK || translate(&a, &error) != WF_OK)
        return ferror(stdout) ? EXIT_FAILED : fail(&error); /* main says what is wrong with standard output */
    return EXIT_DONE;
}
