/* SPDX-License-Identifier: MIT */
/* A text of `weft generate`, and its JSON. */
#include "answer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weft/internal/string.h>

#include "cli.h"

bool answer_text(void *ctx, const char *text, int64_t length)
{
    struct answer *a = ctx;
    if (a->muted)
        return !interrupted(NULL);
    if (a->stream) {
        fwrite(text, 1, (size_t)length, stdout);
        fflush(stdout);
        return !interrupted(NULL) && !ferror(stdout);
    }
    return wf_string_add(&a->text, text, length) && !interrupted(NULL);
}

void answer_done(void *ctx, const struct wf_generate_result *result)
{
    struct answer *a = ctx;
    a->result = *result;
    a->done = true;
}

static void put_token(struct answer *a, int32_t id, double log_probability)
{
    int64_t length;
    const char *token = wf_tokenizer_token(a->tokenizer, id, &length);
    wf_string_format(&a->scores, "{\"id\": %d, \"token\": ", id);
    wf_string_json(&a->scores, token ? token : "", token ? length : 0);
    wf_string_text(&a->scores, ", \"log_probability\": ");
    wf_string_format(&a->scores, "%.6g", log_probability);
}

void answer_score(void *ctx, const struct wf_token_score *score)
{
    struct answer *a = ctx;
    a->log_probability += score->log_probability;
    if (a->tops < 0)
        return;
    wf_string_text(&a->scores, a->scores.length > 0 ? ", " : "");
    put_token(a, score->id, score->log_probability);
    for (int64_t i = 0; i < score->tops; i++) {
        wf_string_text(&a->scores, i == 0 ? ", \"top\": [" : ", ");
        put_token(a, score->top[i], score->top_log_probability[i]);
        wf_string_char(&a->scores, '}');
    }
    wf_string_text(&a->scores, score->tops > 0 ? "]}" : "}");
}

/* Finds where the continuation starts in the text: at the end of the prompt's decoded text, or earlier if the new tokens have changed the
 * end of that text. */
static wf_status continuation_of(const struct answer *a, int64_t *at, wf_error *error)
{
    struct wf_string prompt = {0};
    wf_status status = wf_tokenizer_decode(a->tokenizer, a->ids.id, a->ids.count, &prompt, error);
    for (*at = 0; *at < prompt.length && *at < a->text.length && prompt.data[*at] == a->text.data[*at];)
        ++*at;
    while (*at > 0 && *at < a->text.length && (a->text.data[*at] & 0xc0) == 0x80) /* go back to the start of a UTF-8 character */
        --*at;
    wf_string_free(&prompt);
    return status;
}

wf_status answer_print_json(const struct answer *a, wf_error *error)
{
    static const char *const ends[] = {[WF_GENERATE_MAX_TOKENS] = "max_tokens",
                                       [WF_GENERATE_END_TOKEN] = "end_token",
                                       [WF_GENERATE_STOPPED] = "interrupted",
                                       [WF_GENERATE_STOP_TEXT] = "stop"};
    struct wf_string out = {0};
    const char *written = a->text.data ? a->text.data : "";
    int64_t at;
    if (a->text.failed || a->scores.failed)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for a text");
    wf_status status = WF_OK;
    if (a->answer_only)
        at = 0;
    else
        status = continuation_of(a, &at, error);
    if (status != WF_OK)
        return status;
    wf_string_text(&out, "{");
    if (a->line > 0)
        wf_string_format(&out, "\"line\": %" PRId64 ", ", a->line);
    wf_string_text(&out, "\"prompt\": ");
    wf_string_json(&out, a->prompt.data ? a->prompt.data : "", a->prompt.length);
    wf_string_text(&out, ", \"text\": ");
    wf_string_json(&out, written, a->text.length);
    wf_string_text(&out, ", \"continuation\": ");
    wf_string_json(&out, written + at, a->text.length - at);
    wf_string_format(&out, ", \"seed\": %" PRIu64 ", \"prompt_tokens\": %" PRId64, a->seed, a->ids.count);
    wf_string_format(&out, ", \"log_probability\": %.6g", a->log_probability);
    if (a->tops >= 0) {
        wf_string_text(&out, ", \"log_probabilities\": [");
        wf_string_add(&out, a->scores.data ? a->scores.data : "", a->scores.length);
        wf_string_text(&out, "]");
    }
    wf_string_format(&out, ", \"tokens\": %" PRId64 ", \"end\": \"%s\"}\n", a->result.tokens, ends[a->result.end]);
    if (out.failed)
        status = wf_error_set(error, WF_ERR_MEMORY, "no memory for the JSON of a text");
    else
        fwrite(out.data, 1, (size_t)out.length, stdout);
    wf_string_free(&out);
    return status;
}

void answer_free(struct answer *a)
{
    wf_string_free(&a->prompt);
    wf_tokens_free(&a->ids);
    wf_string_free(&a->text);
    wf_string_free(&a->scores);
    *a = (struct answer){0};
}
