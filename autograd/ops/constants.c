/* SPDX-License-Identifier: MIT */
/* Tensors without a gradient: arange, eye and one_hot. */
#include <math.h>
#include <string.h>

#include "common.h"

/* --- arange ----------------------------------------------------------------------------------------------------------- */

struct range {
    double start, end, step;
    bool ids;
};

static const char *range_name(const void *attr)
{
    return ((const struct range *)attr)->ids ? "arange_ids" : "arange";
}

/* ceil((end - start) / step) elements, as in PyTorch. */
static wf_status arange_shape(wf_call *c)
{
    const struct range *a = c->attr;
    const double count = ceil((a->end - a->start) / a->step);
    if (!isfinite(a->start) || !isfinite(a->end) || !isfinite(a->step) || a->step == 0)
        return wf_call_fail(c, WF_ERR_ARGUMENT, "start %g, end %g and step %g must be finite, and the step not 0", a->start, a->end,
                            a->step);
    if (count < 0)
        return wf_call_fail(c, WF_ERR_ARGUMENT, "the step %g leads away from the end %g", a->step, a->end);
    if (count > 0x1p40)
        return wf_call_fail(c, WF_ERR_SHAPE, "%g elements are too many", count);
    c->out[0] = wf_call_shape(a->ids ? WF_I32 : WF_REAL, &(wf_shape){1, {(int64_t)count}});
    return WF_OK;
}

static wf_status arange_forward(wf_call *c)
{
    const struct range *a = c->attr;
    for (int64_t i = 0; i < c->out[0].dim[0]; i++)
        if (a->ids)
            ((int32_t *)c->out[0].data)[i] = (int32_t)(a->start + (double)i * a->step);
        else
            ((wf_real *)c->out[0].data)[i] = (wf_real)(a->start + (double)i * a->step);
    return WF_OK;
}

#define RANGE(...) ATTR(struct range, __VA_ARGS__)
const wf_op wf_op_arange = {.name = "arange",
                            .name_of = range_name,
                            .constant = true,
                            .attr_size = sizeof(struct range),
                            .shape = arange_shape,
                            .forward = arange_forward,
                            .cases = WF_CASES({"reals", RANGE(0, 1, 0.125)}, {"back", RANGE(3, -2, -0.5)}, {"nothing", RANGE(2, 2, 1)},
                                              {"ids", RANGE(-3, 9, 2, true)})};

/* An op without operands, on the tape that the caller gave. */
static wf_tensor *made(wf_tape *tape, const wf_op *op, const void *attr, const char *name)
{
    if (!tape)
        return wf_tape_fail(wf_tape_of(NULL), WF_ERR_ARGUMENT, "%s: the tape is NULL", name);
    wf_tape_use(tape);
    wf_tensor *y = wf_apply(op, attr, 0, NULL);
    return wf_is_poison(y) ? y : wf_name(y, name);
}

wf_tensor *wf_arange(wf_tape *tape, double start, double end, double step)
{
    return made(tape, &wf_op_arange, &(struct range){start, end, step, false}, "arange");
}

wf_tensor *wf_arange_ids(wf_tape *tape, int32_t start, int32_t end, int32_t step)
{
    return made(tape, &wf_op_arange, &(struct range){start, end, step, true}, "arange_ids");
}

/* --- eye -------------------------------------------------------------------------------------------------------------- */

struct eye {
    int64_t rows, columns;
};

static wf_status eye_shape(wf_call *c)
{
    const struct eye *a = c->attr;
    if (a->rows < 0 || a->columns < 0)
        return wf_call_fail(c, WF_ERR_ARGUMENT, "%lld rows and %lld columns must not be negative", (long long)a->rows,
                            (long long)a->columns);
    c->out[0] = wf_call_shape(WF_REAL, &(wf_shape){2, {a->rows, a->columns}});
    return WF_OK;
}

static wf_status eye_forward(wf_call *c)
{
    const struct eye *a = c->attr;
    wf_real *y = c->out[0].data;
    memset(y, 0, (size_t)(a->rows * a->columns) * sizeof *y);
    for (int64_t i = 0; i < WF_MIN(a->rows, a->columns); i++)
        y[i * a->columns + i] = 1;
    return WF_OK;
}

const wf_op wf_op_eye = {
    .name = "eye",
    .constant = true,
    .attr_size = sizeof(struct eye),
    .shape = eye_shape,
    .forward = eye_forward,
    .cases = WF_CASES({"square", ATTR(struct eye, 4, 4)}, {"wide", ATTR(struct eye, 2, 5)}, {"empty", ATTR(struct eye, 0, 3)})};

wf_tensor *wf_eye(wf_tape *tape, int64_t rows, int64_t columns)
{
    return made(tape, &wf_op_eye, &(struct eye){rows, columns}, "eye");
}

/* --- one_hot ---------------------------------------------------------------------------------------------------------- */

struct classes {
    int64_t count;
};

static wf_status one_hot_shape(wf_call *c)
{
    const int64_t count = ((const struct classes *)c->attr)->count;
    if (wf_want(c, 0, WF_I32) != WF_OK)
        return WF_ERR_ARGUMENT;
    wf_shape shape = wf_array_shape(&c->in[0]);
    if (count < 1)
        return wf_call_fail(c, WF_ERR_ARGUMENT, "the number of classes is %lld, but must be at least 1", (long long)count);
    if (shape.ndim == WF_MAX_DIMS)
        return wf_call_fail(c, WF_ERR_SHAPE, "the result would have %d dimensions; %d are possible", WF_MAX_DIMS + 1, WF_MAX_DIMS);
    shape.dim[shape.ndim++] = count;
    c->out[0] = wf_call_shape(WF_REAL, &shape);
    return WF_OK;
}

static wf_status one_hot_forward(wf_call *c)
{
    const int64_t count = ((const struct classes *)c->attr)->count;
    const wf_array ids = wf_ids_below(c, 0, count);
    const int32_t *id = ids.data;
    wf_real *y = c->out[0].data;
    if (!id)
        return WF_ERR_ARGUMENT;
    memset(y, 0, (size_t)wf_array_count(&c->out[0]) * sizeof *y);
    for (int64_t i = 0; i < wf_array_count(&ids); i++)
        y[i * count + id[i]] = 1;
    return WF_OK;
}

const wf_op wf_op_one_hot = {.name = "one_hot",
                             .operands = "ids",
                             .constant = true,
                             .attr_size = sizeof(struct classes),
                             .shape = one_hot_shape,
                             .forward = one_hot_forward,
                             .cases = WF_CASES({"vector", {{7}}, {WF_FILL_IDS}, {5}, ATTR(struct classes, 5)},
                                               {"matrix", {{3, 4}}, {WF_FILL_IDS}, {6}, ATTR(struct classes, 6)},
                                               {"scalar", {{-2}}, {WF_FILL_IDS}, {3}, ATTR(struct classes, 3)},
                                               {"empty", {{-1, 2}}, {WF_FILL_IDS}, {3}, ATTR(struct classes, 3)})};

wf_tensor *wf_one_hot(wf_tensor *ids, int64_t classes)
{
    return wf_apply(&wf_op_one_hot, &(struct classes){classes}, 1, &ids);
}
