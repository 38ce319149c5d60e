/* SPDX-License-Identifier: MIT */
/* Makes text of the ids that a generator chooses, piece by piece, and looks for stop texts in it. */
#include <string.h>

#include <weft/generator.h>
#include <weft/internal/minmax.h>
#include <weft/internal/needs.h>
#include <weft/internal/string.h>
#include <weft/memory.h>

#include <weft/internal/family.h>

#include "generator.h"

struct stream {
    wf_generator *generator;
    wf_decoder *decoder;
    struct wf_generate_options options; /* of the caller, with the end tokens below */
    int32_t end;
    bool (*text)(void *ctx, const char *text, int64_t length);
    void *ctx;
    struct wf_string held; /* new text that is not given out: it may be the beginning of a stop text */
    bool found;            /* the text has reached a stop text */
    bool stopped;          /* the caller wants no more */
    wf_status status;
    wf_error error;
};

void stream_free(struct stream *s)
{
    wf_decoder_free(s->decoder);
    wf_string_free(&s->held);
    wf_free(s);
}

/* Gives out the first `length` bytes of the held text. */
static bool give(struct stream *s, int64_t length)
{
    if (length == 0 && s->held.length > 0)
        return true;
    char *data = s->held.data, next = data ? data[length] : 0;
    if (data)
        data[length] = 0;
    s->stopped = !s->text(s->ctx, data ? data : "", length);
    if (data) {
        data[length] = next;
        memmove(data, data + length, (size_t)(s->held.length - length + 1));
        s->held.length -= length;
    }
    return !s->stopped;
}

/* The place of the first stop text in the held text; -1: there is none. Sets *safe to the number of bytes before the first place that may
 * begin a stop text. */
static int64_t find_stop(const struct stream *s, int64_t *safe)
{
    const char *text = s->held.data;
    const int64_t length = s->held.length;
    *safe = length;
    for (int64_t at = 0; at < length; at++)
        for (int i = 0; i < s->options.stops; i++) {
            const int64_t want = (int64_t)strlen(s->options.stop[i]), have = WF_MIN(want, length - at);
            if (memcmp(text + at, s->options.stop[i], (size_t)have) != 0)
                continue;
            if (have == want)
                return at;
            *safe = WF_MIN(*safe, at);
        }
    return -1;
}

/* Takes the next piece of the new text. At the end of the text nothing is held back. */
static bool take(struct stream *s, const char *text, int64_t length, bool last)
{
    if (s->options.stops == 0) {
        s->stopped = !s->text(s->ctx, text, length);
        return !s->stopped;
    }
    int64_t safe;
    if (!wf_string_add(&s->held, text, length)) {
        s->status = wf_error_set(&s->error, WF_ERR_MEMORY, "no memory for a text");
        return false;
    }
    const int64_t at = find_stop(s, &safe);
    s->found = at >= 0;
    return give(s, s->found ? at : last ? s->held.length : safe) && !s->found;
}

static bool take_token(void *ctx, int32_t id)
{
    struct stream *s = ctx;
    const char *text;
    int64_t length;
    s->status = wf_decoder_push(s->decoder, id, &text, &length, &s->error);
    return s->status == WF_OK && take(s, text, length, false);
}

static void take_end(void *ctx, const struct wf_generate_result *result)
{
    struct stream *s = ctx;
    struct wf_generate_result r = *result;
    const char *rest;
    int64_t length;
    if (s->status == WF_OK && !s->stopped && !s->found && (s->status = wf_decoder_finish(s->decoder, &rest, &length, &s->error)) == WF_OK)
        take(s, rest, length, true);
    if (s->found)
        r.end = WF_GENERATE_STOP_TEXT;
    if (s->status != WF_OK) /* the step of the generator returns it */
        (void)wf_error_set(&s->generator->error, s->status, "%s", s->error.message);
    if (s->options.result)
        *s->options.result = r;
    if (s->options.done)
        s->options.done(s->ctx, &r);
    stream_free(s);
}

/* The id that replaces an empty prompt: a line end if the tokenizer can encode it, else the end-of-text token, else BOS, else 0. */
static int32_t first_id(const wf_tokenizer *tokenizer)
{
    static const enum wf_special specials[] = {WF_SPECIAL_EOS, WF_SPECIAL_BOS};
    wf_error ignored = {0};
    struct wf_tokens ids = {0};
    int64_t unknown = 0;
    const struct wf_encode_options o = {.whole = true, .unknown = &unknown};
    bool known = wf_tokenizer_encode_with(tokenizer, "\n", 1, &o, &ids, &ignored) == WF_OK && ids.count > 0 && unknown == 0;
    int32_t id = known ? ids.id[ids.count - 1] : -1;
    wf_tokens_free(&ids);
    for (int i = 0; id < 0 && i < 2; i++)
        id = wf_tokenizer_special(tokenizer, specials[i]);
    return WF_MAX(0, id);
}

static wf_status check_stops(const struct wf_generate_options *o, wf_error *error)
{
    for (int i = 0; i < o->stops; i++)
        if (!o->stop || !o->stop[i] || !*o->stop[i])
            return wf_error_set(error, WF_ERR_ARGUMENT, "stop text %d of %d is empty", i + 1, o->stops);
    return WF_OK;
}

/* Gives out the text of the prompt. False: the caller wants no more, or there was an error. */
static bool take_prompt(struct stream *s, const int32_t *prompt, int64_t length)
{
    for (int64_t i = 0; i < length; i++) {
        const char *text;
        int64_t bytes;
        s->status = wf_decoder_push(s->decoder, prompt[i], &text, &bytes, &s->error);
        if (s->status == WF_OK)
            s->stopped = !s->text(s->ctx, text, bytes);
        if (s->status != WF_OK || s->stopped)
            return false;
    }
    return true;
}

wf_status wf_generator_add_text(wf_generator *g, const wf_tokenizer *tokenizer, const int32_t *prompt, int64_t length,
                                const struct wf_generate_options *options, bool (*text)(void *ctx, const char *text, int64_t length),
                                void *ctx, wf_error *error)
{
    if (wf_needs(error, "generator, tokenizer, prompt, options, text", g, tokenizer, wf_some(prompt, length), options, text) ||
        check_stops(options, error))
        return WF_ERR_ARGUMENT;
    struct stream *s = wf_alloc_zero(1, sizeof *s);
    if (!s)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory to generate with");
    *s = (struct stream){
        .generator = g, .options = *options, .text = text, .ctx = ctx, .end = wf_tokenizer_special(tokenizer, WF_SPECIAL_EOS)};
    if (!(s->decoder = wf_decoder_new(tokenizer, NULL, error))) {
        stream_free(s);
        return WF_ERR_MEMORY;
    }
    const int32_t start = length > 0 ? -1 : first_id(tokenizer);
    struct wf_generate_options o = *options;
    o.token = take_token;
    o.ctx = s;
    o.done = take_end;
    o.result = NULL;
    o.types = wf_tokenizer_vocab_size(tokenizer);
    if (!o.end && s->end >= 0) {
        o.end = &s->end;
        o.ends = 1;
    }
    const bool wanted = take_prompt(s, prompt, length);
    if (s->status == WF_OK && !wanted) {
        take_end(s, &(struct wf_generate_result){0, WF_GENERATE_STOPPED});
        return WF_OK;
    }
    wf_status status = s->status != WF_OK ? wf_error_set(error, s->status, "%s", s->error.message)
                                          : generator_add(g, length > 0 ? prompt : &start, WF_MAX(1, length), &o, s, error);
    if (status != WF_OK)
        stream_free(s);
    return status;
}

wf_status wf_generate_text(const wf_model *model, const wf_tokenizer *tokenizer, wf_tape *tape, const int32_t *prompt, int64_t length,
                           const struct wf_generate_options *options, bool (*text)(void *ctx, const char *text, int64_t length), void *ctx,
                           wf_error *error)
{
    if (wf_needs(error, "model, tokenizer, tape, options, text", model, tokenizer, tape, options, text))
        return WF_ERR_ARGUMENT;
    if (!wf_config_fits(wf_model_config(model), wf_tokenizer_vocab_size(tokenizer)))
        return wf_error_set(error, WF_ERR_ARGUMENT, "vocabulary size mismatch: tokenizer %lld, model %lld",
                            (long long)wf_tokenizer_vocab_size(tokenizer), (long long)wf_model_shape_of(model)->vocab_size);
    if (wf_model_kind_of(model) != WF_MODEL_LANGUAGE)
        return wf_error_set(error, WF_ERR_STATE, "%s is not a language model: it cannot continue a text", wf_model_config(model)->model);
    struct wf_generate_options o = *options;
    o.done = NULL;
    const struct wf_next next = wf_next_of(model);
    wf_generator *g;
    wf_status status = generator_alone(&next, tape, options, &g, error);
    if (status == WF_OK)
        status = wf_generator_add_text(g, tokenizer, prompt, length, &o, text, ctx, error);
    return generator_finish(g, options, status, error);
}
