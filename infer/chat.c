/* SPDX-License-Identifier: MIT */
/* A conversation: its messages, the turns that are dropped when the context is full, and the generation of answers. */
#include <string.h>

#include <weft/generator.h>
#include <weft/internal/grow.h>
#include <weft/internal/minmax.h>
#include <weft/internal/needs.h>
#include <weft/internal/string.h>
#include <weft/internal/text.h>
#include <weft/memory.h>
#include <weft/runtime.h>

#include "chat_form.h"

enum { MOST_ANSWER = 500 }; /* default of max_tokens, as in generation */

struct line {
    char *text;
    int64_t length;
};

struct wf_chat {
    const struct wf_run *run;
    const wf_chat_template *form;
    struct wf_generate_options generate;
    wf_tape *tape;
    wf_generator *generator; /* keeps the cache: an answer computes only what the conversation before did not have */
    char *system;            /* NULL: that of the template */
    struct line *line;       /* [lines]: the messages of user and assistant in turn */
    int64_t lines, capacity;
    int32_t end[WF_CHAT_ENDS]; /* tokens that end an answer */
    int ends;
    struct wf_chat_message *message; /* [1 + lines]: memory for rendering */
    int64_t messages_room;
};

/* --- making -------------------------------------------------------------------------------------------------------- */

static void add_end(int32_t end[WF_CHAT_ENDS], int *ends, int32_t id)
{
    for (int i = 0; i < *ends; i++)
        if (end[i] == id)
            return;
    if (id >= 0)
        end[(*ends)++] = id;
}

int wf_chat_ends(const wf_chat_template *form, const struct wf_run *run, int32_t end[WF_CHAT_ENDS])
{
    int ends = 0;
    if (!form || !run || !end)
        return 0;
    for (int i = 0; i < run->ends; i++)
        add_end(end, &ends, run->end[i]);
    add_end(end, &ends, wf_tokenizer_id(run->tokenizer, form->end, (int64_t)strlen(form->end)));
    add_end(end, &ends, wf_tokenizer_special(run->tokenizer, WF_SPECIAL_EOS));
    return ends;
}

static wf_status needs_token(const wf_chat *c, const char *token, wf_error *error)
{
    char quoted[WF_QUOTE_SIZE];
    if (wf_tokenizer_id(c->run->tokenizer, token, (int64_t)strlen(token)) >= 0)
        return WF_OK;
    return wf_error_set(error, WF_ERR_ARGUMENT,
                        "the vocabulary has no token %s, which the chat template %s needs: the model was trained with another template",
                        wf_text_quote(token, quoted), c->form->form->name);
}

/* Checks that the vocabulary has the tokens that the template writes. */
static wf_status check_tokens(const wf_chat *c, wf_error *error)
{
    const struct chat_form *f = c->form->form;
    wf_status status = c->form->begins && c->form->bos[0] ? needs_token(c, c->form->bos, error) : WF_OK;
    if (status == WF_OK && c->form->end[0])
        status = needs_token(c, c->form->end, error);
    for (size_t i = 0; status == WF_OK && i < sizeof f->tokens / sizeof *f->tokens && f->tokens[i]; i++)
        status = needs_token(c, f->tokens[i], error);
    return status;
}

wf_status wf_chat_set_system(wf_chat *chat, const char *system, wf_error *error)
{
    if (wf_needs(error, "chat", chat))
        return WF_ERR_ARGUMENT;
    if (system && chat->form->form->place == NONE)
        return wf_error_set(error, WF_ERR_ARGUMENT, "the chat template %s has no place for a system message", chat->form->form->name);
    char *copy = system ? wf_strdup(system) : NULL;
    if (system && !copy)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for a system message");
    wf_free(chat->system);
    chat->system = copy;
    return WF_OK;
}

static wf_status start(wf_chat *c, const struct wf_chat_options *o, wf_error *error)
{
    if (wf_model_kind_of(c->run->model) != WF_MODEL_LANGUAGE)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s is not a language model: it cannot answer", c->run->config.model);
    wf_status status = check_tokens(c, error);
    if (status == WF_OK)
        status = wf_chat_set_system(c, o->system, error);
    if (status == WF_OK && !(c->tape = wf_tape_new(error)))
        status = WF_ERR_MEMORY;
    c->ends = wf_chat_ends(c->form, c->run, c->end);
    c->generate = o->generate;
    c->generate.max_tokens = o->generate.max_tokens > 0 ? o->generate.max_tokens : MOST_ANSWER;
    c->generate.end = c->ends > 0 ? c->end : NULL;
    c->generate.ends = c->ends;
    c->generate.types = wf_tokenizer_vocab_size(c->run->tokenizer);
    return status;
}

wf_chat *wf_chat_new(const struct wf_run *run, const wf_chat_template *form, const struct wf_chat_options *options, wf_error *error)
{
    if (wf_needs(error, "run, form", run, form))
        return NULL;
    wf_chat *c = wf_alloc_zero(1, sizeof *c);
    if (!c) {
        wf_error_set(error, WF_ERR_MEMORY, "no memory for a conversation");
        return NULL;
    }
    c->run = run;
    c->form = form;
    if (start(c, options ? options : &(struct wf_chat_options){0}, error) == WF_OK)
        return c;
    wf_chat_free(c);
    return NULL;
}

void wf_chat_reset(wf_chat *chat)
{
    for (int64_t i = 0; chat && i < chat->lines; i++)
        wf_free(chat->line[i].text);
    if (chat)
        chat->lines = 0;
}

void wf_chat_free(wf_chat *chat)
{
    if (!chat)
        return;
    wf_chat_reset(chat);
    wf_generator_free(chat->generator);
    wf_tape_free(chat->tape);
    wf_free(chat->system);
    wf_free(chat->line);
    wf_free(chat->message);
    wf_free(chat);
}

int64_t wf_chat_turns(const wf_chat *chat)
{
    return chat ? chat->lines / 2 : 0;
}

struct wf_chat_message wf_chat_message_at(const wf_chat *chat, int64_t index)
{
    if (!chat || index < 0 || index >= chat->lines)
        return (struct wf_chat_message){0};
    return (struct wf_chat_message){index % 2 ? WF_CHAT_ASSISTANT : WF_CHAT_USER, chat->line[index].text, chat->line[index].length};
}

/* --- the prompt ---------------------------------------------------------------------------------------------------- */

/* Replaces the ids in *out by those of the conversation from message `first` on, with the system message. */
static wf_status encode(wf_chat *c, int64_t first, struct wf_tokens *out, wf_error *error)
{
    int64_t count = 0;
    if (!wf_grow(&c->message, &c->messages_room, 1 + c->lines, sizeof *c->message))
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for the messages of a conversation");
    if (c->system)
        c->message[count++] = (struct wf_chat_message){WF_CHAT_SYSTEM, c->system, (int64_t)strlen(c->system)};
    for (int64_t i = first; i < c->lines; i++)
        c->message[count++] = wf_chat_message_at(c, i);
    out->count = 0;
    return wf_chat_encode(c->form, c->run->tokenizer, c->message, count, out, error);
}

/* Finds the first message of the longest end of the conversation that fits into the context together with an answer. */
static wf_status fit(wf_chat *c, int64_t *first, struct wf_tokens *ids, wf_error *error)
{
    const int64_t context = wf_config_shape(&c->run->config).context;
    const int64_t room = WF_MIN(c->generate.max_tokens, WF_MAX(context / 4, 1));
    wf_status status = WF_OK;
    for (*first = 0; (status = encode(c, *first, ids, error)) == WF_OK && ids->count + room > context && *first + 1 < c->lines; *first += 2)
        continue;
    if (status == WF_OK && ids->count >= context)
        status =
            wf_error_set(error, WF_ERR_ARGUMENT,
                         "the message does not fit into the context: with the system message it has %lld tokens, and the context %lld: "
                         "shorten it",
                         (long long)ids->count, (long long)context);
    return status;
}

/* --- answering ----------------------------------------------------------------------------------------------------- */

/* Decodes the ids of an answer, keeps its text and gives it to the caller. */
struct reply {
    wf_decoder *decoder;
    struct wf_string text;
    bool (*piece)(void *ctx, const char *text, int64_t length);
    void *ctx;
    bool stopped;
    wf_status status;
    wf_error *error;
};

static bool give(struct reply *r, const char *text, int64_t length)
{
    if (!wf_string_add(&r->text, text, length)) {
        r->status = wf_error_set(r->error, WF_ERR_MEMORY, "no memory for an answer");
        return false;
    }
    r->stopped = !r->piece(r->ctx, text, length);
    return !r->stopped;
}

static bool take_token(void *ctx, int32_t id)
{
    struct reply *r = ctx;
    const char *text;
    int64_t length;
    r->status = wf_decoder_push(r->decoder, id, &text, &length, r->error);
    return r->status == WF_OK && give(r, text, length);
}

static bool ignore(void *ctx, const char *text, int64_t length)
{
    (void)ctx, (void)text, (void)length;
    return true;
}

static wf_status open_generator(wf_chat *c, wf_error *error)
{
    const struct wf_next next = wf_next_of(c->run->model);
    if (!c->generator)
        c->generator = wf_generator_new(&next, c->tape, &(struct wf_generator_options){.no_cache = c->generate.no_cache}, error);
    return c->generator ? WF_OK : WF_ERR_MEMORY;
}

/* Generates the answer to the prompt. All generation of conversations happens here. */
static wf_status generate(wf_chat *c, const struct wf_tokens *prompt, struct reply *r, struct wf_generate_result *result, wf_error *error)
{
    const int64_t left = wf_config_shape(&c->run->config).context - prompt->count;
    struct wf_generate_options o = c->generate;
    const char *rest;
    int64_t count;
    o.max_tokens = WF_MIN(o.max_tokens, left);
    o.token = take_token;
    o.ctx = r;
    o.result = result;
    if (!(r->decoder = wf_decoder_new(c->run->tokenizer, NULL, error)))
        return WF_ERR_MEMORY;
    wf_status status = open_generator(c, error);
    o.generator = c->generator;
    if (status == WF_OK)
        status = wf_generate_with(c->run->model, c->tape, prompt->id, prompt->count, &o, NULL, &count, error);
    if (status != WF_OK) { /* a generator can only be freed after an error */
        wf_generator_free(c->generator);
        c->generator = NULL;
    }
    if (status == WF_OK)
        status = r->status;
    if (status == WF_OK && (status = wf_decoder_finish(r->decoder, &rest, &count, error)) == WF_OK) {
        const bool stopped = r->stopped; /* the caller gets no more, but the turn has the text of all ids */
        if (stopped)
            r->piece = ignore;
        give(r, rest, count);
        r->stopped = stopped;
        status = r->status;
    }
    return status;
}

/* Appends a message. */
static wf_status add_line(wf_chat *c, const char *text, int64_t length, wf_error *error)
{
    char *copy = wf_alloc((size_t)length + 1);
    if (!copy || !wf_grow(&c->line, &c->capacity, c->lines + 1, sizeof *c->line)) {
        wf_free(copy);
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for a message of %lld bytes", (long long)length);
    }
    if (length > 0)
        memcpy(copy, text, (size_t)length);
    copy[length] = 0;
    c->line[c->lines++] = (struct line){copy, length};
    return WF_OK;
}

static void drop_first(wf_chat *c, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        wf_free(c->line[i].text);
    c->lines -= count;
    if (count > 0)
        memmove(c->line, c->line + count, (size_t)c->lines * sizeof *c->line);
}

wf_status wf_chat_answer(wf_chat *chat, const char *text, int64_t length, bool (*piece)(void *ctx, const char *text, int64_t length),
                         void *ctx, struct wf_chat_result *result, wf_error *error)
{
    if (wf_needs(error, "chat, text", chat, wf_some(text, length)))
        return WF_ERR_ARGUMENT;
    if (length < 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "a message has a length of %lld bytes", (long long)length);
    struct reply r = {.piece = piece ? piece : ignore, .ctx = ctx, .error = error};
    struct wf_tokens ids = {0};
    struct wf_generate_result done = {0};
    int64_t first = 0;
    wf_status status = add_line(chat, text, length, error);
    const bool added = status == WF_OK;
    if (status == WF_OK)
        status = fit(chat, &first, &ids, error);
    if (status == WF_OK)
        status = generate(chat, &ids, &r, &done, error);
    if (status == WF_OK)
        drop_first(chat, first);
    if (status == WF_OK)
        status = add_line(chat, r.text.data, r.text.length, error);
    if (status != WF_OK && added)
        wf_free(chat->line[--chat->lines].text);
    if (status == WF_OK && result)
        *result = (struct wf_chat_result){.prompt = ids.count,
                                          .tokens = done.tokens,
                                          .dropped = first / 2,
                                          .end = done.end,
                                          .full = done.end == WF_GENERATE_MAX_TOKENS && done.tokens < chat->generate.max_tokens};
    wf_decoder_free(r.decoder);
    wf_string_free(&r.text);
    wf_tokens_free(&ids);
    return status;
}
