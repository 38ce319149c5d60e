/* SPDX-License-Identifier: MIT */
/* Attention maps as heat maps: where everything stands is computed here, in pixels from the picture's upper left corner; gnuplot draws it.
 * Cells are as high as their labels, and labels as long as there is room. */
#include <weft/attention_map.h>
#include <weft/internal/needs.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/file.h>
#include <weft/memory.h>

#include "gnuplot.h"
#include "labels.h"

enum {
    MARGIN = 16,     /* around the picture */
    HEADING = 15,    /* size of the title's letters; the other sizes follow it */
    CAPTION = 12,    /* of what the axes are, and titles of panels */
    TITLE_BAND = 34, /* what a line of that kind takes */
    CAPTION_BAND = 22,
    TICK = 10,      /* between a label and the map */
    GAP = 8,        /* between the panels of a grid */
    PANEL_GAP = 28, /* between those that have their own labels */
    BAR = 14,       /* width of the colour bar, */
    BAR_BAND = 92,  /* and with its numbers and name */
    WIDE = 2800,    /* pixels that a grid with tokens may take, */
    NARROW = 1400   /* and one without */
};

/* A picture: panels of `columns` and `rows`, the same tokens on all. */
struct picture {
    const struct wf_attention_map *map;
    const struct wf_head *heads; /* [count], NULL: the grid of all */
    int64_t count;
    bool pairs;  /* of a translation model: tokens are of the source or the target */
    bool pixels; /* a PNG */

    int64_t columns, rows;
    double cell;         /* side of a weight */
    double font;         /* of the tokens; 0: they are not named */
    double letters;      /* what sizes of letters are multiplied with for gnuplot */
    int64_t every;       /* how many tokens have one label; more than 1 for very long texts */
    bool turned;         /* labels of keys stand on their end */
    char **query, **key; /* labels, shortened */
    double query_width, key_height;
    double panel_width, panel_height; /* of the map alone */
    double left, top, step_x, step_y; /* where the first map begins, and how far the next one is */
    double width, height, right, bar; /* right: where the panels end; bar: height of the colour bar */
    double most, tick;                /* the end of the colour bar, and between its numbers */
    bool cut;                         /* some weights are larger than that */
    char title[160], note[160];
};

/* --- where everything stands --------------------------------------------------------------------------------------- */

/* The weights of number i of the heads that are drawn. */
static const float *weights_of(const struct picture *p, int64_t i)
{
    const struct wf_attention_map *m = p->map;
    int64_t head = p->heads ? (p->heads[i].layer - 1) * m->heads + p->heads[i].head - 1 : i;
    return m->weights + head * m->queries * m->keys;
}

static double between(double low, double x, double high)
{
    return fmax(low, fmin(x, high));
}

/* Cells are as high as the letters of their label, or a label is for several: so they never overlap. */
static void choose_cells(struct picture *p)
{
    double n = fmax((double)p->map->queries, (double)p->map->keys), across = (double)p->map->heads, down = (double)p->map->layers;
    p->every = 1;
    if (p->heads) {
        p->cell = n > 160 ? fmax(2, 2240 / n) : n > 60 ? 14 : between(15, floor(540 / n), 30);
        p->font = n > 160 ? 10 : n > 60 ? 11 : 12;
        p->every = (int64_t)ceil(1.25 * p->font / p->cell);
        return;
    }
    p->cell = between(11, floor(200 / n), 24);
    p->font = floor(between(9, 0.85 * p->cell, 12));
    if (across * ((double)p->map->keys * p->cell + GAP) <= WIDE && down * ((double)p->map->queries * p->cell + GAP) <= WIDE)
        return;
    p->font = 0;
    p->cell = between(4, floor(NARROW / fmax(across, 0.5 * down)), 160) / n;
    snprintf(p->note, sizeof p->note, "%" PRId64 " tokens from top to bottom, %" PRId64 " from left to right: too many to name them here",
             p->map->queries, p->map->keys);
}

/* The sign of a space is a heavy bar in most fonts, which between turned labels looks like part of the map: here it is a thin one. */
static void thin_spaces(char *label)
{
    static const char bar[] = "▁";
    for (char *at = label; (at = strstr(at, bar));) {
        *at++ = '_';
        memmove(at, at + strlen(bar) - 1, strlen(at + strlen(bar) - 1) + 1);
    }
}

/* Labels that are not too long, and the width of the longest. false without memory. */
static bool shorten(char *const *label, int64_t count, double most, char ***out, double *longest)
{
    *out = wf_alloc_zero((size_t)count, sizeof **out);
    for (int64_t i = 0; *out && i < count; i++) {
        char *one = (*out)[i] = label_shorten(label[i], most);
        if (!one)
            return false;
        thin_spaces(one);
        *longest = fmax(*longest, label_width(one));
    }
    return *out != NULL;
}

static wf_status choose_labels(struct picture *p, wf_error *error)
{
    const struct wf_attention_map *m = p->map;
    double most = p->heads ? 12 : 8, query = 0, key = 0;
    if (!shorten(m->query_label, m->queries, most, &p->query, &query) || !shorten(m->key_label, m->keys, most, &p->key, &key))
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for a picture of attention");
    p->query_width = p->font * query;
    p->turned = p->font * key > p->cell * (double)p->every - 1;
    p->key_height = p->font * (p->turned ? key : 1.7);
    return WF_OK;
}

static void choose_columns(struct picture *p)
{
    if (!p->heads) {
        p->columns = p->map->heads;
        p->rows = p->map->layers;
        return;
    }
    double each = p->query_width + p->panel_width + PANEL_GAP;
    p->columns = (int64_t)between(1, floor(2000 / each), (double)p->count);
    p->rows = (p->count + p->columns - 1) / p->columns;
    p->columns = (p->count + p->rows - 1) / p->rows;
}

static int rising(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

/* One scale for all panels: from 0 to the largest weight that is drawn, or a little more, so that its end has a number. Of a long causal
 * map the first rows, which have little to share out between, would leave all others white: where nine tenths of the rows stay below half
 * of the largest, the scale ends at theirs. */
static wf_status choose_scale(struct picture *p, wf_error *error)
{
    int64_t rows = p->count * p->map->queries;
    float *most = wf_alloc_zero((size_t)rows, sizeof *most);
    if (!most)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for a picture of attention");
    for (int64_t i = 0; i < p->count; i++) {
        const float *w = weights_of(p, i);
        for (int64_t k = 0; k < p->map->queries * p->map->keys; k++) {
            float *row = &most[i * p->map->queries + k / p->map->keys];
            *row = w[k] > *row ? w[k] : *row;
        }
    }
    qsort(most, (size_t)rows, sizeof *most, rising);
    double end = between(1e-4, (double)most[rows - 1], 1), usual = (double)most[(rows - 1) * 9 / 10];
    wf_free(most);
    p->cut = usual > 1e-4 && usual < end / 2;
    end = p->cut ? usual : end;
    double power = pow(10, floor(log10(end / 3))), step = end / 3 / power; /* 1 <= step < 10 */
    p->tick = power * (step >= 5 ? 5 : step >= 2 ? 2 : 1);
    p->most = p->tick * ceil(end / p->tick - 1e-6);
    return WF_OK;
}

/* Fills what follows `pixels`; what stands before it the caller has put there. */
static wf_status lay_out(struct picture *p, const char *model, wf_error *error)
{
    const struct wf_attention_map *m = p->map;
    char kind[32] = "", place[64] = "";
    bool single = p->heads && p->count == 1;
    p->letters = p->pixels ? 0.75 : 1; /* pngcairo takes 96 points for an inch of 72 pixels */
    choose_cells(p);
    wf_status status = choose_labels(p, error);
    if (status != WF_OK)
        return status;
    p->panel_width = p->cell * (double)m->keys;
    p->panel_height = p->cell * (double)m->queries;
    choose_columns(p);
    if (strcmp(model, "encoder-attention") != 0) /* whose name says it */
        snprintf(kind, sizeof kind, "%s%s-attention", model[0] ? " · " : "", wf_map_kind_name(m->kind));
    if (single)
        snprintf(place, sizeof place, " · layer %" PRId64 ", head %" PRId64, p->heads[0].layer, p->heads[0].head);
    snprintf(p->title, sizeof p->title, "%s%s%s", model, kind, place);
    double names = single || p->rows * p->columns == 1 ? 0 : CAPTION_BAND, left_labels = p->query_width + TICK,
           top_labels = p->key_height + TICK;
    p->left = MARGIN + CAPTION_BAND + left_labels + (p->heads ? 0 : CAPTION_BAND);
    p->top = MARGIN + TITLE_BAND + CAPTION_BAND + names + top_labels;
    p->step_x = p->panel_width + (p->heads ? left_labels + PANEL_GAP : GAP);
    p->step_y = p->panel_height + (p->heads ? top_labels + names + PANEL_GAP : GAP);
    p->right = p->left + p->step_x * (double)(p->columns - 1) + p->panel_width;
    double high = p->step_y * (double)(p->rows - 1) + p->panel_height;
    p->bar = between(100, high, 420);
    p->width = fmax(p->right + MARGIN + BAR_BAND, 2 * MARGIN + HEADING * label_width(p->title));
    p->width = ceil(fmax(p->width, 2 * MARGIN + CAPTION * label_width(p->note)));
    p->height = ceil(p->top + fmax(high, 120) + MARGIN + (p->note[0] ? CAPTION_BAND : 0));
    return choose_scale(p, error);
}

/* --- the script ---------------------------------------------------------------------------------------------------- */

/* Places on the screen are shares of the picture, from its lower left corner. */
static double across(const struct picture *p, double x)
{
    return x / p->width;
}

static double up(const struct picture *p, double y)
{
    return 1 - y / p->height;
}

static void add_text(struct wf_string *s, const struct picture *p, double x, double y, const char *text, double size, const char *how)
{
    char all[128];
    snprintf(all, sizeof all, "%s font \",%g\" front", how, p->letters * size);
    script_label(s, text, across(p, x), up(p, y), all);
}

static void add_tics(struct wf_string *s, const struct picture *p, const char *axis, char *const *label, int64_t count, const char *how)
{
    wf_string_format(s, "set %s %s scale 0 font \",%g\" textcolor rgb \"#222222\" (", axis, how, p->letters * p->font);
    for (int64_t i = 0; i < count; i += p->every) {
        wf_string_format(s, i > 0 ? ", " : "");
        script_quote(s, label[i], true);
        wf_string_format(s, " %" PRId64, i);
    }
    wf_string_format(s, ")\n");
}

static void add_settings(struct wf_string *s, const struct picture *p)
{
    wf_string_format(s, "set multiplot\nunset key\n"
                        "set border 15 linecolor rgb \"#9a9a9a\" linewidth 0.5\n"
                        "set palette defined (0 \"#f7fbff\", 1 \"#deebf7\", 2 \"#c6dbef\", 3 \"#9ecae1\", 4 \"#6baed6\", 5 \"#4292c6\", "
                        "6 \"#2171b5\", 7 \"#08519c\", 8 \"#08306b\")\n"
                        "unset xtics\nunset x2tics\nunset ytics\n");
    wf_string_format(s, "set cbrange [0:%g]\nset cbtics %g scale 0.5 font \",%g\" textcolor rgb \"#222222\" format \"%%.2g\"\n", p->most,
                     p->tick, p->letters * (CAPTION - 1));
    if (p->cut)
        wf_string_format(s, "set cbtics add (\"≥ %.3g\" %g)\n", p->most, p->most);
    wf_string_format(s, "set cblabel \"attention weight\" font \",%g\"\n", p->letters * CAPTION);
    wf_string_format(s, "set colorbox user origin %.6f,%.6f size %.6f,%.6f\n", across(p, p->right + MARGIN), up(p, p->top + p->bar),
                     across(p, BAR), p->bar / p->height);
    wf_string_format(s, "set xrange [-0.5:%" PRId64 ".5]\nset x2range [-0.5:%" PRId64 ".5]\nset yrange [%" PRId64 ".5:-0.5]\n",
                     p->map->keys - 1, p->map->keys - 1, p->map->queries - 1);
}

/* The title and what the axes are. */
static void add_captions(struct wf_string *s, const struct picture *p)
{
    static const char *const queries[] = {"source ", "target ", "target "}, *const keys[] = {"source ", "target ", "source "};
    char query[32], key[32];
    snprintf(query, sizeof query, "%stokens (queries)", p->pairs ? queries[p->map->kind] : "");
    snprintf(key, sizeof key, "%stokens (keys)", p->pairs ? keys[p->map->kind] : "");
    add_text(s, p, MARGIN, MARGIN + 0.5 * HEADING, p->title, HEADING, "left textcolor rgb \"#111111\"");
    add_text(s, p, p->left, MARGIN + TITLE_BAND + 0.3 * CAPTION, key, CAPTION - 1, "left textcolor rgb \"#666666\"");
    add_text(s, p, MARGIN + 0.5 * CAPTION, p->top, query, CAPTION - 1, "right rotate by 90 textcolor rgb \"#666666\"");
    if (p->note[0])
        add_text(s, p, MARGIN, p->height - MARGIN, p->note, CAPTION - 1, "left textcolor rgb \"#666666\"");
}

/* "head 3", or "3" where that is too wide, or nothing. */
static void add_name(struct wf_string *s, const struct picture *p, double x, double y, const char *word, int64_t number, double room,
                     const char *how)
{
    char text[64];
    snprintf(text, sizeof text, "%s %" PRId64, word, number);
    const char *shown = CAPTION * label_width(text) <= room ? text : strchr(text, ' ') + 1;
    if (CAPTION * label_width(shown) <= room)
        add_text(s, p, x, y, shown, CAPTION, how);
}

/* Columns are heads and rows are layers in a grid; else each panel has its name. */
static void add_names(struct wf_string *s, const struct picture *p)
{
    double above = p->top - (p->font > 0 ? p->key_height + TICK : 0) - 0.5 * CAPTION_BAND;
    double before = p->left - (p->font > 0 ? p->query_width + TICK : 0) - 0.5 * CAPTION_BAND;
    if (!p->heads && p->count > 1) {
        for (int64_t i = 0; i < p->columns; i++)
            add_name(s, p, p->left + (double)i * p->step_x + 0.5 * p->panel_width, above, "head", i + 1, p->step_x, "center");
        for (int64_t i = 0; i < p->rows; i++)
            add_name(s, p, before, p->top + (double)i * p->step_y + 0.5 * p->panel_height, "layer", i + 1, p->step_y,
                     "center rotate by 90");
    }
    for (int64_t i = 0; p->heads && p->count > 1 && i < p->count; i++) {
        char text[64];
        snprintf(text, sizeof text, "layer %" PRId64 ", head %" PRId64, p->heads[i].layer, p->heads[i].head);
        add_text(s, p, p->left + (double)(i % p->columns) * p->step_x, above + (double)(i / p->columns) * p->step_y, text, CAPTION, "left");
    }
}

/* The weights as a table. gnuplot draws no image of a single row or column, so that is drawn as boxes. */
static void add_weights(struct wf_string *s, const struct picture *p, int64_t i)
{
    const struct wf_attention_map *m = p->map;
    const float *w = weights_of(p, i);
    wf_string_format(s, "$W << END\n");
    for (int64_t q = 0; q < m->queries; q++)
        for (int64_t k = 0; k < m->keys; k++)
            wf_string_format(s, "%.4g%c", (double)w[q * m->keys + k], k + 1 < m->keys ? ' ' : '\n');
    wf_string_format(s, "END\nplot $W matrix %s\n",
                     m->queries > 1 && m->keys > 1 ? "with image"
                                                   : "using 1:2:(0.5):(0.5):3 with boxxyerror fillcolor palette fillstyle solid noborder");
}

static void add_panel(struct wf_string *s, const struct picture *p, int64_t i)
{
    int64_t column = i % p->columns, row = i / p->columns;
    double x = p->left + (double)column * p->step_x, y = p->top + (double)row * p->step_y;
    script_margins(s, across(p, x), across(p, x + p->panel_width), up(p, y), up(p, y + p->panel_height));
    wf_string_format(s, "unset x2tics\nunset ytics\n");
    if (p->font > 0 && (p->heads || row == 0))
        add_tics(s, p, "x2tics", p->key, p->map->keys, p->turned ? "rotate by 90" : "norotate");
    if (p->font > 0 && (p->heads || column == 0))
        add_tics(s, p, "ytics", p->query, p->map->queries, "norotate");
    add_weights(s, p, i);
    if (i == 0) /* these belong to the picture, and would be drawn again with each panel */
        wf_string_format(s, "unset label\nunset colorbox\n");
}

static wf_status draw(const struct picture *p, enum picture_format format, const char *path, wf_error *error)
{
    struct wf_string s = {0}, sharp = {0}, drawn = {0};
    script_terminal(&s, format, (int)p->width, (int)p->height, CAPTION);
    add_settings(&s, p);
    add_captions(&s, p);
    add_names(&s, p);
    for (int64_t i = 0; i < p->count; i++)
        add_panel(&s, p, i);
    wf_string_format(&s, "unset multiplot\n");
    wf_status status = gnuplot_run(&s, &drawn, error);
    /* Browsers smooth an enlarged image over its neighbours unless told not to. In the text of an SVG "<" is always written as "&lt;", so
     * this finds images only. */
    if (status == WF_OK && format == PICTURE_SVG)
        label_replace(&sharp, drawn.data, "<image ", "<image style='image-rendering:optimizeSpeed;image-rendering:pixelated' ");
    const struct wf_string *file = format == PICTURE_SVG ? &sharp : &drawn;
    if (status == WF_OK && file->failed)
        status = wf_error_set(error, WF_ERR_MEMORY, "no memory for a picture of attention");
    if (status == WF_OK)
        status = wf_file_save(path, file->data, file->length, error);
    wf_string_free(&s);
    wf_string_free(&sharp);
    wf_string_free(&drawn);
    return status;
}

/* --- in front ------------------------------------------------------------------------------------------------------ */

/* Cairo, which draws for gnuplot, takes no more; a PNG has two pixels where an SVG has one. */
static wf_status check_size(const struct picture *p, wf_error *error)
{
    int64_t side = (int64_t)fmax(p->width, p->height), most = 32767;
    if (!p->pixels || 2 * side <= most)
        return WF_OK;
    return wf_error_set(error, WF_ERR_ARGUMENT,
                        "a PNG of %" PRId64 " heads with %" PRId64 " tokens would be %" PRId64 " pixels long, and at most %" PRId64
                        " can be: choose fewer heads, or take .svg",
                        p->count, p->map->queries, 2 * side, most);
}

wf_status wf_attention_draw(const struct wf_attention_maps *maps, const struct wf_attention_map *map, const struct wf_head *heads,
                            int64_t count, const char *path, wf_error *error)
{
    if (wf_needs(error, "maps, map, path", maps, map, path))
        return WF_ERR_ARGUMENT;
    enum picture_format format;
    struct picture p = {
        .map = map, .heads = count > 0 ? heads : NULL, .count = count > 0 ? count : map->layers * map->heads, .pairs = maps->count > 1};
    wf_status status = picture_format_of(path, &format, error);
    if (status == WF_OK)
        status = map_check(map, error);
    for (int64_t i = 0; status == WF_OK && i < count; i++)
        status = wf_attention_check_head(maps, map, heads[i], error);
    p.pixels = status == WF_OK && format == PICTURE_PNG;
    if (status == WF_OK)
        status = lay_out(&p, maps->model, error);
    if (status == WF_OK)
        status = check_size(&p, error);
    if (status == WF_OK)
        status = draw(&p, format, path, error);
    labels_free(p.query, map->queries);
    labels_free(p.key, map->keys);
    return status;
}
