/* SPDX-License-Identifier: MIT */
/* chrF and chrF++ (weft/score.h): counts of n-grams for each segment, and the score. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weft/internal/locale_c.h>
#include <weft/internal/needs.h>
#include <weft/internal/utf8.h>
#include <weft/memory.h>

#include "grams.h"
#include "text.h"

/* Numbers of n-grams of one order. */
struct counts {
    int64_t hypothesis; /* n-grams in the hypothesis */
    int64_t reference;  /* n-grams in the reference */
    int64_t match;      /* n-grams that hypothesis and reference share */
};
struct statistics {
    struct counts order[2 * WF_CHRF_MAX_ORDER]; /* char_order orders of characters, then word_order orders of words */
};

struct wf_chrf {
    struct wf_chrf_options options;
    struct statistics counts;
    int64_t segments;
    int64_t references; /* references per segment, kept by reference_count_add */
    /* working memory for the present segment */
    struct grams grams;
    struct symbols characters, words;
    struct wf_string lower;
};

wf_status wf_chrf_new(const struct wf_chrf_options *options, wf_chrf **out, wf_error *error)
{
    if (wf_needs(error, "out", out))
        return WF_ERR_ARGUMENT;
    *out = NULL;
    struct wf_chrf_options o = options ? *options : (struct wf_chrf_options){0};
    if (o.char_order == 0)
        o.char_order = 6;
    if (o.beta == 0)
        o.beta = 2;
    if (o.char_order < 0 || o.char_order > WF_CHRF_MAX_ORDER || o.word_order < 0 || o.word_order > WF_CHRF_MAX_ORDER)
        return wf_error_set(error, WF_ERR_ARGUMENT, "chrF: orders must be at most %d: char_order is %d, word_order %d", WF_CHRF_MAX_ORDER,
                            o.char_order, o.word_order);
    if (o.beta < 0 || o.beta > 1000)
        return wf_error_set(error, WF_ERR_ARGUMENT, "chrF: beta is %d, not in 1 to 1000", o.beta);
    if (!(*out = wf_alloc_zero(1, sizeof **out)))
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for a scorer");
    (*out)->options = o;
    return WF_OK;
}

void wf_chrf_free(wf_chrf *chrf)
{
    if (!chrf)
        return;
    grams_free(&chrf->grams);
    symbols_free(&chrf->characters);
    symbols_free(&chrf->words);
    wf_string_free(&chrf->lower);
    wf_free(chrf);
}

void wf_chrf_reset(wf_chrf *chrf)
{
    if (!chrf)
        return;
    chrf->counts = (struct statistics){0};
    chrf->segments = chrf->references = 0;
}

/* --- counting -------------------------------------------------------------------------------------------------------- */

static bool punctuation(char c)
{
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

/* Appends the words of a text to chrf->words. A punctuation character at the end of a word becomes a word. Only if there is none, one at
 * the start becomes a word: "(hi)" gives "(hi" and ")", and "(hi" gives "(" and "hi". */
static bool add_words(wf_chrf *chrf, const char *at, const char *end, bool hypothesis)
{
    int64_t length;
    for (const char *word; (word = score_word(&at, end, &length));) {
        int64_t first = length;
        if (length > 1 && punctuation(word[length - 1]))
            first = length - 1;
        else if (length > 1 && punctuation(word[0]))
            first = 1;
        if (!symbols_add_word(&chrf->words, &chrf->grams, word, first, hypothesis) ||
            (first < length && !symbols_add_word(&chrf->words, &chrf->grams, word + first, length - first, hypothesis)))
            return false;
    }
    return true;
}

/* Splits a text into chrf->characters and chrf->words. */
static bool split(wf_chrf *chrf, struct wf_segment text, bool hypothesis)
{
    if (!score_text(text, chrf->options.lowercase, &chrf->lower, &text))
        return false;
    chrf->characters.count = chrf->words.count = 0;
    const char *end = text.text + text.length;
    for (const char *at = text.text; at < end;) {
        uint32_t point;
        at += wf_utf8_decode(at, end - at, &point);
        if ((chrf->options.whitespace || !score_space(point)) && !symbols_add(&chrf->characters, point))
            return false;
    }
    return chrf->options.word_order == 0 || add_words(chrf, text.text, end, hypothesis);
}

static int64_t grams_of(int64_t symbols, int order)
{
    return symbols >= order ? symbols - order + 1 : 0;
}

static double f_score(const struct wf_chrf_options *o, const struct statistics *s)
{
    const double eps = 1e-16, factor = (double)o->beta * o->beta;
    int orders = o->char_order + o->word_order, effective = 0;
    double score = 0, precision = 0, recall = 0;
    for (int i = 0; i < orders; i++) {
        const struct counts *c = &s->order[i];
        double p = c->hypothesis > 0 ? (double)c->match / (double)c->hypothesis : eps;
        double r = c->reference > 0 ? (double)c->match / (double)c->reference : eps;
        double denominator = factor * p + r;
        score += denominator > 0 ? (1 + factor) * p * r / denominator : eps;
        if (c->hypothesis > 0 && c->reference > 0) {
            precision += p;
            recall += r;
            effective++;
        }
    }
    if (o->eps_smoothing)
        return 100 * score / orders;
    if (effective == 0 || precision + recall == 0)
        return 0;
    precision /= effective;
    recall /= effective;
    return 100 * ((1 + factor) * precision * recall / (factor * precision + recall));
}

static bool count(wf_chrf *chrf, struct wf_segment hypothesis, const struct wf_segment *references, int64_t number, struct statistics *best)
{
    const struct wf_chrf_options *o = &chrf->options;
    grams_clear(&chrf->grams);
    if (!split(chrf, hypothesis, true) || !grams_count(&chrf->grams, GRAM_ROOT, &chrf->characters, o->char_order) ||
        !grams_count(&chrf->grams, GRAM_WORDS, &chrf->words, o->word_order))
        return false;
    int64_t characters = chrf->characters.count, words = chrf->words.count;
    double most = -1;
    uint32_t present = 0;
    for (int64_t i = 0; i < number; i++) {
        if (!references[i].text)
            continue;
        if (!split(chrf, references[i], false))
            return false;
        struct statistics s = {0};
        int64_t matches[2 * WF_CHRF_MAX_ORDER] = {0};
        present++;
        grams_match(&chrf->grams, GRAM_ROOT, &chrf->characters, o->char_order, present, matches);
        grams_match(&chrf->grams, GRAM_WORDS, &chrf->words, o->word_order, present, matches + o->char_order);
        for (int n = 0; n < o->char_order + o->word_order; n++) {
            bool word = n >= o->char_order;
            int order = word ? n - o->char_order + 1 : n + 1;
            int64_t in_reference = grams_of(word ? chrf->words.count : chrf->characters.count, order);
            /* n-grams of the hypothesis count only if the reference has n-grams of the same order */
            s.order[n] = (struct counts){in_reference ? grams_of(word ? words : characters, order) : 0, in_reference, matches[n]};
        }
        double score = f_score(o, &s);
        if (score > most) {
            most = score;
            *best = s;
        }
    }
    return true;
}

wf_status wf_chrf_add(wf_chrf *chrf, struct wf_segment hypothesis, const struct wf_segment *references, int64_t number, wf_error *error)
{
    if (wf_needs(error, "chrf, references", chrf, wf_some(references, number)))
        return WF_ERR_ARGUMENT;
    int64_t present;
    struct statistics s = {0};
    wf_status status = score_check(hypothesis, references, number, chrf->segments + 1, &present, error);
    if (status != WF_OK)
        return status;
    if (!count(chrf, hypothesis, references, number, &s))
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for the n-grams of segment %" PRId64, chrf->segments + 1);
    for (int n = 0; n < 2 * WF_CHRF_MAX_ORDER; n++) {
        chrf->counts.order[n].hypothesis += s.order[n].hypothesis;
        chrf->counts.order[n].reference += s.order[n].reference;
        chrf->counts.order[n].match += s.order[n].match;
    }
    chrf->segments++;
    reference_count_add(&chrf->references, present);
    return WF_OK;
}

/* --- the score ------------------------------------------------------------------------------------------------------- */

wf_status wf_chrf_result(const wf_chrf *chrf, struct wf_chrf_score *out, wf_error *error)
{
    if (wf_needs(error, "chrf, out", chrf, out))
        return WF_ERR_ARGUMENT;
    *out = (struct wf_chrf_score){.segments = chrf->segments};
    if (chrf->segments == 0)
        return wf_error_set(error, WF_ERR_STATE, "chrF: no segments yet: call wf_chrf_add first");
    const struct wf_chrf_options *o = &chrf->options;
    char references[24];
    out->score = f_score(o, &chrf->counts);
    int length = snprintf(out->name, sizeof out->name, "chrF%d", o->beta);
    memset(out->name + length, '+', (size_t)o->word_order);
    snprintf(out->signature, sizeof out->signature, "nrefs:%s|case:%s|eff:%s|nc:%d|nw:%d|space:%s|version:weft-%s",
             reference_count_text(chrf->references, references, sizeof references), o->lowercase ? "lc" : "mixed",
             o->eps_smoothing ? "no" : "yes", o->char_order, o->word_order, o->whitespace ? "yes" : "no", wf_version());
    return WF_OK;
}

wf_status wf_chrf_corpus(struct wf_segments hypotheses, const struct wf_segments *references, int64_t number,
                         const struct wf_chrf_options *options, struct wf_chrf_score *out, wf_error *error)
{
    if (wf_needs(error, "references, out", wf_some(references, number), out))
        return WF_ERR_ARGUMENT;
    wf_chrf *chrf;
    *out = (struct wf_chrf_score){0};
    wf_status status = wf_chrf_new(options, &chrf, error);
    if (status == WF_OK)
        status = score_corpus(hypotheses, references, number, NULL, chrf, error);
    if (status == WF_OK)
        status = wf_chrf_result(chrf, out, error);
    wf_chrf_free(chrf);
    return status;
}

char *wf_chrf_line(const struct wf_chrf_score *s, bool signature, int width, char *text, size_t size)
{
    if (!s || !text)
        return text;
    locale_t before = locale_c_enter();
    snprintf(text, size, "%s%s%s = %.*f", s->name, signature ? "|" : "", signature ? s->signature : "", width, s->score);
    locale_c_leave(before);
    return text;
}
