/* SPDX-License-Identifier: MIT */
/* Recognises a known chat template in a text in Jinja, and takes from the text what differs between templates of one form. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <weft/internal/string.h>
#include <weft/internal/text.h>
#include <weft/memory.h>

#include <weft/internal/minmax.h>

#include "chat_form.h"

enum { HEAD = 60 }; /* bytes of an unknown template in a message */

/* Whether `text` begins with `mark`, in which ~ stands for "|trim" or for nothing. *trim tells which. */
static bool begins_with(const char *text, const char *mark, bool *trim)
{
    for (; *mark; mark++) {
        if (*mark == '~') {
            *trim = strncmp(text, "|trim", 5) == 0;
            text += *trim ? 5 : 0;
        } else if (*text++ != *mark) {
            return false;
        }
    }
    return true;
}

static const char *find(const char *text, const char *mark, bool *trim)
{
    for (; *text; text++)
        if (begins_with(text, mark, trim))
            return text;
    return NULL;
}

static bool has(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

static bool matches(const struct chat_form *f, const char *text, struct wf_chat_template *out)
{
    bool user = false, answer = false, ignored;
    bool fits = find(text, f->user, &user) && (!f->answer || find(text, f->answer, &answer));
    for (int i = 0; fits && i < FORM_MARKS && f->marks[i]; i++)
        fits = find(text, f->marks[i], &ignored) != NULL;
    for (size_t i = 0; fits && i < sizeof f->lacks / sizeof *f->lacks && f->lacks[i]; i++)
        fits = !has(text, f->lacks[i]);
    out->form = f;
    out->trim[WF_CHAT_SYSTEM] = f->place == ALONE && !f->answer && user;
    out->trim[WF_CHAT_USER] = user;
    out->trim[WF_CHAT_ASSISTANT] = f->answer ? answer : user;
    return fits;
}

/* Copies the inside of the string whose first character `text` points to; NULL: no memory. */
static char *copy_string(const char *text, int64_t length)
{
    struct wf_string out = {0};
    for (int64_t i = 0; i < length; i++) {
        i += text[i] == '\\' && i + 1 < length;
        wf_string_char(&out, text[i]);
    }
    wf_string_add(&out, "", 0);
    if (out.failed)
        wf_string_free(&out);
    return out.data;
}

/* The number of bytes up to the quote that ends the string. */
static int64_t string_length(const char *text)
{
    int64_t length = 0;
    while (text[length] && text[length] != '\'')
        length += text[length] == '\\' && text[length + 1] ? 2 : 1;
    return length;
}

/* Finds the default system message. Returns false if it cannot be told what the template does. */
static bool find_default(const char *text, struct wf_chat_template *out, bool *memory)
{
    static const char begin[] = "'<|im_start|>system\n", end[] = "<|im_end|>\n", named[] = "{%setsystem_message='";
    const bool sys = has(text, "<<SYS>>");
    const char *found = NULL;
    int64_t length = 0;
    for (const char *at = text; (at = strstr(at, sys ? named : begin)); at++) {
        const char *inside = at + (sys ? sizeof named : sizeof begin) - 1;
        int64_t all = string_length(inside), tail = sys ? 0 : (int64_t)sizeof end - 1;
        if (all == 0 || (!sys && inside[0] == '\'')) /* '<|im_start|>system\n'+...: the message of the conversation */
            continue;
        if (all < tail || memcmp(inside + all - tail, end, (size_t)tail) != 0)
            return false;
        if (found && (length != all - tail || memcmp(found, inside, (size_t)length) != 0))
            return false;
        found = inside;
        length = all - tail;
    }
    if (!found || (sys && has(text, "{%eliffalse==true"))) /* the default of Llama 2 that its converter switched off */
        return true;
    out->system = copy_string(found, length);
    *memory = out->system != NULL;
    return true;
}

/* Makes the text with the dates that Llama 3.1 puts before a system message. Later versions write the date of today. */
static bool find_header(const char *text, struct wf_chat_template *out, bool *memory)
{
    static const char begin[] = "'Cutting Knowledge Date: ", today[] = "strftime_now('%d %b %Y')", fixed[] = "date_string='";
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    const char *at = strstr(text, begin) + 1, *date = strstr(text, fixed);
    struct wf_string header = {0};
    wf_string_add(&header, at, string_length(at));
    if (has(text, today)) {
        struct tm t;
        time_t now = time(NULL);
        localtime_r(&now, &t);
        wf_string_format(&header, "%02d %s %d\n\n", t.tm_mday, months[t.tm_mon], t.tm_year + 1900);
    } else if (date) {
        date += sizeof fixed - 1;
        wf_string_add(&header, date, string_length(date));
        wf_string_text(&header, "\n\n");
    }
    *memory = !header.failed;
    out->header = header.data;
    return (has(text, today) || date) && !(has(text, "strftime_now(") && !has(text, today));
}

/* Sets what differs between templates of one form. Returns false if it cannot be told. */
static bool find_details(const char *text, struct wf_chat_template *out, bool *memory)
{
    const struct chat_form *f = out->form;
    const bool own_bos = strchr(f->before[WF_CHAT_USER], BOS[0]) != NULL;
    out->begins = !own_bos && has(text, "bos_token");
    out->thoughts = has(text, ".split('</think>')[-1].lstrip('\n')");
    out->no_empty = has(text, "=='system'and"
                              "message['content']");
    out->last = f->place == LAST && !has(text, "loop.firstandsystem_message");
    if (has(text, "</think>") && !out->thoughts)
        return false;
    if (out->begins && !has(text, "{{bos_token}}") && !has(text, "{{bos_token+") && !has(text, "=bos_token+content%}"))
        return false;
    if (f->header && !find_header(text, out, memory))
        return false;
    return find_default(text, out, memory);
}

/* Names some unknown templates by a part of their text. */
static const char *likeness(const char *text)
{
    static const char *const known[][2] = {{"<|START_OF_TURN_TOKEN|>", "that of Command R"},
                                           {"<|start_of_role|>", "that of Granite"},
                                           {"<\xEF\xBD\x9CUser\xEF\xBD\x9C>", "that of DeepSeek"},
                                           {"<|channel|>", "Harmony, that of gpt-oss"},
                                           {"<|turn>", "that of Gemma 4"},
                                           {"[SYSTEM_PROMPT]", "that of Mistral from version 7 on"},
                                           {"[gMASK]", "that of GLM"},
                                           {"GPT4 Correct", "that of OpenChat"},
                                           {"### Instruction:", "Alpaca, or like it"},
                                           {"USER: ", "that of Vicuna, or like it"},
                                           {"<|im_start|>", "an unknown variant of ChatML"},
                                           {"<|start_header_id|>", "an unknown variant of Llama 3"},
                                           {"<start_of_turn>", "an unknown variant of Gemma"},
                                           {"[INST]", "an unknown variant of Llama 2 or Mistral"},
                                           {"<|end|>", "an unknown variant of Phi"},
                                           {"<|user|>", "an unknown variant of Zephyr"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (has(text, known[i][0]))
            return known[i][1];
    return NULL;
}

static wf_status refuse(const char *jinja, int64_t length, const char *text, const char *where, wf_error *error)
{
    struct wf_string names = {0};
    char quoted[WF_QUOTE_SIZE], head[HEAD + 4];
    const char *like = likeness(text);
    for (int i = 0; wf_chat_template_at(i); i++)
        wf_string_format(&names, "%s%s", i ? " " : "", wf_chat_template_at(i));
    snprintf(head, sizeof head, "%.*s%s", (int)WF_MIN(length, HEAD), jinja, length > HEAD ? "..." : "");
    if (like)
        (void)!wf_error_set(error, WF_ERR_FORMAT, "%s: the chat template is %s, which is not supported: choose one with --template: %s",
                            where, like, names.data ? names.data : "");
    else
        (void)!wf_error_set(error, WF_ERR_FORMAT, "%s: the chat template %s is not known: choose one with --template: %s", where,
                            wf_text_quote(head, quoted), names.data ? names.data : "");
    wf_string_free(&names);
    return WF_ERR_FORMAT;
}

wf_status chat_recognise(const char *jinja, int64_t length, const char *where, struct wf_chat_template *out, wf_error *error)
{
    struct wf_string text;
    bool known = false, memory = true;
    chat_canonical(jinja, length, &text);
    memory = !text.failed && text.data;
    for (const struct chat_form *f = chat_forms; memory && !known && f->name; f++)
        known = matches(f, text.data, out);
    known = known && find_details(text.data, out, &memory);
    wf_status status = !memory ? wf_error_set(error, WF_ERR_MEMORY, "no memory for a chat template")
                       : known ? WF_OK
                               : refuse(jinja, length, text.data, where, error);
    wf_string_free(&text);
    return status;
}
