/* SPDX-License-Identifier: MIT */
/* weft bleu REFERENCE... < hypotheses: prints BLEU and chrF. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weft/internal/minmax.h>

#include "cli.h"

enum { MOST_REFERENCES = 64 };

struct arguments {
    const char *reference[MOST_REFERENCES];
    int64_t references, width, char_order, word_order, beta;
    int tokenizer; /* enum wf_bleu_tokenizer */
    int smooth;    /* enum wf_bleu_smooth */
    bool bleu, chrf, json, score_only, lowercase;
    const char *for_bleu; /* name of an option that was given and applies to BLEU only; NULL: no such option was given */
    const char *for_chrf; /* name of an option that was given and applies to chrF only; NULL: no such option was given */
    struct wf_bleu_options bleu_options;
    struct wf_chrf_options chrf_options;
};

static bool take_metrics(const char *option, const char *text, void *arguments)
{
    struct arguments *a = arguments;
    for (const char *at = text;; at += 5) {
        bool bleu = strncmp(at, "bleu", 4) == 0, chrf = strncmp(at, "chrf", 4) == 0;
        if ((!bleu && !chrf) || (at[4] && at[4] != ','))
            return fail_usage("--%s: '%s' is not bleu, chrf or bleu,chrf", option, text), false;
        *(bleu ? &a->bleu : &a->chrf) = true;
        if (!at[4])
            return true;
    }
}

static void print_bleu_json(const struct wf_bleu_score *s)
{
    printf("{\"name\": \"BLEU\", \"score\": %.17g, \"signature\": \"%s\", \"precisions\": [%.17g, %.17g, %.17g, %.17g], ", s->score,
           s->signature, s->precisions[0], s->precisions[1], s->precisions[2], s->precisions[3]);
    printf("\"matches\": [%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 "], \"totals\": [%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64
           "], ",
           s->matches[0], s->matches[1], s->matches[2], s->matches[3], s->totals[0], s->totals[1], s->totals[2], s->totals[3]);
    printf("\"brevity_penalty\": %.17g, \"ratio\": %.17g, \"hyp_len\": %" PRId64 ", \"ref_len\": %" PRId64 ", \"lines\": %" PRId64 "}\n",
           s->brevity_penalty, s->ratio, s->hypothesis_length, s->reference_length, s->segments);
}

static void print_chrf_json(const struct wf_chrf_score *s)
{
    printf("{\"name\": \"%s\", \"score\": %.17g, \"signature\": \"%s\", \"lines\": %" PRId64 "}\n", s->name, s->score, s->signature,
           s->segments);
}

static void print(const struct arguments *a, const struct wf_bleu_score *bleu, const struct wf_chrf_score *chrf)
{
    char line[2][512] = {"", ""};
    if (a->bleu)
        wf_bleu_line(bleu, true, (int)a->width, line[0], sizeof line[0]);
    if (a->chrf)
        wf_chrf_line(chrf, true, (int)a->width, line[1], sizeof line[1]);
    /* indent the line with the shorter name, so that the first `=` of both lines stands in the same column */
    size_t left[2] = {strcspn(line[0], "="), strcspn(line[1], "=")}, most = WF_MAX(left[0], left[1]);
    for (int i = 0; i < 2; i++)
        if (line[i][0])
            printf("%*s%s\n", (int)(most - left[i]), "", line[i]);
}

static void print_scores(const struct arguments *a, const struct wf_bleu_score *bleu, const struct wf_chrf_score *chrf)
{
    if (a->json) {
        if (a->bleu)
            print_bleu_json(bleu);
        if (a->chrf)
            print_chrf_json(chrf);
    } else if (a->score_only) {
        if (a->bleu)
            printf("%.*f\n", (int)a->width, bleu->score);
        if (a->chrf)
            printf("%.*f\n", (int)a->width, chrf->score);
    } else {
        print(a, bleu, chrf);
    }
    if (a->bleu && bleu->pre_tokenized >= 100 && a->bleu_options.tokenizer != WF_BLEU_NONE)
        fprintf(stderr,
                "%s: warning: %" PRId64 " lines end in \" .\": BLEU expects untokenised text; "
                "for tokenised text give --tokenize none\n",
                program(), bleu->pre_tokenized);
}

/* Checks the options before any file is read. */
static wf_status check(const struct arguments *a, wf_error *error)
{
    if (a->json && a->score_only)
        return wf_error_set(error, WF_ERR_ARGUMENT, "--score-only and --json exclude each other: give one");
    if (a->for_chrf && !a->chrf)
        return wf_error_set(error, WF_ERR_ARGUMENT, "--%s applies to chrF: add --metric chrf", a->for_chrf);
    if (a->for_bleu && !a->bleu)
        return wf_error_set(error, WF_ERR_ARGUMENT, "--%s applies to BLEU: add --metric bleu", a->for_bleu);
    if (a->bleu_options.smooth_value > 0 && a->smooth != WF_SMOOTH_FLOOR && a->smooth != WF_SMOOTH_ADD_K)
        return wf_error_set(error, WF_ERR_ARGUMENT, "--smooth-value applies to --smooth floor and add-k, not to %s",
                            wf_bleu_smooth_name(a->bleu_options.smooth));
    return WF_OK;
}

static wf_status score(void *arguments, wf_error *error)
{
    struct arguments *a = arguments;
    struct wf_bleu_options *b = &a->bleu_options;
    struct wf_chrf_options *c = &a->chrf_options;
    b->tokenizer = (enum wf_bleu_tokenizer)a->tokenizer;
    b->smooth = (enum wf_bleu_smooth)a->smooth;
    b->lowercase = c->lowercase = a->lowercase;
    c->char_order = (int)a->char_order;
    c->word_order = (int)a->word_order;
    c->beta = (int)a->beta;
    a->bleu |= !a->chrf;
    wf_bleu *bleu = NULL;
    wf_chrf *chrf = NULL;
    struct wf_bleu_score bleu_score = {0};
    struct wf_chrf_score chrf_score = {0};
    wf_status status = check(a, error);
    if (status == WF_OK && a->bleu)
        status = wf_bleu_new(b, &bleu, error);
    if (status == WF_OK && a->chrf)
        status = wf_chrf_new(c, &chrf, error);
    if (status == WF_OK)
        status = wf_score_files(NULL, a->reference, a->references, bleu, chrf, error);
    if (status == WF_OK && a->bleu)
        status = wf_bleu_result(bleu, &bleu_score, error);
    if (status == WF_OK && a->chrf)
        status = wf_chrf_result(chrf, &chrf_score, error);
    wf_bleu_free(bleu);
    wf_chrf_free(chrf);
    if (status == WF_OK)
        print_scores(a, &bleu_score, &chrf_score);
    return status;
}

int run_bleu(int argc, char **argv)
{
    struct arguments a = {.width = 1};
    struct wf_bleu_options *b = &a.bleu_options;
    struct wf_chrf_options *c = &a.chrf_options;
    const struct option_row options[] = {
        {"metric", "bleu|chrf", "what to compute: bleu (the default), chrf, or bleu,chrf", .take = take_metrics, .to = &a,
         .repeatable = true},
        {"tokenize", "13a|intl|none|char", "BLEU: tokenization of the lines", .choice = &a.tokenizer, .given = &a.for_bleu},
        {"smooth", "exp|floor|add-k|none", "BLEU: smoothing of precisions that are zero", .choice = &a.smooth, .given = &a.for_bleu},
        {"smooth-value", "X", "BLEU: value for floor (default 0.1) and add-k (default 1)", .real = &b->smooth_value, .least = 1e-300,
         .most = 1e300, .given = &a.for_bleu},
        {"effective-order", NULL, "BLEU: ignore n-gram orders longer than every line", .flag = &b->effective_order, .given = &a.for_bleu},
        {"lowercase", NULL, "ignore case", .flag = &a.lowercase},
        {"chrf-char-order", "N", "chrF: longest n-gram of characters (6)", .number = &a.char_order, .low = 1, .high = WF_CHRF_MAX_ORDER,
         .given = &a.for_chrf},
        {"chrf-word-order", "N", "chrF: longest n-gram of words (0); 2 is chrF++", .number = &a.word_order, .low = 0,
         .high = WF_CHRF_MAX_ORDER, .given = &a.for_chrf},
        {"chrf-beta", "N", "chrF: weight of recall against precision (2)", .number = &a.beta, .low = 1, .high = 1000, .given = &a.for_chrf},
        {"chrf-whitespace", NULL, "chrF: white space counts as characters", .flag = &c->whitespace, .given = &a.for_chrf},
        {"chrf-eps-smoothing", NULL, "chrF: mean of the orders' scores, as chrF++.py", .flag = &c->eps_smoothing, .given = &a.for_chrf},
        {"width", "N", "decimals of the score (1)", .number = &a.width, .low = 0, .high = 15},
        {"score-only", NULL, "print only the score; not with --json", .flag = &a.score_only},
        {"json", NULL, "print one JSON object per metric, each on a line", .flag = &a.json},
        {0},
    };
    return run_command(
        &(struct command_line){
            "REFERENCE... < HYPOTHESES",
            "Prints BLEU and chrF of translations, one per line, against files of references, as sacreBLEU computes and prints them.",
            options, a.reference, .most = MOST_REFERENCES, .count = &a.references,
            .too_few = "REFERENCE is missing: $0 bleu REFERENCE... < HYPOTHESES, aligned by line"},
        score, &a, argc, argv);
}
