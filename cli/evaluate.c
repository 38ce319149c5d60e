/* SPDX-License-Identifier: MIT */
/* weft evaluate RUN --data FILE[,FILE] [--json]: of a language model the loss on a text; of an encoder the loss on masked tokens of a
 * text; of a translation model the loss on pairs, BLEU and chrF. */
#include <math.h>
#include <stdio.h>

#include "cli.h"
#include "display.h"
#include <weft/internal/encode.h>

struct arguments {
    struct run_options on;
    const char *data;
    int64_t beam;
    bool json, no_bleu;
};

struct figures {
    double loss, bits;
    int64_t tokens, unknown; /* unknown: among all tokens of the texts */
    bool bits_known, scored; /* bits a character: of language models */
    struct wf_translation_scores scores;
};

static void warn_of_unknown(struct figures *f, const char *file, int64_t unknown, int64_t tokens)
{
    char text[128];
    f->unknown += unknown;
    if (unknown > 0)
        fprintf(stderr, "weft: warning: %s: %s\n", file, wf_unknown_describe(unknown, tokens, text, sizeof text));
}

static wf_status evaluate_text(const struct arguments *a, const struct list *files, const struct wf_run *run, wf_tape *tape,
                               struct figures *f, wf_error *error)
{
    struct wf_text_ids text;
    struct wf_evaluation e = {0};
    char *cache = wf_cache_folder();
    const struct wf_corpus_options o = {.tokenizer = run->tokenizer, .cache = cache};
    wf_status status = wf_text_ids_open((const char *const *)files->item, files->count, &o, &text, error);
    wf_free(cache);
    if (status == WF_OK)
        warn_of_unknown(f, a->data, text.unknown, text.ids.count);
    if (status == WF_OK && wf_model_kind_of(run->model) == WF_MODEL_ENCODER) {
        if ((status = wf_evaluate_masked(run->model, run->tokenizer, tape, text.ids, 0, &e, error)) != WF_OK)
            wf_error_prefix(error, "%s", a->data);
    } else if (status == WF_OK && text.ids.count < 2) {
        status = wf_error_set(error, WF_ERR_FORMAT, "%s: a text of one token has nothing to predict", a->data);
    } else if (status == WF_OK) {
        status = wf_model_evaluate(run->model, tape, text.ids, 0, &e, error);
        /* the first token is given, so the characters that were predicted are fewer by its own */
        f->bits = e.loss * (double)e.tokens / ((double)text.characters * (double)e.tokens / (double)text.ids.count) / M_LN2;
        f->bits_known = true;
    }
    f->loss = e.loss;
    f->tokens = e.tokens;
    wf_text_ids_close(&text);
    return status;
}

static bool show(void *ctx, int64_t done, int64_t total)
{
    display_show(ctx, total > 0 ? (double)done / (double)total : 1, done == total, "%lld/%lld lines translated", (long long)done,
                 (long long)total);
    return !interrupted(NULL);
}

static wf_status evaluate_pairs(const struct arguments *a, const struct list *files, const struct wf_run *run, wf_tape *tape,
                                struct figures *f, wf_error *error)
{
    if (files->count != 2)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s translates: --data takes two files, source and target, not %lld", a->on.run,
                            (long long)files->count);
    char line[512], *cache = wf_cache_folder();
    wf_bitext *bitext;
    struct wf_evaluation e = {0};
    wf_status status = wf_run_bitext(run, files->item[0], files->item[1], cache, &bitext, error);
    wf_free(cache);
    if (status != WF_OK)
        return status;
    const struct wf_bitext_survey *survey = wf_bitext_survey(bitext);
    if (survey->used < survey->lines)
        fprintf(stderr, "%s\n", wf_bitext_describe(survey, line, sizeof line));
    warn_of_unknown(f, files->item[0], survey->source_unknown, survey->source_tokens);
    warn_of_unknown(f, files->item[1], survey->target_unknown, survey->target_tokens);
    status = wf_evaluate_pairs(run->model, tape, bitext, 0, 0, &e, error);
    wf_bitext_close(bitext);
    f->loss = e.loss;
    f->tokens = e.tokens;
    if (status != WF_OK || a->no_bleu)
        return status;
    warn_of_pieces(run->tokenizer, a->on.run);
    struct wf_translator_options o = {.search = {.beam = a->beam, .cancelled = interrupted}, .truncate = true};
    struct display d;
    watch_interrupts(WATCH_BRIEF);
    display_open(&d);
    status = wf_evaluate_translation(run, files->item[0], files->item[1], &o, show, &d, &f->scores, error);
    display_clear(&d);
    f->scored = status == WF_OK;
    report_truncated(f->scores.counts.truncated, f->scores.counts.lines, wf_config_shape(&run->config).context);
    return status;
}

static wf_status compute(const struct arguments *a, struct figures *f, wf_error *error)
{
    struct wf_run run = {0};
    struct list files = {0};
    wf_tape *tape = NULL;
    wf_status status = list_parse(a->data, true, &files, error);
    if (status == WF_OK)
        status = open_run(&a->on, &run, error);
    if (status == WF_OK && !(tape = wf_tape_new(error)))
        status = error->code;
    if (status == WF_OK && !wf_model_translates(run.model) && (a->beam || a->no_bleu))
        status = wf_error_set(error, WF_ERR_ARGUMENT,
                              "%s is the run of a model that does not translate: --beam and --no-bleu are about that", a->on.run);
    if (status == WF_OK && wf_model_kind_of(run.model) == WF_MODEL_ENCODER && !(run.config.training.mask_rate > 0))
        status = wf_error_set(error, WF_ERR_ARGUMENT, "%s holds a model of sentence vectors, which has no loss: weft embed %s < FILE",
                              a->on.run, a->on.run);
    if (status == WF_OK)
        status = wf_model_translates(run.model) ? evaluate_pairs(a, &files, &run, tape, f, error)
                                                : evaluate_text(a, &files, &run, tape, f, error);
    if (status == WF_OK && !isfinite(exp(f->loss)))
        status = wf_error_set(error, WF_ERR_NUMERIC, "%s: the loss is %g: the weights are damaged, or the training diverged", a->on.run,
                              f->loss);
    wf_tape_free(tape);
    wf_run_close(&run);
    list_free(&files);
    return status;
}

static void print(const struct figures *f)
{
    char line[512];
    printf("loss %.4f\nperplexity %.4f\n", f->loss, exp(f->loss));
    if (f->bits_known)
        printf("bits per character %.4f\n", f->bits);
    printf("tokens %lld\n", (long long)f->tokens);
    if (f->scored) {
        printf("%s\n", wf_bleu_line(&f->scores.bleu, true, 2, line, sizeof line));
        printf("%s\n", wf_chrf_line(&f->scores.chrf, true, 2, line, sizeof line));
    }
}

static void print_json(const struct figures *f)
{
    printf("{\"loss\": %.17g, \"perplexity\": %.17g, ", f->loss, exp(f->loss));
    if (f->bits_known)
        printf("\"bits_per_character\": %.17g, ", f->bits);
    printf("\"tokens\": %lld", (long long)f->tokens);
    if (f->scored)
        printf(", \"bleu\": %.17g, \"chrf\": %.17g, \"bleu_signature\": \"%s\", \"chrf_signature\": \"%s\"", f->scores.bleu.score,
               f->scores.chrf.score, f->scores.bleu.signature, f->scores.chrf.signature);
    printf(", \"unknown\": %lld}\n", (long long)f->unknown);
}

static wf_status evaluate(void *arguments, wf_error *error)
{
    const struct arguments *a = arguments;
    struct figures f = {0};
    wf_status status = compute(a, &f, error);
    if (status == WF_OK && a->json)
        print_json(&f);
    else if (status == WF_OK)
        print(&f);
    return status;
}

int run_evaluate(int argc, char **argv)
{
    struct arguments a = {0};
    const struct option_row options[] = {
        {"data", "FILE[,FILE]", "text to evaluate on, UTF-8; for translation: source and target, aligned by line", .text = &a.data,
         .needed = "the text to evaluate on"},
        {"json", NULL, "print one JSON object", .flag = &a.json},
        {"beam", "N", "beam width; 1 is greedy (default: the model's)", .number = &a.beam, .low = 1, .high = 1024},
        {"no-bleu", NULL, "for translation: only the loss, which is fast", .flag = &a.no_bleu},
        RUN_ROWS(a.on),
        {0},
    };
    return run_command(
        &(struct command_line){
            "RUN --data FILE",
            "Prints loss (nats per token), perplexity and bits per character of a run's model on a text. For an encoder: loss and "
            "perplexity of masked-language modelling, with the same masked tokens each time. For a translation model: loss (nats per "
            "target token), perplexity, BLEU (13a, cased) and chrF on two files; the loss is computed on the pairs that training "
            "would use, BLEU and chrF on all lines, including empty and too long ones.",
            options, &a.on.run, .too_few = "which run? weft evaluate RUN --data FILE; RUN is the --out of weft train",
            .too_many = "the text is given by --data FILE"},
        evaluate, &a, argc, argv);
}
