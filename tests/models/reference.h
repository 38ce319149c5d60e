/* SPDX-License-Identifier: MIT */
/* The two families again, in plain loops of doubles over one row of ids, with the parameters by name. */
#ifndef TESTS_MODELS_REFERENCE_H
#define TESTS_MODELS_REFERENCE_H

#include <math.h>

#include "models_test.h"
#include <weft/op.h>

enum { MOST = 64 }; /* maximum of positions and widths: arrays on the stack */

static const wf_real *weights(const wf_model *m, const char *format, int layer)
{
    char name[128];
    snprintf(name, sizeof name, format, layer);
    wf_tensor *t = wf_registry_find(wf_model_registry(m), name);
    return t ? wf_parameter_info(t)->value.data : NULL;
}

/* y[out] = W[out,in] x[in] + b */
static void affine(double *y, const double *x, int64_t in, int64_t out, const wf_real *w, const wf_real *b)
{
    for (int64_t o = 0; o < out; o++) {
        y[o] = b ? b[o] : 0;
        for (int64_t i = 0; i < in; i++)
            y[o] += (double)w[o * in + i] * x[i];
    }
}

static void normed(double *y, const double *x, int64_t d, const wf_real *w, const wf_real *b, bool rms)
{
    double mean = 0, square = 0;
    for (int64_t i = 0; i < d && !rms; i++)
        mean += x[i] / (double)d;
    for (int64_t i = 0; i < d; i++)
        square += (x[i] - mean) * (x[i] - mean) / (double)d;
    for (int64_t i = 0; i < d; i++)
        y[i] = (x[i] - mean) / sqrt(square + (rms ? 1.1920928955078125e-7 : 1e-5)) * w[i] + (b ? b[i] : 0);
}

static double activated(double x, enum wf_activation a)
{
    if (a == WF_RELU)
        return x > 0 ? x : 0;
    if (a == WF_GELU)
        return 0.5 * x * (1 + erf(x / sqrt(2)));
    return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1.0)) * (x + 0.044715 * x * x * x))); /* GPT-2's */
}

static void attention(const wf_model *m, int l, int64_t T, double (*x)[MOST], double (*y)[MOST])
{
    const struct wf_config *c = wf_model_config(m);
    int64_t d = key_of(c, "d_model"), E = d / key_of(c, "heads"), G = key_of(c, "kv_heads") ? key_of(c, "kv_heads") : key_of(c, "heads"),
            width = d + 2 * G * E;
    static double qkv[MOST][4 * MOST];
    for (int64_t t = 0; t < T; t++)
        affine(qkv[t], x[t], d, width, weights(m, "blocks.%d.attn.qkv.weight", l), weights(m, "blocks.%d.attn.qkv.bias", l));
    for (int64_t t = 0; t < T; t++) {
        double joined[MOST] = {0};
        for (int64_t h = 0; h < key_of(c, "heads"); h++) {
            int64_t g = h / (key_of(c, "heads") / G);
            double p[MOST], sum = 0;
            for (int64_t s = 0; s <= t; s++) {
                p[s] = 0;
                for (int64_t e = 0; e < E; e++)
                    p[s] += qkv[t][h * E + e] * qkv[s][d + g * E + e];
                sum += p[s] = exp(p[s] / sqrt((double)E));
            }
            for (int64_t s = 0; s <= t; s++)
                for (int64_t e = 0; e < E; e++)
                    joined[h * E + e] += p[s] / sum * qkv[s][d + G * E + g * E + e];
        }
        affine(y[t], joined, d, d, weights(m, "blocks.%d.attn.out.weight", l), weights(m, "blocks.%d.attn.out.bias", l));
    }
}

static void feed_forward(const wf_model *m, int l, const double *x, double *y)
{
    const struct wf_config *c = wf_model_config(m);
    double h[4 * MOST];
    affine(h, x, key_of(c, "d_model"), key_of(c, "d_ff"), weights(m, "blocks.%d.ffn.up.weight", l), weights(m, "blocks.%d.ffn.up.bias", l));
    enum wf_activation activation = (enum wf_activation)key_of(c, "activation");
    for (int64_t i = 0, n = key_of(c, "d_ff"); i < n; i++)
        h[i] = activated(h[i], activation);
    affine(y, h, key_of(c, "d_ff"), key_of(c, "d_model"), weights(m, "blocks.%d.ffn.down.weight", l),
           weights(m, "blocks.%d.ffn.down.bias", l));
}

/* logits [T,V] */
static void reference_logits(const wf_model *m, const int32_t *ids, int64_t T, double *logits)
{
    const struct wf_config *c = wf_model_config(m);
    bool gpt = strcmp(wf_config_family(c), "gpt") == 0;
    int64_t d = key_of(c, "d_model");
    static double x[MOST][MOST], y[MOST][MOST], z[MOST][MOST];
    const wf_real *embed = weights(m, "embed.weight", 0), *places = weights(m, "positions.weight", 0);
    for (int64_t t = 0; t < T; t++)
        for (int64_t i = 0; i < d; i++) {
            double angle = (double)t / pow(10000, (double)(i / 2 * 2) / (double)d);
            x[t][i] = embed[ids[t] * d + i] + (gpt ? places[t * d + i] : i % 2 ? cos(angle) : sin(angle));
        }
    int64_t vocab = key_of(c, "vocab_size");
    bool tied = key_of(c, "tied");
    for (int l = 0, layers = (int)key_of(c, "layers"); l < layers; l++) {
        const wf_real *w1 = weights(m, "blocks.%d.norm1.weight", l), *b1 = weights(m, "blocks.%d.norm1.bias", l);
        const wf_real *w2 = weights(m, "blocks.%d.norm2.weight", l), *b2 = weights(m, "blocks.%d.norm2.bias", l);
        for (int64_t t = 0; t < T && gpt; t++)
            normed(y[t], x[t], d, w1, b1, false);
        attention(m, l, T, gpt ? y : x, z);
        for (int64_t t = 0; t < T; t++) {
            for (int64_t i = 0; i < d; i++)
                x[t][i] += z[t][i];
            normed(y[t], x[t], d, gpt ? w2 : w1, gpt ? b2 : NULL, !gpt);
            if (!gpt)
                memcpy(x[t], y[t], sizeof x[t]);
            feed_forward(m, l, y[t], z[t]);
            for (int64_t i = 0; i < d; i++)
                x[t][i] += z[t][i];
            if (!gpt) {
                normed(y[t], x[t], d, w2, NULL, true);
                memcpy(x[t], y[t], sizeof x[t]);
            }
        }
    }
    for (int64_t t = 0; t < T; t++) {
        if (gpt) {
            normed(y[t], x[t], d, weights(m, "norm.weight", 0), weights(m, "norm.bias", 0), false);
            memcpy(x[t], y[t], sizeof x[t]);
        }
        affine(logits + t * vocab, x[t], d, vocab, tied ? embed : weights(m, "head.weight", 0), weights(m, "head.bias", 0));
    }
}

#endif
