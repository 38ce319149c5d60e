/* SPDX-License-Identifier: MIT */
/* weft bleu REFERENCE... < hypotheses */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"

/* In the order of the options. */
enum {
    KEY_METRIC = 1000,
    KEY_TOKENIZE,
    KEY_SMOOTH,
    KEY_SMOOTH_VALUE,
    KEY_EFFECTIVE,
    KEY_LOWERCASE,
    KEY_CHAR_ORDER,
    KEY_WORD_ORDER,
    KEY_BETA,
    KEY_WHITESPACE,
    KEY_EPS,
    KEY_WIDTH,
    KEY_SCORE_ONLY,
    KEY_JSON
};

static const struct argp_option options[] = {
    {"metric", KEY_METRIC, "bleu|chrf", 0, "what to compute: bleu (the default), chrf, or bleu,chrf", 0},
    {"tokenize", KEY_TOKENIZE, "13a|intl|none|char", 0, "BLEU: tokenization of the lines", 0},
    {"smooth", KEY_SMOOTH, "exp|floor|add-k|none", 0, "BLEU: smoothing of precisions that are zero", 0},
    {"smooth-value", KEY_SMOOTH_VALUE, "X", 0, "BLEU: value for floor (default 0.1) and add-k (default 1)", 0},
    {"effective-order", KEY_EFFECTIVE, NULL, 0, "BLEU: ignore n-gram orders that all lines are too short for", 0},
    {"lowercase", KEY_LOWERCASE, NULL, 0, "ignore case", 0},
    {"chrf-char-order", KEY_CHAR_ORDER, "N", 0, "chrF: longest n-gram of characters (6)", 0},
    {"chrf-word-order", KEY_WORD_ORDER, "N", 0, "chrF: longest n-gram of words (0); 2 is chrF++", 0},
    {"chrf-beta", KEY_BETA, "N", 0, "chrF: weight of recall against precision (2)", 0},
    {"chrf-whitespace", KEY_WHITESPACE, NULL, 0, "chrF: white space counts as characters", 0},
    {"chrf-eps-smoothing", KEY_EPS, NULL, 0, "chrF: mean of the orders' scores, as chrF++.py", 0},
    {"width", KEY_WIDTH, "N", 0, "decimals of the score (1)", 0},
    {"score-only", KEY_SCORE_ONLY, NULL, 0, "print the score alone; not with --json", 0},
    {"json", KEY_JSON, NULL, 0, "print one JSON object for each metric, on a line", 0},
    {0},
};

enum { MOST_REFERENCES = 64 };

struct arguments {
    const char *reference[MOST_REFERENCES];
    int64_t references, width;
    bool bleu, chrf, json, score_only;
    const char *for_bleu, *for_chrf; /* an option that the metric must be asked for */
    struct wf_bleu_options bleu_options;
    struct wf_chrf_options chrf_options;
};

static bool parse_metrics(const char *text, struct arguments *a)
{
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        if (length != 4 || (strncmp(at, "bleu", 4) != 0 && strncmp(at, "chrf", 4) != 0)) {
            fail_usage("--metric: '%s' is not bleu, chrf or bleu,chrf", text);
            return false;
        }
        *(at[0] == 'b' ? &a->bleu : &a->chrf) = true;
        at += length;
        if (!*at)
            return true;
    }
}

static bool parse_order(const char *option, const char *text, int64_t low, int64_t high, int *out)
{
    int64_t value;
    if (!parse_int(option, text, low, high, &value))
        return false;
    *out = (int)value;
    return true;
}

static error_t parse_option(int key, char *value, struct argp_state *state)
{
    struct arguments *a = state->input;
    bool fine = true;
    if (key >= KEY_TOKENIZE && key <= KEY_EFFECTIVE)
        a->for_bleu = options[key - KEY_METRIC].name;
    if (key >= KEY_CHAR_ORDER && key <= KEY_EPS)
        a->for_chrf = options[key - KEY_METRIC].name;
    switch (key) {
    case KEY_METRIC:
        fine = parse_metrics(value, a);
        break;
    case KEY_TOKENIZE:
        if (!(fine = wf_bleu_tokenizer_parse(value, &a->bleu_options.tokenizer)))
            fail_usage("--tokenize: '%s' is not 13a, intl, none or char", value);
        break;
    case KEY_SMOOTH:
        if (!(fine = wf_bleu_smooth_parse(value, &a->bleu_options.smooth)))
            fail_usage("--smooth: '%s' is not exp, floor, add-k or none", value);
        break;
    case KEY_SMOOTH_VALUE:
        fine = parse_real("smooth-value", value, 1e-300, 1e300, &a->bleu_options.smooth_value);
        break;
    case KEY_LOWERCASE:
        a->bleu_options.lowercase = a->chrf_options.lowercase = true;
        break;
    case KEY_EFFECTIVE:
        a->bleu_options.effective_order = true;
        break;
    case KEY_CHAR_ORDER:
        fine = parse_order("chrf-char-order", value, 1, WF_CHRF_MAX_ORDER, &a->chrf_options.char_order);
        break;
    case KEY_WORD_ORDER:
        fine = parse_order("chrf-word-order", value, 0, WF_CHRF_MAX_ORDER, &a->chrf_options.word_order);
        break;
    case KEY_BETA:
        fine = parse_order("chrf-beta", value, 1, 1000, &a->chrf_options.beta);
        break;
    case KEY_WHITESPACE:
        a->chrf_options.whitespace = true;
        break;
    case KEY_EPS:
        a->chrf_options.eps_smoothing = true;
        break;
    case KEY_WIDTH:
        fine = parse_int("width", value, 0, 15, &a->width);
        break;
    case KEY_SCORE_ONLY:
        a->score_only = true;
        break;
    case KEY_JSON:
        a->json = true;
        break;
    case ARGP_KEY_ARG:
        if (a->references == MOST_REFERENCES)
            return fail_usage("more than %d files of references", MOST_REFERENCES), EINVAL;
        a->reference[a->references++] = value;
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return fine ? 0 : EINVAL;
}

static const struct argp argp = {options,
                                 parse_option,
                                 "REFERENCE... < HYPOTHESES",
                                 "BLEU and chrF of translations, a line each, against files of references, as sacreBLEU computes and "
                                 "prints them.",
                                 NULL,
                                 NULL,
                                 NULL};

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
    /* of two lines the signs = stand below each other */
    size_t left[2] = {strcspn(line[0], "="), strcspn(line[1], "=")}, most = left[0] > left[1] ? left[0] : left[1];
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
                "weft: warning: %" PRId64 " lines end in \" .\": BLEU wants text that is not split into tokens; "
                "if it is meant to be, --tokenize none\n",
                bleu->pre_tokenized);
}

int run_bleu(int argc, char **argv)
{
    struct arguments a = {.width = 1};
    int code = parse(&argp, argc, argv, &a);
    if (code >= 0)
        return code;
    if (a.references == 0)
        return fail_usage("against what? weft bleu REFERENCE... < HYPOTHESES, a line each");
    if (a.json && a.score_only)
        return fail_usage("--score-only and --json are two ways to print: give one");
    if (!a.bleu && !a.chrf)
        a.bleu = true;
    if (a.for_chrf && !a.chrf)
        return fail_usage("--%s is about chrF: add --metric chrf", a.for_chrf);
    if (a.for_bleu && !a.bleu)
        return fail_usage("--%s is about BLEU: add --metric bleu", a.for_bleu);
    if (a.bleu_options.smooth_value > 0 && a.bleu_options.smooth != WF_SMOOTH_FLOOR && a.bleu_options.smooth != WF_SMOOTH_ADD_K)
        return fail_usage("--smooth-value is for --smooth floor and add-k; %s has none", wf_bleu_smooth_name(a.bleu_options.smooth));
    wf_error error = {0};
    wf_bleu *bleu = NULL;
    wf_chrf *chrf = NULL;
    struct wf_bleu_score bleu_score = {0};
    struct wf_chrf_score chrf_score = {0};
    wf_status status = a.bleu ? wf_bleu_new(&a.bleu_options, &bleu, &error) : WF_OK;
    if (status == WF_OK && a.chrf)
        status = wf_chrf_new(&a.chrf_options, &chrf, &error);
    if (status == WF_OK)
        status = wf_score_files(NULL, a.reference, a.references, bleu, chrf, &error);
    if (status == WF_OK && a.bleu)
        status = wf_bleu_result(bleu, &bleu_score, &error);
    if (status == WF_OK && a.chrf)
        status = wf_chrf_result(chrf, &chrf_score, &error);
    wf_bleu_free(bleu);
    wf_chrf_free(chrf);
    if (status != WF_OK)
        return fail(&error);
    print_scores(&a, &bleu_score, &chrf_score);
    return EXIT_DONE;
}
