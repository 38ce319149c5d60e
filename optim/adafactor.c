/* SPDX-License-Identifier: MIT */
/* The rule of Adafactor, and its init. */
#include <float.h>
#include <math.h>

#include <weft/compute.h>
#include <weft/internal/minmax.h>
#include <weft/internal/needs.h>

#include "internal.h"

enum { ROW, COLUMN, VECTOR, SLAB_COUNT, BLOCK = 8192, STRIP = 256 };
static const char *const slabs[] = {"row", "column", "v", NULL};

static wf_status check(void *ctx, const struct wf_optimizer *opt, wf_error *error)
{
    (void)ctx;
    const struct range range[] = {{"eps1", opt->adafactor.eps1, INFINITY}, {"eps2", opt->adafactor.eps2, INFINITY}};
    if (!(opt->adafactor.beta2_decay <= 0 && isfinite(opt->adafactor.beta2_decay)))
        return wf_error_set(error, WF_ERR_ARGUMENT, "beta2_decay = %g is not at most 0", opt->adafactor.beta2_decay);
    if (!(opt->adafactor.threshold >= 1 && isfinite(opt->adafactor.threshold)))
        return wf_error_set(error, WF_ERR_ARGUMENT, "threshold = %g is not at least 1", opt->adafactor.threshold);
    return check_ranges(range, 2, error);
}

static void factors(void *ctx, const struct wf_optimizer *opt, int64_t updates, double factor[])
{
    (void)ctx;
    factor[0] = pow((double)updates, opt->adafactor.beta2_decay);
    factor[1] = 1 / sqrt((double)updates);
}

static bool slab_shape(void *ctx, const wf_tensor *parameter, int slab, wf_shape *shape)
{
    (void)ctx;
    if (wf_ndim(parameter) < 2)
        return slab == VECTOR;
    if (slab < VECTOR)
        shape->dim[shape->ndim - (slab == ROW ? 1 : 2)] = 1;
    return slab < VECTOR;
}

/* A parameter as matrices [rows / height, height, width]; a vector is rows of one element. */
struct work {
    const struct wf_update *u;
    int64_t rows, height, width, grain; /* grain: rows of a block */
    double *of_updates, *of_values;     /* [blocks]: sums of squares */
    wf_real *factor;                    /* [rows / height]: 1 / mean(r) of each matrix */
    wf_real least, keep, rate;          /* of v; of p; of the update */
};

static struct work work_of(const wf_tensor *parameter)
{
    const wf_shape shape = wf_array_shape(&wf_parameter_info(parameter)->value);
    const int64_t count = wf_shape_count(&shape);
    const bool matrix = shape.ndim > 1;
    struct work w = {.height = matrix ? shape.dim[shape.ndim - 2] : count, .width = matrix ? shape.dim[shape.ndim - 1] : 1};
    w.rows = w.width > 0 ? count / w.width : 0;
    w.grain = WF_MAX(1, BLOCK / WF_MAX(w.width, 1));
    return w;
}

static int64_t blocks_of(const struct work *w)
{
    return (w->rows + w->grain - 1) / w->grain;
}

/* Two doubles for each block, and a number for each matrix. */
static int64_t workspace(void *ctx, const wf_tensor *parameter)
{
    (void)ctx;
    const struct work w = work_of(parameter);
    return 2 * blocks_of(&w) * (int64_t)(sizeof(double) / sizeof(wf_real)) + (w.height > 0 ? w.rows / w.height : 0);
}

static void add_to_rows(void *ctx, int64_t begin, int64_t end)
{
    const struct work *w = ctx;
    const double scale = (double)w->u->scale * (double)w->u->scale / (double)w->width, share = w->u->factor[0];
    for (int64_t r = begin; r < end; r++) {
        wf_real *mean = &w->u->slab[ROW][r];
        *mean += (wf_real)(share * (scale * wf_kernel->sum_squares(w->width, w->u->gradient + r * w->width) - (double)*mean));
    }
}

/* Columns begin .. end - 1 of all matrices taken one after the other, all of one matrix. */
static void add_to_columns(void *ctx, int64_t strip)
{
    const struct work *w = ctx;
    const int64_t strips = (w->width + STRIP - 1) / STRIP, matrix = strip / strips, first = strip % strips * STRIP;
    const int64_t count = WF_MIN(w->width - first, STRIP);
    const double scale = (double)w->u->scale * (double)w->u->scale / (double)w->height, share = w->u->factor[0];
    double sum[STRIP] = {0};
    for (int64_t r = 0; r < w->height; r++) {
        const wf_real *g = w->u->gradient + (matrix * w->height + r) * w->width + first;
        for (int64_t c = 0; c < count; c++)
            sum[c] += (double)g[c] * (double)g[c];
    }
    wf_real *mean = w->u->slab[COLUMN] + matrix * w->width + first;
    for (int64_t c = 0; c < count; c++)
        mean[c] += (wf_real)(share * (scale * sum[c] - (double)mean[c]));
}

static void add_to_elements(void *ctx, int64_t begin, int64_t end)
{
    const struct work *w = ctx;
    const wf_real share = (wf_real)w->u->factor[0], scale = w->u->scale;
    for (int64_t i = begin; i < end; i++) {
        const wf_real g = scale * w->u->gradient[i];
        w->u->slab[VECTOR][i] += share * (g * g - w->u->slab[VECTOR][i]);
    }
}

/* g / sqrt(max(v, eps1^2)) of element i of a row; r is the row's part of v. */
static inline wf_real update_of(const struct work *w, wf_real r, const wf_real *column, const wf_real *g, int64_t i)
{
    const wf_real v = r * column[i];
    return w->u->scale * g[i] / (wf_real)sqrt((double)(v > w->least ? v : w->least));
}

/* What update_of needs for row r: the row's part of v, and where its columns are. For a vector v is in the slab. */
static wf_real row_of(const struct work *w, int64_t r, const wf_real **column)
{
    if (w->u->slab[VECTOR]) {
        *column = w->u->slab[VECTOR] + r;
        return 1;
    }
    *column = w->u->slab[COLUMN] + r / w->height * w->width;
    return w->u->slab[ROW][r] * w->factor[r / w->height];
}

static void sum_squares(void *ctx, int64_t begin, int64_t end)
{
    const struct work *w = ctx;
    double sum = 0;
    for (int64_t r = begin; r < end; r++) {
        const wf_real *column, *g = w->u->gradient + r * w->width, row = row_of(w, r, &column);
        for (int64_t i = 0; i < w->width; i++) {
            const double x = (double)update_of(w, row, column, g, i);
            sum += x * x;
        }
    }
    w->of_updates[begin / w->grain] = sum;
    w->of_values[begin / w->grain] = wf_kernel->sum_squares((end - begin) * w->width, w->u->value + begin * w->width);
}

static void move(void *ctx, int64_t begin, int64_t end)
{
    const struct work *w = ctx;
    for (int64_t r = begin; r < end; r++) {
        const wf_real *column, *g = w->u->gradient + r * w->width, row = row_of(w, r, &column);
        wf_real *p = w->u->value + r * w->width;
        for (int64_t i = 0; i < w->width; i++)
            p[i] = w->keep * p[i] - w->rate * update_of(w, row, column, g, i);
    }
}

/* The factor of r c in v, 1 / max(mean(r), eps1), for each matrix. */
static void divide_by_means(const struct work *w, double eps1)
{
    for (int64_t k = 0; k < w->rows / w->height; k++) {
        const double mean = wf_kernel->sum(w->height, w->u->slab[ROW] + k * w->height) / (double)w->height;
        w->factor[k] = (wf_real)(1 / fmax(mean, eps1));
    }
}

static double root_mean(const double *sum, int64_t blocks, int64_t count)
{
    double all = 0;
    for (int64_t i = 0; i < blocks; i++)
        all += sum[i];
    return sqrt(all / (double)count);
}

static void step(void *ctx, const struct wf_update *u)
{
    (void)ctx;
    const struct wf_optimizer *opt = u->optimizer;
    const double eps1 = opt->adafactor.eps1 > 0 ? opt->adafactor.eps1 : sizeof(wf_real) == sizeof(double) ? DBL_EPSILON : FLT_EPSILON;
    struct work w = work_of(u->parameter);
    const int64_t blocks = blocks_of(&w);
    const double cost = (double)u->count;
    w.u = u;
    w.of_updates = (double *)(void *)u->workspace;
    w.of_values = w.of_updates + blocks;
    w.factor = (wf_real *)(void *)(w.of_values + blocks);
    w.least = (wf_real)fmax(eps1 * eps1, sizeof(wf_real) == sizeof(double) ? DBL_MIN : (double)FLT_MIN);
    if (u->slab[VECTOR]) {
        wf_parallel_ranges(w.rows, w.grain, 0.5 * cost, add_to_elements, &w);
    } else {
        wf_parallel_ranges(w.rows, w.grain, 0.1 * cost, add_to_rows, &w);
        wf_parallel(w.rows / w.height * ((w.width + STRIP - 1) / STRIP), 0.5 * cost, add_to_columns, &w);
        divide_by_means(&w, eps1);
    }
    wf_parallel_ranges(w.rows, w.grain, 2 * cost, sum_squares, &w);
    const double size = fmax(opt->adafactor.eps2, root_mean(w.of_values, blocks, u->count));
    const double excess = root_mean(w.of_updates, blocks, u->count) / opt->adafactor.threshold;
    w.keep = (wf_real)(1 - u->lr * u->weight_decay);
    w.rate = (wf_real)(size * fmin(u->lr, u->factor[1]) / fmax(1, excess));
    wf_parallel_ranges(w.rows, w.grain, 2 * cost, move, &w);
}

const struct wf_optimizer_rule wf_adafactor_rule = {.abi = WF_OPTIMIZER_RULE_ABI,
                                                    .name = "adafactor",
                                                    .slab = slabs,
                                                    .scales = true,
                                                    .whole = true,
                                                    .check = check,
                                                    .factors = factors,
                                                    .step = step,
                                                    .slab_shape = slab_shape,
                                                    .workspace = workspace};

struct wf_adafactor_options wf_adafactor_defaults(void)
{
    return (struct wf_adafactor_options){WF_ADAFACTOR_DEFAULTS};
}

wf_status wf_adafactor_init_with(struct wf_optimizer *opt, wf_registry *registry, const struct wf_adafactor_options *o, wf_error *error)
{
    if (wf_needs(error, "opt, registry, options", opt, registry, o))
        return WF_ERR_ARGUMENT;
    *opt = (struct wf_optimizer){.lr = o->lr,
                                 .adafactor = {.beta2_decay = o->beta2_decay, .eps1 = o->eps1, .eps2 = o->eps2, .threshold = o->threshold},
                                 .weight_decay = o->weight_decay,
                                 .rule = &wf_adafactor_rule};
    return optimizer_begin(opt, registry, error);
}
