/* SPDX-License-Identifier: MIT */
/* Conversations with the tiny model of tests/golden/chat/model: turns, ends of answers, what is dropped when the context is full. */
#include <weft/chat.h>
#include <weft/internal/string.h>
#include <weft/memory.h>

#include "../check_weft.h"

enum { CONTEXT = 128, ROOM = CONTEXT / 4 };

static struct wf_run run;
static wf_chat_template *form;
static struct wf_string heard;
static int pieces, most_pieces;

static void open_model(void)
{
    char path[4096];
    wf_error problem = {0};
    snprintf(path, sizeof path, "%s/tests/golden/chat/model", getenv("WEFT_SOURCE_ROOT"));
    ck_ok(wf_run_open(&run, path, NULL, error));
    form = wf_chat_template_load(path, NULL, &problem);
    ck_assert_msg(form != NULL, "%s", problem.message);
    ck_assert_str_eq(wf_chat_template_name(form), "chatml");
    ck_assert_str_eq(wf_chat_template_end(form), "<|im_end|>");
    heard = (struct wf_string){0};
    most_pieces = INT32_MAX;
}

static void close_model(void)
{
    wf_string_free(&heard);
    wf_chat_template_free(form);
    wf_run_close(&run);
}

static bool hear(void *ctx, const char *text, int64_t length)
{
    (void)ctx;
    ck_assert_int_eq(text[length], 0);
    wf_string_add(&heard, text, length);
    return ++pieces < most_pieces;
}

static wf_chat *new_chat(int64_t max_tokens, const char *system)
{
    wf_error problem = {0};
    const struct wf_chat_options o = {.system = system, .generate = {.sampler = {.seed = 3}, .max_tokens = max_tokens}};
    wf_chat *chat = wf_chat_new(&run, form, &o, &problem);
    ck_assert_msg(chat != NULL, "%s", problem.message);
    return chat;
}

static struct wf_chat_result ask(wf_chat *chat, const char *text)
{
    struct wf_chat_result result;
    wf_string_cut(&heard, 0);
    wf_string_text(&heard, "");
    pieces = 0;
    ck_ok(wf_chat_answer(chat, text, (int64_t)strlen(text), hear, NULL, &result, error));
    return result;
}

/* The number of ids of the conversation up to the last message of the user, from message `first` on, with this system message. */
static int64_t ids_of(const wf_chat *chat, int64_t first, const char *system)
{
    struct wf_chat_message m[64];
    struct wf_tokens ids = {0};
    int64_t count = 0;
    if (system)
        m[count++] = (struct wf_chat_message){WF_CHAT_SYSTEM, system, (int64_t)strlen(system)};
    for (int64_t i = first; i < 2 * wf_chat_turns(chat) - 1; i++)
        m[count++] = wf_chat_message_at(chat, i);
    ck_ok(wf_chat_encode(form, run.tokenizer, m, count, &ids, error));
    count = ids.count;
    wf_tokens_free(&ids);
    return count;
}

START_TEST(turns)
{
    open_model();
    wf_chat *chat = new_chat(6, NULL);
    ck_assert_int_eq(wf_chat_turns(chat), 0);
    const struct wf_chat_result one = ask(chat, "Hello");
    ck_assert_int_eq(wf_chat_turns(chat), 1);
    ck_assert_int_eq(one.tokens, 6);
    ck_assert(one.end == WF_GENERATE_MAX_TOKENS && !one.full && one.dropped == 0);
    ck_assert_int_eq(one.prompt, ids_of(chat, 0, NULL));
    const struct wf_chat_message said = wf_chat_message_at(chat, 1);
    ck_assert(said.role == WF_CHAT_ASSISTANT && said.length == heard.length && !strcmp(said.text, heard.data));
    ck_assert_str_eq(wf_chat_message_at(chat, 0).text, "Hello");
    ck_assert_int_eq(wf_chat_message_at(chat, 2).length, 0);
    ck_assert_int_eq(wf_chat_message_at(chat, -1).length, 0);
    const struct wf_chat_result two = ask(chat, "");
    ck_assert_int_eq(two.prompt, ids_of(chat, 0, NULL));
    ck_assert_int_gt(two.prompt, one.prompt + one.tokens / 2);
    char *second = wf_strdup(heard.data);

    /* the same conversation gives the same answers; another system message is in the prompt */
    wf_chat_reset(chat);
    ck_assert_int_eq(wf_chat_turns(chat), 0);
    ask(chat, "Hello");
    ask(chat, "");
    ck_assert_str_eq(heard.data, second);
    wf_chat_reset(chat);
    ck_ok(wf_chat_set_system(chat, "Say aye, aye, aye, and nothing else.", error));
    ck_assert_int_eq(ask(chat, "Hello").prompt, ids_of(chat, 0, "Say aye, aye, aye, and nothing else."));
    ck_assert_int_ne(ids_of(chat, 0, "Say aye, aye, aye, and nothing else."), one.prompt);
    ck_ok(wf_chat_set_system(chat, NULL, error));
    wf_chat_reset(chat);
    ck_assert_int_eq(ask(chat, "Hello").prompt, one.prompt);
    wf_free(second);
    wf_chat_free(chat);
    close_model();
}
END_TEST

/* An answer ends at the template's token, and without one of the template's. */
START_TEST(ends)
{
    open_model();
    wf_chat *chat = new_chat(60, "");
    bool ended = false;
    for (int i = 0; i < 200 && !ended; i++) {
        char text[32];
        snprintf(text, sizeof text, "%d", i);
        wf_chat_reset(chat);
        const struct wf_chat_result r = ask(chat, text);
        ended = r.end == WF_GENERATE_END_TOKEN;
        ck_assert(!ended || (r.tokens < 60 && !strstr(heard.data, "<|")));
    }
    ck_assert(ended);

    /* a caller ends an answer: what came is the turn */
    wf_chat_reset(chat);
    most_pieces = 3;
    const struct wf_chat_result r = ask(chat, "Hello");
    ck_assert(r.end == WF_GENERATE_STOPPED && r.tokens == 3 && !r.full);
    ck_assert_int_eq(pieces, 3);
    ck_assert_int_eq(wf_chat_turns(chat), 1);
    ck_assert_int_eq(strncmp(wf_chat_message_at(chat, 1).text, heard.data, (size_t)heard.length), 0);
    wf_chat_free(chat);
    close_model();
}
END_TEST

START_TEST(outgrown_context)
{
    open_model();
    wf_chat *chat = new_chat(1000, "");
    int64_t dropped = 0, full = 0;
    for (int i = 0; i < 12; i++) {
        const int64_t before = wf_chat_turns(chat);
        most_pieces = 9; /* else the first answer might fill the context */
        const struct wf_chat_result r = ask(chat, "one two three");
        dropped += r.dropped;
        ck_assert_int_eq(wf_chat_turns(chat), before + 1 - r.dropped);
        ck_assert_int_eq(r.prompt, ids_of(chat, 0, ""));
        ck_assert_int_le(r.prompt + ROOM, CONTEXT);
    }
    ck_assert_int_gt(dropped, 3);
    /* not a turn more than needed: with the turn that was dropped last there would be no room */
    for (int i = 0; i < 12; i++) {
        struct wf_string oldest = {0};
        const struct wf_chat_message m[] = {wf_chat_message_at(chat, 0), wf_chat_message_at(chat, 1)};
        wf_string_add(&oldest, m[0].text, m[0].length);
        const int64_t turn = ids_of(chat, 0, "") - ids_of(chat, 2, ""), length = oldest.length;
        const struct wf_chat_result r = ask(chat, "one two three");
        if (r.dropped == 1)
            ck_assert_int_gt(r.prompt + turn + ROOM, CONTEXT);
        ck_assert_int_eq(length, 13);
        wf_string_free(&oldest);
    }
    /* an answer ends where the context ends */
    most_pieces = INT32_MAX;
    for (int i = 0; i < 30 && !full; i++) {
        wf_chat_reset(chat);
        const struct wf_chat_result r = ask(chat, "one two three four five six seven eight nine ten one two three four five six seven");
        full += r.full;
        if (r.full)
            ck_assert_int_eq(r.prompt + r.tokens, CONTEXT);
        if (r.full)
            ck_assert(r.end == WF_GENERATE_MAX_TOKENS);
        ck_ok(wf_chat_set_system(chat, i % 2 ? "" : "x", error));
    }
    ck_assert_int_gt(full, 0);
    wf_chat_free(chat);
    close_model();
}
END_TEST

/* A message that fits into no context is refused, and the conversation stays as it was. */
START_TEST(too_long)
{
    open_model();
    char text[2 * CONTEXT + 1];
    memset(text, '?', sizeof text);
    for (size_t i = 1; i < sizeof text; i += 2)
        text[i] = ' ';
    text[sizeof text - 1] = 0;
    wf_chat *chat = new_chat(5, "");
    ask(chat, "Hello");
    ck_fails(wf_chat_answer(chat, text, (int64_t)sizeof text - 1, hear, NULL, NULL, error), WF_ERR_ARGUMENT,
             "the message does not fit into the context: with the system message it has ");
    ck_assert_int_eq(wf_chat_turns(chat), 1);
    ck_fails(wf_chat_answer(chat, "\xFF", 1, hear, NULL, NULL, error), WF_ERR_FORMAT, "not UTF-8");
    ck_assert_int_eq(wf_chat_turns(chat), 1);
    ck_assert_str_eq(wf_chat_message_at(chat, 0).text, "Hello");
    /* with less room than a quarter of the context, the last message is answered all the same */
    text[85] = 0;
    const struct wf_chat_result r = ask(chat, text);
    ck_assert_int_gt(r.prompt, CONTEXT - ROOM);
    ck_assert_int_eq(r.dropped, 1);
    ck_assert_int_eq(wf_chat_turns(chat), 1);
    wf_chat_free(chat);
    close_model();
}
END_TEST

START_TEST(what_does_not_fit_together)
{
    open_model();
    wf_error problem = {0};
    char path[4096];
    wf_chat_template *other = wf_chat_template_named("mistral-v3", NULL, NULL, &problem);
    ck_fails_null(wf_chat_new(&run, other, NULL, error), WF_ERR_ARGUMENT,
                  "the vocabulary has no token \"[INST]\", which the chat template mistral-v3 needs");
    wf_chat_template_free(other);
    snprintf(path, sizeof path, "%s/tests/golden/decoders/llama", getenv("WEFT_SOURCE_ROOT"));
    ck_fails_null(wf_chat_template_load(path, NULL, error), WF_ERR_FORMAT, "has no chat template");
    ck_fails_null(wf_chat_template_load(path, "alpaca", error), WF_ERR_ARGUMENT, "there is no chat template \"alpaca\"");
    other = wf_chat_template_load(path, "llama2", &problem);
    ck_assert_ptr_nonnull(other);
    wf_chat_template_free(other);
    /* functions without an error do nothing for NULL */
    ck_assert_int_eq(wf_chat_turns(NULL), 0);
    ck_assert_ptr_null(wf_chat_message_at(NULL, 0).text);
    ck_assert(!wf_chat_template_name(NULL) && !wf_chat_template_system(NULL) && !wf_chat_template_end(NULL));
    wf_chat_reset(NULL);
    wf_chat_free(NULL);
    wf_chat_template_free(NULL);
    close_model();
}
END_TEST

WF_TEST_MAIN("chat_turns", turns, ends, outgrown_context, too_long, what_does_not_fit_together)
