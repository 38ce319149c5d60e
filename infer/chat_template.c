/* SPDX-License-Identifier: MIT */
/* Renders conversations in a chat template, to text and to ids. */
#include <stdio.h>
#include <string.h>

#include <weft/internal/grow.h>
#include <weft/internal/needs.h>
#include <weft/internal/string.h>
#include <weft/internal/text.h>
#include <weft/internal/utf8.h>
#include <weft/memory.h>

#include "chat_form.h"

/* --- the template -------------------------------------------------------------------------------------------------- */

const char *wf_chat_template_at(int index)
{
    for (const struct chat_form *f = chat_forms; f->name && index >= 0; f++) /* forms of one name stand together */
        if ((f == chat_forms || strcmp(f->name, f[-1].name) != 0) && index-- == 0)
            return f->name;
    return NULL;
}

/* Replaces BOS and EOS in `piece` by the template's tokens. */
static bool put_piece(const struct wf_chat_template *t, const char *piece, struct wf_string *out)
{
    for (; *piece; piece++)
        if (*piece == BOS[0] || *piece == EOS[0])
            wf_string_text(out, *piece == BOS[0] ? t->bos : t->eos);
        else
            wf_string_char(out, *piece);
    return !out->failed;
}

/* Sets the tokens of a template, whose form is known. Frees the template on an error. */
static wf_chat_template *with_tokens(wf_chat_template *t, const char *bos, const char *eos, wf_error *error)
{
    struct wf_string end = {0};
    t->bos = wf_strdup(bos);
    t->eos = wf_strdup(eos);
    bool fine = t->bos && t->eos && put_piece(t, t->form->end, &end) && wf_string_add(&end, "", 0);
    t->end = end.data;
    if (fine)
        return t;
    wf_error_set(error, WF_ERR_MEMORY, "no memory for a chat template");
    wf_chat_template_free(t);
    return NULL;
}

static wf_chat_template *empty(wf_error *error)
{
    wf_chat_template *t = wf_alloc_zero(1, sizeof *t);
    if (!t)
        wf_error_set(error, WF_ERR_MEMORY, "no memory for a chat template");
    return t;
}

wf_chat_template *wf_chat_template_named(const char *name, const char *bos, const char *eos, wf_error *error)
{
    if (wf_needs(error, "name", name))
        return NULL;
    const struct chat_form *f = chat_forms;
    while (f->name && strcmp(f->name, name) != 0)
        f++;
    if (!f->name) {
        struct wf_string names = {0};
        char quoted[WF_QUOTE_SIZE];
        for (int i = 0; wf_chat_template_at(i); i++)
            wf_string_format(&names, "%s%s", i ? " " : "", wf_chat_template_at(i));
        wf_error_set(error, WF_ERR_ARGUMENT, "there is no chat template %s; the known ones are: %s", wf_text_quote(name, quoted),
                     names.data ? names.data : "");
        wf_string_free(&names);
        return NULL;
    }
    wf_chat_template *t = empty(error);
    if (!t)
        return NULL;
    *t = (struct wf_chat_template){.form = f, .begins = f->begins, .last = f->place == LAST};
    memcpy(t->trim, f->trim, sizeof t->trim);
    if (f->header && !(t->header = wf_strdup(f->header))) {
        wf_error_set(error, WF_ERR_MEMORY, "no memory for a chat template");
        wf_chat_template_free(t);
        return NULL;
    }
    return with_tokens(t, bos ? bos : f->bos ? f->bos : "", eos ? eos : f->eos ? f->eos : "", error);
}

wf_chat_template *wf_chat_template_parse(const char *jinja, int64_t length, const char *bos, const char *eos, const char *where,
                                         wf_error *error)
{
    if (wf_needs(error, "jinja, where", wf_some(jinja, length), where))
        return NULL;
    wf_chat_template *t = empty(error);
    if (t && chat_recognise(jinja, length, where, t, error) != WF_OK) {
        wf_chat_template_free(t);
        t = NULL;
    }
    return t ? with_tokens(t, bos ? bos : "", eos ? eos : "", error) : NULL;
}

void wf_chat_template_free(wf_chat_template *form)
{
    if (!form)
        return;
    wf_free(form->bos);
    wf_free(form->eos);
    wf_free(form->end);
    wf_free(form->system);
    wf_free(form->header);
    wf_free(form);
}

const char *wf_chat_template_name(const wf_chat_template *form)
{
    return form ? form->form->name : NULL;
}

const char *wf_chat_template_system(const wf_chat_template *form)
{
    return form ? form->system : NULL;
}

const char *wf_chat_template_end(const wf_chat_template *form)
{
    return form ? form->end : NULL;
}

/* --- rendering ----------------------------------------------------------------------------------------------------- */

/* A conversation while it is rendered: its text, and the ranges of it that are texts of messages. */
struct page {
    const struct wf_chat_template *t;
    struct wf_string text;
    struct wf_text_range *range;
    int64_t ranges, capacity;
    bool failed;
};

static void put(struct page *p, const char *piece)
{
    put_piece(p->t, piece, &p->text);
}

/* What Python's str.strip removes. */
static bool is_space(uint32_t point)
{
    return (point >= 9 && point <= 13) || (point >= 0x1C && point <= 0x20) || point == 0x85 || point == 0xA0 || point == 0x1680 ||
           (point >= 0x2000 && point <= 0x200A) || point == 0x2028 || point == 0x2029 || point == 0x202F || point == 0x205F ||
           point == 0x3000;
}

/* Removes white space from the ends of a message. */
static struct wf_chat_message trimmed(struct wf_chat_message m, bool begin, bool end)
{
    int size;
    while (begin && m.length > 0 && is_space(wf_utf8_at(m.text, 0, &size))) {
        m.text += size;
        m.length -= size;
    }
    while (end && m.length > 0 && is_space(wf_utf8_at(m.text, m.length - wf_utf8_before(m.text, m.length), &size)))
        m.length -= size;
    return m;
}

/* The text after the last </think>, without line ends before it. */
static struct wf_chat_message without_thoughts(struct wf_chat_message m)
{
    static const char close[] = "</think>";
    const int64_t length = (int64_t)sizeof close - 1;
    bool found = false;
    for (const char *at; m.length > 0 && (at = memmem(m.text, (size_t)m.length, close, (size_t)length)); found = true) {
        m.length -= at + length - m.text;
        m.text = at + length;
    }
    while (found && m.length > 0 && *m.text == '\n') {
        m.text++;
        m.length--;
    }
    return m;
}

/* Appends the text of a message. */
static void put_text(struct page *p, struct wf_chat_message m)
{
    if (m.length <= 0)
        return;
    if (!wf_grow(&p->range, &p->capacity, p->ranges + 1, sizeof *p->range)) {
        p->failed = true;
        return;
    }
    p->range[p->ranges++] = (struct wf_text_range){p->text.length, p->text.length + m.length};
    wf_string_add(&p->text, m.text, m.length);
}

static void put_system(struct page *p, const struct wf_chat_message *system)
{
    const struct chat_form *f = p->t->form;
    if (f->place != ALONE || (!system && !p->t->header) || (system && system->length == 0 && p->t->no_empty))
        return;
    put(p, f->before[WF_CHAT_SYSTEM]);
    if (p->t->header)
        wf_string_text(&p->text, p->t->header);
    if (system)
        put_text(p, trimmed(*system, p->t->trim[WF_CHAT_SYSTEM], p->t->trim[WF_CHAT_SYSTEM]));
    put(p, f->after[WF_CHAT_SYSTEM]);
}

/* `system` is the system message if it stands in this message, else NULL. */
static void put_user(struct page *p, const struct wf_chat_message *m, const struct wf_chat_message *system)
{
    const struct chat_form *f = p->t->form;
    const bool trim = p->t->trim[WF_CHAT_USER];
    const struct wf_chat_message text = trimmed(*m, trim && !(system && f->joint), trim);
    put(p, f->before[WF_CHAT_USER]);
    if (system) {
        put(p, f->before[WF_CHAT_SYSTEM]);
        put_text(p, *system);
        put(p, f->after[WF_CHAT_SYSTEM]);
    }
    if (system && f->joint && trim && text.length == 0) /* the line ends behind the system message are then at the end */
        while (p->text.length > 0 && p->text.data[p->text.length - 1] == '\n')
            wf_string_cut(&p->text, p->text.length - 1);
    put_text(p, text);
    put(p, f->after[WF_CHAT_USER]);
}

static void put_answer(struct page *p, struct wf_chat_message m)
{
    const bool trim = p->t->trim[WF_CHAT_ASSISTANT];
    put(p, p->t->form->before[WF_CHAT_ASSISTANT]);
    put_text(p, trimmed(p->t->thoughts ? without_thoughts(m) : m, trim, trim));
    put(p, p->t->form->after[WF_CHAT_ASSISTANT]);
}

static wf_status check(const wf_chat_template *t, const struct wf_chat_message *messages, int64_t count, wf_error *error)
{
    const int64_t first = count > 0 && messages[0].role == WF_CHAT_SYSTEM;
    if (count - first < 1 || (count - first) % 2 == 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "a conversation must end with a message of the user");
    if (first && t->form->place == NONE)
        return wf_error_set(error, WF_ERR_ARGUMENT, "the chat template %s has no place for a system message", t->form->name);
    for (int64_t i = 0; i < count; i++) {
        const struct wf_chat_message *m = messages + i;
        if (m->length < 0 || (m->length > 0 && !m->text))
            return wf_error_set(error, WF_ERR_ARGUMENT, "message %lld has no text", (long long)i);
        if (i >= first && m->role != ((i - first) % 2 ? WF_CHAT_ASSISTANT : WF_CHAT_USER))
            return wf_error_set(error, WF_ERR_ARGUMENT, "message %lld: after the system message, user and assistant speak in turn",
                                (long long)i);
        const int64_t fault = m->length > 0 ? wf_utf8_check(m->text, m->length) : -1;
        if (fault >= 0)
            return wf_error_set(error, WF_ERR_FORMAT, "message %lld: not UTF-8: byte 0x%02X at %lld: %s; give text in UTF-8", (long long)i,
                                (unsigned char)m->text[fault], (long long)fault, wf_utf8_fault(m->text + fault, m->length - fault));
    }
    return WF_OK;
}

static wf_status fill(struct page *p, const struct wf_chat_message *messages, int64_t count, wf_error *error)
{
    const struct wf_chat_template *t = p->t;
    const int64_t first = count > 0 && messages[0].role == WF_CHAT_SYSTEM;
    const struct wf_chat_message own = {WF_CHAT_SYSTEM, t->system, t->system ? (int64_t)strlen(t->system) : 0};
    wf_status status = check(t, messages, count, error);
    if (status != WF_OK)
        return status;
    const struct wf_chat_message *system = first ? messages : t->system ? &own : NULL;
    const int64_t at = t->form->place == ALONE ? -1 : t->last ? count - 1 : first;
    if (t->begins)
        put(p, BOS);
    put_system(p, system);
    for (int64_t i = first; i < count; i++)
        if ((i - first) % 2)
            put_answer(p, messages[i]);
        else
            put_user(p, messages + i, i == at ? system : NULL);
    put(p, t->form->prompt);
    if (p->failed || p->text.failed)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for the text of a conversation");
    return WF_OK;
}

static void page_free(struct page *p)
{
    wf_string_free(&p->text);
    wf_free(p->range);
}

wf_status wf_chat_render(const wf_chat_template *form, const struct wf_chat_message *messages, int64_t count, struct wf_string *out,
                         wf_error *error)
{
    if (wf_needs(error, "form, messages, out", form, wf_some(messages, count), out))
        return WF_ERR_ARGUMENT;
    struct page p = {.t = form};
    wf_status status = fill(&p, messages, count, error);
    if (status == WF_OK && !wf_string_add(out, p.text.data, p.text.length))
        status = wf_error_set(error, WF_ERR_MEMORY, "no memory for the text of a conversation");
    page_free(&p);
    return status;
}

wf_status wf_chat_encode(const wf_chat_template *form, const wf_tokenizer *tokenizer, const struct wf_chat_message *messages, int64_t count,
                         struct wf_tokens *out, wf_error *error)
{
    if (wf_needs(error, "form, tokenizer, messages, out", form, tokenizer, wf_some(messages, count), out))
        return WF_ERR_ARGUMENT;
    struct page p = {.t = form};
    wf_status status = fill(&p, messages, count, error);
    const struct wf_encode_options o = {.whole = true, .plain = p.range, .plains = p.ranges};
    if (status == WF_OK && (status = wf_tokenizer_encode_with(tokenizer, p.text.data, p.text.length, &o, out, error)) != WF_OK && error)
        wf_error_prefix(error, "the conversation in its template");
    page_free(&p);
    return status;
}
