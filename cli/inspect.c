/* SPDX-License-Identifier: MIT */
/* weft inspect RUN | FILE.safetensors: lists settings, metadata and tensors. */
#include <stdio.h>
#include <string.h>

#include <weft/internal/config_json.h>
#include <weft/internal/json.h>
#include <weft/internal/run_folder.h>
#include <weft/internal/utf8.h>

#include "cli.h"

enum { SHOWN = WF_QUOTE_SIZE + 32 };

/* Makes a name or a value from a file safe for a terminal: replaces unprintable characters by escapes. Truncates a long text, and adds its
 * size in bytes. */
static const char *shown(const char *text, char out[SHOWN])
{
    enum { MOST = 100 };
    int64_t length = (int64_t)strlen(text), at = 0;
    uint32_t point;
    for (int size; at < length && at < MOST; at += size)
        if ((size = wf_utf8_decode(text + at, length - at, &point)) == 0 || !wf_utf8_printable(point))
            break;
    if (at == length)
        return text;
    if (at < MOST)
        wf_text_quote(text, out);
    else
        snprintf(out, SHOWN, "%.*s...", (int)at, text);
    if (length >= MOST)
        snprintf(out + strlen(out), 32, " (%lld bytes)", (long long)length);
    return out;
}

/* --- output as text ------------------------------------------------------------------------------------------------ */

static void print_file(const wf_safetensors *file)
{
    const char *key, *value;
    char name[SHOWN], text[SHOWN];
    for (int64_t i = 0; wf_safetensors_metadata_at(file, i, &key, &value); i++)
        printf("%s: %s\n", shown(key, name), shown(value, text));
    int64_t elements = 0, bytes = 0;
    for (int64_t i = 0; i < wf_safetensors_count(file); i++) {
        const struct wf_safetensors_entry *e = wf_safetensors_at(file, i);
        char shape[96];
        printf("%-48s %-5s %s\n", shown(e->name, name), wf_dtype_name(e->dtype), wf_shape_text(&e->shape, shape, sizeof shape));
        elements += e->count;
        bytes += e->bytes;
    }
    printf("%lld tensors, %lld elements, %lld bytes\n", (long long)wf_safetensors_count(file), (long long)elements, (long long)bytes);
}

/* A configuration to print: that of a run is printed whole; of the config.json of another library only what it says of the model, because
 * the other settings are defaults of Weft. */
struct shown_config {
    struct wf_config config;
    bool foreign;
};

static bool is_shown(const struct shown_config *c, const struct wf_config_key *key)
{
    return !c->foreign || strcmp(key->section, wf_config_family(&c->config)) == 0;
}

static void print_config(const struct shown_config *shown_config)
{
    const struct wf_config *config = &shown_config->config;
    char text[SHOWN], value[96];
    struct wf_config_key key;
    printf("model: %s\n", shown(config->model, text));
    printf("family: %s\n", shown(wf_config_family(config), text));
    for (int i = 0; wf_config_key_at(config, i, &key); i++) {
        if (!is_shown(shown_config, &key))
            continue;
        wf_config_get(config, key.name, value, sizeof value);
        printf("%s: %s\n", key.name, shown(value, text));
    }
}

/* --- output as JSON ------------------------------------------------------------------------------------------------ */

static wf_status put_tensor(json_t *tensors, const struct wf_safetensors_entry *e, wf_error *error)
{
    json_t *tensor = json_object(), *shape = json_array();
    if (json_array_append_new(tensors, tensor) != 0) {
        json_decref(shape);
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for a list of tensors");
    }
    for (int d = 0; d < e->shape.ndim; d++)
        json_array_append_new(shape, json_integer(e->shape.dim[d]));
    wf_status status = wf_json_set_string(tensor, "name", e->name, error);
    if (status == WF_OK)
        status = wf_json_set_string(tensor, "dtype", wf_dtype_name(e->dtype), error);
    if (status != WF_OK || json_array_size(shape) != (size_t)e->shape.ndim) {
        json_decref(shape);
        return status != WF_OK ? status : wf_error_set(error, WF_ERR_MEMORY, "no memory for a shape");
    }
    status = wf_json_set_new(tensor, "shape", shape, error);
    if (status == WF_OK)
        status = wf_json_set_int(tensor, "elements", e->count, error);
    return status == WF_OK ? wf_json_set_int(tensor, "bytes", e->bytes, error) : status;
}

static wf_status put_file(json_t *object, const wf_safetensors *file, wf_error *error)
{
    json_t *metadata = json_object(), *tensors = json_array();
    const char *key, *value;
    int64_t elements = 0, bytes = 0;
    wf_status status = wf_json_set_new(object, "metadata", metadata, error), listed = wf_json_set_new(object, "tensors", tensors, error);
    status = status == WF_OK ? listed : status;
    for (int64_t i = 0; status == WF_OK && wf_safetensors_metadata_at(file, i, &key, &value); i++)
        status = wf_json_set_string(metadata, key, value, error);
    for (int64_t i = 0; status == WF_OK && i < wf_safetensors_count(file); i++) {
        const struct wf_safetensors_entry *e = wf_safetensors_at(file, i);
        status = put_tensor(tensors, e, error);
        elements += e->count;
        bytes += e->bytes;
    }
    if (status == WF_OK)
        status = wf_json_set_int(object, "elements", elements, error);
    return status == WF_OK ? wf_json_set_int(object, "bytes", bytes, error) : status;
}

static wf_status put_config(json_t *object, const struct shown_config *shown_config, wf_error *error)
{
    const struct wf_config *config = &shown_config->config;
    struct wf_config_key key;
    wf_status status = wf_json_set_string(object, "model", config->model, error);
    if (status == WF_OK)
        status = wf_json_set_string(object, "family", wf_config_family(config), error);
    json_t *settings = status == WF_OK ? json_object() : NULL;
    if (status == WF_OK)
        status = wf_json_set_new(object, "settings", settings, error);
    if (status == WF_OK)
        status = wf_config_put(config, settings, error);
    for (int i = 0; status == WF_OK && wf_config_key_at(config, i, &key); i++)
        if (!is_shown(shown_config, &key))
            (void)json_object_del(settings, key.name);
    return status;
}

/* Prints one JSON object on one line. `config` is the configuration of a run, or NULL for a safetensors file alone. */
static wf_status print_json(const struct shown_config *config, const wf_safetensors *file, wf_error *error)
{
    wf_json_init();
    json_t *object = json_object();
    wf_status status = object ? WF_OK : wf_error_set(error, WF_ERR_MEMORY, "no memory for JSON");
    if (status == WF_OK && config)
        status = put_config(object, config, error);
    if (status == WF_OK)
        status = put_file(object, file, error);
    char *text = status == WF_OK ? wf_json_text(object, 0, NULL, error) : NULL;
    if (text)
        puts(text);
    wf_free(text);
    json_decref(object);
    return text ? WF_OK : error->code;
}

/* --- the command --------------------------------------------------------------------------------------------------- */

struct arguments {
    const char *what;
    bool json;
};

/* Prints a safetensors file. `config` is the configuration of its run, which is printed too, or NULL for a safetensors file alone. */
static wf_status inspect_file(const char *path, const struct shown_config *config, bool json, wf_error *error)
{
    wf_safetensors *file = wf_safetensors_open(path, error);
    wf_status status = file ? WF_OK : error->code;
    if (status == WF_OK && json)
        status = print_json(config, file, error);
    else if (status == WF_OK) {
        if (config)
            print_config(config);
        print_file(file);
    }
    wf_safetensors_close(file);
    return status;
}

static wf_status inspect_run(const char *folder, bool json, wf_error *error)
{
    char *config_path = wf_run_path(folder, "config.json", error), *model = hf_weights_path(folder, error);
    struct shown_config config;
    wf_status status = config_path && model ? wf_run_check(folder, error) : error->code;
    if (status == WF_OK)
        status = wf_config_load(&config.config, config_path, error);
    config.foreign = status == WF_OK && hf_is_foreign(folder);
    if (status == WF_OK)
        status = wf_file_exists(model) ? inspect_file(model, &config, json, error) : hf_weights_missing(folder, model, error);
    wf_free(config_path);
    wf_free(model);
    return status;
}

static wf_status inspect(void *arguments, wf_error *error)
{
    const struct arguments *a = arguments;
    return wf_folder_exists(a->what) ? inspect_run(a->what, a->json, error) : inspect_file(a->what, NULL, a->json, error);
}

int run_inspect(int argc, char **argv)
{
    struct arguments a = {0};
    const struct option_row options[] = {
        {"json", NULL,
         "print one JSON object on a line, with all values in full: model, family, settings, metadata, tensors, elements, bytes",
         .flag = &a.json},
        {0},
    };
    return run_command(&(struct command_line){"RUN|FILE.safetensors",
                                              "Lists the settings and tensors of a run, or the metadata and tensors of a safetensors file.",
                                              options, &a.what,
                                              .too_few = "the argument is missing: $0 inspect RUN or $0 inspect FILE.safetensors",
                                              .too_many = "$0 inspect takes one run or file"},
                       inspect, &a, argc, argv);
}
