/* SPDX-License-Identifier: MIT */
/* weft attention RUN --text TEXT --out FILE: draws or writes attention weights. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum { MOST = 1000000 }; /* largest --layer and --head that the options accept; the limits of the model are checked later */

struct arguments {
    struct run_options on;
    const char *kind_given; /* not NULL if --kind is given */
    const char *pick;       /* value of --pick */
    const char *out;        /* value of --out */
    struct wf_attention_request request;
    int kind;              /* value of --kind, an enum wf_map_kind */
    int64_t layer;         /* value of --layer; 0: not given */
    int64_t head;          /* value of --head; 0: not given */
    struct wf_head *heads; /* the heads that --pick, or --layer and --head, select */
    int64_t count;         /* number of selected heads */
};

/* --- arguments ----------------------------------------------------------------------------------------------------- */

/* The kind of output that --out names. For files the value is the index of the extension in `ends` (form_of), except that .svg (0) and .png
 * (1) are both FORM_PICTURE. FORM_NONE: the extension is unknown. */
enum form { FORM_PICTURE, FORM_JSON = 2, FORM_HTML, FORM_FOLDER, FORM_NONE };

static enum form form_of(const char *out)
{
    static const char *const ends[] = {".svg", ".png", ".json", ".html"};
    const char *slash = strrchr(out, '/'), *name = slash ? slash + 1 : out, *end = strrchr(name, '.');
    if (wf_folder_exists(out))
        return FORM_FOLDER;
    for (int i = 0; i < 4; i++) {
        if (end && strcmp(end, ends[i]) == 0)
            return i < FORM_JSON ? FORM_PICTURE : (enum form)i;
        if (strcmp(out, ends[i] + 1) == 0) /* "--out svg" is refused, because the user wants a picture and not a folder named svg */
            return FORM_NONE;
    }
    return end ? FORM_NONE : FORM_FOLDER;
}

/* Parses the positive number at *at and moves *at behind it. Returns 0 if there is no such number, or if it is above MOST. */
static int64_t number_at(const char **at)
{
    char *end;
    if (**at < '0' || **at > '9')
        return 0;
    long long value = strtoll(*at, &end, 10);
    *at = end;
    return value <= MOST ? value : 0;
}

/* Parses --pick, such as "1:2,3:4", into the selected heads. */
static wf_status parse_pick(struct arguments *a, wf_error *error)
{
    for (const char *at = a->pick; a->count == 0 || *at++; a->count++) {
        struct wf_head *h = &a->heads[a->count];
        h->layer = number_at(&at);
        if (h->layer > 0 && *at == ':') {
            at++;
            h->head = number_at(&at);
        }
        if (h->head == 0 || (*at && *at != ','))
            return wf_error_set(error, WF_ERR_ARGUMENT, "--pick: '%s' is not a list of layers and heads, such as 1:2,4:1", a->pick);
    }
    return WF_OK;
}

/* Checks the arguments before the model is read, and sets the selected heads. */
static wf_status check(struct arguments *a, wf_error *error)
{
    if (a->request.text && (a->request.source || a->request.target))
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "--text is for a language model or an encoder, %s for a translation model: give only one",
                            a->request.source ? "--source" : "--target");
    if (a->pick && (a->layer || a->head))
        return wf_error_set(error, WF_ERR_ARGUMENT, "--pick and %s both select heads: give only one", a->layer ? "--layer" : "--head");
    if (!a->layer != !a->head)
        return wf_error_set(error, WF_ERR_ARGUMENT, "--layer and --head must be given together: add --%s, or give --pick L:H",
                            a->layer ? "head" : "layer");
    enum form form = form_of(a->out);
    if (form == FORM_NONE)
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "%s: unknown format; the name must end in .svg, .png, .json or .html, or have no extension for a folder",
                            a->out);
    if (a->pick && form == FORM_JSON)
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "%s holds every head or one, not some: give --layer and --head instead of --pick, or leave it out", a->out);
    if (!a->pick && !a->layer)
        return WF_OK;
    /* a head takes three characters or more, such as "1:2", and a comma stands between two heads; this gives the maximum number of heads */
    a->heads = wf_alloc_zero(a->pick ? strlen(a->pick) / 4 + 1 : 1, sizeof *a->heads);
    if (!a->heads)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for heads");
    if (a->pick)
        return parse_pick(a, error);
    a->heads[0] = (struct wf_head){a->layer, a->head};
    a->count = 1;
    return WF_OK;
}

/* --- drawing ------------------------------------------------------------------------------------------------------- */

/* The map of --kind. Without --kind it is the last map, which for a translation model is cross-attention. */
static const struct wf_attention_map *choose(const struct arguments *a, const struct wf_attention_maps *maps, wf_error *error)
{
    const struct wf_attention_map *map = a->kind_given ? wf_attention_find(maps, (enum wf_map_kind)a->kind) : &maps->map[maps->count - 1];
    if (!map)
        wf_error_set(error, WF_ERR_ARGUMENT, "%s has no %s-attention: give --kind %s, or leave it out", maps->model,
                     wf_map_kind_name((enum wf_map_kind)a->kind), wf_map_kind_name(maps->map[0].kind));
    return map;
}

/* Draws one head into FOLDER/cross-layer-1-head-2.svg, or if `head` is NULL all heads into FOLDER/cross-grid.svg (for --kind cross). */
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

/* Draws the selected heads, or if no heads are selected a grid of all heads and each head alone. Does so for the map of --kind, or without
 * --kind for all maps. */
static wf_status fill_folder(const struct arguments *a, const struct wf_attention_maps *maps, const struct wf_attention_map *map,
                             wf_error *error)
{
    int64_t count = 0;
    wf_status status = wf_folder_make(a->out, error);
    for (const struct wf_attention_map *m = maps->map; m < maps->map + maps->count; m++) {
        int64_t pictures = a->count > 0 ? a->count : 1 + m->layers * m->heads;
        for (int64_t i = 0; status == WF_OK && i < pictures && (m == map || !a->kind_given); i++, count++) {
            struct wf_head each = {(i - 1) / m->heads + 1, (i - 1) % m->heads + 1};
            status = draw_into(a, maps, m, a->count > 0 ? &a->heads[i] : i > 0 ? &each : NULL, error);
        }
    }
    if (status == WF_OK)
        fprintf(stderr, "%s: %lld picture%s in %s\n", program(), (long long)count, plural(count), a->out);
    return status;
}

/* Checks before anything is written that each map to be saved has all selected heads. */
static wf_status check_heads(const struct arguments *a, const struct wf_attention_maps *maps, const struct wf_attention_map *map,
                             wf_error *error)
{
    bool all = form_of(a->out) == FORM_FOLDER && !a->kind_given;
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

static wf_status attention(void *arguments, wf_error *error)
{
    struct arguments *a = arguments;
    struct wf_run run = {0};
    struct wf_attention_maps maps = {0};
    watch_interrupts(WATCH_BRIEF);
    wf_status status = check(a, error);
    if (status == WF_OK)
        status = open_run(&a->on, &run, error);
    if (status == WF_OK)
        status = wf_attention_of(&run, &a->request, &maps, error);
    warn_of_unknown("the text", maps.unknown, maps.tokens);
    if (status == WF_OK)
        status = save(a, &maps, error);
    wf_attention_free(&maps);
    wf_run_close(&run);
    wf_free(a->heads);
    return status;
}

int run_attention(int argc, char **argv)
{
    struct arguments a = {0};
    const struct option_row options[] = {
        {"text", "TEXT", "input of a language model or an encoder", .text = &a.request.text},
        {"source", "TEXT", "source sentence of a translation model", .text = &a.request.source},
        {"target", "TEXT", "target sentence (default: the model's translation)", .text = &a.request.target},
        {"kind", "encoder|decoder|cross",
         "self-attention of the encoder or the decoder, or the decoder's attention to the source (default: cross for a "
         "translation model, else the only kind of the model)",
         .choice = &a.kind, .given = &a.kind_given},
        {"layer", "L", "a single head, with --head; both count from 1", .number = &a.layer, .low = 1, .high = MOST},
        {"head", "H", "a single head, with --layer", .number = &a.head, .low = 1, .high = MOST},
        {"pick", "L:H,...", "these heads side by side (default: a grid of all); not for .json", .text = &a.pick},
        {"out", "FILE|DIR",
         "a picture (.svg or .png), the weights of all heads or of one (.json), or a page of all kinds and heads (.html), which opens at "
         "the selected head, the first of --pick; any other name is a folder for SVGs: the grid and each head, or only the selected "
         "heads, of all kinds unless --kind is given",
         .text = &a.out, .needed = "the output, such as map.svg"},
        RUN_ROWS(a.on),
        {0},
    };
    return run_command(
        &(struct command_line){"RUN", "Draws or writes the attention weights of every layer and head for a text.", options, &a.on.run,
                               .too_few = "RUN is missing: $0 attention RUN --text TEXT --out FILE; RUN is the --out of $0 train",
                               .too_many = "quote the text, --text 'TEXT'"},
        attention, &a, argc, argv);
}
