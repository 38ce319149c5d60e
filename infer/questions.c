/* SPDX-License-Identifier: MIT */
/* Reads multiple-choice questions from a file of JSON lines. */
#include <inttypes.h>
#include <stdio.h>

#include <weft/choices.h>
#include <weft/internal/grow.h>
#include <weft/internal/json.h>
#include <weft/internal/lines.h>
#include <weft/internal/needs.h>
#include <weft/memory.h>

/* The texts of the questions are those of the lines' JSON values, which stay until wf_questions_free. */
struct memory {
    json_t **line;
    const char ***choices; /* [lines]: the array of each question's choices */
    int64_t lines, line_room, choice_room;
};

static wf_status refuse(const struct wf_lines *in, wf_error *error, const char *what)
{
    return wf_error_set(error, WF_ERR_FORMAT, "%s:%" PRId64 ": %s", in->name, in->line, what);
}

/* Sets *q to the question in `object`. `choice` has room for all choices. */
static wf_status read_question(const struct wf_lines *in, const json_t *object, json_t *choices, const char **choice, struct wf_question *q,
                               wf_error *error)
{
    char where[4200];
    snprintf(where, sizeof where, "%.4000s:%" PRId64, in->name, in->line);
    struct wf_json_reader r = {.object = object, .where = where, .error = error};
    *q = (struct wf_question){.choice = choice, .choices = (int64_t)json_array_size(choices), .line = in->line};
    wf_json_read_string(&r, "context", WF_JSON_REQUIRED, &q->context);
    if (r.status == WF_OK && q->choices == 0)
        return refuse(in, error, "key \"choices\": the list is empty");
    wf_json_read_int(&r, "answer", WF_JSON_REQUIRED, 0, q->choices - 1, &q->answer);
    for (int64_t i = 0; r.status == WF_OK && i < q->choices; i++) {
        choice[i] = json_string_value(json_array_get(choices, (size_t)i));
        if (!choice[i])
            r.status = refuse(in, error, "key \"choices\": a choice is not a string");
        else if (!*choice[i])
            r.status = refuse(in, error, "key \"choices\": a choice is empty");
    }
    return r.status;
}

static wf_status add_line(const struct wf_lines *in, struct memory *m, int64_t *room, struct wf_questions *out, wf_error *error)
{
    json_t *object = wf_json_parse_line(in->text, in->length, in->name, in->line, error), *choices = NULL;
    char where[4200];
    snprintf(where, sizeof where, "%.4000s:%" PRId64, in->name, in->line);
    if (!object)
        return error->code;
    wf_status status = WF_OK;
    if (!wf_grow(&m->line, &m->line_room, m->lines + 1, sizeof *m->line) ||
        !wf_grow(&m->choices, &m->choice_room, m->lines + 1, sizeof *m->choices) ||
        !wf_grow(&out->question, room, out->count + 1, sizeof *out->question)) {
        json_decref(object);
        return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for the questions", in->name);
    }
    m->choices[m->lines] = NULL;
    m->line[m->lines++] = object;
    if (!json_is_object(object))
        return refuse(in, error, "the line is not a JSON object");
    if ((status = wf_json_get_array(object, where, "choices", WF_JSON_REQUIRED, &choices, error)) != WF_OK)
        return status;
    const char **choice = m->choices[m->lines - 1] = wf_alloc((json_array_size(choices) + 1) * sizeof *choice);
    if (!choice)
        return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for the questions", in->name);
    status = read_question(in, object, choices, choice, &out->question[out->count], error);
    out->count += status == WF_OK;
    return status;
}

static bool is_blank(const struct wf_lines *in)
{
    for (int64_t i = 0; i < in->length; i++)
        if (in->text[i] != ' ' && in->text[i] != '\t' && in->text[i] != '\r')
            return false;
    return true;
}

wf_status wf_questions_load(const char *path, struct wf_questions *out, wf_error *error)
{
    if (wf_needs(error, "path, out", path, out))
        return WF_ERR_ARGUMENT;
    struct wf_lines in;
    int64_t room = 0;
    *out = (struct wf_questions){.name = wf_strdup(path), .memory = wf_alloc_zero(1, sizeof(struct memory))};
    if (!out->name || !out->memory)
        return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for the questions", path);
    wf_status status = wf_lines_open(&in, out->name, error);
    while (status == WF_OK && (status = wf_lines_next(&in, error)) == WF_OK && in.text)
        if ((status = wf_lines_check(&in, error)) == WF_OK && !is_blank(&in))
            status = add_line(&in, out->memory, &room, out, error);
    wf_lines_close(&in);
    if (status == WF_OK && out->count == 0)
        status = wf_text_empty(path, error);
    return status;
}

void wf_questions_free(struct wf_questions *questions)
{
    if (!questions)
        return;
    struct memory *m = questions->memory;
    for (int64_t i = 0; m && i < m->lines; i++) {
        json_decref(m->line[i]);
        wf_free(m->choices[i]);
    }
    if (m) {
        wf_free(m->line);
        wf_free(m->choices);
    }
    wf_free(m);
    wf_free(questions->question);
    wf_free(questions->name);
    *questions = (struct wf_questions){0};
}
