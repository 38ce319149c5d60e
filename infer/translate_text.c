/* SPDX-License-Identifier: MIT */
/* Lines of text through a model that translates. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <weft/detokenize.h>
#include <weft/internal/grow.h>
#include <weft/internal/lines.h>
#include <weft/internal/sentence.h>
#include <weft/memory.h>
#include <weft/translate.h>

enum { CACHED_WORDS = 16384 };

struct wf_translator {
    const wf_model *model;
    const wf_tokenizer *source, *target;
    struct wf_translator_options options;
    char *name, *language;
    wf_tape *tape;
    wf_token_cache *cache;
    int64_t types;                  /* of the source */
    int32_t source_bos, source_eos; /* -1: no such mark */
    int32_t bos, eos;
    struct wf_translator_counts counts;

    /* of the last call */
    struct wf_tokens ids;
    int32_t *offsets; /* of the sentences in ids */
    int64_t offset_room;
    int64_t *sentence; /* of each line, -1: it is empty */
    int64_t sentence_room;
    struct wf_string text, words; /* all translations; one before it is detokenised */
    struct wf_line_translation *translation;
    int64_t translation_room;
};

static wf_status no_memory(wf_error *error)
{
    return wf_error_set(error, WF_ERR_MEMORY, "no memory to translate lines");
}

/* --- making one ---------------------------------------------------------------------------------------------------- */

static wf_status check_tokenizer(const wf_tokenizer *tokenizer, const char *side, int64_t types, wf_error *error)
{
    if (wf_tokenizer_vocab_size(tokenizer) == types)
        return WF_OK;
    return wf_error_set(error, WF_ERR_ARGUMENT, "vocabulary size mismatch: %s tokenizer %" PRId64 ", model %" PRId64, side,
                        wf_tokenizer_vocab_size(tokenizer), types);
}

static wf_status mark(const wf_tokenizer *tokenizer, const char *side, enum wf_special special, int32_t *id, wf_error *error)
{
    *id = wf_tokenizer_special(tokenizer, special);
    if (*id >= 0)
        return WF_OK;
    return wf_error_set(error, WF_ERR_ARGUMENT, "the %s tokenizer has no token for the %s of a sentence; the model requires it", side,
                        special == WF_SPECIAL_BOS ? "beginning" : "end");
}

static wf_status check(wf_translator *t, wf_error *error)
{
    const struct wf_model_shape *c = wf_model_shape_of(t->model);
    t->types = c->source_vocab_size;
    t->source_bos = t->source_eos = -1;
    wf_status status = check_tokenizer(t->source, "source", t->types, error);
    if (status == WF_OK)
        status = check_tokenizer(t->target, "target", c->vocab_size, error);
    if (status == WF_OK && c->source_bos)
        status = mark(t->source, "source", WF_SPECIAL_BOS, &t->source_bos, error);
    if (status == WF_OK && c->source_eos)
        status = mark(t->source, "source", WF_SPECIAL_EOS, &t->source_eos, error);
    if (status == WF_OK)
        status = mark(t->target, "target", WF_SPECIAL_BOS, &t->bos, error);
    if (status == WF_OK)
        status = mark(t->target, "target", WF_SPECIAL_EOS, &t->eos, error);
    return status;
}

wf_translator *wf_translator_new(const wf_model *model, const wf_tokenizer *source, const wf_tokenizer *target,
                                 const struct wf_translator_options *options, wf_error *error)
{
    wf_translator *t = wf_alloc_zero(1, sizeof *t);
    if (!t) {
        no_memory(error);
        return NULL;
    }
    *t = (wf_translator){.model = model, .source = source, .target = target, .options = *options};
    struct wf_translations none;
    t->tape = wf_tape_new(error);
    wf_status status = t->tape ? WF_OK : WF_ERR_MEMORY;
    if (status == WF_OK && !(t->name = wf_strdup(options->name ? options->name : "source")))
        status = no_memory(error);
    if (status == WF_OK && options->language && !(t->language = wf_strdup(options->language)))
        status = no_memory(error);
    if (status == WF_OK && wf_model_translates(model))
        status = check(t, error);
    if (status == WF_OK) /* of no sentences: the options alone are looked at */
        status = wf_translate_with(model, t->tape, NULL, NULL, 0, t->bos, t->eos, &options->search, &none, error);
    if (status == WF_OK && !(t->cache = wf_token_cache_new(source, CACHED_WORDS, error)))
        status = WF_ERR_MEMORY;
    if (status == WF_OK)
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

struct wf_translator_counts wf_translator_counts(const wf_translator *translator)
{
    return translator->counts;
}

/* --- lines to ids -------------------------------------------------------------------------------------------------- */

static wf_status push(struct wf_tokens *ids, int32_t id, wf_error *error)
{
    if (!wf_grow(&ids->id, &ids->capacity, ids->count + 1, sizeof *ids->id))
        return no_memory(error);
    ids->id[ids->count++] = id;
    return WF_OK;
}

/* Unknown tokens from id `start` on. */
static int64_t unknown_in(const wf_translator *t, int64_t start)
{
    int32_t id = wf_tokenizer_special(t->source, WF_SPECIAL_UNKNOWN);
    int64_t count = 0;
    for (int64_t i = start; i < t->ids.count; i++)
        count += t->ids.id[i] == id;
    return count;
}

/* The sentence text[from .. to-1] of line number `line` (from 0), which begins at `begin`, with its marks. Leaves no ids of a line that
 * turns out to be empty. */
static wf_status encode(wf_translator *t, const char *text, int64_t begin, int64_t from, int64_t to, int64_t line,
                        struct wf_translator_counts *counts, wf_error *error)
{
    int64_t first = t->ids.count, most = wf_model_shape_of(t->model)->context, marks = (t->source_bos >= 0) + (t->source_eos >= 0);
    int64_t fault = wf_text_fault(text + from, to - from), unknown = 0;
    if (fault >= 0)
        return wf_text_refuse(t->name, line + 1, from + fault - begin + 1, text + from + fault, to - from - fault, error);
    wf_status status = t->source_bos >= 0 ? push(&t->ids, t->source_bos, error) : WF_OK;
    struct wf_encode_options o = {.unknown = &unknown, .cache = t->cache};
    int64_t start = t->ids.count;
    if (status == WF_OK)
        status = wf_line_encode(t->source, t->name, text, line, begin, from, to, &o, &t->ids, error);
    int64_t length = t->ids.count - start;
    if (status == WF_OK && length == 0) { /* nothing is left of what the tokenizer normalises */
        t->ids.count = first;
        return WF_OK;
    }
    if (status == WF_OK && length + marks > most) {
        if (!t->options.truncate || most <= marks)
            status = wf_error_set(error, WF_ERR_FORMAT,
                                  "%s:%" PRId64 ": the line has %" PRId64 " ids, more than the maximum of %" PRId64
                                  ": shorten it, or truncate long lines (--too-long truncate)",
                                  t->name, line + 1, length + marks, most);
        t->ids.count = start + most - marks;
        counts->truncated++;
        unknown = unknown_in(t, start);
    }
    counts->tokens += t->ids.count - start;
    counts->unknown += unknown;
    if (status == WF_OK && t->source_eos >= 0)
        status = push(&t->ids, t->source_eos, error);
    if (status == WF_OK && t->ids.count > INT32_MAX)
        status =
            wf_error_set(error, WF_ERR_ARGUMENT, "%s:%" PRId64 ": too much text at once: give fewer lines at a time", t->name, line + 1);
    if (status != WF_OK)
        t->ids.count = first;
    return status;
}

/* All lines up to the first that can't be translated, whose error is *fault. */
static wf_status read_lines(wf_translator *t, const char *text, int64_t length, int64_t *sentences, struct wf_translator_counts *counts,
                            wf_error *fault, wf_error *error)
{
    int64_t at = t->counts.lines == 0 ? wf_line_first(text, length) : 0;
    *sentences = 0;
    t->ids.count = 0;
    while (at < length) {
        int64_t from, to, begin = t->counts.lines + counts->lines == 0 ? 0 : at;
        at = wf_line_at(text, length, at, &from, &to);
        if (!wf_grow(&t->sentence, &t->sentence_room, counts->lines + 1, sizeof *t->sentence) ||
            !wf_grow(&t->offsets, &t->offset_room, *sentences + 2, sizeof *t->offsets))
            return no_memory(error);
        t->offsets[*sentences] = (int32_t)t->ids.count;
        struct wf_translator_counts before = *counts;
        if (from < to && encode(t, text, begin, from, to, t->counts.lines + counts->lines, counts, fault) != WF_OK) {
            *counts = before;
            return fault->code == WF_ERR_MEMORY ? wf_error_set(error, WF_ERR_MEMORY, "%s", fault->message) : WF_OK;
        }
        bool empty = t->ids.count == t->offsets[*sentences];
        t->sentence[counts->lines++] = empty ? -1 : (*sentences)++;
        counts->empty += empty;
        t->offsets[*sentences] = (int32_t)t->ids.count;
    }
    return WF_OK;
}

/* --- ids to lines -------------------------------------------------------------------------------------------------- */

/* Appends the text of a hypothesis, one line whatever its tokens hold, and says where it begins: -1 when it is empty. */
static wf_status decode(wf_translator *t, const struct wf_hypothesis *h, int64_t *start, wf_error *error)
{
    bool words = wf_tokenizer_kind_of(t->target) == WF_TOKENIZER_WORD && !t->options.keep_tokens;
    struct wf_string *out = words ? &t->words : &t->text;
    t->words.length = 0;
    *start = t->text.length;
    wf_status status = wf_tokenizer_decode(t->target, h->ids, h->length, out, error);
    if (status == WF_OK && words && t->words.length > 0)
        status = wf_detokenize(t->words.data, t->words.length, t->language, &t->text, error);
    for (int64_t i = *start; status == WF_OK && i < t->text.length; i++)
        if (t->text.data[i] == '\n' || t->text.data[i] == '\r')
            t->text.data[i] = ' ';
    if (t->text.length == *start)
        *start = -1;
    else
        t->text.length++; /* keeps the NUL */
    return status;
}

static wf_status write_lines(wf_translator *t, const struct wf_translations *all, struct wf_translator_counts *counts, wf_error *error)
{
    int64_t n = all->n_best;
    if (!wf_grow(&t->translation, &t->translation_room, counts->lines * n, sizeof *t->translation))
        return no_memory(error);
    t->text.length = 0;
    wf_status status = WF_OK;
    for (int64_t i = 0; status == WF_OK && i < counts->lines * n; i++) {
        int64_t sentence = t->sentence[i / n], start = -1;
        struct wf_line_translation *out = &t->translation[i];
        *out = (struct wf_line_translation){.finished = true};
        if (sentence < 0) {
            out->text = i % n ? NULL : "";
            continue;
        }
        const struct wf_hypothesis *h = &all->hypothesis[sentence * n + i % n];
        *out = (struct wf_line_translation){.score = h->score, .log_probability = h->log_probability, .finished = h->finished};
        if (isinf(h->log_probability))
            continue;
        int64_t before = t->text.length;
        status = decode(t, h, &start, error);
        out->text = "";
        if (start >= 0) /* where it stands is known when nothing moves any more; until then its end says so */
            out->length = t->text.length - 1 - before;
        counts->unfinished += i % n == 0 && !h->finished;
    }
    const char *at = t->text.data;
    for (int64_t i = 0; status == WF_OK && i < counts->lines * n; i++)
        if (t->translation[i].length > 0) {
            t->translation[i].text = at;
            at += t->translation[i].length + 1;
        }
    return status;
}

wf_status wf_translator_lines(wf_translator *t, const char *text, int64_t length, struct wf_line_translations *out, wf_error *error)
{
    struct wf_translator_counts counts = {0};
    struct wf_translations all = {0};
    wf_error fault = {0};
    int64_t sentences;
    *out = (struct wf_line_translations){0};
    wf_status status = read_lines(t, text, length, &sentences, &counts, &fault, error);
    if (status == WF_OK)
        status = wf_translate_with(t->model, t->tape, t->ids.id, t->offsets, sentences, t->bos, t->eos, &t->options.search, &all, error);
    if (status == WF_OK)
        status = write_lines(t, &all, &counts, error);
    int64_t n_best = all.n_best;
    wf_translations_free(&all);
    if (status != WF_OK)
        return status;
    t->counts.lines += counts.lines;
    t->counts.empty += counts.empty;
    t->counts.truncated += counts.truncated;
    t->counts.tokens += counts.tokens;
    t->counts.unknown += counts.unknown;
    t->counts.unfinished += counts.unfinished;
    *out = (struct wf_line_translations){.translation = t->translation, .count = counts.lines, .n_best = n_best};
    return fault.code == WF_OK ? WF_OK : wf_error_set(error, fault.code, "%s", fault.message);
}
