/* SPDX-License-Identifier: MIT */
/* Encodes multiple-choice questions by the rules of lm-evaluation-harness. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weft/internal/grow.h>
#include <weft/internal/minmax.h>
#include <weft/internal/sentence.h>
#include <weft/internal/string.h>
#include <weft/memory.h>

#include "choice_ids.h"

/* Writes the place of a question, and if choice >= 0 of its choice, both from 1: "FILE:3: choice 2". Returns `place`. */
enum { PLACE = 512 };
static char *place_of(const char *name, const struct wf_question *q, int64_t number, int64_t choice, char place[PLACE])
{
    int n = q->line > 0 ? snprintf(place, PLACE, "%.400s:%" PRId64, name ? name : "question", q->line)
                        : snprintf(place, PLACE, "question %" PRId64, number + 1);
    if (choice >= 0)
        snprintf(place + n, (size_t)(PLACE - n), ": choice %" PRId64, choice + 1);
    return place;
}

static wf_status no_memory(wf_error *error)
{
    return wf_error_set(error, WF_ERR_MEMORY, "no memory for the ids of the questions");
}

static wf_status encode(const wf_tokenizer *tokenizer, const char *text, int64_t length, struct wf_tokens *out, const char *place,
                        wf_error *error)
{
    wf_status status = wf_tokenizer_encode_with(tokenizer, text, length, &(struct wf_encode_options){.whole = true}, out, error);
    if (status != WF_OK)
        wf_error_prefix(error, "%s", place);
    return status;
}

/* Appends the ids before a context and those of the context, text[0 .. length-1]; if there are none, the token that begins a text. */
static wf_status add_context(const wf_tokenizer *tokenizer, const char *text, int64_t length, const struct wf_choice_options *o,
                             struct wf_tokens *ids, const char *place, wf_error *error)
{
    static const enum wf_special specials[] = {WF_SPECIAL_BOS, WF_SPECIAL_EOS};
    const int64_t before = ids->count;
    if (!wf_grow(&ids->id, &ids->capacity, ids->count + o->begins + 1, sizeof *ids->id))
        return no_memory(error);
    for (int64_t i = 0; i < o->begins; i++)
        ids->id[ids->count++] = o->begin[i];
    wf_status status = encode(tokenizer, text, length, ids, place, error);
    int32_t id = -1;
    if (status != WF_OK || ids->count > before)
        return status;
    for (int i = 0; i < 2 && id < 0; i++)
        id = wf_tokenizer_special(tokenizer, specials[i]);
    if (id < 0)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: the context has no tokens, and the tokenizer no BOS token: give a context", place);
    if (!wf_grow(&ids->id, &ids->capacity, ids->count + 1, sizeof *ids->id))
        return no_memory(error);
    ids->id[ids->count++] = id;
    return WF_OK;
}

static bool begins_with_space(const char *text)
{
    return *text == ' ' || *text == '\t' || *text == '\n' || *text == '\r';
}

/* Appends the ids of a choice: those of the whole text after as many as the context has. `kept` is the length of the context without the
 * white space at its end. `whole` is a buffer. */
static wf_status add_choice(struct choice_ids *c, const wf_tokenizer *tokenizer, const struct wf_question *q, int64_t i, int64_t kept,
                            int64_t begins, struct asked *a, struct wf_string *whole, const char *place, wf_error *error)
{
    const char *choice = q->choice[i];
    const int64_t at = c->ids.count;
    int64_t skipped = kept > 0 ? a->count - begins : 0; /* an empty context is encoded as a token that the text does not have */
    wf_string_cut(whole, 0);
    wf_string_text(whole, q->context);
    wf_string_text(whole, begins_with_space(choice) ? "" : " ");
    if (!wf_string_text(whole, choice))
        return no_memory(error);
    wf_status status = encode(tokenizer, whole->data, whole->length, &c->ids, place, error);
    if (status != WF_OK)
        return status;
    const int64_t length = c->ids.count - at - skipped;
    if (length < 1)
        return wf_error_set(error, WF_ERR_FORMAT, "%s has no tokens after the context", place);
    memmove(c->ids.id + at, c->ids.id + at + skipped, (size_t)length * sizeof *c->ids.id);
    c->ids.count = at + length;
    c->at[a->first + i] = at;
    c->length[a->first + i] = length;
    a->longest = WF_MAX(a->longest, length);
    return WF_OK;
}

static wf_status add_question(struct choice_ids *c, const wf_tokenizer *tokenizer, const struct wf_question *q, int64_t number,
                              int64_t context, const struct wf_choice_options *o, struct wf_string *whole, wf_error *error)
{
    char place[PLACE];
    struct asked *a = &c->asked[number];
    const int64_t kept = wf_text_trim_end(q->context, (int64_t)strlen(q->context));
    a->at = c->ids.count;
    wf_status status = add_context(tokenizer, q->context, kept, o, &c->ids, place_of(o->name, q, number, -1, place), error);
    a->count = c->ids.count - a->at;
    for (int64_t i = 0; status == WF_OK && i < q->choices; i++) {
        place_of(o->name, q, number, i, place);
        status = add_choice(c, tokenizer, q, i, kept, o->begins, a, whole, place, error);
        if (status == WF_OK && a->longest > context)
            status = wf_error_set(error, WF_ERR_FORMAT, "%s has %" PRId64 " tokens, more than the model's context of %" PRId64, place,
                                  a->longest, context);
    }
    return status;
}

static wf_status check(const struct wf_question *q, int64_t number, const char *name, wf_error *error)
{
    char place[PLACE];
    place_of(name, q, number, -1, place);
    if (!q->context || !q->choice || q->choices < 1)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s: a question has a context, and at least one choice", place);
    if (q->answer < 0 || q->answer >= q->choices)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s: the answer %" PRId64 " is no index of its %" PRId64 " choices", place, q->answer,
                            q->choices);
    for (int64_t i = 0; i < q->choices; i++)
        if (!q->choice[i] || !*q->choice[i])
            return wf_error_set(error, WF_ERR_ARGUMENT, "%s is empty", place_of(name, q, number, i, place));
    return WF_OK;
}

wf_status choice_ids_make(struct choice_ids *out, const wf_tokenizer *tokenizer, const struct wf_question *questions, int64_t count,
                          int64_t context, const struct wf_choice_options *options, wf_error *error)
{
    *out = (struct choice_ids){.asked = wf_alloc_zero((size_t)WF_MAX(count, 1), sizeof *out->asked)};
    struct wf_string whole = {0};
    wf_status status = out->asked ? WF_OK : no_memory(error);
    for (int64_t i = 0; status == WF_OK && i < count; i++)
        if ((status = check(&questions[i], i, options->name, error)) == WF_OK) {
            out->asked[i].first = out->choices;
            out->asked[i].choices = questions[i].choices;
            out->choices += questions[i].choices;
        }
    if (status == WF_OK) {
        out->at = wf_alloc((size_t)(out->choices + 1) * sizeof *out->at);
        out->length = wf_alloc((size_t)(out->choices + 1) * sizeof *out->length);
        status = out->at && out->length ? WF_OK : no_memory(error);
    }
    for (int64_t i = 0; status == WF_OK && i < count; i++)
        status = add_question(out, tokenizer, &questions[i], i, context, options, &whole, error);
    wf_string_free(&whole);
    return status;
}

void choice_ids_free(struct choice_ids *c)
{
    wf_tokens_free(&c->ids);
    wf_free(c->asked);
    wf_free(c->at);
    wf_free(c->length);
    *c = (struct choice_ids){0};
}
