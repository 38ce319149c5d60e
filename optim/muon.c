/* SPDX-License-Identifier: MIT */
/* The rule of Muon, and its init. */
#include <math.h>
#include <string.h>

#include <weft/compute.h>
#include <weft/internal/minmax.h>
#include <weft/internal/needs.h>

#include "internal.h"

enum { MOMENTUM, M, V, BLOCK = 8192 };
static const char *const slabs[] = {"momentum", "m", "v", NULL};

static wf_status check(void *ctx, const struct wf_optimizer *opt, wf_error *error)
{
    (void)ctx;
    const struct range range[] = {{"momentum", opt->muon.momentum, 1},
                                  {"beta1", opt->muon.beta1, 1},
                                  {"beta2", opt->muon.beta2, 1},
                                  {"eps", opt->muon.eps, INFINITY},
                                  {"adam_eps", opt->muon.adam_eps, INFINITY},
                                  {"adam_lr_scale", opt->muon.adam_lr_scale, INFINITY},
                                  {"iterations", (double)opt->muon.iterations, 100}};
    for (int i = 0; i < 3; i++)
        if (!isfinite(opt->muon.coefficient[i]))
            return wf_error_set(error, WF_ERR_ARGUMENT, "coefficient[%d] = %g is not finite", i, opt->muon.coefficient[i]);
    if ((unsigned)opt->muon.adjust > WF_MUON_PLAIN)
        return wf_error_set(error, WF_ERR_ARGUMENT, "adjust = %d is not an enum wf_muon_adjust", (int)opt->muon.adjust);
    return check_ranges(range, sizeof range / sizeof *range, error);
}

static bool is_whole(void *ctx, const wf_tensor *parameter)
{
    (void)ctx;
    return wf_ndim(parameter) == 2 && !wf_parameter_info(parameter)->table;
}

static bool slab_shape(void *ctx, const wf_tensor *parameter, int slab, wf_shape *shape)
{
    (void)shape;
    return is_whole(ctx, parameter) == (slab == MOMENTUM);
}

static void factors(void *ctx, const struct wf_optimizer *opt, int64_t updates, double factor[])
{
    (void)ctx;
    adam_factors(opt->muon.beta1, opt->muon.beta2, updates, factor);
}

/* --- Newton-Schulz -------------------------------------------------------------------------------------------------- */

struct work {
    const struct wf_update *u;
    int64_t rows, columns, small; /* small: the smaller of the two */
    double *sum;                  /* [blocks]: sums of squares */
    wf_real *x, *other;           /* [rows, columns] */
    wf_real *square, *polynomial; /* [small, small] */
    wf_real inverse, keep, rate;
};

static int64_t sums_of(int64_t count)
{
    return (count + BLOCK - 1) / BLOCK * (int64_t)(sizeof(double) / sizeof(wf_real));
}

static int64_t workspace(void *ctx, const wf_tensor *parameter)
{
    (void)ctx;
    const int64_t rows = wf_dim(parameter, 0), columns = wf_dim(parameter, 1), small = WF_MIN(rows, columns);
    return sums_of(rows * columns) + 2 * rows * columns + 2 * small * small;
}

/* b += (1 - momentum) (g - b), and x = the direction before it is made orthogonal. */
static void gather_momentum(void *ctx, int64_t begin, int64_t end)
{
    const struct work *w = ctx;
    const struct wf_optimizer *opt = w->u->optimizer;
    const wf_real share = (wf_real)(1 - opt->muon.momentum), scale = w->u->scale;
    wf_real *b = w->u->slab[MOMENTUM], *x = w->x;
    for (int64_t i = begin; i < end; i++) {
        const wf_real g = scale * w->u->gradient[i];
        b[i] += share * (g - b[i]);
        x[i] = opt->muon.nesterov ? b[i] + share * (g - b[i]) : b[i];
    }
    w->sum[begin / BLOCK] = wf_kernel->sum_squares(end - begin, x + begin);
}

static void normalize(void *ctx, int64_t begin, int64_t end)
{
    const struct work *w = ctx;
    wf_kernel->mul(end - begin, w->x + begin, 1, &w->inverse, 0, w->x + begin);
}

static void move(void *ctx, int64_t begin, int64_t end)
{
    const struct work *w = ctx;
    wf_real *p = w->u->value;
    for (int64_t i = begin; i < end; i++)
        p[i] = w->keep * p[i] - w->rate * w->x[i];
}

enum { PANEL = 128, TILE = 32 /* divides PANEL */ };

/* c = alpha x x^T + beta c for a symmetric c [n,n] and x [n,k] with the strides rs and cs. Only the panels above the diagonal are computed,
 * about half of the product; the rest is copied. */
static wf_status gram(int64_t n, int64_t k, double alpha, const wf_real *x, int64_t rs, int64_t cs, double beta, wf_real *c)
{
    wf_status status = WF_OK;
    for (int64_t i = 0; i < n && status == WF_OK; i += PANEL) {
        const struct wf_gemm g = {.m = WF_MIN(PANEL, n - i),
                                  .n = n - i,
                                  .k = k,
                                  .alpha = (wf_real)alpha,
                                  .beta = (wf_real)beta,
                                  .a = x + i * rs,
                                  .a_rs = rs,
                                  .a_cs = cs,
                                  .b = x + i * rs,
                                  .b_rs = cs,
                                  .b_cs = rs,
                                  .c = c + i * n + i,
                                  .c_rs = n,
                                  .c_cs = 1};
        status = wf_gemm(&g);
    }
    for (int64_t row = PANEL; row < n; row += TILE)
        for (int64_t column = 0; column < row / PANEL * PANEL; column += TILE)
            for (int64_t i = row; i < WF_MIN(row + TILE, n); i++)
                for (int64_t j = column; j < column + TILE; j++)
                    c[i * n + j] = c[j * n + i];
    return status;
}

/* x = (c[0] I + c[1] A + c[2] A A) x with A = x x^T; if x has more rows than columns, x = x (...) with A = x^T x. */
static wf_status iterate(struct work *w, const double c[3])
{
    const int64_t n = w->small, columns = w->columns;
    const bool tall = w->rows > w->columns;
    wf_status status = gram(n, tall ? w->rows : columns, 1, w->x, tall ? 1 : columns, tall ? columns : 1, 0, w->square);
    if (status != WF_OK)
        return status;
    memcpy(w->polynomial, w->square, (size_t)(n * n) * sizeof *w->square);
    status = gram(n, n, c[2], w->square, n, 1, c[1], w->polynomial);
    for (int64_t i = 0; i < n; i++)
        w->polynomial[i * n + i] += (wf_real)c[0];
    const struct wf_gemm product = {.m = w->rows,
                                    .n = columns,
                                    .k = n,
                                    .alpha = 1,
                                    .a = tall ? w->x : w->polynomial,
                                    .a_rs = tall ? columns : n,
                                    .a_cs = 1,
                                    .b = tall ? w->polynomial : w->x,
                                    .b_rs = tall ? n : columns,
                                    .b_cs = 1,
                                    .c = w->other,
                                    .c_rs = columns,
                                    .c_cs = 1};
    status = status == WF_OK ? wf_gemm(&product) : status;
    wf_real *result = w->other;
    w->other = w->x;
    w->x = result;
    return status;
}

static double adjustment(const struct wf_optimizer *opt, int64_t rows, int64_t columns)
{
    if (opt->muon.adjust == WF_MUON_MATCH_RMS_ADAMW)
        return 0.2 * sqrt((double)WF_MAX(rows, columns));
    return opt->muon.adjust == WF_MUON_ORIGINAL ? sqrt(fmax(1, (double)rows / (double)columns)) : 1;
}

static void step_matrix(const struct wf_update *u)
{
    const struct wf_optimizer *opt = u->optimizer;
    struct work w = {.u = u, .rows = wf_dim(u->parameter, 0), .columns = wf_dim(u->parameter, 1), .sum = (double *)(void *)u->workspace};
    double sum = 0;
    w.small = WF_MIN(w.rows, w.columns);
    w.x = u->workspace + sums_of(u->count);
    w.other = w.x + u->count;
    w.square = w.other + u->count;
    w.polynomial = w.square + w.small * w.small;
    wf_parallel_ranges(u->count, BLOCK, 0.5 * (double)u->count, gather_momentum, &w);
    for (int64_t i = 0; i < (u->count + BLOCK - 1) / BLOCK; i++)
        sum += w.sum[i];
    w.inverse = (wf_real)(1 / fmax(sqrt(sum), fmax(opt->muon.eps, 1e-30))); /* 0 / 0 would make a NaN of a zero gradient */
    wf_parallel_ranges(u->count, BLOCK, 0.2 * (double)u->count, normalize, &w);
    for (int64_t i = 0; i < opt->muon.iterations; i++)
        if (iterate(&w, opt->muon.coefficient) != WF_OK) {
            wf_error_set(u->error, WF_ERR_MEMORY, "no memory for the products of '%s%s' [%lld,%lld]", u->prefix, u->name, (long long)w.rows,
                         (long long)w.columns);
            return;
        }
    w.keep = (wf_real)(1 - u->lr * u->weight_decay);
    w.rate = (wf_real)(u->lr * adjustment(opt, w.rows, w.columns));
    wf_parallel_ranges(u->count, BLOCK, 0.3 * (double)u->count, move, &w);
}

/* --- the rule ------------------------------------------------------------------------------------------------------- */

static void step(void *ctx, const struct wf_update *u)
{
    (void)ctx;
    const struct wf_optimizer *opt = u->optimizer;
    if (u->whole)
        step_matrix(u);
    else
        adam_step(u, u->slab[M], u->slab[V], opt->muon.beta1, opt->muon.beta2, opt->muon.adam_eps, u->lr * opt->muon.adam_lr_scale, true);
}

const struct wf_optimizer_rule wf_muon_rule = {.abi = WF_OPTIMIZER_RULE_ABI,
                                               .name = "muon",
                                               .slab = slabs,
                                               .scales = true,
                                               .check = check,
                                               .factors = factors,
                                               .step = step,
                                               .is_whole = is_whole,
                                               .slab_shape = slab_shape,
                                               .workspace = workspace};

struct wf_muon_options wf_muon_defaults(void)
{
    return (struct wf_muon_options){WF_MUON_DEFAULTS};
}

wf_status wf_muon_init_with(struct wf_optimizer *opt, wf_registry *registry, const struct wf_muon_options *o, wf_error *error)
{
    if (wf_needs(error, "opt, registry, options", opt, registry, o))
        return WF_ERR_ARGUMENT;
    *opt = (struct wf_optimizer){.lr = o->lr,
                                 .muon = {.momentum = o->momentum,
                                          .coefficient = {o->coefficient[0], o->coefficient[1], o->coefficient[2]},
                                          .eps = o->eps,
                                          .beta1 = o->beta1,
                                          .beta2 = o->beta2,
                                          .adam_eps = o->adam_eps,
                                          .adam_lr_scale = o->adam_lr_scale,
                                          .iterations = o->iterations,
                                          .adjust = o->adjust,
                                          .nesterov = o->nesterov},
                                 .weight_decay = o->weight_decay,
                                 .rule = &wf_muon_rule};
    return optimizer_begin(opt, registry, error);
}
