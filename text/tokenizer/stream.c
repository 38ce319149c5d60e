/* SPDX-License-Identifier: MIT */
/* Ids to text, all at once or one by one. Each id's piece goes through the steps of the file's decoder, which are called stages here. */
#include <inttypes.h>
#include <stdlib.h>

#include "decoder.h"
#include <weft/internal/needs.h>
#include <weft/memory.h>

struct wf_decoder {
    const wf_tokenizer *tokenizer;
    bool specials;
    struct stage *stage; /* [stages + 1]: the last one has no step; its input is the text */
    int64_t stages;
    struct scratch scratch;
    struct wf_string text; /* the text that wf_decoder_push or wf_decoder_finish returned last */
    bool over;             /* a malicious decoder made the text too long */
};

/* Fills `out` (may be NULL) with a stage for each step of a decoder, in order. Returns the number of stages. Sequences may be nested. */
static int64_t put_stages(const struct part *d, struct scratch *scratch, struct stage *out)
{
    const struct steps *steps = part_steps(d);
    bool one = d && d->type != &decoder_sequence;
    int64_t count = one;
    if (one && out)
        *out = (struct stage){.part = d, .scratch = scratch};
    for (int64_t i = 0; i < steps->count; i++)
        count += put_stages(steps->step[i], scratch, out ? out + count : NULL);
    return count;
}

static bool decoder_start(struct wf_decoder *s, const wf_tokenizer *t, const struct wf_decode_options *options)
{
    *s = (struct wf_decoder){.tokenizer = t, .specials = options && options->specials, .stages = put_stages(t->decoder, NULL, NULL)};
    s->stage = wf_alloc_zero((size_t)s->stages + 1, sizeof *s->stage);
    if (s->stage)
        put_stages(t->decoder, &s->scratch, s->stage);
    return s->stage != NULL;
}

static void decoder_end(struct wf_decoder *s)
{
    for (int64_t k = 0; s->stage && k <= s->stages; k++) {
        wf_string_free(&s->stage[k].in.bytes);
        wf_free(s->stage[k].in.end);
        wf_string_free(&s->stage[k].bytes);
    }
    wf_free(s->stage);
    scratch_free(&s->scratch);
    wf_string_free(&s->text);
}

static int compare_id(const void *id, const void *token)
{
    int32_t x = *(const int32_t *)id, y = ((const struct added_token *)token)->id;
    return x < y ? -1 : x > y;
}

static wf_status feed(struct wf_decoder *s, int32_t id)
{
    const wf_tokenizer *t = s->tokenizer;
    const struct added_token *token =
        t->added_count > 0 ? bsearch(&id, t->added, (size_t)t->added_count, sizeof *t->added, compare_id) : NULL;
    if (token && token->special && !s->specials)
        return WF_OK;
    int64_t length;
    const char *piece = vocab_piece(&t->vocab, id, &length);
    if (token) { /* an added token decodes to the text that it matches, which may be normalised */
        piece = token->match;
        length = token->match_length;
    }
    struct pieces *in = &s->stage[0].in;
    in->most = INT64_MAX;
    return pieces_begin(in) && pieces_add(in, piece, length) ? WF_OK : WF_ERR_MEMORY;
}

/* Runs all stages on the pieces that were fed, and appends the resulting text. With `last` no piece follows, so all text that was held back
 * is appended too. */
static wf_status drain(struct wf_decoder *s, bool last, struct wf_string *out)
{
    int64_t fed = s->stage[0].in.total;
    struct stage *text = s->stage + s->stages;
    wf_status status = WF_OK;
    if (s->stage[0].done + s->stage[0].in.count == 0)
        return WF_OK;
    for (int64_t k = 0; status == WF_OK && k < s->stages; k++) {
        s->stage[k + 1].in.most = flow_most(fed);
        status = stage_run(s->stage + k, &s->stage[k + 1].in, last);
        s->over = s->over || s->stage[k + 1].in.over;
    }
    for (int64_t i = 0; status == WF_OK && i < text->in.count; i++) {
        int64_t length;
        const char *piece = pieces_get(&text->in, i, &length);
        if ((!s->tokenizer->decoder && text->done + i > 0 && !wf_string_char(out, ' ')) || !wf_string_add(out, piece, length))
            status = WF_ERR_MEMORY;
    }
    int64_t whole = text->in.count - text->in.open;
    text->done += whole;
    pieces_drop(&text->in, whole, text->in.bytes.length - (whole > 0 ? text->in.end[whole - 1] : 0));
    return status;
}

static wf_status fail(const wf_decoder *s, wf_status status, wf_error *error)
{
    if (s && s->over)
        return wf_error_set(error, WF_ERR_FORMAT,
                            "the tokenizer's decoder makes the text of these tokens more than %d times as long; "
                            "remove steps from \"decoder\" in its file",
                            FLOW_GROWTH);
    return wf_error_set(error, status,
                        status == WF_ERR_FORMAT ? "a pattern of the tokenizer's decoder takes too long on these tokens"
                                                : "no memory for the text of the tokens");
}

static wf_status check_id(const wf_tokenizer *t, int32_t id, int64_t i, int64_t count, wf_error *error)
{
    if (id >= 0 && id < t->vocab.count)
        return WF_OK;
    return wf_error_set(error, WF_ERR_ARGUMENT, "token %" PRId64 " of %" PRId64 " is %d, outside the vocabulary 0 .. %" PRId64, i + 1,
                        count, (int)id, t->vocab.count - 1);
}

wf_decoder *wf_decoder_new(const wf_tokenizer *t, const struct wf_decode_options *options, wf_error *error)
{
    if (wf_needs(error, "tokenizer", t))
        return NULL;
    wf_decoder *s = wf_alloc(sizeof *s);
    if (s && decoder_start(s, t, options))
        return s;
    wf_free(s);
    fail(NULL, WF_ERR_MEMORY, error);
    return NULL;
}

void wf_decoder_free(wf_decoder *s)
{
    if (!s)
        return;
    decoder_end(s);
    wf_free(s);
}

static wf_status give(wf_decoder *s, bool last, const char **text, int64_t *length, wf_error *error)
{
    wf_string_cut(&s->text, 0);
    wf_status status = wf_string_add(&s->text, "", 0) ? drain(s, last, &s->text) : WF_ERR_MEMORY;
    *text = s->text.data;
    *length = s->text.length;
    return status == WF_OK ? status : fail(s, status, error);
}

wf_status wf_decoder_push(wf_decoder *s, int32_t id, const char **text, int64_t *length, wf_error *error)
{
    if (wf_needs(error, "decoder, text, length", s, text, length))
        return WF_ERR_ARGUMENT;
    wf_status status = check_id(s->tokenizer, id, 0, 1, error);
    if (status != WF_OK)
        return status;
    status = feed(s, id);
    return status == WF_OK ? give(s, false, text, length, error) : fail(s, status, error);
}

wf_status wf_decoder_finish(wf_decoder *s, const char **text, int64_t *length, wf_error *error)
{
    if (wf_needs(error, "decoder, text, length", s, text, length))
        return WF_ERR_ARGUMENT;
    wf_status status = give(s, true, text, length, error);
    s->over = false;
    for (int64_t k = 0; k <= s->stages; k++) {
        struct stage *stage = s->stage + k;
        pieces_drop(&stage->in, stage->in.count, 0);
        stage->in.total = stage->done = stage->stripped = stage->bytes.length = 0;
        stage->in.open = stage->in.over = false;
    }
    return status;
}

wf_status wf_tokenizer_decode_with(const wf_tokenizer *t, const int32_t *ids, int64_t count, const struct wf_decode_options *options,
                                   struct wf_string *out, wf_error *error)
{
    if (wf_needs(error, "tokenizer, ids, out", t, wf_some(ids, count), out))
        return WF_ERR_ARGUMENT;
    enum { BLOCK = 4096 }; /* ids that are fed before the stages run; limits the memory of the pieces between the stages */
    struct wf_decoder s = {0};
    int64_t before = out->length, length;
    wf_status status = WF_OK;
    for (int64_t i = 0; status == WF_OK && i < count; i++)
        status = check_id(t, ids[i], i, count, error);
    if (status != WF_OK)
        return status;
    if (!wf_string_add(out, "", 0) || (!t->plain && !decoder_start(&s, t, options)))
        status = WF_ERR_MEMORY;
    for (int64_t i = 0; status == WF_OK && i < count; i++) {
        if (t->plain) { /* the pieces themselves are the text */
            const char *piece = vocab_piece(&t->vocab, ids[i], &length);
            status = wf_string_add(out, piece, length) ? WF_OK : WF_ERR_MEMORY;
            continue;
        }
        status = feed(&s, ids[i]);
        if (status == WF_OK && ((i + 1) % BLOCK == 0 || i + 1 == count))
            status = drain(&s, i + 1 == count, out);
    }
    decoder_end(&s);
    if (status == WF_OK)
        return WF_OK;
    wf_string_cut(out, before);
    out->failed = false;
    return fail(&s, status, error);
}

wf_status wf_tokenizer_decode(const wf_tokenizer *t, const int32_t *ids, int64_t count, struct wf_string *out, wf_error *error)
{
    if (wf_needs(error, "tokenizer, ids, out", t, wf_some(ids, count), out))
        return WF_ERR_ARGUMENT;
    return wf_tokenizer_decode_with(t, ids, count, NULL, out, error);
}
