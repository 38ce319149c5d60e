/* SPDX-License-Identifier: MIT */
/* Attention and its gradients written out in double, with all [T, S] weights: the reference of the fused op. */
#ifndef TESTS_ATTENTION_REFERENCE_H
#define TESTS_ATTENTION_REFERENCE_H

#include <math.h>

#include <weft/op.h>
#include <weft/ops.h>
#include <weft/random.h>

#include "one_tape.h"

#include "isas.h"

struct problem {
    int64_t b, t, s, h, g, e, f;
    bool causal;
    const int32_t *lengths; /* [b] */
    const bool *mask;       /* [b, h, t, s] */
    double scale;
    wf_real *q, *k, *v, *dout; /* contiguous */
};

/* All owned by the struct: free_reference frees them. */
struct reference {
    double *out, *dq, *dk, *dv, *weights;
};

static inline bool may_attend(const struct problem *p, int64_t b, int64_t h, int64_t t, int64_t s)
{
    return (!p->causal || s <= t + p->s - p->t) && (!p->lengths || s < p->lengths[b]) &&
           (!p->mask || p->mask[((b * p->h + h) * p->t + t) * p->s + s]);
}

static inline double *zeros(int64_t n)
{
    return calloc((size_t)n + 1, sizeof(double));
}

static inline void reference_row(const struct problem *p, struct reference *r, int64_t b, int64_t h, int64_t t)
{
    const int64_t g = h / (p->h / p->g), ke = p->g * p->e, vf = p->g * p->f;
    const wf_real *q = p->q + ((b * p->t + t) * p->h + h) * p->e, *dout = p->dout + ((b * p->t + t) * p->h + h) * p->f;
    const double scale = p->scale != 0 ? p->scale : 1 / sqrt((double)p->e);
    double *w = r->weights + ((b * p->h + h) * p->t + t) * p->s, *out = r->out + ((b * p->t + t) * p->h + h) * p->f;
    double *dq = r->dq + ((b * p->t + t) * p->h + h) * p->e, top = -INFINITY, sum = 0, d = 0;
    for (int64_t s = 0; s < p->s; s++) {
        if (!may_attend(p, b, h, t, s))
            continue;
        for (int64_t e = 0; e < p->e; e++)
            w[s] += scale * (double)q[e] * p->k[(b * p->s + s) * ke + g * p->e + e];
        top = fmax(top, w[s]);
    }
    for (int64_t s = 0; s < p->s; s++)
        if (may_attend(p, b, h, t, s))
            sum += w[s] = exp(w[s] - top);
    for (int64_t s = 0; s < p->s; s++) {
        if (!may_attend(p, b, h, t, s))
            continue;
        w[s] /= sum;
        for (int64_t f = 0; f < p->f; f++)
            out[f] += w[s] * p->v[(b * p->s + s) * vf + g * p->f + f];
    }
    for (int64_t f = 0; f < p->f; f++)
        d += out[f] * dout[f];
    for (int64_t s = 0; s < p->s; s++) {
        if (!may_attend(p, b, h, t, s))
            continue;
        double dw = -d;
        for (int64_t f = 0; f < p->f; f++) {
            dw += (double)dout[f] * p->v[(b * p->s + s) * vf + g * p->f + f];
            r->dv[(b * p->s + s) * vf + g * p->f + f] += w[s] * dout[f];
        }
        for (int64_t e = 0; e < p->e; e++) {
            dq[e] += scale * w[s] * dw * p->k[(b * p->s + s) * ke + g * p->e + e];
            r->dk[(b * p->s + s) * ke + g * p->e + e] += scale * w[s] * dw * q[e];
        }
    }
}

static inline struct reference make_reference(const struct problem *p)
{
    struct reference r = {zeros(p->b * p->t * p->h * p->f), zeros(p->b * p->t * p->h * p->e), zeros(p->b * p->s * p->g * p->e),
                          zeros(p->b * p->s * p->g * p->f), zeros(p->b * p->h * p->t * p->s)};
    for (int64_t b = 0; b < p->b; b++)
        for (int64_t h = 0; h < p->h; h++)
            for (int64_t t = 0; t < p->t; t++)
                reference_row(p, &r, b, h, t);
    return r;
}

static inline void free_reference(struct reference *r)
{
    free(r->out);
    free(r->dq);
    free(r->dk);
    free(r->dv);
    free(r->weights);
}

static inline wf_real *normals(int64_t n, uint64_t stream)
{
    wf_real *x = malloc((size_t)(n + 1) * sizeof *x);
    wf_fill_normal(x, n, 0, 1, 5, stream);
    return x;
}

static inline void fill_problem(struct problem *p)
{
    p->q = normals(p->b * p->t * p->h * p->e, 1);
    p->k = normals(p->b * p->s * p->g * p->e, 2);
    p->v = normals(p->b * p->s * p->g * p->f, 3);
    p->dout = normals(p->b * p->t * p->h * p->f, 4);
}

static inline void free_problem(struct problem *p)
{
    free(p->q);
    free(p->k);
    free(p->v);
    free(p->dout);
}

/* Norm of the difference over the norm of the expected numbers; got may have any strides. The norm grows by 0.1 for each element, because
 * the gradient of a query with one key is 0, and what is computed for it are rounding errors. */
static inline double distance(const wf_array *got, const double *expected)
{
    wf_shape shape = wf_array_shape(got);
    int64_t n = wf_shape_count(&shape);
    wf_real *x = malloc((size_t)(n + 1) * sizeof *x);
    wf_array contiguous = wf_array_contiguous(x, WF_REAL, &shape);
    wf_array_copy(&contiguous, got);
    double difference = 0, norm = 0;
    for (int64_t i = 0; i < n; i++) {
        difference += (x[i] - expected[i]) * (x[i] - expected[i]);
        norm += expected[i] * expected[i];
    }
    free(x);
    return sqrt(difference) / (sqrt(norm) + 0.1 * sqrt((double)n) + 1e-30);
}

#endif
