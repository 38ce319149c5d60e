/* SPDX-License-Identifier: MIT */
/* The initialisers of parameters. */
#include <math.h>

#include <weft/random.h>

#include "registry_internal.h"

void initialise(const struct entry *e, wf_real *value, uint64_t seed)
{
    const struct wf_initializer *init = &e->init;
    uint64_t stream = wf_stream_of(e->name);
    double fan_in = init->fan_in > 0 ? (double)init->fan_in : e->shape.ndim > 0 ? (double)e->shape.dim[e->shape.ndim - 1] : 1;
    double fan_out = (e->shape.ndim > 0 ? (double)e->shape.dim[0] : 1) / (double)(init->parts > 0 ? init->parts : 1);
    double bound;
    switch (init->kind) {
    case WF_INIT_DEFAULT:
    case WF_INIT_CONSTANT:
        for (int64_t i = 0; i < e->count; i++)
            value[i] = (wf_real)init->a;
        break;
    case WF_INIT_NORMAL:
        wf_fill_normal(value, e->count, 0, init->a, seed, stream);
        break;
    case WF_INIT_UNIFORM:
        wf_fill_uniform(value, e->count, -init->a, init->a, seed, stream);
        break;
    case WF_INIT_FAN_IN:
        bound = 1 / sqrt(fan_in);
        wf_fill_uniform(value, e->count, -bound, bound, seed, stream);
        break;
    case WF_INIT_XAVIER_UNIFORM:
        bound = sqrt(6 / (fan_in + fan_out));
        wf_fill_uniform(value, e->count, -bound, bound, seed, stream);
        break;
    case WF_INIT_FUNCTION:
        init->fill(value, &e->shape);
        break;
    }
}
