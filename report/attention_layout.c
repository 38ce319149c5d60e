/* SPDX-License-Identifier: MIT */
/* Computes the layout of a picture of attention maps: sizes of cells and labels, positions of panels, and the scale of the colours. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/internal/minmax.h>
#include <weft/memory.h>

#include "attention_picture.h"
#include "labels.h"

static double between(double low, double x, double high)
{
    return fmax(low, fmin(x, high));
}

/* Chooses the sizes of cells and labels so that labels do not overlap. If the cells of chosen heads are lower than a label, only
 * every n-th token has a label. A grid of all heads that would be larger than WIDE with labels has none. */
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

/* Replaces U+2581, the symbol of a space, by a low line. In most fonts U+2581 is a thick bar, which looks like a part of the map. */
static void thin_spaces(char *label)
{
    static const char bar[] = "▁";
    for (char *at = label; (at = strstr(at, bar));) {
        *at++ = '_';
        memmove(at, at + strlen(bar) - 1, strlen(at + strlen(bar) - 1) + 1);
    }
}

/* Makes shortened copies of the labels, and raises *longest to the width of the longest copy. False without memory. */
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

/* Chooses one colour scale for all panels. It goes from 0 to the largest weight, rounded up so that there is a number at its end. The first
 * rows of a long causal map have few keys, and so large weights, with which all other rows would look white. Therefore, if nine tenths of
 * the rows have maxima below half of the largest weight, the scale ends at the largest of these maxima. The first row of a causal map is
 * always 1 at its only key and is not counted. */
static wf_status choose_scale(struct picture *p, wf_error *error)
{
    int64_t first = p->causal && p->map->queries == p->map->keys, each = p->map->queries - first, rows = p->count * each;
    float largest = 0;
    float *most = wf_alloc_zero((size_t)rows, sizeof *most);
    if (!most)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for a picture of attention");
    for (int64_t i = 0; i < p->count; i++) {
        const float *w = weights_of(p, i);
        for (int64_t k = 0; k < p->map->queries * p->map->keys; k++) {
            int64_t query = k / p->map->keys - first;
            float none = 0, *row = query < 0 ? &none : &most[i * each + query];
            *row = WF_MAX(w[k], *row);
            largest = WF_MAX(w[k], largest);
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
    p->cut |= (double)largest > p->most * 1.001;
    return WF_OK;
}

wf_status picture_lay_out(struct picture *p, const char *model, wf_error *error)
{
    const struct wf_attention_map *m = p->map;
    char kind[32] = "", place[64] = "";
    bool single = p->heads && p->count == 1;
    p->letters = p->pixels ? 0.75 : 1; /* gnuplot's PNG terminal takes font sizes in points, and a pixel is 72 / 96 points */
    choose_cells(p);
    wf_status status = choose_labels(p, error);
    if (status != WF_OK)
        return status;
    p->panel_width = p->cell * (double)m->keys;
    p->panel_height = p->cell * (double)m->queries;
    choose_columns(p);
    if (strcmp(model, "encoder-attention") != 0) /* the name of this preset already is "encoder-attention" */
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
    int masked = p->causal ? BAR + 16 : 0; /* height of the sample for masked keys, below the colour bar */
    p->bar = between(100, fmin(high, 420) - masked, 420);
    p->width = fmax(p->right + MARGIN + BAR_BAND, 2 * MARGIN + HEADING * label_width(p->title));
    p->width = ceil(fmax(p->width, 2 * MARGIN + CAPTION * label_width(p->note)));
    p->height = ceil(p->top + fmax(high, 120 + masked) + MARGIN + (p->note[0] ? CAPTION_BAND : 0));
    return choose_scale(p, error);
}
