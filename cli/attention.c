/* SPDX-License-Identifier: MIT */
/* weft attention RUN --text TEXT --out FILE */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum { MOST = 1000000 }; /* layers and heads that can be asked for; how many there are the model says */

struct arguments {
    struct run_options on;
    const char *kind_name, *pick, *out;
    struct wf_attention_request request;
    enum wf_map_kind kind;
    int64_t layer, head;        /* 0: not given */
    struct wf_head one, *heads; /* what is picked, by whichever option */
    int64_t count;
};

static bool take_kind(const char *option, const char *value, void *to)
{
    struct arguments *a = to;
    a->kind_name = value;
    if (!wf_map_kind_parse(value, &a->kind))
        return fail_usage("--%s: '%s' is neither encoder nor decoder nor cross", option, value), false;
    return true;
}

/* --- what is asked for --------------------------------------------------------------------------------------------- */

enum form { FORM_PICTURE, FORM_JSON, FORM_HTML, FORM_FOLDER, FORM_NONE };

static enum form form_of(const char *out)
{
    const char *slash = strrchr(out, '/'), *name = slash ? slash + 1 : out, *end = strrchr(name, '.');
    if (wf_folder_exists(out))
        return FORM_FOLDER;
    if (!end) /* "--out svg" means a picture, not a folder of that name */
        return strcmp(out, "svg") == 0 || strcmp(out, "png") == 0 || strcmp(out, "json") == 0 || strcmp(out, "html") == 0 ? FORM_NONE
                                                                                                                          : FORM_FOLDER;
    return strcmp(end, ".svg") == 0 || strcmp(end, ".png") == 0 ? FORM_PICTURE
           : strcmp(end, ".json") == 0                          ? FORM_JSON
           : strcmp(end, ".html") == 0                          ? FORM_HTML
                                                                : FORM_NONE;
}

/* A number from 1 at *at, which is moved behind it; 0 where there is none. */
static int64_t number_at(const char **at)
{
    char *end;
    if (**at < '0' || **at > '9')
        return 0;
    errno = 0;
    long long value = strtoll(*at, &end, 10);
    *at = end;
    return errno == 0 && value <= MOST ? value : 0;
}

/* "1:2,3:4" */
static int parse_pick(struct arguments *a)
{
    int64_t count = 1;
    for (const char *c = a->pick; *c; c++)
        count += *c == ',';
    a->heads = wf_alloc((size_t)count * sizeof *a->heads);
    if (!a->heads) {
        wf_error error = {0};
        wf_error_set(&error, WF_ERR_MEMORY, "no memory for heads");
        return fail(&error);
    }
    for (const char *at = a->pick;; at++) {
        struct wf_head h = {.layer = number_at(&at)};
        if (h.layer > 0 && *at == ':') {
            at++;
            h.head = number_at(&at);
        }
        if (h.head == 0 || (*at && *at != ','))
            return fail_usage("--pick: '%s' is no list of layers and heads, such as 1:2,4:1", a->pick);
        a->heads[a->count++] = h;
        if (!*at)
            return -1;
    }
}

/* What can be said before the model is read; -1 to go on, else the exit code. */
static int check(struct arguments *a)
{
    if (!a->on.run)
        return fail_usage("which run? weft attention RUN --text TEXT --out FILE; RUN is the --out of weft train");
    if (!a->out)
        return fail_usage("weft attention needs --out FILE: where the maps go, such as map.svg");
    if (a->request.text && (a->request.source || a->request.target))
        return fail_usage("--text is for a language model or an encoder, %s for a translation model: give one of them",
                          a->request.source ? "--source" : "--target");
    if (a->pick && (a->layer || a->head))
        return fail_usage("--pick and %s both choose heads: give one of them", a->layer ? "--layer" : "--head");
    if (!a->layer != !a->head)
        return fail_usage("--layer and --head go together: which %s? Or give --pick L:H", a->layer ? "head" : "layer");
    enum form form = form_of(a->out);
    if (form == FORM_NONE)
        return fail_usage("%s: unknown format; the name must end in .svg, .png, .json or .html, or have no extension for a folder", a->out);
    if (a->pick && form == FORM_JSON)
        return fail_usage("%s holds every head or one, not some: give --layer and --head instead of --pick, or leave it out", a->out);
    if (a->pick)
        return parse_pick(a);
    if (a->layer) {
        a->one = (struct wf_head){a->layer, a->head};
        a->heads = &a->one;
        a->count = 1;
    }
    return -1;
}

/* --- drawing ------------------------------------------------------------------------------------------------------- */

/* The kind that is asked for, else what the model has; of several the last, what the decoder sees of the source. */
static const struct wf_attention_map *choose(const struct arguments *a, const struct wf_attention_maps *maps, wf_error *error)
{
    const struct wf_attention_map *map = a->kind_name      ? wf_attention_find(maps, a->kind)
                                         : maps->count > 0 ? &maps->map[maps->count - 1]
                                                           : NULL;
    if (!map)
        wf_error_set(error, WF_ERR_ARGUMENT, "%s has no %s-attention: give --kind %s, or leave it out", maps->model, a->kind_name,
                     wf_map_kind_name(maps->map[0].kind));
    return map;
}

/* FOLDER/cross-layer-1-head-2.svg; without a head FOLDER/cross-grid.svg. */
static wf_status draw_into(const struct arguments *a, const struct wf_attention_maps *maps, const struct wf_attention_map *map,
                           const struct wf_head *head, wf_error *error)
{
    const char *slash = a->out[strlen(a->out) - 1] == '/' ? "" : "/", *kind = wf_map_kind_name(map->kind);
    char *path = head ? wf_format("%s%s%s-layer-%lld-head-%lld.svg", a->out, slash, kind, (long long)head->layer, (long long)head->head)
                      : wf_format("%s%s%s-grid.svg", a->out, slash, kind);
    wf_status status =
        path ? wf_attention_draw(maps, map, head, head ? 1 : 0, path, error) : wf_error_set(error, WF_ERR_MEMORY, "no memory for a path");
    wf_free(path);
    if (status == WF_OK && interrupted(NULL))
        status = wf_error_set(error, WF_ERR_CANCELLED, "interrupted: not all pictures were drawn");
    return status;
}

/* The heads that are chosen, else the grid and every head. */
static wf_status draw_all(const struct arguments *a, const struct wf_attention_maps *maps, const struct wf_attention_map *map,
                          int64_t *count, wf_error *error)
{
    wf_status status = a->count == 0 ? draw_into(a, maps, map, NULL, error) : WF_OK;
    for (struct wf_head h = {1, 1}; a->count == 0 && status == WF_OK && h.layer <= map->layers; h.layer++)
        for (h.head = 1; status == WF_OK && h.head <= map->heads; h.head++)
            status = draw_into(a, maps, map, &h, error);
    for (int64_t i = 0; status == WF_OK && i < a->count; i++)
        status = draw_into(a, maps, map, &a->heads[i], error);
    *count += a->count > 0 ? a->count : 1 + map->layers * map->heads;
    return status;
}

static wf_status fill_folder(const struct arguments *a, const struct wf_attention_maps *maps, const struct wf_attention_map *map,
                             wf_error *error)
{
    int64_t count = 0;
    wf_status status = wf_folder_make(a->out, error);
    for (int i = 0; status == WF_OK && i < maps->count; i++)
        if (!a->kind_name || map == &maps->map[i])
            status = draw_all(a, maps, &maps->map[i], &count, error);
    if (status == WF_OK)
        fprintf(stderr, "weft: %lld picture%s in %s\n", (long long)count, count == 1 ? "" : "s", a->out);
    return status;
}

/* Before anything is written: all kinds that a folder gets must have the heads. */
static wf_status check_heads(const struct arguments *a, const struct wf_attention_maps *maps, const struct wf_attention_map *map,
                             wf_error *error)
{
    bool all = form_of(a->out) == FORM_FOLDER && !a->kind_name;
    wf_status status = WF_OK;
    for (int i = 0; i < maps->count; i++)
        for (int64_t k = 0; status == WF_OK && k < a->count; k++)
            if (all || map == &maps->map[i])
                status = wf_attention_check_head(maps, &maps->map[i], a->heads[k], error);
    return status;
}

static wf_status save(const struct arguments *a, const struct wf_attention_maps *maps, wf_error *error)
{
    const struct wf_attention_map *map = choose(a, maps, error);
    wf_status status = map ? check_heads(a, maps, map, error) : error->code;
    if (status == WF_OK && interrupted(NULL))
        status = wf_error_set(error, WF_ERR_CANCELLED, "interrupted: nothing was written");
    if (status != WF_OK)
        return status;
    switch (form_of(a->out)) {
    case FORM_JSON:
        return wf_attention_save_json(maps, map, a->heads, a->out, error);
    case FORM_HTML:
        return wf_attention_save_html(
            maps, &(struct wf_attention_opening){.map = map, .head = a->heads ? a->heads[0] : (struct wf_head){0}}, a->out, error);
    case FORM_FOLDER:
        return fill_folder(a, maps, map, error);
    default:
        return wf_attention_draw(maps, map, a->heads, a->count, a->out, error);
    }
}

static wf_status attention(const struct arguments *a, wf_error *error)
{
    struct wf_run run;
    struct wf_attention_maps maps = {0};
    wf_status status = wf_run_open(&run, a->on.run, a->on.weights, error);
    if (status != WF_OK)
        return status;
    status = wf_attention_of(&run, &a->request, &maps, error);
    if (status == WF_OK)
        status = save(a, &maps, error);
    wf_attention_free(&maps);
    wf_run_close(&run);
    return status;
}

int run_attention(int argc, char **argv)
{
    struct arguments a = {0};
    const struct option_row options[] = {
        {"text", "TEXT", "input of a language model or an encoder", .text = &a.request.text},
        {"source", "TEXT", "source sentence of a translation model", .text = &a.request.source},
        {"target", "TEXT", "target sentence (default: the model's translation)", .text = &a.request.target},
        {"kind", "KIND",
         "which attention: encoder or decoder (self-attention), or cross, the decoder's on the source (default: what the model has; for a "
         "translation model cross)",
         .take = take_kind, .to = &a},
        {"layer", "L", "a single head, with --head; both count from 1", .number = &a.layer, .low = 1, .high = MOST},
        {"head", "H", "a single head, with --layer", .number = &a.head, .low = 1, .high = MOST},
        {"pick", "L:H,...", "these heads side by side (default: a grid of all); not for .json", .text = &a.pick},
        {"out", "FILE|DIR",
         "a picture (.svg or .png), the numbers (.json: of every head, or of one), or an HTML page (.html: all kinds and heads; it opens "
         "with "
         "the chosen head, the first of --pick); a folder, which is any name without such an extension, gets SVGs: the grid and each head, "
         "or "
         "only "
         "the chosen ones, of all kinds unless --kind is given",
         .text = &a.out},
        RUN_ROWS(a.on),
        {0},
    };
    const struct command_line line = {.usage = "RUN",
                                      .help = "Shows the attention weights of a model on a text, of every layer and head.",
                                      .options = options,
                                      .argument = &a.on.run,
                                      .most = 1,
                                      .too_many = "quote the text, --text 'TEXT'"};
    wf_error error = {0};
    int code = parse(&line, argc, argv);
    if (code < 0)
        code = check(&a);
    if (code < 0) {
        watch_interrupts(WATCH_BRIEF);
        code = start(a.on.threads, &error) == WF_OK && attention(&a, &error) == WF_OK ? EXIT_DONE : fail(&error);
    }
    if (a.pick)
        wf_free(a.heads);
    return code;
}
