/* SPDX-License-Identifier: MIT */
/* What metrics.jsonl of a run holds that can be drawn over the steps. */
#ifndef WEFT_REPORT_CURVES_H
#define WEFT_REPORT_CURVES_H

#include <weft/error.h>

struct point {
    double step, value;
};
struct curve {
    struct point *point; /* by step, each step once */
    int64_t count, capacity;
};
enum curve_kind { CURVE_TRAIN, CURVE_VALID, CURVE_LR, CURVE_KINDS };
struct curves {
    struct curve of[CURVE_KINDS];
};

/* Reads the run's file. A last line that is not whole (of a killed process, or one that is being written) does not count. Of a step that
 * was logged twice the later line counts, and nothing stays of steps behind it. Values are capped at 1e100. A folder that is none, without
 * the file, or in which no loss was logged yet: an error with what to do; a line that can't be read is placed. *out is empty after an
 * error. */
wf_status curves_read(const char *folder, struct curves *out, wf_error *error) WF_CHECKED;
void curves_free(struct curves *curves);

/* The mean of each point and `half` neighbours on either side; fewer at the end, and at the beginning, where losses fall steeply, as many
 * on the right as there are on the left. */
wf_status curve_smooth(const struct curve *in, int64_t half, struct curve *out, wf_error *error) WF_CHECKED;
/* At most 2 * buckets points: the lowest and the highest of each of so many stretches, so that no peak is lost. */
wf_status curve_thin(const struct curve *in, int64_t buckets, struct curve *out, wf_error *error) WF_CHECKED;
void curve_free(struct curve *curve);

#endif
