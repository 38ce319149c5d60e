/* SPDX-License-Identifier: MIT */
/* Variance, standard deviation and norms, over a dimension or over all elements. The elements of one result are a line: a contiguous row
 * [n]. Each line is reduced in blocks of CHUNK elements, whose partial results are doubles. */
#include <math.h>

#include "common.h"

enum kind { VAR, STD, NORM };
struct moment {
    int dim;
    bool keep; /* keep the dimension, with size 1 */
    bool all;  /* over all elements, to a scalar; then dim and keep are not read */
    enum kind kind;
    int correction; /* of VAR and STD: the sum of squares is divided by n - correction */
    double p;       /* of NORM */
};

static const char *name_of(const void *attr)
{
    static const char *const names[][2] = {{"var_dim", "var"}, {"std_dim", "std"}, {"norm_dim", "norm"}};
    const struct moment *a = attr;
    return names[a->kind][a->all];
}

static wf_status moment_shape(wf_call *c)
{
    const struct moment *a = c->attr;
    const wf_status status = wf_reduction_shape(c, a->all, a->dim, a->keep);
    if (status != WF_OK)
        return status;
    if (a->kind == NORM && !(a->p > 0))
        return wf_call_fail(c, WF_ERR_ARGUMENT, "p = %g must be greater than 0; INFINITY gives the greatest magnitude", a->p);
    if (a->kind != NORM && a->correction != 0 && a->correction != 1)
        return wf_call_fail(c, WF_ERR_ARGUMENT, "the correction is %d, but must be 0 or 1", a->correction);
    if (wf_reduction_terms(c, a->all, a->dim) == 0 && a->kind == NORM && isinf(a->p))
        return wf_call_fail(c, WF_ERR_SHAPE, "nothing has no greatest magnitude");
    wf_shape lines = wf_array_shape(&c->out[0]);
    if (a->kind != NORM)
        c->saved[0] = wf_call_shape(WF_F64, &lines); /* the means */
    return WF_OK;
}

/* The operand as contiguous lines [rows, n]. */
struct lines {
    int64_t rows, n, chunks; /* chunks of each line */
    const wf_real *x;
};
enum { CHUNK = 8192, PIECE = 1024 };

static bool lines_of(wf_call *c, struct lines *l)
{
    const struct moment *a = c->attr;
    const int dim = a->all ? 0 : wf_want_dim(c, 0, a->dim);
    const wf_array last = a->all ? c->in[0] : wf_dim_last(c->in[0], dim), x = wf_call_contiguous(c, &last);
    l->x = x.data;
    l->n = wf_reduction_terms(c, a->all, dim);
    l->rows = wf_array_count(&c->out[0]);
    l->chunks = (l->n + CHUNK - 1) / CHUNK;
    return x.data || l->n == 0;
}

/* One pass over all lines: partial[row][chunk] = a sum, or the maximum, of f(x). */
struct pass {
    struct lines l;
    enum { SUM, SQUARES, MAGNITUDES, POWERS, GREATEST } f;
    double p;           /* of POWERS */
    const double *mean; /* [rows]: of SQUARES, subtracted from x; may be NULL */
    double *partial;    /* [rows, chunks] */
};

static double piece_of(const struct pass *p, int64_t row, int64_t n, const wf_real *x)
{
    wf_real y[PIECE];
    if (p->f == SUM)
        return wf_kernel->sum(n, x);
    if (p->f == SQUARES && !p->mean)
        return wf_kernel->sum_squares(n, x);
    if (p->f == SQUARES) {
        wf_kernel->affine(n, 1, (wf_real)-p->mean[row], x, y);
        return wf_kernel->sum_squares(n, y);
    }
    wf_kernel->internal->abs(NULL, n, &x, y);
    if (p->f == GREATEST)
        return (double)wf_kernel->max(n, y);
    if (p->f == POWERS)
        wf_kernel->internal->pow_constant(&(wf_real){(wf_real)p->p}, n, (const wf_real *const[]){y}, y);
    return wf_kernel->sum(n, y);
}

static double greater(double a, double b)
{
    return a != a || a > b ? a : b;
}

static void pass_body(void *ctx, int64_t begin, int64_t end)
{
    const struct pass *p = ctx;
    for (int64_t block = begin; block < end; block++) {
        const int64_t row = block / p->l.chunks, first = block % p->l.chunks * CHUNK, last = WF_MIN(first + CHUNK, p->l.n);
        double sum = 0;
        for (int64_t i = first; i < last; i += PIECE) {
            const double part = piece_of(p, row, WF_MIN(last - i, PIECE), p->l.x + row * p->l.n + i);
            sum = p->f == GREATEST ? greater(sum, part) : sum + part;
        }
        p->partial[block] = sum;
    }
}

/* Runs a pass and reduces the chunks of each line to y[row]. */
static void run_pass(struct pass *p, double cost, double *y)
{
    const int64_t grain = WF_MAX(1, CHUNK / WF_MAX(p->l.n, 1)), blocks = p->l.rows * p->l.chunks;
    wf_parallel_ranges(blocks, grain, cost * (double)p->l.n * (double)p->l.rows + 5.0 * (double)blocks, pass_body, p);
    for (int64_t row = 0; row < p->l.rows; row++) {
        y[row] = 0;
        for (int64_t k = 0; k < p->l.chunks; k++) {
            const double part = p->partial[row * p->l.chunks + k];
            y[row] = p->f == GREATEST ? greater(y[row], part) : y[row] + part;
        }
    }
}

/* The sum of squares of x - mean is computed with the mean m rounded to wf_real. It is then too large by n (mean - m)^2. */
static void variances(wf_call *c, struct pass *p, double *mean, double *sum)
{
    const struct moment *a = c->attr;
    const double n = (double)p->l.n, degrees = WF_MAX(n - a->correction, 0);
    p->f = SUM;
    run_pass(p, 0.1, mean);
    for (int64_t row = 0; row < p->l.rows; row++)
        mean[row] /= n;
    p->f = SQUARES;
    p->mean = mean;
    run_pass(p, 0.2, sum);
    for (int64_t row = 0; row < p->l.rows; row++) {
        const double m = (double)(wf_real)mean[row], v = (sum[row] - n * (mean[row] - m) * (mean[row] - m)) / degrees;
        sum[row] = v < 0 ? 0 : v;
    }
}

static wf_status moment_forward(wf_call *c)
{
    const struct moment *a = c->attr;
    struct pass p = {.p = a->p};
    if (!lines_of(c, &p.l))
        return WF_ERR_MEMORY;
    const wf_shape rows = {1, {p.l.rows}}, blocks = {1, {WF_MAX(p.l.rows * p.l.chunks, 1)}};
    double *sum = wf_call_temp(c, WF_F64, &rows).data, *mean = c->grad && a->kind != NORM ? c->saved[0].data : NULL;
    p.partial = wf_call_temp(c, WF_F64, &blocks).data;
    if (!mean)
        mean = wf_call_temp(c, WF_F64, &rows).data;
    if (!sum || !mean || !p.partial)
        return WF_ERR_MEMORY;
    wf_real *y = c->out[0].data;
    if (a->kind != NORM) {
        variances(c, &p, mean, sum);
    } else {
        p.f = isinf(a->p) ? GREATEST : a->p == 1 ? MAGNITUDES : a->p == 2 ? SQUARES : POWERS;
        run_pass(&p, p.f == POWERS ? 1.4 : 0.2, sum);
    }
    for (int64_t row = 0; row < p.l.rows; row++) {
        const bool root = a->kind == STD || (a->kind == NORM && p.f == SQUARES);
        y[row] = (wf_real)(root ? sqrt(sum[row]) : p.f == POWERS ? pow(sum[row], 1 / a->p) : sum[row]);
    }
    return WF_OK;
}

/* --- backward ---------------------------------------------------------------------------------------------------------
 *
 * With d = n - correction and the mean m, for an element x of the line whose result is y:
 *   var: dx = 2 (x - m) dy / d;   std: dx = (x - m) dy / (y d), or 0 if y = 0
 *   norm: dx = sign(x) (|x| / y)^(p-1) dy, or 0 if y = 0. For p = INFINITY the elements with |x| = y share dy equally. */

struct gradients {
    const struct moment *a;
    struct lines l;
    const wf_real *y, *dy; /* [rows] */
    const double *mean;    /* [rows]; of VAR and STD */
    const double *ties;    /* [rows]; for p = INFINITY: how many elements have the greatest magnitude */
    wf_real *dx;           /* [rows, n] */
};

static void moment_piece(const struct gradients *g, int64_t row, int64_t n, const wf_real *x, wf_real *dx)
{
    const double dy = (double)g->dy[row], y = (double)g->y[row], d = (double)WF_MAX(g->l.n - g->a->correction, 0), mean = g->mean[row];
    const double scale = g->a->kind == VAR ? 2 * dy / d : y == 0 ? 0 : dy / (y * d);
    for (int64_t i = 0; i < n; i++)
        dx[i] = (wf_real)(scale * ((double)x[i] - mean));
}

static void norm_piece(const struct gradients *g, int64_t row, int64_t n, const wf_real *x, wf_real *dx)
{
    const wf_real dy = g->dy[row], y = g->y[row];
    const double p = g->a->p;
    if (isinf(p)) {
        const wf_real share = (wf_real)((double)dy / WF_MAX(g->ties[row], 1));
        for (int64_t i = 0; i < n; i++)
            dx[i] = x[i] == 0 ? 0 : x[i] == y ? share : x[i] == -y ? -share : 0;
    } else if (y == 0) {
        wf_kernel->fill(n, 0, dx);
    } else if (p == 2) {
        const double scale = (double)dy / (double)y;
        for (int64_t i = 0; i < n; i++)
            dx[i] = (wf_real)(scale * (double)x[i]);
    } else if (p == 1) {
        wf_kernel->internal->sign(NULL, n, &x, dx);
        wf_kernel->affine(n, dy, 0, dx, dx);
    } else {
        wf_kernel->internal->abs(NULL, n, &x, dx);
        wf_kernel->div(n, dx, 1, &y, 0, dx);
        wf_kernel->internal->pow_constant(&(wf_real){(wf_real)(p - 1)}, n, (const wf_real *const[]){dx}, dx);
        const wf_real at_zero =
            p < 1 || y != y ? y : 1; /* 0^(p-1) is infinite for p < 1: as in PyTorch 0 y^(1-p) counts, NaN for y = inf */
        for (int64_t i = 0; i < n; i++)
            dx[i] = dy * (x[i] > 0 ? dx[i] : x[i] < 0 ? -dx[i] : x[i] * at_zero);
    }
}

static void gradients_body(void *ctx, int64_t begin, int64_t end)
{
    const struct gradients *g = ctx;
    for (int64_t block = begin; block < end; block++) {
        const int64_t row = block / g->l.chunks, first = block % g->l.chunks * CHUNK, at = row * g->l.n + first;
        (g->a->kind == NORM ? norm_piece : moment_piece)(g, row, WF_MIN(CHUNK, g->l.n - first), g->l.x + at, g->dx + at);
    }
}

static bool count_ties(wf_call *c, struct gradients *g)
{
    const wf_shape rows = {1, {g->l.rows}};
    double *ties = wf_call_temp(c, WF_F64, &rows).data;
    for (int64_t row = 0; ties && row < g->l.rows; row++) {
        const wf_real *x = g->l.x + row * g->l.n, y = g->y[row];
        int64_t count = 0;
        for (int64_t i = 0; i < g->l.n; i++)
            count += x[i] == y || x[i] == -y;
        ties[row] = (double)count;
    }
    g->ties = ties;
    return ties != NULL;
}

static wf_status moment_backward(wf_call *c)
{
    const struct moment *a = c->attr;
    const wf_array last = a->all ? c->in[0] : wf_dim_last(c->in[0], wf_want_dim(c, 0, a->dim));
    const wf_shape shape = wf_array_shape(&last);
    const wf_array dy = wf_call_contiguous(c, &c->dout[0]);
    wf_array dx = wf_call_temp(c, WF_REAL, &shape);
    struct gradients g = {.a = a, .y = c->out[0].data, .dy = dy.data, .mean = c->saved[0].data, .dx = dx.data};
    if (!dy.data || !dx.data || !lines_of(c, &g.l))
        return WF_ERR_MEMORY;
    if (a->kind == NORM && isinf(a->p) && !count_ties(c, &g))
        return WF_ERR_MEMORY;
    const int64_t blocks = g.l.rows * g.l.chunks, grain = WF_MAX(1, CHUNK / WF_MAX(g.l.n, 1));
    const double each = a->kind == NORM && a->p != 1 && a->p != 2 && !isinf(a->p) ? 1.5 : 0.4;
    wf_parallel_ranges(blocks, grain, each * (double)wf_array_count(&dx), gradients_body, &g);
    const wf_array back = a->all ? dx : wf_dim_back(dx, wf_want_dim(c, 0, a->dim));
    wf_grad_give(c, 0, &back);
    return WF_OK;
}

/* A tensor in the shape of y, with the dimension of size 1 that y may lack, so that it broadcasts to x. */
static wf_tensor *kept(const wf_gradient_call *c, wf_tensor *y)
{
    const struct moment *a = c->attr;
    return a->all || a->keep ? y : wf_unsqueeze(y, a->dim < 0 ? a->dim + wf_ndim(c->x[0]) : a->dim);
}

/* a / y^p, or 0 where y is 0. There y counts as 1, so that the gradient of this is 0 too. */
static wf_tensor *divided(wf_tensor *a, wf_tensor *y, double p)
{
    wf_tensor *zero = wf_eq_constant(y, 0);
    return wf_masked_fill(wf_div(a, wf_pow_constant(wf_masked_fill(y, zero, 1), p)), zero, 0);
}

static void moment_gradient(const wf_gradient_call *c)
{
    const struct moment *a = c->attr;
    wf_tensor *x = c->x[0], *y = kept(c, c->y[0]), *dy = kept(c, c->dy[0]);
    const wf_shape shape = wf_shape_of(x);
    const int64_t n = a->all ? wf_shape_count(&shape) : wf_dim(x, a->dim);
    wf_tensor *from_mean = wf_subtract(x, a->all ? wf_mean(x) : wf_mean_dim(x, a->dim, true));
    if (a->kind == STD)
        dy = divided(wf_scale(dy, 0.5), y, 1);
    c->dx[0] = wf_mul(from_mean, wf_scale(dy, 2 / (double)WF_MAX(n - a->correction, 0)));
}

static wf_tensor *greatest_gradient(const wf_gradient_call *c, wf_tensor *size, wf_tensor *y, wf_tensor *dy)
{
    const struct moment *a = c->attr;
    wf_tensor *taken = wf_to_real(wf_eq(size, y)), *ties = a->all ? wf_sum(taken) : wf_sum_dim(taken, a->dim, true);
    return wf_mul(wf_mul(wf_sign(c->x[0]), taken), wf_div(dy, wf_maximum(ties, wf_full(c->tape, &(wf_shape){0}, 1))));
}

/* As in PyTorch, the second derivative of the length (p = 2) is NaN where it is 0. */
static void norm_gradient(const wf_gradient_call *c)
{
    const double p = ((const struct moment *)c->attr)->p;
    wf_tensor *x = c->x[0], *y = kept(c, c->y[0]), *dy = kept(c, c->dy[0]);
    if (p == 1) {
        c->dx[0] = wf_mul(wf_sign(x), dy);
    } else if (p == 2) {
        c->dx[0] = wf_mul(dy, wf_masked_fill(wf_div(x, y), wf_eq_constant(y, 0), 0));
    } else if (isinf(p)) {
        c->dx[0] = greatest_gradient(c, wf_abs(x), y, dy);
    } else {
        wf_tensor *power = p > 2 ? wf_mul(x, wf_pow_constant(wf_abs(x), p - 2)) : wf_mul(wf_sign(x), wf_pow_constant(wf_abs(x), p - 1));
        if (p < 1)
            power = wf_masked_fill(power, wf_eq_constant(x, 0), 0);
        c->dx[0] = wf_mul(power, divided(dy, y, p - 1));
    }
}

#define OVER(...) ATTR(struct moment, __VA_ARGS__)
#define MOMENT(op, derivative, ...)                                                                                                        \
    const wf_op wf_op_##op = {.name = #op,                                                                                                 \
                              .name_of = name_of,                                                                                          \
                              .attr_size = sizeof(struct moment),                                                                          \
                              .reads = WF_READS_INPUT(0) | WF_READS_OUTPUT(0),                                                             \
                              .shape = moment_shape,                                                                                       \
                              .forward = moment_forward,                                                                                   \
                              .backward = moment_backward,                                                                                 \
                              .gradient = derivative,                                                                                      \
                              .cases = WF_CASES(__VA_ARGS__)};
#define MOMENT_CASES(kind)                                                                                                                 \
    {"last", {{3, 5}}, OVER(-1, false, false, kind, 1)}, {"first", {{5, 3}}, OVER(0, false, false, kind, 0)},                              \
        {"middle, kept", {{2, 4, 5}}, OVER(1, true, false, kind, 1)}, {"size 1", {{3, 1, 2}}, OVER(1, false, false, kind, 0)},             \
        {"vector", {{7}}, OVER(0, false, false, kind, 1)}, {"all", {{3, 5}}, OVER(0, false, true, kind, 1)},                               \
        {"all, without correction", {{2, 3, 2}}, OVER(0, false, true, kind, 0)}, {"empty", {{-1, 3}}, OVER(1, false, false, kind, 1)},     \
    {                                                                                                                                      \
        "many chunks", {{90, 110}}, OVER(0, false, true, kind, 1)                                                                          \
    }
MOMENT(var, moment_gradient, MOMENT_CASES(VAR))
MOMENT(std, moment_gradient, MOMENT_CASES(STD))

#define P(...) {WF_FILL_APART}, OVER(__VA_ARGS__)
#define NORM_CASES(n) .kind = NORM, .p = n
MOMENT(norm, norm_gradient, {"length of rows", {{3, 5}}, P(-1, NORM_CASES(2))},
       {"length of columns, kept", {{5, 3}}, P(0, true, NORM_CASES(2))}, {"length of all", {{2, 3, 4}}, P(.all = true, NORM_CASES(2))},
       {"magnitudes", {{2, 4, 3}}, P(1, NORM_CASES(1))}, {"magnitudes of all", {{3, 5}}, P(.all = true, NORM_CASES(1))},
       {"greatest", {{3, 5}}, {WF_FILL_NORMAL}, OVER(1, NORM_CASES(INFINITY))},
       {"greatest of all", {{3, 5}}, P(.all = true, NORM_CASES(INFINITY))}, {"cubes", {{4, 7}}, P(1, NORM_CASES(3))},
       {"half", {{3, 5}}, P(1, NORM_CASES(0.5))}, {"one and a half", {{3, 5}}, P(0, NORM_CASES(1.5))},
       {"empty", {{-1, 3}}, P(1, NORM_CASES(2))}, {"of nothing", {{3, -1}}, P(1, NORM_CASES(2))},
       {"scalar", {{-2}}, P(.all = true, NORM_CASES(2))},
       {"many chunks", {{90, 110}}, {WF_FILL_POSITIVE}, OVER(.all = true, NORM_CASES(2))})

static wf_tensor *moment(const wf_op *op, wf_tensor *x, struct moment a)
{
    return wf_apply(op, &a, 1, &x);
}

wf_tensor *wf_var_dim(wf_tensor *x, int dim, bool keep, int correction)
{
    return moment(&wf_op_var, x, (struct moment){.dim = dim, .keep = keep, .kind = VAR, .correction = correction});
}

wf_tensor *wf_var(wf_tensor *x, int correction)
{
    return moment(&wf_op_var, x, (struct moment){.all = true, .kind = VAR, .correction = correction});
}

wf_tensor *wf_std_dim(wf_tensor *x, int dim, bool keep, int correction)
{
    return moment(&wf_op_std, x, (struct moment){.dim = dim, .keep = keep, .kind = STD, .correction = correction});
}

wf_tensor *wf_std(wf_tensor *x, int correction)
{
    return moment(&wf_op_std, x, (struct moment){.all = true, .kind = STD, .correction = correction});
}

wf_tensor *wf_norm_dim(wf_tensor *x, double p, int dim, bool keep)
{
    return moment(&wf_op_norm, x, (struct moment){.dim = dim, .keep = keep, .kind = NORM, .p = p});
}

wf_tensor *wf_norm(wf_tensor *x, double p)
{
    return moment(&wf_op_norm, x, (struct moment){.all = true, .kind = NORM, .p = p});
}
