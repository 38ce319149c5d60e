/* SPDX-License-Identifier: MIT */
/* Writes JSON text. jansson's own writer either writes 0.1 as 0.10000000000000001 or loses digits. */
#include <inttypes.h>
#include <string.h>

#include <weft/file.h>
#include <weft/internal/json.h>
#include <weft/internal/string.h>
#include <weft/memory.h>

struct writer {
    struct wf_string out;
    int indent;
    bool too_deep;
};

static void line(struct writer *w, int depth)
{
    if (w->indent)
        wf_string_char(&w->out, '\n');
    for (int i = 0; i < w->indent * depth; i++)
        wf_string_char(&w->out, ' ');
}

static void put(struct writer *w, const json_t *value, int depth)
{
    const char *key, *separator = "";
    json_t *member;
    size_t i;
    if (depth > WF_JSON_MAX_DEPTH) {
        w->too_deep = true;
        return;
    }
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        wf_string_text(&w->out, "{");
        json_object_foreach((json_t *)value, key, member)
        {
            wf_string_text(&w->out, separator);
            separator = ",";
            line(w, depth + 1);
            wf_string_json(&w->out, key, (int64_t)strlen(key));
            wf_string_text(&w->out, w->indent ? ": " : ":");
            put(w, member, depth + 1);
        }
        if (*separator)
            line(w, depth);
        wf_string_text(&w->out, "}");
        break;
    case JSON_ARRAY:
        wf_string_text(&w->out, "[");
        json_array_foreach(value, i, member)
        {
            wf_string_text(&w->out, separator);
            separator = ",";
            line(w, depth + 1);
            put(w, member, depth + 1);
        }
        if (*separator)
            line(w, depth);
        wf_string_text(&w->out, "]");
        break;
    case JSON_STRING:
        wf_string_json(&w->out, json_string_value(value), (int64_t)json_string_length(value));
        break;
    case JSON_INTEGER:
        wf_string_format(&w->out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        break;
    case JSON_REAL: /* jansson holds only finite numbers */
        wf_string_double(&w->out, json_real_value(value));
        break;
    default:
        wf_string_text(&w->out, json_is_null(value) ? "null" : json_is_true(value) ? "true" : "false");
    }
}

char *wf_json_text(const json_t *value, int indent, int64_t *bytes, wf_error *error)
{
    struct writer w = {.indent = indent};
    put(&w, value, 0);
    if (indent)
        wf_string_text(&w.out, "\n");
    if (bytes)
        *bytes = w.out.length;
    if (!w.too_deep && !w.out.failed)
        return w.out.data;
    if (w.too_deep)
        wf_error_set(error, WF_ERR_ARGUMENT, "JSON nested more than %d deep cannot be written", WF_JSON_MAX_DEPTH);
    else
        wf_error_set(error, WF_ERR_MEMORY, "no memory for %" PRId64 " bytes of JSON", w.out.length);
    wf_string_free(&w.out);
    return NULL;
}

wf_status wf_json_save(const char *path, const json_t *value, int indent, wf_error *error)
{
    int64_t bytes;
    wf_error failure = {0};
    char *text = wf_json_text(value, indent, &bytes, &failure);
    if (!text)
        return wf_error_set(error, failure.code, "%s: %s", path, failure.message);
    wf_status status = wf_file_save(path, text, bytes, error);
    wf_free(text);
    return status;
}
