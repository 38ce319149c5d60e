/* SPDX-License-Identifier: MIT */
/* The kernels over rows (softmax, cross-entropy, norms, dropout) and Adam, against long double references. Gradients are
 * also held against central differences of the references. */
#include "kernels_common.h"

#include <weft/random.h>

enum { MOST = 1100, ROWS = 3 };

static const int64_t widths[] = {0,  1,  2,  3,  4,  5,   7,   8,   9,   15,  16,  17,  31,   32,   33,
                                 47, 63, 64, 65, 70, 100, 128, 200, 256, 384, 512, 768, 1024, 1100, -1};
#define EACH_WIDTH(d) for (int64_t w = 0, d; (d = widths[w]) >= 0; w++)

static wf_real x[ROWS * MOST], dy[ROWS * MOST], y[ROWS * MOST + 1], dx[ROWS * MOST + 1], gain[MOST], bias[MOST], alone[MOST];

static void fill_inputs(void)
{
    numbers(x, ROWS * MOST, 21, -3, 4);
    numbers(dy, ROWS * MOST, 22, -1, 1);
    numbers(gain, MOST, 23, 0.5, 1.5);
    numbers(bias, MOST, 24, -1, 1);
}

/* Whether all are v, any NaN if that is one. */
static bool are_all(const wf_real *of, int64_t n, wf_real v)
{
    while (n > 0 && same_numbers(&of[n - 1], &v, 1))
        n--;
    return n == 0;
}

/* Fourth-order central difference of f(ctx) by a number that f reads. */
static ld difference(ld *at, ld (*f)(void *), void *ctx)
{
    const ld h = 0x1p-11L, kept = *at;
    ld sum = 0;
    static const int step[] = {1, -1, 2, -2}, weight[] = {8, -8, -1, 1};
    for (int i = 0; i < 4; i++) {
        *at = kept + step[i] * h;
        sum += weight[i] * f(ctx);
    }
    *at = kept;
    return sum / (12 * h);
}

static void ref_softmax(int64_t d, const ld *in, ld *out)
{
    ld top = -INFINITY, sum = 0;
    for (int64_t j = 0; j < d; j++)
        top = in[j] > top ? in[j] : top;
    for (int64_t j = 0; j < d; j++)
        sum += out[j] = expl(in[j] - top);
    for (int64_t j = 0; j < d; j++)
        out[j] /= sum;
}

START_TEST(softmax)
{
    static ld in[MOST], out[MOST];
    fill_inputs();
    EACH_ISA
    {
        EACH_WIDTH(d)
        {
            y[ROWS * d] = 77;
            wf_kernel->softmax(ROWS, d, x, y);
            ck_assert(y[ROWS * d] == 77);
            wf_kernel->softmax_grad(ROWS, d, y, dy, dx);
            for (int64_t i = 0; i < ROWS; i++) {
                for (int64_t j = 0; j < d; j++)
                    in[j] = (ld)x[i * d + j];
                ref_softmax(d, in, out);
                ld dot = 0;
                for (int64_t j = 0; j < d; j++) {
                    ck_assert(distance(y[i * d + j], out[j], 0) <= 14); /* x - max is rounded: up to 7 EPS in the exponent */
                    dot += (ld)y[i * d + j] * (ld)dy[i * d + j];
                }
                for (int64_t j = 0; j < d; j++)
                    ck_assert(fabsl((ld)dx[i * d + j] - (ld)y[i * d + j] * ((ld)dy[i * d + j] - dot)) <= 6 * EPS * (ld)y[i * d + j]);
                wf_kernel->softmax(1, d, x + i * d, alone);
                ck_assert(same_bits(alone, y + i * d, d));
            }
            memcpy(alone, x, (size_t)d * sizeof *x);
            wf_kernel->softmax(1, d, alone, alone);
            ck_assert(same_bits(alone, y, d));
            memcpy(alone, dy, (size_t)d * sizeof *x);
            wf_kernel->softmax_grad(1, d, y, alone, alone);
            ck_assert(same_bits(alone, dx, d));
        }
    }
}
END_TEST

START_TEST(softmax_specials)
{
    EACH_ISA
    {
        EACH_WIDTH(d)
        {
            for (int64_t at = 0; at < d; at += 1 + d / 5) {
                wf_kernel->fill(d, (wf_real)-INFINITY, x);
                wf_kernel->softmax(1, d, x, y);
                ck_assert(are_all(y, d, 0));
                x[at] = (wf_real)-1e4;
                wf_kernel->softmax(1, d, x, y);
                for (int64_t j = 0; j < d; j++)
                    ck_assert(y[j] == (j == at));
                x[at] = (wf_real)NAN;
                wf_kernel->softmax(1, d, x, y);
                ck_assert(are_all(y, d, (wf_real)NAN));
                wf_kernel->fill(d, HUGEST, x);
                wf_kernel->softmax(1, d, x, y);
                for (int64_t j = 0; j < d; j++)
                    ck_assert(distance(y[j], 1 / (ld)d, 0) <= 2);
                x[at] = (wf_real)NAN;
                wf_kernel->softmax(1, d, x, y);
                ck_assert(are_all(y, d, (wf_real)NAN));
            }
        }
    }
}
END_TEST

struct cross {
    int64_t v;
    int32_t target;
    ld smoothing, logits[MOST];
};

static ld ref_cross(void *ctx)
{
    const struct cross *c = ctx;
    ld sum = 0, mean = 0;
    for (int64_t j = 0; j < c->v; j++) {
        sum += expl(c->logits[j]);
        mean += c->logits[j] / (ld)c->v;
    }
    return logl(sum) - (1 - c->smoothing) * c->logits[c->target] - c->smoothing * mean;
}

START_TEST(cross_entropy)
{
    static struct cross c;
    const wf_real scale = (wf_real)0.37;
    const double bound = sizeof(wf_real) == 4 ? 12 * EPS : 60 * EPS; /* the loss is in double in both, and about 8 */
    fill_inputs();
    EACH_ISA
    {
        EACH_WIDTH(v)
        {
            if (v == 0)
                continue;
            for (int e = 0; e < 2; e++) {
                wf_real smoothing = e ? (wf_real)0.1 : 0;
                int32_t target[ROWS] = {(int32_t)(v - 1), -5, (int32_t)(v / 2)};
                double loss[ROWS], smoothed[ROWS], plain[ROWS];
                dx[ROWS * v] = 77;
                wf_kernel->cross_entropy(ROWS, v, x, target, -5, smoothing, scale, loss, smoothed, dx);
                ck_assert(dx[ROWS * v] == 77);
                wf_kernel->cross_entropy(ROWS, v, x, target, -5, smoothing, scale, plain, NULL, NULL);
                for (int64_t i = 0; i < ROWS; i++) {
                    ck_assert(plain[i] == loss[i]);
                    if (i == 1) {
                        ck_assert(loss[i] == 0 && smoothed[i] == 0 && are_all(dx + v, v, 0));
                        continue;
                    }
                    c.v = v;
                    c.target = target[i];
                    for (int64_t j = 0; j < v; j++)
                        c.logits[j] = (ld)x[i * v + j];
                    c.smoothing = 0;
                    ck_assert(fabsl((ld)loss[i] - ref_cross(&c)) <= bound);
                    c.smoothing = (ld)smoothing;
                    ck_assert(fabsl((ld)smoothed[i] - ref_cross(&c)) <= bound);
                    for (int64_t j = 0; j < v; j += 1 + v / 70) {
                        ld want = (ld)scale * difference(&c.logits[j], ref_cross, &c);
                        ck_assert(fabsl((ld)dx[i * v + j] - want) <= 12 * EPS * (ld)scale + 1e-14L);
                    }
                }
                memcpy(y, x, (size_t)(ROWS * v) * sizeof *x); /* gradient on the logits */
                wf_kernel->cross_entropy(ROWS, v, y, target, -5, smoothing, scale, plain, smoothed, y);
                ck_assert(same_bits(y, dx, ROWS * v) && plain[0] == loss[0]);
            }
        }
        /* stable with large logits; NaN comes out */
        wf_real big[] = {1e4f, -1e4f, 9990};
        int32_t first[] = {0};
        double loss;
        wf_kernel->cross_entropy(1, 3, big, first, -1, 0, 1, &loss, NULL, dx);
        ck_assert(fabs(loss - exp(-10)) < 1e-7 && fabs((double)dx[0] + exp(-10)) < 1e-7);
        big[1] = (wf_real)NAN;
        wf_kernel->cross_entropy(1, 3, big, first, -1, 0, 1, &loss, NULL, dx);
        ck_assert(isnan(loss) && isnan(dx[0]) && isnan(dx[2]));
    }
}
END_TEST

/* sum of dy y for a norm of one row in long double. */
struct norm {
    int64_t d;
    bool layer;
    ld eps, mean, rstd, x[MOST], gain[MOST], bias[MOST], dy[MOST], y[MOST], unit[MOST]; /* unit: x without its mean, times rstd */
};

static ld ref_norm(void *ctx)
{
    struct norm *n = ctx;
    ld sum = 0, squares = 0, dot = 0;
    for (int64_t j = 0; n->layer && j < n->d; j++)
        sum += n->x[j];
    n->mean = n->d ? sum / (ld)n->d : 0;
    for (int64_t j = 0; j < n->d; j++)
        squares += (n->x[j] - n->mean) * (n->x[j] - n->mean);
    n->rstd = 1 / sqrtl(squares / (ld)(n->d ? n->d : 1) + n->eps);
    for (int64_t j = 0; j < n->d; j++) {
        n->unit[j] = (n->x[j] - n->mean) * n->rstd;
        n->y[j] = n->unit[j] * n->gain[j] + n->bias[j];
        dot += n->y[j] * n->dy[j];
    }
    return dot;
}

static void load_norm(struct norm *n, bool layer, int64_t row, int64_t d, const wf_real *g, const wf_real *b)
{
    n->d = d;
    n->layer = layer;
    n->eps = (ld)(wf_real)1e-5;
    for (int64_t j = 0; j < d; j++) {
        n->x[j] = (ld)x[row * d + j];
        n->dy[j] = (ld)dy[row * d + j];
        n->gain[j] = g ? (ld)g[j] : 1;
        n->bias[j] = b ? (ld)b[j] : 0;
    }
}

static void forward(bool layer, int64_t rows, int64_t d, const wf_real *in, const wf_real *g, const wf_real *b, wf_real *out, wf_real *mean,
                    wf_real *rstd)
{
    if (layer)
        wf_kernel->layer_norm(rows, d, in, g, b, (wf_real)1e-5, out, mean, rstd);
    else
        wf_kernel->rms_norm(rows, d, in, g, (wf_real)1e-5, out, rstd);
}

static void backward(bool layer, int64_t rows, int64_t d, int64_t row, const wf_real *g, const wf_real *mean, const wf_real *rstd,
                     wf_real *out, bool add, wf_real *dgain, wf_real *dbias)
{
    if (layer)
        wf_kernel->layer_norm_grad(rows, d, x + row * d, g, mean + row, rstd + row, dy + row * d, out, add, dgain, dbias);
    else
        wf_kernel->rms_norm_grad(rows, d, x + row * d, g, rstd + row, dy + row * d, out, add, dgain);
}

static void norms(bool layer)
{
    static struct norm n[ROWS];
    static wf_real dgain[MOST], dbias[MOST], more[ROWS * MOST];
    wf_real mean[ROWS], rstd[ROWS];
    fill_inputs();
    EACH_ISA
    {
        EACH_WIDTH(d)
        {
            for (int given = 0; given < 4; given++) {
                const wf_real *g = given & 1 ? gain : NULL, *b = layer && given & 2 ? bias : NULL;
                y[ROWS * d] = dx[ROWS * d] = 77;
                forward(layer, ROWS, d, x, g, b, y, mean, rstd);
                wf_kernel->fill(d, 1, dgain);
                wf_kernel->fill(d, 1, dbias);
                backward(layer, ROWS, d, 0, g, mean, rstd, dx, false, dgain, layer ? dbias : NULL);
                ck_assert(y[ROWS * d] == 77 && dx[ROWS * d] == 77);
                for (int64_t i = 0; i < ROWS; i++) {
                    struct norm *r = &n[i];
                    load_norm(r, layer, i, d, g, b);
                    ref_norm(r);
                    ld units = 12 * EPS * (1 + r->rstd); /* a row of one or two nearly equal numbers has a large rstd */
                    for (int64_t j = 0; j < d; j++)
                        ck_assert(fabsl((ld)y[i * d + j] - r->y[j]) <= units * 6);
                    if (d > 1 && d <= 70 && r->rstd < 20)
                        for (int64_t j = 0; j < d; j++) {
                            ld want = difference(&r->x[j], ref_norm, r);
                            ck_assert(fabsl((ld)dx[i * d + j] - want) <= units * r->rstd * 20 + 1e-11L * powl(r->rstd, 5));
                        }
                    ref_norm(r);
                    ld h = 0, hx = 0;
                    for (int64_t j = 0; j < d; j++) {
                        h += layer ? r->dy[j] * r->gain[j] / (ld)d : 0;
                        hx += r->dy[j] * r->gain[j] * r->unit[j] / (ld)d;
                    }
                    for (int64_t j = 0; j < d; j++) {
                        ld want = r->rstd * (r->dy[j] * r->gain[j] - h - r->unit[j] * hx);
                        ck_assert(fabsl((ld)dx[i * d + j] - want) <= units * r->rstd * 4);
                    }
                    forward(layer, 1, d, x + i * d, g, b, alone, NULL, NULL);
                    ck_assert(same_bits(alone, y + i * d, d));
                    backward(layer, 1, d, i, g, mean, rstd, alone, false, NULL, NULL);
                    ck_assert(same_bits(alone, dx + i * d, d));
                }
                for (int64_t j = 0; j < d; j++) {
                    ld want_gain = 1, want_bias = 1, size = 1;
                    for (int64_t i = 0; i < ROWS; i++) {
                        ld part = n[i].dy[j] * n[i].unit[j];
                        want_gain += part;
                        want_bias += n[i].dy[j];
                        size += fabsl(part) + n[i].rstd;
                    }
                    ck_assert(fabsl((ld)dgain[j] - want_gain) <= 12 * EPS * size);
                    if (layer)
                        ck_assert(fabsl((ld)dbias[j] - want_bias) <= 4 * EPS * 4);
                }
                numbers(more, ROWS * d, 31, -1, 1);
                memcpy(y, more, (size_t)(ROWS * d) * sizeof *y);
                backward(layer, ROWS, d, 0, g, mean, rstd, y, true, NULL, NULL);
                for (int64_t k = 0; k < ROWS * d; k++)
                    ck_assert(fabsl((ld)y[k] - ((ld)more[k] + (ld)dx[k])) <= 2 * EPS * (1 + 2 * fabsl((ld)dx[k])));
                if (d)
                    backward(layer, ROWS, d, 0, g, mean, rstd, NULL, false, dgain, layer ? dbias : NULL);
            }
        }
    }
}

START_TEST(layer_norm)
{
    norms(true);
}
END_TEST

START_TEST(rms_norm)
{
    norms(false);
}
END_TEST

START_TEST(dropout)
{
    const uint64_t seed = 0x0123456789abcdefu, step = 0x100000003u, row = 0x200000005u;
    const uint32_t call = 0xfedcba98u, threshold = 13107;
    const wf_real scale = (wf_real)1.25;
    fill_inputs();
    x[3] = (wf_real)NAN;
    EACH_ISA
    {
        for (int64_t d = 0; d <= MOST; d += d < 150 ? 1 : 190) {
            y[d] = 77;
            wf_kernel->dropout(d, seed, step, call, row, threshold, scale, x, y);
            ck_assert(y[d] == 77);
            uint64_t key = mix(mix(seed + 0x9e3779b97f4a7c15u) ^ step);
            for (int64_t j = 0; j < d; j++) {
                uint32_t out[4];
                wf_philox((uint32_t[]){(uint32_t)(j / 8), (uint32_t)row, (uint32_t)(row >> 32), call},
                          (uint32_t[]){(uint32_t)key, (uint32_t)(key >> 32)}, out);
                bool keep = (out[j % 8 / 2] >> (16 * (j % 2)) & 0xffff) >= threshold;
                wf_real want = keep ? x[j] * scale : 0;
                ck_assert(same_numbers(&y[j], &want, 1));
            }
        }
        int64_t kept = 0;
        wf_kernel->fill(MOST, 1, gain);
        for (uint64_t r = 0; r < 1000; r++) {
            wf_kernel->dropout(1000, 1, r % 7, 3, r, threshold, 1, gain, y);
            for (int j = 0; j < 1000; j++)
                kept += y[j] != 0;
        }
        ck_assert(fabs((double)kept / 1e6 - (1 - 13107.0 / 65536)) < 0.0016); /* 4 deviations */
        wf_kernel->dropout(1000, 1, 1, 1, 1, 0, 1, gain, y);
        ck_assert(same_bits(y, gain, 1000));
        wf_kernel->dropout(1000, 1, 1, 1, 1, 65536, 1, gain, y);
        ck_assert(are_all(y, 1000, 0));
    }
}
END_TEST

START_TEST(adam)
{
    enum { N = 150, STEPS = 4 };
    const double beta1 = 0.9, beta2 = 0.999, lr = 1e-2;
    EACH_ISA
    {
        for (int n = 0; n <= N; n++)
            for (int decay = 0; decay < 3; decay++) {
                wf_real p[N + 1], m[N + 1] = {0}, v[N + 1] = {0}, g[N], one[3];
                ld rp[N], rm[N] = {0}, rv[N] = {0};
                numbers(p, N, 41, -1, 1);
                p[n] = m[n] = v[n] = 77;
                for (int i = 0; i < n; i++)
                    rp[i] = (ld)p[i];
                one[0] = p[n / 2];
                one[1] = one[2] = 0;
                wf_real lr_wd = decay == 1 ? (wf_real)1e-3 : 0, l2 = decay == 2 ? (wf_real)0.1 : 0;
                for (int t = 1; t <= STEPS; t++) {
                    numbers(g, N, (uint64_t)(50 + t), -1, 1);
                    wf_real size = (wf_real)(lr / (1 - pow(beta1, t))), inv = (wf_real)(1 / sqrt(1 - pow(beta2, t)));
                    wf_kernel->internal->adam(n, p, g, m, v, (wf_real)0.5, beta1, beta2, (wf_real)1e-8, size, inv, lr_wd, l2);
                    wf_kernel->internal->adam(1, one, g + n / 2, one + 1, one + 2, (wf_real)0.5, beta1, beta2, (wf_real)1e-8, size, inv,
                                              lr_wd, l2);
                    for (int i = 0; i < n; i++) {
                        ld grad = 0.5L * (ld)g[i] + (ld)l2 * rp[i];
                        rm[i] = (ld)beta1 * rm[i] + (1 - (ld)beta1) * grad;
                        rv[i] = (ld)beta2 * rv[i] + (1 - (ld)beta2) * grad * grad;
                        rp[i] = rp[i] * (1 - (ld)lr_wd) - (ld)size * rm[i] / (sqrtl(rv[i]) * (ld)inv + (ld)(wf_real)1e-8);
                        ck_assert(fabsl((ld)p[i] - rp[i]) <= 3 * STEPS * EPS);
                        ck_assert(fabsl((ld)m[i] - rm[i]) <= 3 * STEPS * EPS);
                        ck_assert(fabsl((ld)v[i] - rv[i]) <= 6 * STEPS * EPS * rv[i]);
                    }
                }
                ck_assert(p[n] == 77 && m[n] == 77 && v[n] == 77);
                if (n)
                    ck_assert(same_bits(&p[n / 2], one, 1) && same_bits(&m[n / 2], one + 1, 1) && same_bits(&v[n / 2], one + 2, 1));
            }
    }
}
END_TEST

WF_TEST_MAIN("kernels_rows", softmax, softmax_specials, cross_entropy, layer_norm, rms_norm, dropout, adam)
