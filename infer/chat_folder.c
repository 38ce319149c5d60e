/* SPDX-License-Identifier: MIT */
/* Reads the chat template of a Hugging Face folder. */
#include <string.h>

#include <weft/file.h>
#include <weft/internal/json.h>
#include <weft/internal/needs.h>
#include <weft/memory.h>

#include <weft/chat.h>
#include <weft/internal/run_folder.h>

enum { LIMIT = 1 << 24 }; /* maximum bytes of a file: tokenizer_config.json may list the added tokens of a large vocabulary */

/* The entries of a folder about its template. */
struct source {
    char *path; /* tokenizer_config.json */
    char *jinja_path;
    json_t *json; /* tokenizer_config.json; an empty object if it is missing */
    char *jinja;  /* chat_template.jinja; NULL: it is missing */
    int64_t length;
};

static wf_status open_source(struct source *s, const char *folder, wf_error *error)
{
    *s = (struct source){.path = wf_run_path(folder, "tokenizer_config.json", error),
                         .jinja_path = wf_run_path(folder, "chat_template.jinja", error)};
    wf_json_init();
    if (!s->path || !s->jinja_path)
        return WF_ERR_MEMORY;
    s->json = wf_file_exists(s->path) ? wf_json_load(s->path, LIMIT, error) : json_object();
    if (!s->json)
        return error->code ? error->code : wf_error_set(error, WF_ERR_MEMORY, "no memory for %s", s->path);
    if (wf_file_exists(s->jinja_path) && !(s->jinja = wf_file_load(s->jinja_path, LIMIT, &s->length, error)))
        return error->code;
    return WF_OK;
}

static void close_source(struct source *s)
{
    json_decref(s->json);
    wf_free(s->jinja);
    wf_free(s->path);
    wf_free(s->jinja_path);
}

/* A special token in tokenizer_config.json, which is a string, or an object with the string as "content"; NULL: there is none. */
static const char *token(const struct source *s, const char *key)
{
    const json_t *value = json_object_get(s->json, key);
    return json_string_value(json_is_object(value) ? json_object_get(value, "content") : value);
}

/* The text of "chat_template": a string, or a list of objects {name, template}, of which the one named "default" counts. */
static const json_t *template_of(const struct source *s)
{
    const json_t *value = json_object_get(s->json, "chat_template"), *found = NULL;
    for (size_t i = 0; i < json_array_size(value); i++) {
        const char *name = json_string_value(json_object_get(json_array_get(value, i), "name"));
        if (name && strcmp(name, "default") == 0)
            found = json_object_get(json_array_get(value, i), "template");
    }
    return json_is_array(value) ? found : value;
}

static wf_chat_template *parse(const struct source *s, const char *folder, wf_error *error)
{
    const char *bos = token(s, "bos_token"), *eos = token(s, "eos_token");
    const json_t *value = template_of(s);
    if (s->jinja)
        return wf_chat_template_parse(s->jinja, s->length, bos, eos, s->jinja_path, error);
    if (json_is_string(value))
        return wf_chat_template_parse(json_string_value(value), (int64_t)json_string_length(value), bos, eos, s->path, error);
    if (json_object_get(s->json, "chat_template") && !json_is_null(json_object_get(s->json, "chat_template")))
        wf_error_set(error, WF_ERR_FORMAT, "%s: key \"chat_template\": neither a text nor a list with one named \"default\"", s->path);
    else
        wf_error_set(error, WF_ERR_FORMAT,
                     "%s has no chat template (chat_template.jinja, or \"chat_template\" in tokenizer_config.json): if the model was "
                     "trained on conversations, name their template with --template",
                     folder);
    return NULL;
}

wf_chat_template *wf_chat_template_load(const char *folder, const char *name, wf_error *error)
{
    if (wf_needs(error, "folder", folder))
        return NULL;
    struct source s;
    wf_error failure = {0};
    wf_chat_template *out = NULL;
    if (open_source(&s, folder, &failure) == WF_OK)
        out = name ? wf_chat_template_named(name, token(&s, "bos_token"), token(&s, "eos_token"), &failure) : parse(&s, folder, &failure);
    close_source(&s);
    if (!out)
        (void)!wf_error_set(error, failure.code, "%s", failure.message);
    return out;
}
