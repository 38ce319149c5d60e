/* SPDX-License-Identifier: MIT */
/* A picture of attention maps: where everything stands, in pixels from its upper left corner. */
#ifndef WEFT_REPORT_ATTENTION_PICTURE_H
#define WEFT_REPORT_ATTENTION_PICTURE_H

#include <weft/attention_map.h>

enum {
    MARGIN = 16,     /* around the picture */
    HEADING = 15,    /* size of the title's letters; the other sizes follow it */
    CAPTION = 12,    /* of the axes' names and the panels' titles */
    TITLE_BAND = 34, /* height of a title with its space; of a caption */
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
    bool causal; /* later keys are masked */

    int64_t columns, rows;
    double cell;         /* side of a weight */
    double font;         /* of the tokens; 0: they are not named */
    double letters;      /* factor of the letters' sizes for gnuplot */
    int64_t every;       /* every n-th token has a label; above 1 for very long texts */
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

/* The weights of the i-th head that is drawn. */
static inline const float *weights_of(const struct picture *p, int64_t i)
{
    const struct wf_attention_map *m = p->map;
    int64_t head = p->heads ? (p->heads[i].layer - 1) * m->heads + p->heads[i].head - 1 : i;
    return m->weights + head * m->queries * m->keys;
}

/* attention_layout.c: fills the members after `causal` from those before, which the caller has set. Labels are freed with labels_free. */
wf_status picture_lay_out(struct picture *p, const char *model, wf_error *error) WF_CHECKED;

#endif
