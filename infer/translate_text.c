/* SPDX-License-Identifier: MIT */
/* Translates lines of text with a translation model and its tokenizers. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <weft/detokenize.h>
#include <weft/internal/grow.h>
#include <weft/internal/lines.h>
#include <weft/internal/needs.h>
#include <weft/internal/sentence.h>
#include <weft/internal/several.h>
#include <weft/internal/string.h>
#include <weft/memory.h>
#include <weft/translate.h>

enum { CACHED_WORDS = 16384 };

struct wf_translator {
    const wf_model *model;
    const wf_tokenizer *source, *target;
    struct wf_translator_options options;
    char *name, *language;
    wf_dist *dist; /* the processes that share the work; NULL: this process alone */
    wf_tape *tape;
    wf_token_cache *cache;
    int32_t source_bos; /* id that begins a source sentence; -1: none */
    int32_t source_eos; /* id that ends a source sentence; -1: none */
    int32_t bos;        /* id that begins a target sentence */
    int32_t eos;        /* id that ends a target sentence */
    struct wf_translator_counts counts;

    /* memory for the lines of one call, which later calls reuse */
    struct wf_tokens ids; /* ids of all sentences */
    int32_t *offsets;     /* index in ids where each sentence begins */
    int64_t offset_room;
    int64_t *sentence; /* index of each line's sentence; -1: the line is empty */
    int64_t sentence_room;
    struct wf_string text;  /* all translations, each followed by a NUL */
    struct wf_string words; /* the words of one translation, which wf_detokenize joins */
    struct wf_line_translation *translation;
    int64_t translation_room;
};

static wf_status no_memory(wf_error *error)
{
    return wf_error_set(error, WF_ERR_MEMORY, "no memory to translate lines");
}

/* --- making a translator ------------------------------------------------------------------------------------------- */

/* Checks that a tokenizer has the model's vocabulary size and the special tokens that the model needs. *bos and *eos are set to the ids of
 * these tokens, or to -1 for a token that is not needed. */
static wf_status check(const wf_tokenizer *tokenizer, const char *side, int64_t types, bool needs_bos, bool needs_eos, int32_t *bos,
                       int32_t *eos, wf_error *error)
{
    *bos = needs_bos ? wf_tokenizer_special(tokenizer, WF_SPECIAL_BOS) : -1;
    *eos = needs_eos ? wf_tokenizer_special(tokenizer, WF_SPECIAL_EOS) : -1;
    if (wf_tokenizer_vocab_size(tokenizer) != types)
        return wf_error_set(error, WF_ERR_ARGUMENT, "vocabulary size mismatch: %s tokenizer %" PRId64 ", model %" PRId64, side,
                            wf_tokenizer_vocab_size(tokenizer), types);
    if ((needs_bos && *bos < 0) || (needs_eos && *eos < 0))
        return wf_error_set(error, WF_ERR_ARGUMENT, "the %s tokenizer has no token for the %s of a sentence; the model requires it", side,
                            needs_bos && *bos < 0 ? "beginning" : "end");
    return WF_OK;
}

static wf_status make(wf_translator *t, const struct wf_translator_options *o, wf_error *error)
{
    const struct wf_model_shape *c = wf_model_shape_of(t->model);
    struct wf_translations none;
    if (!(t->tape = wf_tape_new(error)) || (t->source && !(t->cache = wf_token_cache_new(t->source, CACHED_WORDS, error))))
        return WF_ERR_MEMORY;
    if (!(t->name = wf_strdup(o->name ? o->name : "source")) || (o->language && !(t->language = wf_strdup(o->language))))
        return no_memory(error);
    wf_status status = WF_OK;
    if (wf_model_kind_of(t->model) == WF_MODEL_PAIRS)
        status = check(t->source, "source", c->source_vocab_size, c->source_bos, c->source_eos, &t->source_bos, &t->source_eos, error);
    if (status == WF_OK && wf_model_kind_of(t->model) == WF_MODEL_PAIRS)
        status = check(t->target, "target", c->vocab_size, true, true, &t->bos, &t->eos, error);
    if (status == WF_OK) /* a call without sentences checks only the options */
        status = wf_translate_with(t->model, t->tape, NULL, NULL, 0, t->bos, t->eos, &o->search, &none, error);
    return status;
}

wf_translator *wf_translator_new(const wf_model *model, const wf_tokenizer *source, const wf_tokenizer *target,
                                 const struct wf_translator_options *options, wf_error *error)
{
    if (wf_needs(error, "model", model) ||
        (wf_model_kind_of(model) == WF_MODEL_PAIRS && wf_needs(error, "source, target", source, target))) /* `make` refuses other models */
        return NULL;
    options = options ? options : &(const struct wf_translator_options){0};
    wf_translator *t = wf_alloc_zero(1, sizeof *t);
    if (!t) {
        no_memory(error);
        return NULL;
    }
    *t = (wf_translator){.model = model, .source = source, .target = target, .options = *options};
    if (make(t, options, error) == WF_OK)
        return t;
    wf_translator_free(t);
    return NULL;
}

void wf_translator_free(wf_translator *t)
{
    if (!t)
        return;
    wf_tape_free(t->tape);
    wf_token_cache_free(t->cache);
    wf_tokens_free(&t->ids);
    wf_string_free(&t->text);
    wf_string_free(&t->words);
    wf_free(t->name);
    wf_free(t->language);
    wf_free(t->offsets);
    wf_free(t->sentence);
    wf_free(t->translation);
    wf_free(t);
}

void wf_translator_share(wf_translator *t, wf_dist *dist)
{
    t->dist = dist;
}

struct wf_translator_counts wf_translator_counts(const wf_translator *translator)
{
    return translator ? translator->counts : (struct wf_translator_counts){0};
}

/* --- lines to ids -------------------------------------------------------------------------------------------------- */

static wf_status push(struct wf_tokens *ids, int32_t id, wf_error *error)
{
    if (!wf_grow(&ids->id, &ids->capacity, ids->count + 1, sizeof *ids->id))
        return no_memory(error);
    ids->id[ids->count++] = id;
    return WF_OK;
}

/* Counts the unknown tokens among the ids from index `start` on. */
static int64_t unknown_in(const wf_translator *t, int64_t start)
{
    int32_t id = wf_tokenizer_special(t->source, WF_SPECIAL_UNKNOWN);
    int64_t count = 0;
    for (int64_t i = start; i < t->ids.count; i++)
        count += t->ids.id[i] == id;
    return count;
}

/* Encodes the sentence text[from .. to-1] with its special tokens. It is in line number `line`, counted from 0, which begins at
 * text[begin]. If normalisation removes the whole sentence, no ids are added. */
static wf_status encode(wf_translator *t, const char *text, int64_t begin, int64_t from, int64_t to, int64_t line,
                        struct wf_translator_counts *counts, wf_error *error)
{
    int64_t first = t->ids.count, most = wf_model_shape_of(t->model)->context, specials = (t->source_bos >= 0) + (t->source_eos >= 0);
    int64_t fault = wf_text_fault(text + from, to - from), unknown = 0;
    struct wf_encode_options o = {.unknown = &unknown, .cache = t->cache};
    if (fault >= 0)
        return wf_text_refuse(t->name, line + 1, from + fault - begin + 1, text + from + fault, to - from - fault, error);
    if (t->source_bos >= 0 && push(&t->ids, t->source_bos, error))
        return WF_ERR_MEMORY;
    int64_t start = t->ids.count;
    wf_status status = wf_line_encode(t->source, t->name, text, line, begin, from, to, &o, &t->ids, error);
    int64_t length = t->ids.count - start;
    if (status != WF_OK)
        return status;
    if (length == 0) { /* normalisation removed the whole sentence */
        t->ids.count = first;
        return WF_OK;
    }
    if (length + specials > most) {
        if (!t->options.truncate || most <= specials)
            return wf_error_set(error, WF_ERR_FORMAT,
                                "%s:%" PRId64 ": the line has %" PRId64 " ids, more than the maximum of %" PRId64
                                ": shorten it, or truncate long lines (--too-long truncate)",
                                t->name, line + 1, length + specials, most);
        t->ids.count = start + most - specials;
        counts->truncated++;
        unknown = unknown_in(t, start);
    }
    counts->tokens += t->ids.count - start;
    counts->unknown += unknown;
    if (t->source_eos >= 0 && push(&t->ids, t->source_eos, error))
        return WF_ERR_MEMORY;
    if (t->ids.count > INT32_MAX)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s:%" PRId64 ": too much text at once: give fewer lines at a time", t->name, line + 1);
    return WF_OK;
}

/* Encodes all lines up to the first invalid one, and stores its error in *fault. *counts continues the counts of earlier calls. */
static wf_status read_lines(wf_translator *t, const char *text, int64_t length, int64_t *sentences, struct wf_translator_counts *counts,
                            wf_error *fault, wf_error *error)
{
    int64_t at = counts->lines == 0 ? wf_line_first(text, length) : 0;
    *sentences = 0;
    t->ids.count = 0;
    for (int64_t line = 0; at < length; line++) {
        int64_t from, to, begin = counts->lines == 0 ? 0 : at;
        at = wf_line_at(text, length, at, &from, &to);
        if (!wf_grow(&t->sentence, &t->sentence_room, line + 1, sizeof *t->sentence) ||
            !wf_grow(&t->offsets, &t->offset_room, *sentences + 2, sizeof *t->offsets))
            return no_memory(error);
        t->offsets[*sentences] = (int32_t)t->ids.count;
        struct wf_translator_counts before = *counts;
        if (from < to && encode(t, text, begin, from, to, counts->lines, counts, fault) != WF_OK) {
            *counts = before;
            t->ids.count = t->offsets[*sentences];
            return fault->code == WF_ERR_MEMORY ? wf_error_set(error, WF_ERR_MEMORY, "%s", fault->message) : WF_OK;
        }
        bool empty = t->ids.count == t->offsets[*sentences];
        t->sentence[line] = empty ? -1 : (*sentences)++;
        counts->lines++;
        counts->empty += empty;
        t->offsets[*sentences] = (int32_t)t->ids.count;
    }
    return WF_OK;
}

/* --- ids to lines -------------------------------------------------------------------------------------------------- */

/* Appends the text of a hypothesis, and a NUL, to t->text. Line ends in tokens become spaces, so that the text stays one line. */
static wf_status decode(wf_translator *t, const struct wf_hypothesis *h, wf_error *error)
{
    bool words = wf_tokenizer_kind_of(t->target) == WF_TOKENIZER_WORD && !t->options.keep_tokens;
    int64_t start = t->text.length;
    t->words.length = 0;
    wf_status status = wf_tokenizer_decode(t->target, h->ids, h->length, words ? &t->words : &t->text, error);
    if (status == WF_OK && words && t->words.length > 0)
        status = wf_detokenize(t->words.data, t->words.length, t->language, &t->text, error);
    for (int64_t i = start; status == WF_OK && i < t->text.length; i++)
        if (t->text.data[i] == '\n' || t->text.data[i] == '\r')
            t->text.data[i] = ' ';
    return status == WF_OK && !wf_string_char(&t->text, 0) ? no_memory(error) : status;
}

/* Makes t->translation: all n_best translations of each of the `lines` lines. */
static wf_status write_lines(wf_translator *t, const struct wf_translations *all, int64_t lines, struct wf_translator_counts *counts,
                             wf_error *error)
{
    int64_t n = all->n_best, count = lines * n;
    if (!wf_grow(&t->translation, &t->translation_room, count, sizeof *t->translation))
        return no_memory(error);
    t->text.length = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t sentence = t->sentence[i / n], before = t->text.length;
        struct wf_line_translation *out = &t->translation[i];
        *out = (struct wf_line_translation){.text = sentence < 0 && i % n == 0 ? "" : NULL, .finished = true};
        if (sentence < 0)
            continue;
        const struct wf_hypothesis *h = &all->hypothesis[sentence * n + i % n];
        *out = (struct wf_line_translation){.score = h->score, .log_probability = h->log_probability, .finished = h->finished};
        if (isinf(h->log_probability))
            continue;
        wf_status status = decode(t, h, error);
        if (status != WF_OK)
            return status;
        out->text = ""; /* not NULL: there is a translation. Its address is set below, because t->text may still move */
        out->length = t->text.length - 1 - before;
        counts->unfinished += i % n == 0 && !h->finished;
    }
    const char *at = t->text.data;
    for (int64_t i = 0; i < count; i++)
        if (t->sentence[i / n] >= 0 && t->translation[i].text) {
            t->translation[i].text = at;
            at += t->translation[i].length + 1;
        }
    return WF_OK;
}

wf_status wf_translator_lines(wf_translator *t, const char *text, int64_t length, struct wf_line_translations *out, wf_error *error)
{
    if (wf_needs(error, "out", out))
        return WF_ERR_ARGUMENT;
    *out = (struct wf_line_translations){0};
    if (wf_needs(error, "translator, text", t, wf_some(text, length)))
        return WF_ERR_ARGUMENT;
    struct wf_translator_counts counts = t->counts;
    struct wf_translations all = {0};
    wf_error fault = {0};
    int64_t sentences;
    wf_status status = read_lines(t, text, length, &sentences, &counts, &fault, error);
    int64_t lines = counts.lines - t->counts.lines;
    status = t->dist ? wf_dist_agree(t->dist, status, error) : status;
    if (status == WF_OK)
        status =
            wf_translate_on(t->dist, t->model, t->tape, t->ids.id, t->offsets, sentences, t->bos, t->eos, &t->options.search, &all, error);
    if (status == WF_OK)
        status = write_lines(t, &all, lines, &counts, error);
    int64_t n_best = all.n_best;
    wf_translations_free(&all);
    if (status != WF_OK)
        return status;
    t->counts = counts;
    *out = (struct wf_line_translations){.translation = t->translation, .count = lines, .n_best = n_best};
    return fault.code == WF_OK ? WF_OK : wf_error_set(error, fault.code, "%s", fault.message);
}
