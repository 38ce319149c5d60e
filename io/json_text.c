/* SPDX-License-Identifier: MIT */
/* JSON text. Not jansson's own: that writes 0.1 as 0.10000000000000001, or loses digits. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <weft/file.h>
#include <weft/internal/json.h>
#include <weft/internal/string.h>
#include <weft/internal/text.h>
#include <weft/memory.h>

struct writer {
    struct wf_string out;
    int indent;
    bool too_deep;
};

static void put(struct writer *w, const json_t *value, int depth);

static void line(struct writer *w, int depth)
{
    static const char blanks[] = "                ";
    if (!w->indent)
        return;
    wf_string_add(&w->out, "\n", 1);
    for (int64_t n = (int64_t)w->indent * depth; n > 0; n -= 16)
        wf_string_add(&w->out, blanks, n < 16 ? n : 16);
}

static void put_object(struct writer *w, const json_t *value, int depth)
{
    wf_string_text(&w->out, "{");
    const char *key, *separator = "";
    json_t *member;
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
}

static void put_array(struct writer *w, const json_t *value, int depth)
{
    size_t count = json_array_size(value);
    wf_string_text(&w->out, "[");
    for (size_t i = 0; i < count; i++) {
        wf_string_text(&w->out, i ? "," : "");
        line(w, depth + 1);
        put(w, json_array_get(value, i), depth + 1);
    }
    if (count)
        line(w, depth);
    wf_string_text(&w->out, "]");
}

static void put(struct writer *w, const json_t *value, int depth)
{
    char number[WF_NUMBER_SIZE];
    if (depth > WF_JSON_MAX_DEPTH) {
        w->too_deep = true;
        return;
    }
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        put_object(w, value, depth);
        break;
    case JSON_ARRAY:
        put_array(w, value, depth);
        break;
    case JSON_STRING:
        wf_string_json(&w->out, json_string_value(value), (int64_t)json_string_length(value));
        break;
    case JSON_INTEGER:
        wf_string_format(&w->out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        break;
    case JSON_REAL: /* jansson holds finite ones only */
        wf_string_text(&w->out, wf_text_double(json_real_value(value), number));
        break;
    case JSON_TRUE:
        wf_string_text(&w->out, "true");
        break;
    case JSON_FALSE:
        wf_string_text(&w->out, "false");
        break;
    case JSON_NULL:
        wf_string_text(&w->out, "null");
        break;
    }
}

char *wf_json_text(const json_t *value, int indent, int64_t *bytes, wf_error *error)
{
    struct writer w = {.indent = indent};
    put(&w, value, 0);
    if (indent)
        wf_string_text(&w.out, "\n");
    int64_t length = w.out.length;
    wf_string_add(&w.out, "", 1);
    if (w.too_deep)
        wf_error_set(error, WF_ERR_ARGUMENT, "JSON nested more than %d deep cannot be written", WF_JSON_MAX_DEPTH);
    else if (w.out.failed)
        wf_error_set(error, WF_ERR_MEMORY, "no memory for %lld bytes of JSON", (long long)length);
    if (w.too_deep || w.out.failed) {
        wf_free(w.out.data);
        return NULL;
    }
    if (bytes)
        *bytes = length;
    return w.out.data;
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
