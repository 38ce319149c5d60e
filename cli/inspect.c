/* SPDX-License-Identifier: MIT */
/* weft inspect RUN | FILE.safetensors */
#include <stdio.h>
#include <string.h>

#include <weft/internal/run_folder.h>
#include <weft/internal/utf8.h>

#include "cli.h"

enum { SHOWN = WF_QUOTE_SIZE + 32 };

/* A name or a value of a file as a terminal may be sent it: what is not printable as an escape, a long text cut, with its size. */
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

static wf_status inspect_file(const char *path, wf_error *error)
{
    wf_safetensors *file = wf_safetensors_open(path, error);
    if (!file)
        return error->code;
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
    wf_safetensors_close(file);
    return WF_OK;
}

static wf_status inspect_run(const char *folder, wf_error *error)
{
    char *config_path = wf_run_path(folder, "config.json", error), *model = wf_run_path(folder, "model.safetensors", error);
    struct wf_config config;
    wf_status status = config_path && model ? wf_run_check(folder, error) : error->code;
    if (status == WF_OK)
        status = wf_config_load(&config, config_path, error);
    if (status == WF_OK) {
        char text[SHOWN], value[96];
        struct wf_config_key key;
        printf("model: %s\n", shown(config.model, text));
        printf("family: %s\n", shown(wf_config_family(&config), text));
        for (int i = 0; wf_config_key_at(&config, i, &key); i++) {
            wf_config_get(&config, key.name, value, sizeof value);
            printf("%s: %s\n", key.name, shown(value, text));
        }
        status = inspect_file(model, error);
    }
    wf_free(config_path);
    wf_free(model);
    return status;
}

static wf_status inspect(void *arguments, wf_error *error)
{
    const char *what = *(const char **)arguments;
    return wf_folder_exists(what) ? inspect_run(what, error) : inspect_file(what, error);
}

int run_inspect(int argc, char **argv)
{
    const char *what = NULL;
    return run_command(&(struct command_line){"RUN|FILE.safetensors",
                                              "Lists the settings and tensors of a run, or the metadata and tensors of a safetensors file.",
                                              NULL, &what,
                                              .too_few = "the argument is missing: weft inspect RUN or weft inspect FILE.safetensors",
                                              .too_many = "weft inspect takes one run or file"},
                       inspect, &what, argc, argv);
}
