/* SPDX-License-Identifier: MIT */
/* Runs of attention, forward and backward, whose bits are compared. */
#ifndef TESTS_ATTENTION_RUNS_H
#define TESTS_ATTENTION_RUNS_H

#include "ops_tools.h"

struct sizes {
    int64_t B, T, S, H, G, E, F;
};

/* The results of a run: out, weights, dq, dk, dv, and the gradient of the bias. */
struct result {
    wf_real *part[6];
    int64_t count[6];
};

/* bias and mask may be NULL, and have this shape; dirty: key 40 of the first sequence holds NaN and infinities. */
static inline struct result run_with(const struct sizes *s, struct wf_attention_options o, const wf_real *bias, const bool *mask,
                                     const wf_shape *shape, bool dirty, bool weights)
{
    struct result r = {0};
    begin(WF_TRAIN);
    const int64_t width = s->G * s->E;
    wf_real *k = malloc(sizeof *k * (size_t)(s->B * s->S * width));
    wf_fill_normal(k, s->B * s->S * width, 0, 1, 77, 2);
    for (int64_t i = 0; dirty && i < width; i++)
        k[40 * width + i] = i % 2 ? NAN : INFINITY;
    wf_tensor *in[] = {normal(1, WF_SHAPE(s->B, s->T, s->H * s->E)), given(k, WF_SHAPE(s->B, s->S, width)),
                       normal(3, WF_SHAPE(s->B, s->S, s->G * s->F))};
    wf_tensor *w = NULL;
    free(k);
    o.heads = (int)s->H;
    o.kv_heads = (int)s->G;
    o.weights = weights ? &w : NULL;
    o.bias = bias ? given(bias, shape) : NULL;
    o.mask = mask ? wf_bools(tape, mask, shape) : NULL;
    wf_tensor *y = wf_keep(wf_attention_with(in[0], in[1], in[2], &o));
    if (w)
        wf_keep(w);
    ran(wf_backward(y, .gradient = normal(4, WF_SHAPE(s->B, s->T, s->H * s->F))));
    wf_tensor *const t[] = {y, w, in[0], in[1], in[2], o.bias};
    for (int i = 0; i < 6; i++)
        if (t[i]) {
            r.part[i] = i < 2 ? value_of(t[i]) : gradient_of(t[i]);
            r.count[i] = count_of(t[i]);
        }
    return r;
}

static inline void same_and_free(struct result a, struct result b, const char *what)
{
    static const char *const names[] = {"out", "weights", "dq", "dk", "dv", "the bias' gradient"};
    for (int i = 0; i < 6; i++) {
        for (int64_t j = 0; j < a.count[i] && b.part[i]; j++)
            ck_assert_msg(a.part[i][j] == b.part[i][j], "%s: element %lld of %s is %.9g, not %.9g", what, (long long)j, names[i],
                          (double)a.part[i][j], (double)b.part[i][j]);
        free(a.part[i]);
        free(b.part[i]);
    }
}

#endif
