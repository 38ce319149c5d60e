/* SPDX-License-Identifier: MIT */
/* The layout of a picture of attention maps. Coordinates and sizes are in pixels, from the upper left corner. */
#ifndef WEFT_REPORT_ATTENTION_PICTURE_H
#define WEFT_REPORT_ATTENTION_PICTURE_H

#include <weft/attention_map.h>

enum {
    MARGIN = 16,       /* free space at each edge of the picture */
    HEADING = 15,      /* font size of the title */
    CAPTION = 12,      /* font size of the names of axes and panels */
    TITLE_BAND = 34,   /* height of the title with the space below it */
    CAPTION_BAND = 22, /* height of a caption with the space around it */
    TICK = 10,         /* distance between a token's label and the map */
    GAP = 8,           /* distance between the panels of a grid */
    PANEL_GAP = 28,    /* distance between panels that have their own labels */
    BAR = 14,          /* width of the colour bar */
    BAR_BAND = 92,     /* width of the colour bar with its numbers and its name */
    WIDE = 2800,       /* maximum width and height of a grid with labels of tokens */
    NARROW = 1400      /* approximate width of a grid without labels of tokens */
};

/* A picture of `columns` times `rows` panels. A panel is the map of one head; all panels have the same tokens. */
struct picture {
    const struct wf_attention_map *map;
    const struct wf_head *heads; /* [count]: the heads to draw; NULL: a grid of all heads */
    int64_t count;
    bool pairs;  /* the model is a translation model, so the axes say whether tokens are of the source or the target */
    bool pixels; /* the picture is a PNG */
    bool causal; /* keys after the query are masked */

    int64_t columns, rows;
    double cell;         /* side of the square that shows a weight */
    double font;         /* font size of the tokens; 0: tokens have no labels */
    double letters;      /* factor from font sizes in pixels to gnuplot's font sizes */
    int64_t every;       /* number of tokens from one label to the next; above 1 for very long texts */
    bool turned;         /* labels of keys are vertical */
    char **query, **key; /* shortened labels */
    double query_width;  /* width of the longest label of a query */
    double key_height;   /* height of the labels of keys */
    double panel_width, panel_height;
    double left, top;      /* upper left corner of the first map */
    double step_x, step_y; /* distances from a map to the next one on the right and below */
    double width, height;  /* size of the picture */
    double right;          /* right end of the panels */
    double bar;            /* height of the colour bar */
    double most;           /* weight at the end of the colour bar */
    double tick;           /* difference between neighbouring numbers at the colour bar */
    bool cut;              /* some weights are larger than `most` */
    char title[160], note[160];
};

/* The weights of panel i. */
static inline const float *weights_of(const struct picture *p, int64_t i)
{
    const struct wf_attention_map *m = p->map;
    int64_t head = p->heads ? (p->heads[i].layer - 1) * m->heads + p->heads[i].head - 1 : i;
    return m->weights + head * m->queries * m->keys;
}

/* Computes the members after `causal` from those up to it, which the caller has set. The caller frees query and key with labels_free.
 * Defined in attention_layout.c. */
wf_status picture_lay_out(struct picture *p, const char *model, wf_error *error) WF_CHECKED;

#endif
