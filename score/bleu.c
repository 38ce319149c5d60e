/* SPDX-License-Identifier: MIT */
/* BLEU (weft/score.h): counts of n-grams for each segment, and the score. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/internal/locale_c.h>
#include <weft/internal/minmax.h>
#include <weft/internal/needs.h>
#include <weft/memory.h>

#include "grams.h"
#include "text.h"

struct counts {
    int64_t hypothesis_length, reference_length, matches[WF_BLEU_ORDER], totals[WF_BLEU_ORDER];
};

struct wf_bleu {
    struct wf_bleu_options options;
    struct counts counts;
    int64_t segments, pre_tokenized;
    int64_t references; /* references per segment, kept by reference_count_add */
    /* working memory for the present segment */
    struct grams grams;
    struct symbols words;
    struct wf_string lower, tokens, scratch;
};

/* --- names ----------------------------------------------------------------------------------------------------------- */

static const char *const tokenizer_names[] = {
    [WF_BLEU_13A] = "13a", [WF_BLEU_INTL] = "intl", [WF_BLEU_NONE] = "none", [WF_BLEU_CHAR] = "char"};
static const char *const smooth_names[] = {
    [WF_SMOOTH_EXP] = "exp", [WF_SMOOTH_FLOOR] = "floor", [WF_SMOOTH_ADD_K] = "add-k", [WF_SMOOTH_NONE] = "none"};

const char *wf_bleu_tokenizer_name(enum wf_bleu_tokenizer tokenizer)
{
    return tokenizer_names[tokenizer];
}

const char *wf_bleu_smooth_name(enum wf_bleu_smooth smooth)
{
    return smooth_names[smooth];
}

bool wf_bleu_tokenizer_parse(const char *name, enum wf_bleu_tokenizer *out)
{
    if (!name || !out)
        return false;
    for (int i = 0; i <= WF_BLEU_CHAR; i++)
        if (strcmp(name, tokenizer_names[i]) == 0)
            return *out = (enum wf_bleu_tokenizer)i, true;
    return false;
}

bool wf_bleu_smooth_parse(const char *name, enum wf_bleu_smooth *out)
{
    if (!name || !out)
        return false;
    for (int i = 0; i <= WF_SMOOTH_NONE; i++)
        if (strcmp(name, smooth_names[i]) == 0)
            return *out = (enum wf_bleu_smooth)i, true;
    return false;
}

/* --- counting -------------------------------------------------------------------------------------------------------- */

wf_status wf_bleu_new(const struct wf_bleu_options *options, wf_bleu **out, wf_error *error)
{
    if (wf_needs(error, "out", out))
        return WF_ERR_ARGUMENT;
    *out = NULL;
    struct wf_bleu_options o = options ? *options : (struct wf_bleu_options){0};
    if (o.tokenizer < WF_BLEU_13A || o.tokenizer > WF_BLEU_CHAR || o.smooth < WF_SMOOTH_EXP || o.smooth > WF_SMOOTH_NONE)
        return wf_error_set(error, WF_ERR_ARGUMENT, "BLEU: unknown tokenizer or smoothing: %d, %d", (int)o.tokenizer, (int)o.smooth);
    if (!isfinite(o.smooth_value) || o.smooth_value < 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "BLEU: smooth_value must be positive, or 0 for its default");
    if (o.smooth_value == 0)
        o.smooth_value = o.smooth == WF_SMOOTH_FLOOR ? 0.1 : 1;
    if (!(*out = wf_alloc_zero(1, sizeof **out)))
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for a scorer");
    (*out)->options = o;
    return WF_OK;
}

void wf_bleu_free(wf_bleu *bleu)
{
    if (!bleu)
        return;
    grams_free(&bleu->grams);
    symbols_free(&bleu->words);
    wf_string_free(&bleu->lower);
    wf_string_free(&bleu->tokens);
    wf_string_free(&bleu->scratch);
    wf_free(bleu);
}

void wf_bleu_reset(wf_bleu *bleu)
{
    if (!bleu)
        return;
    bleu->counts = (struct counts){0};
    bleu->segments = bleu->pre_tokenized = bleu->references = 0;
}

/* Splits a text into bleu->words. A word that occurs in the hypothesis for the first time gets a new number; a word of a reference that
 * the hypothesis lacks becomes NO_GRAM. */
static bool split(wf_bleu *bleu, struct wf_segment text, bool hypothesis)
{
    if (!score_text(text, bleu->options.lowercase, &bleu->lower, &text))
        return false;
    text.length = score_trim(text.text, text.length);
    bleu->words.count = 0;
    if (!score_tokenize(bleu->options.tokenizer, text.text, text.length, &bleu->tokens, &bleu->scratch))
        return false;
    const char *at = bleu->tokens.data, *end = at + bleu->tokens.length;
    int64_t length;
    for (const char *word; (word = score_word(&at, end, &length));)
        if (!symbols_add_word(&bleu->words, &bleu->grams, word, length, hypothesis))
            return false;
    return true;
}

static bool count(wf_bleu *bleu, struct wf_segment hypothesis, const struct wf_segment *references, int64_t number, struct counts *c)
{
    grams_clear(&bleu->grams);
    if (!split(bleu, hypothesis, true) || !grams_count(&bleu->grams, GRAM_ROOT, &bleu->words, WF_BLEU_ORDER))
        return false;
    c->hypothesis_length = bleu->words.count;
    for (int n = 0; n < WF_BLEU_ORDER; n++)
        c->totals[n] = bleu->words.count > n ? bleu->words.count - n : 0;
    uint32_t present = 0;
    for (int64_t i = 0; i < number; i++) {
        int64_t unused[WF_BLEU_ORDER] = {0};
        if (!references[i].text)
            continue;
        if (!split(bleu, references[i], false))
            return false;
        grams_match(&bleu->grams, GRAM_ROOT, &bleu->words, WF_BLEU_ORDER, ++present, unused);
        int64_t length = bleu->words.count, near = llabs(length - c->hypothesis_length),
                nearest = llabs(c->reference_length - c->hypothesis_length);
        if (present == 1 || near < nearest || (near == nearest && length < c->reference_length))
            c->reference_length = length;
    }
    for (int64_t i = 0; i < bleu->grams.count; i++) {
        const struct gram *g = &bleu->grams.gram[i];
        if (g->order > 0)
            c->matches[g->order - 1] += WF_MIN(g->count, g->most);
    }
    return true;
}

wf_status wf_bleu_add(wf_bleu *bleu, struct wf_segment hypothesis, const struct wf_segment *references, int64_t number, wf_error *error)
{
    if (wf_needs(error, "bleu, references", bleu, wf_some(references, number)))
        return WF_ERR_ARGUMENT;
    int64_t present;
    struct counts c = {0};
    wf_status status = score_check(hypothesis, references, number, bleu->segments + 1, &present, error);
    if (status != WF_OK)
        return status;
    if (!count(bleu, hypothesis, references, number, &c))
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for the n-grams of segment %" PRId64, bleu->segments + 1);
    bleu->counts.hypothesis_length += c.hypothesis_length;
    bleu->counts.reference_length += c.reference_length;
    for (int n = 0; n < WF_BLEU_ORDER; n++) {
        bleu->counts.matches[n] += c.matches[n];
        bleu->counts.totals[n] += c.totals[n];
    }
    bleu->segments++;
    score_text(hypothesis, false, &bleu->lower, &hypothesis);
    bleu->pre_tokenized += hypothesis.length >= 2 && memcmp(hypothesis.text + hypothesis.length - 2, " .", 2) == 0;
    reference_count_add(&bleu->references, present);
    return WF_OK;
}

/* --- the score ------------------------------------------------------------------------------------------------------- */

static void compute(const struct wf_bleu_options *o, struct wf_bleu_score *s)
{
    bool any = false;
    int order = WF_BLEU_ORDER;
    double halves = 1, sum = 0;
    s->ratio = s->reference_length ? (double)s->hypothesis_length / (double)s->reference_length : 0;
    s->brevity_penalty = 1;
    if (s->hypothesis_length < s->reference_length)
        s->brevity_penalty = s->hypothesis_length ? exp(1 - (double)s->reference_length / (double)s->hypothesis_length) : 0;
    for (int n = 0; n < WF_BLEU_ORDER; n++)
        any |= s->matches[n] > 0;
    if (!any)
        return;
    for (int n = 0; n < WF_BLEU_ORDER; n++) {
        double k = o->smooth == WF_SMOOTH_ADD_K && n > 0 ? o->smooth_value : 0;
        double matches = (double)s->matches[n] + k, total = (double)s->totals[n] + k;
        if (total == 0)
            break;
        if (o->effective_order)
            order = n + 1;
        if (matches > 0)
            s->precisions[n] = 100. * matches / total;
        else if (o->smooth == WF_SMOOTH_EXP)
            s->precisions[n] = 100. / ((halves *= 2) * total);
        else if (o->smooth == WF_SMOOTH_FLOOR)
            s->precisions[n] = 100. * o->smooth_value / total;
    }
    for (int n = 0; n < order; n++)
        sum += s->precisions[n] == 0 ? -9999999999. : log(s->precisions[n]);
    s->score = s->brevity_penalty * exp(sum / order);
}

wf_status wf_bleu_result(const wf_bleu *bleu, struct wf_bleu_score *out, wf_error *error)
{
    if (wf_needs(error, "bleu, out", bleu, out))
        return WF_ERR_ARGUMENT;
    *out = (struct wf_bleu_score){.hypothesis_length = bleu->counts.hypothesis_length,
                                  .reference_length = bleu->counts.reference_length,
                                  .segments = bleu->segments,
                                  .pre_tokenized = bleu->pre_tokenized};
    if (bleu->segments == 0)
        return wf_error_set(error, WF_ERR_STATE, "BLEU: no segments yet: call wf_bleu_add first");
    memcpy(out->matches, bleu->counts.matches, sizeof out->matches);
    memcpy(out->totals, bleu->counts.totals, sizeof out->totals);
    const struct wf_bleu_options *o = &bleu->options;
    compute(o, out);
    char references[24], value[32] = "";
    locale_t before = locale_c_enter();
    if (o->smooth == WF_SMOOTH_FLOOR || o->smooth == WF_SMOOTH_ADD_K)
        snprintf(value, sizeof value, o->smooth_value < 1e20 ? "[%.2f]" : "[%g]", o->smooth_value);
    snprintf(out->signature, sizeof out->signature, "nrefs:%s|case:%s|eff:%s|tok:%s|smooth:%s%s|version:weft-%s",
             reference_count_text(bleu->references, references, sizeof references), o->lowercase ? "lc" : "mixed",
             o->effective_order ? "yes" : "no", tokenizer_names[o->tokenizer], smooth_names[o->smooth], value, wf_version());
    locale_c_leave(before);
    return WF_OK;
}

wf_status wf_bleu_corpus(struct wf_segments hypotheses, const struct wf_segments *references, int64_t number,
                         const struct wf_bleu_options *options, struct wf_bleu_score *out, wf_error *error)
{
    if (wf_needs(error, "references, out", wf_some(references, number), out))
        return WF_ERR_ARGUMENT;
    wf_bleu *bleu;
    *out = (struct wf_bleu_score){0};
    wf_status status = wf_bleu_new(options, &bleu, error);
    if (status == WF_OK)
        status = score_corpus(hypotheses, references, number, bleu, NULL, error);
    if (status == WF_OK)
        status = wf_bleu_result(bleu, out, error);
    wf_bleu_free(bleu);
    return status;
}

char *wf_bleu_line(const struct wf_bleu_score *s, bool signature, int width, char *text, size_t size)
{
    if (!s || !text)
        return text;
    locale_t before = locale_c_enter();
    snprintf(text, size, "BLEU%s%s = %.*f %.1f/%.1f/%.1f/%.1f (BP = %.3f ratio = %.3f hyp_len = %" PRId64 " ref_len = %" PRId64 ")",
             signature ? "|" : "", signature ? s->signature : "", width, s->score, s->precisions[0], s->precisions[1], s->precisions[2],
             s->precisions[3], s->brevity_penalty, s->ratio, s->hypothesis_length, s->reference_length);
    locale_c_leave(before);
    return text;
}
