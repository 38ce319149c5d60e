/* SPDX-License-Identifier: MIT */
/* Draws attention maps as heat maps with gnuplot. attention_layout.c computes the positions. */
#include <weft/internal/needs.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weft/file.h>
#include <weft/memory.h>

#include "attention_picture.h"
#include "gnuplot.h"
#include "labels.h"

/* True if a key is masked: in a causal map it comes after the query, and its weight is 0. If there are more keys than queries, the first
 * keys belong to tokens before the first query. A later key with a weight other than 0 is not treated as masked, so that the weight is
 * visible. */
static bool is_masked(const struct picture *p, int64_t query, int64_t key, float weight)
{
    int64_t before = p->map->keys > p->map->queries ? p->map->keys - p->map->queries : 0;
    return p->causal && key > query + before && weight == 0;
}

/* across() and up() convert pixels from the upper left corner to gnuplot's screen coordinates, 0 to 1 from the lower left corner. */
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

/* For a causal map, adds a grey rectangle behind each panel. The grey is visible at masked keys, because the map has no values there. Adds
 * a sample of the grey below the colour bar. */
#define MASKED "fillcolor rgb \"#e4dfd6\" fillstyle solid"
static void add_masked(struct wf_string *s, const struct picture *p)
{
    double x = p->right + MARGIN, y = p->top + p->bar + 14;
    if (!p->causal)
        return;
    wf_string_format(s,
                     "set object 1 rectangle from graph 0,0 to graph 1,1 behind " MASKED " noborder\n"
                     "set object 2 rectangle from screen %.6f,%.6f to screen %.6f,%.6f front " MASKED
                     " border linecolor rgb \"#9a9a9a\" linewidth 0.5\n",
                     across(p, x), up(p, y + BAR), across(p, x + BAR), up(p, y));
    add_text(s, p, x + BAR + 8, y + 0.5 * BAR, "masked", CAPTION - 1, "left textcolor rgb \"#222222\"");
}

/* Adds the title, the names of the axes and the note at the bottom. */
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

/* Adds the text "head 3" if it fits into the width `room`, otherwise "3" if that fits, otherwise nothing. */
static void add_name(struct wf_string *s, const struct picture *p, double x, double y, const char *word, int64_t number, double room,
                     const char *how)
{
    char text[64];
    snprintf(text, sizeof text, "%s %" PRId64, word, number);
    const char *shown = CAPTION * label_width(text) <= room ? text : strchr(text, ' ') + 1;
    if (CAPTION * label_width(shown) <= room)
        add_text(s, p, x, y, shown, CAPTION, how);
}

/* Names the heads above the columns and the layers beside the rows of a grid. Panels of chosen heads get a name each. */
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

/* Adds the weights of panel i as a table and draws it. A single row or column is drawn as boxes, because gnuplot cannot draw it as an
 * image. */
static void add_weights(struct wf_string *s, const struct picture *p, int64_t i)
{
    const struct wf_attention_map *m = p->map;
    const float *w = weights_of(p, i);
    wf_string_format(s, "$W << END\n");
    for (int64_t q = 0; q < m->queries; q++)
        for (int64_t k = 0; k < m->keys; k++)
            if (is_masked(p, q, k, w[q * m->keys + k]))
                wf_string_format(s, "NaN%c", k + 1 < m->keys ? ' ' : '\n');
            else
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
    if (i == 0) /* labels, colour bar and sample are drawn once, not again with each panel */
        wf_string_format(s, "unset label\nunset colorbox\n%s", p->causal ? "unset object 2\n" : "");
}

static wf_status draw(const struct picture *p, enum picture_format format, const char *path, wf_error *error)
{
    struct wf_string s = {0}, sharp = {0}, drawn = {0};
    script_terminal(&s, format, (int)p->width, (int)p->height, CAPTION);
    add_settings(&s, p);
    add_captions(&s, p);
    add_masked(&s, p);
    add_names(&s, p);
    for (int64_t i = 0; i < p->count; i++)
        add_panel(&s, p, i);
    wf_string_format(&s, "unset multiplot\n");
    wf_status status = gnuplot_run(&s, &drawn, error);
    /* Set a style with which browsers do not blur the cells of an enlarged image. Texts of an SVG contain "&lt;" instead of "<", so that
     * "<image " occurs in image elements only. */
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

/* --- the public function ------------------------------------------------------------------------------------------- */

/* Refuses a PNG with a side of more than 32767 pixels, which is the limit of Cairo, the library with which gnuplot draws. A PNG has
 * twice the width and height of the layout. */
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
    struct picture p = {.map = map,
                        .heads = count > 0 ? heads : NULL,
                        .count = count > 0 ? count : map->layers * map->heads,
                        .pairs = maps->count > 1,
                        .causal = map->kind == WF_MAP_DECODER && map->queries > 1};
    wf_status status = picture_format_of(path, &format, error);
    if (status == WF_OK)
        status = map_check(map, error);
    for (int64_t i = 0; status == WF_OK && i < count; i++)
        status = wf_attention_check_head(maps, map, heads[i], error);
    p.pixels = status == WF_OK && format == PICTURE_PNG;
    if (status == WF_OK)
        status = picture_lay_out(&p, maps->model, error);
    if (status == WF_OK)
        status = check_size(&p, error);
    if (status == WF_OK)
        status = draw(&p, format, path, error);
    labels_free(p.query, map->queries);
    labels_free(p.key, map->keys);
    return status;
}
