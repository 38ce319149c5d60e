/* SPDX-License-Identifier: MIT */
/* Chat templates against transformers (tests/golden/make_chat.py; or the cases of the file that WEFT_CHAT names, whose texts alone are
 * compared), special tokens in messages, and conversations: their turns, their ends, what is dropped. */
#include <jansson.h>
#include <time.h>

#include <weft/chat.h>
#include <weft/file.h>
#include <weft/internal/string.h>

#include "../data/data_test.h"

enum { MESSAGES = 8 };

static char *content(const char *path, int64_t *bytes)
{
    wf_error error = {0};
    char *text = wf_file_load(path, 1 << 24, bytes, &error);
    ck_assert_msg(text != NULL, "%s", error.message);
    return text;
}

static const char *chat_path(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/tests/golden/chat/%s", getenv("WEFT_SOURCE_ROOT"), name);
    return path;
}

static json_t *cases(void)
{
    int64_t bytes;
    const char *other = getenv("WEFT_CHAT");
    char *text = content(other ? other : chat_path("cases.json"), &bytes);
    json_t *value = json_loadb(text, (size_t)bytes, 0, NULL);
    ck_assert_ptr_nonnull(value);
    wf_free(text);
    return value;
}

static wf_tokenizer *tokenizer_of(const char *name)
{
    char file[64];
    wf_tokenizer *t = NULL;
    snprintf(file, sizeof file, "%s.json", name);
    ck_ok(wf_tokenizer_load(chat_path(file), &t, error));
    return t;
}

static int64_t messages_of(json_t *conversation, struct wf_chat_message out[MESSAGES])
{
    int64_t count = (int64_t)json_array_size(conversation);
    ck_assert_int_le(count, MESSAGES);
    for (int64_t i = 0; i < count; i++) {
        json_t *m = json_array_get(conversation, (size_t)i), *text = json_object_get(m, "content");
        const char *role = json_string_value(json_object_get(m, "role"));
        out[i] = (struct wf_chat_message){*role == 's'   ? WF_CHAT_SYSTEM
                                          : *role == 'u' ? WF_CHAT_USER
                                                         : WF_CHAT_ASSISTANT,
                                          json_string_value(text), (int64_t)json_string_length(text)};
    }
    return count;
}

static wf_chat_template *template_of(json_t *c)
{
    wf_error error = {0};
    json_t *jinja = json_object_get(c, "jinja");
    wf_chat_template *form =
        wf_chat_template_parse(json_string_value(jinja), (int64_t)json_string_length(jinja), json_string_value(json_object_get(c, "bos")),
                               json_string_value(json_object_get(c, "eos")), "x.jinja", &error);
    ck_assert_msg(form != NULL, "%s: %s", json_string_value(json_object_get(c, "name")), error.message);
    return form;
}

START_TEST(as_transformers)
{
    json_t *all = cases(), *list = json_object_get(all, "cases"), *conversations = json_object_get(all, "conversations");
    ck_assert_uint_gt(json_array_size(list), 0);
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *c = json_array_get(list, i), *results = json_object_get(c, "results");
        const char *name = json_string_value(json_object_get(c, "name")), *by = json_string_value(json_object_get(c, "tokenizer"));
        wf_chat_template *form = template_of(c);
        wf_tokenizer *t = by ? tokenizer_of(by) : NULL;
        ck_assert_str_eq(wf_chat_template_name(form), json_string_value(json_object_get(c, "form")));
        for (size_t k = 0; k < json_array_size(conversations); k++) {
            struct wf_chat_message m[MESSAGES];
            const int64_t count = messages_of(json_array_get(conversations, k), m);
            json_t *result = json_array_get(results, k), *text = json_array_get(result, 0), *ids = json_array_get(result, 1);
            struct wf_string out = {0};
            struct wf_tokens got = {0};
            if (json_is_null(result)) /* transformers refuses it */
                continue;
            ck_ok(wf_chat_render(form, m, count, &out, error));
            ck_assert_msg(out.length == (int64_t)json_string_length(text) && !memcmp(out.data, json_string_value(text), (size_t)out.length),
                          "%s, conversation %zu: '%s' instead of '%s'", name, k, out.data, json_string_value(text));
            wf_string_free(&out);
            if (!t)
                continue;
            ck_ok(wf_chat_encode(form, t, m, count, &got, error));
            ck_assert_msg(got.count == (int64_t)json_array_size(ids), "%s, conversation %zu: %d ids instead of %zu", name, k,
                          (int)got.count, json_array_size(ids));
            for (int64_t j = 0; j < got.count; j++)
                ck_assert_msg(got.id[j] == json_integer_value(json_array_get(ids, (size_t)j)), "%s, conversation %zu, id %d", name, k,
                              (int)j);
            wf_tokens_free(&got);
        }
        wf_tokenizer_free(t);
        wf_chat_template_free(form);
    }
    json_decref(all);
}
END_TEST

/* A template chosen by name writes what the one in a file writes. */
START_TEST(by_name)
{
    static const char *const same[] = {"plain",      "llama2",     "llama3",         "llama3.1", "mistral-v0", "mistral-v0.1",
                                       "mistral-v1", "mistral-v3", "mistral-tekken", "gemma",    "gemma3",     "zephyr",
                                       "phi3",       "phi3-small", "phi4",           "phi4-mini"};
    json_t *all = cases(), *list = json_object_get(all, "cases"), *conversations = json_object_get(all, "conversations");
    int known = 0, tried = 0;
    for (size_t i = 0; i < json_array_size(list) && !getenv("WEFT_CHAT"); i++) {
        json_t *c = json_array_get(list, i), *results = json_object_get(c, "results");
        const char *name = json_string_value(json_object_get(c, "name"));
        bool listed = false;
        for (size_t k = 0; k < sizeof same / sizeof *same; k++)
            listed |= strcmp(same[k], name) == 0;
        if (!listed)
            continue;
        wf_error problem = {0};
        wf_chat_template *form = wf_chat_template_named(json_string_value(json_object_get(c, "form")), NULL, NULL, &problem);
        ck_assert_msg(form != NULL, "%s", problem.message);
        tried++;
        for (size_t k = 0; k < json_array_size(conversations); k++) {
            struct wf_chat_message m[MESSAGES];
            const int64_t count = messages_of(json_array_get(conversations, k), m);
            json_t *result = json_array_get(results, k);
            struct wf_string out = {0};
            if (json_is_null(result) || (m[0].role == WF_CHAT_SYSTEM && m[0].length == 0))
                continue;
            ck_ok(wf_chat_render(form, m, count, &out, error));
            ck_assert_str_eq(out.data, json_string_value(json_array_get(result, 0)));
            wf_string_free(&out);
        }
        wf_chat_template_free(form);
    }
    while (wf_chat_template_at(known))
        known++;
    ck_assert(getenv("WEFT_CHAT") || tried == known); /* each name is tried */
    json_decref(all);
}
END_TEST

WF_TEST_MAIN("chat", as_transformers, by_name)
