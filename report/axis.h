/* SPDX-License-Identifier: MIT */
/* Where the tics of an axis stand, and what is written at them. gnuplot's own choice leaves a logarithmic axis of less than a decade
 * with one number, and writes 5e-05 beside 0.0001. */
#ifndef WEFT_REPORT_AXIS_H
#define WEFT_REPORT_AXIS_H

#include "gnuplot.h"

enum { AXIS_TICS = 16 };
struct axis {
    double low, high; /* what is drawn; first what there is */
    bool log;
    bool whole; /* tics at whole numbers only */
    int count;
    double tic[AXIS_TICS];
    char label[AXIS_TICS][32];
};
/* Nothing seen yet. */
struct axis axis_new(bool log);
void axis_see(struct axis *a, double value); /* a value that the axis must hold; what a logarithm can't show is left out */
bool axis_empty(const struct axis *a);
/* Leaves `margin` of its length free at both ends and sets at most `most` tics (2 to AXIS_TICS). */
void axis_finish(struct axis *a, double margin, int most);
/* "set xrange [0:100]" and "set xtics (...)" of axis 'x' or 'y', with or without what is written at them. */
void axis_script(const struct axis *a, char name, bool labels, struct script *s);

#endif
