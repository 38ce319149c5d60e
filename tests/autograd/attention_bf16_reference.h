/* SPDX-License-Identifier: MIT */
/* The definition of attention in bf16's arithmetic (docs/numerics.md), written out: the reference of the op in a pass in bf16. */
#ifndef TESTS_ATTENTION_BF16_REFERENCE_H
#define TESTS_ATTENTION_BF16_REFERENCE_H

#include <string.h>

#include <weft/internal/kernels.h>
#include <weft/internal/minmax.h>

#include "attention_reference.h"

static inline float flushed(float x)
{
    return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}

static inline float rounded(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
    memcpy(&x, &bits, sizeof bits);
    return flushed(x);
}

/* d plus the sum of a[i a_step] b[i b_step] over i < n, in bf16's arithmetic. */
static inline float product(float d, int64_t n, const float *a, int64_t a_step, const float *b, int64_t b_step)
{
    d = flushed(d);
    for (int64_t step = 0; step < n; step += 32) {
        float chain[2] = {0, 0};
        for (int64_t i = step; i < step + 32; i++) {
            const float x = i < n ? rounded(a[i * a_step]) : 0, y = i < n ? rounded(b[i * b_step]) : 0;
            chain[i % 2] = flushed(fmaf(x, y, chain[i % 2]));
        }
        d = flushed(d + flushed(chain[0] + chain[1]));
    }
    return d;
}

struct setting {
    struct problem p;
    int64_t window;
    const float *bias; /* [h, t, s] */
    double cap, dropout;
};

struct answer {
    float *out, *dq, *dk, *dv, *dbias;
};

enum { TILE = 64, MOST = 320, KINDS = 5 };

static inline int64_t sizes(const struct problem *p, int64_t n[KINDS])
{
    n[0] = p->b * p->t * p->h * p->f;
    n[1] = p->b * p->t * p->h * p->e;
    n[2] = p->b * p->s * p->g * p->e;
    n[3] = p->b * p->s * p->g * p->f;
    n[4] = p->h * p->t * p->s;
    return n[0] + n[1] + n[2] + n[3] + n[4];
}

static inline struct answer new_answer(const struct problem *p)
{
    int64_t n[KINDS];
    float *x = calloc((size_t)sizes(p, n) + 1, sizeof *x);
    return (struct answer){x, x + n[0], x + n[0] + n[1], x + n[0] + n[1] + n[2], x + n[0] + n[1] + n[2] + n[3]};
}

static inline bool allowed(const struct setting *x, int64_t b, int64_t h, int64_t t, int64_t s)
{
    return may_attend(&x->p, b, h, t, s) && (x->window == 0 || s > t + x->p.s - x->p.t - x->window);
}

/* One head: weights, times the multipliers `drop`, and gradients of the scores, both [t, s]. */
static inline void reference_head(const struct setting *x, struct answer *r, int64_t b, int64_t h, const float *drop)
{
    const struct problem *p = &x->p;
    const int64_t g = h / (p->h / p->g), qs = p->h * p->e, ks = p->g * p->e, vs = p->g * p->f, os = p->h * p->f;
    const float scale = (float)(p->scale != 0 ? p->scale : 1 / sqrt((double)p->e)), log2_e = (float)M_LOG2E, cap = (float)x->cap;
    const float *q = p->q + b * p->t * qs + h * p->e, *dout = p->dout + b * p->t * os + h * p->f;
    const float *k = p->k + b * p->s * ks + g * p->e, *v = p->v + b * p->s * vs + g * p->f;
    float *weights = calloc((size_t)(2 * p->t * p->s), sizeof *weights), *ds = weights + p->t * p->s;
    for (int64_t t = 0; t < p->t; t++) {
        float s[MOST], slope[MOST], w[TILE], top = -INFINITY, l = 0, *out = r->out + (b * p->t + t) * os + h * p->f, d = 0;
        for (int64_t i = 0; i < p->s; i++) {
            s[i] = product(0, p->e, q + t * qs, 1, k + i * ks, 1) * (scale * log2_e);
            if (cap != 0) {
                const float tanh_of = tanhf(s[i] / (cap * log2_e));
                s[i] = cap * log2_e * tanh_of;
                slope[i] = 1 - tanh_of * tanh_of;
            }
            s[i] = !allowed(x, b, h, t, i) ? -INFINITY : x->bias ? fmaf(x->bias[(h * p->t + t) * p->s + i], log2_e, s[i]) : s[i];
        }
        for (int64_t k0 = 0; k0 < p->s; k0 += TILE) {
            const int64_t keys = WF_MIN(TILE, p->s - k0);
            float best = top, sum = 0;
            for (int64_t i = k0; i < k0 + keys; i++)
                best = fmaxf(best, s[i]);
            if (best == -INFINITY)
                continue;
            const float factor = exp2f(top - best);
            for (int64_t i = 0; i < keys; i++) {
                w[i] = exp2f(s[k0 + i] - best);
                sum += w[i];
                w[i] *= drop[t * p->s + k0 + i];
            }
            top = best;
            l = fmaf(l, factor, sum);
            for (int64_t j = 0; j < p->f; j++)
                out[j] = product(out[j] * factor, keys, w, 1, v + k0 * vs + j, vs);
        }
        for (int64_t j = 0; j < p->f; j++) {
            out[j] = l == 0 ? 0 : out[j] * (1 / l);
            d += out[j] * dout[t * os + j];
        }
        for (int64_t i = 0; i < p->s; i++) {
            if (s[i] == -INFINITY)
                continue;
            const float weight = exp2f(s[i] - top) * (1 / l), m = drop[t * p->s + i];
            const float gradient = weight * (product(0, p->f, dout + t * os, 1, v + i * vs, 1) * m - d);
            weights[t * p->s + i] = weight * m;
            r->dbias[(h * p->t + t) * p->s + i] += gradient;
            ds[t * p->s + i] = gradient * (cap != 0 ? slope[i] : 1);
        }
        for (int64_t j = 0; j < p->e; j++)
            r->dq[(b * p->t + t) * qs + h * p->e + j] = scale * product(0, p->s, ds + t * p->s, 1, k + j, ks);
    }
    for (int64_t i = 0; i < p->s; i++) {
        for (int64_t j = 0; j < p->e; j++)
            r->dk[(b * p->s + i) * ks + g * p->e + j] += scale * product(0, p->t, ds + i, p->s, q + j, qs);
        for (int64_t j = 0; j < p->f; j++)
            r->dv[(b * p->s + i) * vs + g * p->f + j] += product(0, p->t, weights + i, p->s, dout + j, os);
    }
    free(weights);
}

static inline struct answer definition(const struct setting *x)
{
    const struct problem *p = &x->p;
    struct answer r = new_answer(p);
    float *ones = malloc((size_t)(p->t * p->s + p->s) * sizeof *ones), *drop = ones + p->s;
    for (int64_t i = 0; i < p->t * p->s + p->s; i++)
        ones[i] = 1;
    for (int64_t b = 0; b < p->b; b++)
        for (int64_t h = 0; h < p->h; h++) {
            const uint32_t threshold = (uint32_t)(x->dropout * 65536 + 0.5);
            for (int64_t t = 0; threshold && t < p->t; t++) /* seed and step are those of `begin` */
                wf_kernel->dropout(p->s, 11, 5, 0, (uint64_t)((b * p->h + h) * p->t + t), threshold, 65536.f / (65536 - (float)threshold),
                                   ones, drop + t * p->s);
            reference_head(x, &r, b, h, drop);
        }
    free(ones);
    return r;
}

#endif
