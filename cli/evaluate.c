/* SPDX-License-Identifier: MIT */
/* weft evaluate RUN --data FILE[,FILE] | --choices FILE [--json]: prints the loss of a language model on a text, of an encoder on the
 * masked tokens of a text, or of a translation model on sentence pairs; for translation also BLEU and chrF. */
#include <math.h>
#include <stdio.h>

#include <weft/internal/string.h>

#include "cli.h"
#include "display.h"
#include "evaluate_choices.h"
#include "several.h"

struct arguments {
    struct run_options on;
    const char *data;
    int64_t beam, stride, context;
    bool json, no_bleu, bos;
    const char *choices, *details;
};

struct evaluation {
    const struct arguments *a;
    wf_dist *dist;
    struct list files;
    struct wf_run run;
    wf_tape *tape;
    char *cache;
    struct wf_text_ids text; /* data of a language model or an encoder */
    wf_bitext *bitext;       /* data of a translation model */
    struct wf_evaluation mean;
    double bits;     /* bits per character */
    int64_t unknown; /* number of unknown tokens in the data */
    bool begins;     /* each window, or context of a question, begins with the tokens of the tokenizer's template */
    bool bits_known; /* `bits` is set: the model is a language model */
    bool scored;     /* `scores` is set */
    struct wf_translation_scores scores;
    struct choices choices;
    struct display display;
    struct wf_progress progress;
};

static void show_share(void *evaluation, int64_t done, int64_t total)
{
    struct evaluation *e = evaluation;
    const double share = total > 0 ? (double)done / (double)total : 1;
    display_show(&e->display, share, false, "evaluating %.0f %%", 100 * share);
}

static enum wf_model_kind kind_of(const struct evaluation *e)
{
    return wf_model_kind_of(e->run.model);
}

static wf_status evaluate_text(struct evaluation *e, wf_error *error)
{
    const struct wf_text_ids *text = &e->text;
    const char *data = e->a->data;
    warn_of_unknown(data, text->unknown, text->ids.count);
    if (kind_of(e) == WF_MODEL_ENCODER) {
        wf_status status =
            wf_evaluate_masked_on(e->dist, e->run.model, e->run.tokenizer, e->tape, text->ids, 0, &e->progress, &e->mean, error);
        if (status != WF_OK)
            wf_error_prefix(error, "%s", data);
        return status;
    }
    if (text->ids.count < 2 - e->begins)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: the text has %s: there is nothing to predict", data,
                            e->begins ? "no tokens" : "fewer than two tokens");
    const struct wf_window_options w = {
        .context = e->a->context, .stride = e->a->stride, .begin = e->run.begin, .begins = e->begins ? e->run.begins : 0};
    wf_status status = wf_evaluate_windows_on(e->dist, e->run.model, e->tape, text->ids, &w, &e->progress, &e->mean, error);
    /* the first token is not predicted, so scale the number of characters to the predicted tokens */
    double predicted = (double)text->characters * (double)e->mean.tokens / (double)text->ids.count;
    e->bits = e->mean.loss * (double)e->mean.tokens / predicted / M_LN2;
    e->bits_known = true;
    return status;
}

static bool show(void *ctx, int64_t done, int64_t total)
{
    display_show(ctx, total > 0 ? (double)done / (double)total : 1, done == total, "%lld/%lld lines translated", (long long)done,
                 (long long)total);
    return !interrupted(NULL);
}

static wf_status evaluate_pairs(struct evaluation *e, wf_error *error)
{
    char line[512], **file = e->files.item;
    const struct wf_run *run = &e->run;
    const struct wf_bitext_survey *survey = wf_bitext_survey(e->bitext);
    if (survey->used < survey->lines)
        fprintf(stderr, "%s\n", wf_bitext_describe(survey, line, sizeof line));
    warn_of_unknown(file[0], survey->source_unknown, survey->source_tokens);
    warn_of_unknown(file[1], survey->target_unknown, survey->target_tokens);
    wf_status status = wf_evaluate_pairs_on(e->dist, run->model, e->tape, e->bitext, 0, 0, &e->progress, &e->mean, error);
    if (status != WF_OK || e->a->no_bleu)
        return status;
    warn_of_pieces(run->tokenizer, e->a->on.run);
    struct wf_translator_options o = {.search = {.beam = e->a->beam, .cancelled = interrupted}, .truncate = true};
    watch_interrupts(WATCH_BRIEF);
    status = wf_evaluate_translation_on(e->dist, run, file[0], file[1], &o, show, &e->display, &e->scores, error);
    e->scored = status == WF_OK;
    report_truncated(e->scores.counts.truncated, e->scores.counts.lines, wf_config_shape(&run->config).context);
    return status;
}

/* --- the command ---------------------------------------------------------------------------------------------------- */

static wf_status open_model(struct evaluation *e, wf_error *error)
{
    const char *name = e->a->on.run;
    wf_status status = e->a->data ? list_parse(e->a->data, true, &e->files, error) : WF_OK;
    if (status == WF_OK)
        status = open_run(&e->a->on, &e->run, error);
    if (status != WF_OK)
        return status;
    const bool translates = kind_of(e) == WF_MODEL_PAIRS, encodes = kind_of(e) == WF_MODEL_ENCODER;
    if (!translates && (e->a->beam || e->a->no_bleu))
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s is not a translation model: --beam and --no-bleu apply only to those", name);
    if ((translates || encodes) && (e->a->stride || e->a->context || e->a->choices || e->a->bos))
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "%s is not a language model: --stride, --context, --bos and --choices apply only to those", name);
    const int64_t most = wf_config_shape(&e->run.config).context, window = e->a->context ? e->a->context : most;
    if (window > most)
        return wf_error_set(error, WF_ERR_ARGUMENT, "--context %lld is more than the context of %s, %lld tokens", (long long)window, name,
                            (long long)most);
    e->begins = e->a->bos || e->run.needs_begin;
    if (e->a->bos && e->run.begins == 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "--bos: the tokenizer of %s has no template that puts tokens before a text only", name);
    e->choices.begins = e->begins;
    if (e->begins && e->run.begins > WF_RUN_BEGINS)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: the tokenizer's template puts %d tokens before a text, but --bos takes %d at most",
                            name, e->run.begins, WF_RUN_BEGINS);
    const int begins = e->begins ? e->run.begins : 0;
    if (begins >= window)
        return wf_error_set(error, WF_ERR_ARGUMENT, "--context %lld leaves no tokens of the text: %d are those of --bos", (long long)window,
                            begins);
    if (e->a->stride > window - begins)
        return wf_error_set(error, WF_ERR_ARGUMENT, "--stride %lld is more than the %lld tokens of a window%s: tokens would be left out",
                            (long long)e->a->stride, (long long)(window - begins), begins > 0 ? " less those of --bos" : "");
    if (encodes && !(e->run.config.training.mask_rate > 0))
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s is a model for sentence vectors and has no loss: use %s embed %s < FILE", name,
                            program(), name);
    if (translates && e->files.count != 2)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s is a translation model: --data takes two files, source and target, not %lld", name,
                            (long long)e->files.count);
    if (wf_cache_folder(&e->cache, error) == WF_OK)
        e->tape = wf_tape_new(error);
    return error->code;
}

static wf_status open_text(void *evaluation, wf_error *error)
{
    struct evaluation *e = evaluation;
    char **file = e->files.item;
    if (e->choices.file)
        return choices_open(&e->choices, error);
    const struct wf_corpus_options o = {.tokenizer = e->run.tokenizer, .cache = e->cache};
    return kind_of(e) == WF_MODEL_PAIRS ? wf_run_bitext(&e->run, file[0], file[1], e->cache, &e->bitext, error)
                                        : wf_text_ids_open((const char *const *)file, e->files.count, &o, &e->text, error);
}

/* Checks that all processes evaluate the same model on the same data with the same options. */
static wf_status compare(struct evaluation *e, wf_error *error)
{
    const struct wf_bitext_survey *survey = wf_bitext_survey(e->bitext);
    struct wf_string words = {0};
    e->unknown = survey ? survey->source_unknown + survey->target_unknown : e->text.unknown;
    wf_program_words(e->dist, &words);
    wf_run_words(&e->run, &words);
    wf_string_format(&words, "beam=%lld no-bleu=%d stride=%lld context=%lld bos=%d #text=%016llx", (long long)e->a->beam, e->a->no_bleu,
                     (long long)e->a->stride, (long long)e->a->context, e->begins,
                     (unsigned long long)(survey            ? survey->hash
                                          : e->choices.file ? choices_hash(&e->choices)
                                                            : e->text.hash));
    return wf_dist_compare(e->dist, &words, error);
}

static wf_status compute(struct evaluation *e, wf_error *error)
{
    e->dist = open_world("evaluate", error);
    if (error->code)
        return error->code;
    wf_status status = wf_dist_agree(e->dist, open_model(e, error), error);
    if (status == WF_OK)
        status = open_in_turn(e->dist, open_text, e, error);
    if (status == WF_OK)
        status = compare(e, error);
    if (status == WF_OK) {
        display_open(&e->display);
        e->progress = (struct wf_progress){show_share, e};
        status = e->choices.file                ? choices_evaluate(&e->choices, e->dist, &e->run, e->tape, &e->progress, error)
                 : kind_of(e) == WF_MODEL_PAIRS ? evaluate_pairs(e, error)
                                                : evaluate_text(e, error);
        display_clear(&e->display);
    }
    if (status == WF_OK && !e->choices.file && !isfinite(exp(e->mean.loss)))
        status = wf_error_set(error, WF_ERR_NUMERIC, "%s: the loss is %g: the weights are damaged, or the training diverged", e->a->on.run,
                              e->mean.loss);
    return wf_dist_agree(e->dist, status, error);
}

static void print(const struct evaluation *e)
{
    char line[512];
    printf("loss %.4f\nperplexity %.4f\n", e->mean.loss, exp(e->mean.loss));
    if (e->bits_known)
        printf("bits per character %.4f\n", e->bits);
    printf("tokens %lld\n", (long long)e->mean.tokens);
    if (e->scored) {
        printf("%s\n", wf_bleu_line(&e->scores.bleu, true, 2, line, sizeof line));
        printf("%s\n", wf_chrf_line(&e->scores.chrf, true, 2, line, sizeof line));
    }
}

static void print_json(const struct evaluation *e)
{
    printf("{\"loss\": %.17g, \"perplexity\": %.17g, ", e->mean.loss, exp(e->mean.loss));
    if (e->bits_known)
        printf("\"bits_per_character\": %.17g, ", e->bits);
    printf("\"tokens\": %lld", (long long)e->mean.tokens);
    if (e->scored)
        printf(", \"bleu\": %.17g, \"chrf\": %.17g, \"bleu_signature\": \"%s\", \"chrf_signature\": \"%s\"", e->scores.bleu.score,
               e->scores.chrf.score, e->scores.bleu.signature, e->scores.chrf.signature);
    printf(", \"unknown\": %lld}\n", (long long)e->unknown);
}

static wf_status check_options(const struct arguments *a, wf_error *error)
{
    if (!a->data && !a->choices)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s evaluate needs --data FILE: the text to evaluate on; or --choices FILE: questions",
                            program());
    if (a->choices && (a->data || a->stride || a->context || a->beam || a->no_bleu))
        return wf_error_set(error, WF_ERR_ARGUMENT, "--choices has questions of its own: give it without --%s",
                            a->data      ? "data"
                            : a->stride  ? "stride"
                            : a->context ? "context"
                            : a->beam    ? "beam"
                                         : "no-bleu");
    if (a->details && !a->choices)
        return wf_error_set(error, WF_ERR_ARGUMENT, "--details %s belongs to --choices", a->details);
    return WF_OK;
}

static wf_status evaluate(void *arguments, wf_error *error)
{
    struct evaluation e = {.a = arguments};
    e.choices = (struct choices){.file = e.a->choices, .details = e.a->details};
    wf_status status = check_options(e.a, error);
    if (status == WF_OK)
        status = compute(&e, error);
    if (status == WF_OK && e.choices.file)
        choices_print(&e.choices, e.a->json);
    else if (status == WF_OK)
        (e.a->json ? print_json : print)(&e);
    choices_close(&e.choices);
    wf_text_ids_close(&e.text);
    wf_bitext_close(e.bitext);
    wf_free(e.cache);
    wf_tape_free(e.tape);
    wf_run_close(&e.run);
    list_free(&e.files);
    return status;
}

int run_evaluate(int argc, char **argv)
{
    struct arguments a = {0};
    const struct option_row options[] = {
        {"data", "FILE[,FILE]", "text to evaluate on, UTF-8; for translation: source and target, aligned by line", .text = &a.data},
        {"choices", "FILE", "instead of a text, multiple-choice questions: JSON lines with context, choices and answer",
         .text = &a.choices},
        {"details", "FILE", "with --choices: write the log-likelihoods of all choices to FILE, as JSON lines", .text = &a.details},
        {"json", NULL, "print one JSON object", .flag = &a.json},
        {"stride", "N", "of a language model: windows begin N tokens apart, and overlapping tokens only give context (default: no overlap)",
         .number = &a.stride, .low = 1, .high = INT32_MAX},
        {"context", "N", "of a language model: tokens of a window (default: the model's context)", .number = &a.context, .low = 2,
         .high = INT32_MAX},
        {"bos", NULL,
         "of a language model: begin each window, or context of a question, with the tokens that the tokenizer's template puts before a "
         "text "
         "(default: only with Gemma, which needs them)",
         .flag = &a.bos},
        {"beam", "N", "beam width; 1 is greedy (default: the model's)", .number = &a.beam, .low = 1, .high = 1024},
        {"no-bleu", NULL, "for translation: only the loss, which is fast", .flag = &a.no_bleu},
        RUN_ROWS(a.on),
        {0},
    };
    return run_command(
        &(struct command_line){
            "RUN --data FILE|--choices FILE",
            "Prints loss (nats per token), perplexity and bits per character of a run's model on a text. For an encoder: loss and "
            "perplexity of masked-language modelling, with the same masked tokens each time. For a translation model: loss (nats per "
            "target token), perplexity, BLEU (13a, cased) and chrF on two files; the loss is computed on the pairs that training "
            "would use, BLEU and chrF on all lines, including empty and too long ones. With --choices: the accuracy of a language model on "
            "multiple-choice questions, by the log-likelihood of each choice (acc), and by that divided by the choice's number of "
            "characters "
            "(acc_norm). mpirun -n 4 $0 evaluate ... shares the work among "
            "processes, with the same output.",
            options, &a.on.run, .too_few = "RUN is missing: $0 evaluate RUN --data FILE; RUN is the --out of $0 train",
            .too_many = "the text is given by --data FILE", .several = true},
        evaluate, &a, argc, argv);
}
