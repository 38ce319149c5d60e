/* SPDX-License-Identifier: MIT */
/* weft translate RUN < source > translations: translates lines. */
#include <stdio.h>
#include <string.h>

#include <weft/internal/grow.h>
#include <weft/internal/sentence.h>
#include <weft/internal/string.h>

#include "display.h"
#include "line_input.h"
#include "several.h"

struct arguments {
    struct run_options on;
    const char *language;
    int64_t beam;              /* 0: the run's setting */
    int64_t n_best;            /* 0: print only the best translation, as plain text */
    int64_t max_tokens;        /* 0: the run's setting */
    int64_t batch;             /* 0: the default */
    const char *penalty_given; /* not NULL if --length-penalty is given */
    int too_long;              /* value of --too-long; 0: truncate, 1: error */
    bool keep_tokens, json;
    double penalty;
};

static bool take_language(const char *option, const char *value, void *to)
{
    if (strspn(value, "abcdefghijklmnopqrstuvwxyz") != strlen(value) || strlen(value) < 2 || strlen(value) > 3)
        return fail_usage("--%s: '%s' is not a language code, such as en or de", option, value), false;
    *(const char **)to = value;
    return true;
}

enum {
    WINDOW_LINES = 2048,   /* number of lines for each process at which a block is full */
    WINDOW_BYTES = 1 << 22 /* bytes of input at which a block is full */
};

/* --- output -------------------------------------------------------------------------------------------------------- */

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

/* Prints one JSON object for each translated line. `text` holds the source of these lines, and `first` is the index of the first one. */
static wf_status print_json(const struct wf_line_translations *t, int64_t first, const char *text, int64_t bytes, wf_error *error)
{
    struct wf_string out = {0};
    int64_t at = first == 0 ? wf_line_first(text, bytes) : 0, from, to;
    for (int64_t i = 0; i < t->count; i++) {
        at = wf_line_at(text, bytes, at, &from, &to);
        wf_string_cut(&out, 0);
        wf_string_format(&out, "{\"index\": %lld, \"source\": ", (long long)(first + i));
        wf_string_json(&out, text + from, to - from);
        wf_string_text(&out, ", \"translations\": [");
        for (int64_t k = 0; k < t->n_best; k++) {
            const struct wf_line_translation *l = &t->translation[i * t->n_best + k];
            if (!l->text)
                continue;
            wf_string_text(&out, k == 0 ? "{\"text\": " : ", {\"text\": ");
            wf_string_json(&out, l->text, l->length);
            wf_string_text(&out, ", \"score\": ");
            wf_string_double(&out, l->score);
            wf_string_text(&out, ", \"log_probability\": ");
            wf_string_double(&out, l->log_probability);
            wf_string_format(&out, ", \"finished\": %s}", l->finished ? "true" : "false");
        }
        wf_string_text(&out, "]}\n");
        if (out.failed)
            break;
        fwrite(out.data, 1, (size_t)out.length, stdout);
    }
    const bool failed = out.failed;
    wf_string_free(&out);
    return failed ? wf_error_set(error, WF_ERR_MEMORY, "no memory for the JSON of a line") : WF_OK;
}

/* Reports truncated lines, unknown tokens and unfinished translations, each in one line. */
static void report(const struct wf_translator_counts *c, int64_t max_length)
{
    char part[WF_NUMBER_SIZE], all[WF_NUMBER_SIZE];
    report_truncated(c->truncated, c->lines, max_length);
    if (c->unknown > 0)
        fprintf(stderr, "%s: unknown tokens: %s of %s token%s of the source\n", program(), wf_text_count(c->unknown, part),
                wf_text_count(c->tokens, all), plural(c->tokens));
    if (c->unfinished > 0)
        fprintf(stderr, "%s: %s of %s translation%s reached the maximum length\n", program(), wf_text_count(c->unfinished, part),
                wf_text_count(c->lines, all), plural(c->lines));
}

struct streaming {
    wf_dist *dist;
    wf_translator *translator;
    struct wf_lines in; /* the input, which rank 0 reads */
    char *text;         /* the present block, on ranks other than 0 */
    int64_t room;       /* capacity of `text` */
    double before;      /* bytes of the input before the present block */
    struct display display;
};

/* Shows the progress: `done` of the `count` sentences in the present block are translated. */
static void show(void *ctx, int64_t done, int64_t count)
{
    struct streaming *s = ctx;
    double part = (double)done / (double)count;
    int64_t lines = wf_translator_counts(s->translator).lines;
    display_show_lines(&s->display, line_input_share(&s->in, s->before + part * ((double)s->in.done - s->before)),
                       lines + (int64_t)(part * (double)s->in.ends));
}

/* --- blocks of lines ------------------------------------------------------------------------------------------------ */

/* A block of the input. Rank 0 reads it and sends it to all ranks. */
struct block {
    int64_t lines; /* number of lines; 0: the input has ended */
    int64_t bytes; /* length of `text` */
    char *text;    /* the lines; on rank 0 they are in the memory of the reader */
};

static wf_status read_block(struct streaming *s, struct block *b, wf_error *error)
{
    int64_t bytes;
    const int64_t most = (int64_t)WINDOW_LINES * wf_dist_size(s->dist);
    s->before = (double)s->in.done;
    wf_status status = line_input_wait(&s->in, most, WINDOW_BYTES, &b->lines, &bytes, error);
    if (status == WF_OK && b->lines > 0)
        status = wf_lines_block(&s->in, bytes, error);
    if (status != WF_OK || b->lines == 0)
        return status;
    b->text = s->in.data + (s->in.text - s->in.mark - s->in.data);
    b->bytes = s->in.length + s->in.mark;
    return WF_OK;
}

/* Rank 0 reads the next block and broadcasts it. */
static wf_status next_block(struct streaming *s, struct block *b, wf_error *error)
{
    const bool reader = wf_dist_rank(s->dist) == 0;
    *b = (struct block){0};
    wf_status status = reader ? read_block(s, b, error) : WF_OK;
    (void)!wf_dist_rest(s->dist, NULL); /* others sleep while rank 0 waits for input; an error makes wf_dist_agree fail too */
    status = wf_dist_agree(s->dist, status, error);
    int64_t size[2] = {b->lines, b->bytes};
    if (status == WF_OK)
        status = wf_dist_broadcast(s->dist, size, sizeof size, 0, error);
    if (status != WF_OK || size[0] == 0)
        return status;
    if (!reader) {
        if (!wf_grow(&s->text, &s->room, size[1], 1))
            status = wf_error_set(error, WF_ERR_MEMORY, "no memory for %lld lines", (long long)size[0]);
        *b = (struct block){size[0], size[1], s->text};
    }
    status = wf_dist_agree(s->dist, status, error);
    return status == WF_OK ? wf_dist_broadcast(s->dist, b->text, b->bytes, 0, error) : status;
}

/* Translates a block on all ranks, and prints the translations on rank 0. If a line is invalid, the lines before it are printed. */
static wf_status translate_block(struct streaming *s, const struct block *b, const struct arguments *a, wf_error *error)
{
    struct wf_line_translations lines;
    wf_error failure = {0}; /* an error of print_json, which is reported only if the translation has no error */
    const int64_t first = wf_translator_counts(s->translator).lines;
    wf_status status = wf_translator_lines(s->translator, b->text, b->bytes, &lines, error);
    if (wf_dist_rank(s->dist) > 0)
        return status;
    display_make_way(&s->display);
    if (!a->json)
        print_lines(&lines, first, a->n_best > 0);
    else if (print_json(&lines, first, b->text, b->bytes, &failure) != WF_OK && status == WF_OK)
        status = wf_error_set(error, failure.code, "%s", failure.message);
    if ((fflush(stdout) != 0 || ferror(stdout)) && status == WF_OK)
        status = wf_error_set(error, WF_ERR_IO, "the translations can't be written");
    return status;
}

static wf_status stream(struct streaming *s, const struct arguments *a, wf_error *error)
{
    struct block b;
    wf_status status = wf_dist_rank(s->dist) == 0 ? line_input_open(&s->in, NULL, error) : WF_OK;
    status = wf_dist_agree(s->dist, status, error);
    while (status == WF_OK && (status = next_block(s, &b, error)) == WF_OK && b.lines > 0)
        status = wf_dist_agree(s->dist, translate_block(s, &b, a, error), error);
    return count_interrupted(status, wf_translator_counts(s->translator).lines, error);
}

/* --- the command ---------------------------------------------------------------------------------------------------- */

/* Refuses options that do not fit the run, with a message that names the option. */
static wf_status check(const struct arguments *a, const struct wf_run *run, wf_error *error)
{
    if (wf_model_kind_of(run->model) != WF_MODEL_PAIRS) /* wf_translator_new refuses other kinds of models */
        return WF_OK;
    int64_t beam = a->beam ? a->beam : run->config.generation.beam > 0 ? run->config.generation.beam : 1;
    if (a->n_best > beam)
        return wf_error_set(error, WF_ERR_ARGUMENT, "--n-best %lld exceeds the beam width, %lld: add --beam %lld", (long long)a->n_best,
                            (long long)beam, (long long)a->n_best);
    enum wf_tokenizer_kind kind = wf_tokenizer_kind_of(run->tokenizer);
    if ((a->language || a->keep_tokens) && kind != WF_TOKENIZER_WORD)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s applies to models with a word tokenizer; that of %s is %s",
                            a->language ? "--language" : "--keep-tokens", a->on.run, wf_tokenizer_kind_name(kind));
    warn_of_pieces(run->tokenizer, a->on.run);
    return WF_OK;
}

/* Checks that all processes translate with the same run and the same options. */
static wf_status compare(const struct streaming *s, const struct arguments *a, const struct wf_run *run, wf_error *error)
{
    struct wf_string words = {0};
    wf_program_words(s->dist, &words);
    wf_run_words(run, &words);
    wf_string_format(&words, "beam=%lld length-penalty=%.17g n-best=%lld max-tokens=%lld too-long=%d keep-tokens=%d language=%s",
                     (long long)a->beam, a->penalty_given ? a->penalty : -1, (long long)a->n_best, (long long)a->max_tokens, a->too_long,
                     a->keep_tokens, a->language ? a->language : "");
    return wf_dist_compare(s->dist, &words, error);
}

static wf_status open_translator(struct streaming *s, const struct arguments *a, struct wf_run *run, wf_error *error)
{
    const struct wf_translator_options o = {
        .search = {.beam = a->beam,
                   .has_length_penalty = a->penalty_given != NULL,
                   .length_penalty = a->penalty,
                   .max_tokens = a->max_tokens,
                   .n_best = a->n_best,
                   .batch = a->batch,
                   .cancelled = interrupted,
                   .progress = show,
                   .ctx = s},
        .truncate = !a->too_long,
        .keep_tokens = a->keep_tokens,
        .language = a->language,
        .name = "standard input",
    };
    wf_status status = open_run(&a->on, run, error);
    if (status == WF_OK)
        status = check(a, run, error);
    if (status == WF_OK && !(s->translator = wf_translator_new(run->model, run->source_tokenizer, run->tokenizer, &o, error)))
        status = error->code;
    if (status == WF_OK)
        wf_translator_share(s->translator, s->dist);
    return status;
}

static wf_status translate(void *arguments, wf_error *error)
{
    const struct arguments *a = arguments;
    struct wf_run run = {0};
    struct streaming s = {.in.fd = -1};
    watch_interrupts(WATCH_BRIEF);
    s.dist = open_world("translate", error);
    if (error->code)
        return error->code;
    wf_status status = wf_dist_agree(s.dist, open_translator(&s, a, &run, error), error);
    if (status == WF_OK)
        status = compare(&s, a, &run, error);
    if (status == WF_OK) {
        display_open_beside_output(&s.display);
        status = stream(&s, a, error);
        display_clear(&s.display);
        struct wf_translator_counts counts = wf_translator_counts(s.translator);
        report(&counts, wf_config_shape(&run.config).context);
    }
    wf_translator_free(s.translator);
    wf_lines_close(&s.in);
    wf_free(s.text);
    wf_run_close(&run);
    return status;
}

int run_translate(int argc, char **argv)
{
    struct arguments a = {0};
    const struct option_row options[] = {
        {"beam", "N", "beam width; 1 is greedy (default: beam of the run's config.json)", .number = &a.beam, .low = 1, .high = 1024},
        {"length-penalty", "A", "score = log-probability / ((5 + length) / 6)^A, from 0 (default: length_penalty of the run's config.json)",
         .real = &a.penalty, .least = 0, .most = 100, .given = &a.penalty_given},
        {"n-best", "N",
         "print the N best of each line as INDEX ||| TEXT ||| SCORE; INDEX counts lines from 0; N is at most the beam width; an empty "
         "line gives one empty translation",
         .number = &a.n_best, .low = 1, .high = 1024},
        {"max-tokens", "N",
         "maximum length of a translation in tokens (default: max_tokens of the run's config.json; where that is 0, max_length); it is "
         "also limited to extra_tokens beyond its source",
         .number = &a.max_tokens, .low = 1, .high = 1000000000},
        {"batch", "N", "sentences per batch (default 64); does not change the result", .number = &a.batch, .low = 1, .high = 65536},
        {"too-long", "truncate|error", "truncate lines longer than the model's maximum (default), or stop with an error",
         .choice = &a.too_long},
        {"language", "LANG",
         "language of the translations, by which the words of a word-level model are joined: en joins contractions such as 's and n't; "
         "any other, such as de, uses the common rules (default)",
         .take = take_language, .to = &a.language},
        {"json", NULL,
         "print one JSON object per line of the source: index (from 0), source, translations (text, score, log_probability, finished), as "
         "many "
         "as --n-best asks for",
         .flag = &a.json},
        {"keep-tokens", NULL, "print the tokens of a word-level model separated by spaces", .flag = &a.keep_tokens},
        RUN_ROWS(a.on),
        {0},
    };
    return run_command(
        &(struct command_line){
            "RUN",
            "Translates standard input to standard output line by line; an empty line gives an empty line. Lines are translated as they "
            "arrive, so the command can be used interactively. mpirun -n 4 $0 translate ... shares the lines among processes, with "
            "the same output.",
            options, &a.on.run, .too_few = "RUN is missing: $0 translate RUN < source; RUN is the --out of $0 train",
            .too_many = "the text is read from standard input, < FILE", .several = true},
        translate, &a, argc, argv);
}
