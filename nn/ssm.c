/* SPDX-License-Identifier: MIT */
/* The block of Mamba: projections, a convolution of each channel, the scan, and a gate. */
#include <math.h>

#include <weft/random.h>
#include <weft/ssm.h>

#include "internal.h"

/* --- parameters ------------------------------------------------------------------------------------------------------ */

/* log(1 .. N) in each row of [E,N]. */
static void fill_a_log(void *ctx, wf_real *value, const wf_shape *shape, uint64_t seed, const char *name)
{
    (void)ctx, (void)seed, (void)name;
    for (int64_t i = 0; i < shape->dim[0] * shape->dim[1]; i++)
        value[i] = (wf_real)log(1 + (double)(i % shape->dim[1]));
}

/* The inverse of softplus at 10^u, with u from U(-3, -1): ln(e^t - 1) = t + ln(1 - e^-t). */
static void fill_dt_bias(void *ctx, wf_real *value, const wf_shape *shape, uint64_t seed, const char *name)
{
    (void)ctx;
    wf_fill_uniform(value, shape->dim[0], -3, -1, seed, wf_stream_of(name));
    for (int64_t i = 0; i < shape->dim[0]; i++) {
        const double t = pow(10, (double)value[i]);
        value[i] = (wf_real)(t + log(-expm1(-t)));
    }
}

void wf_ssm_init_with(wf_scope scope, struct wf_ssm *m, int64_t d, const struct wf_ssm_options *o)
{
    o = o ? o : &(struct wf_ssm_options){0};
    const int64_t most = (int64_t)1 << 24, N = o->states != 0 ? o->states : 16, K = o->taps != 0 ? o->taps : 4,
                  expand = o->expand != 0 ? o->expand : 2;
    *m = (struct wf_ssm){0};
    if (d < 1 || d > most || expand < 1 || expand > most || d * expand > most || N < 1 || N > 65536 || K < 1 || K > 65536 || o->rank < 0 ||
        o->rank > most) {
        wf_scope_fail(scope, WF_ERR_ARGUMENT,
                      "a width of %lld, expanded %lld times, %lld states, %lld taps and a rank of %lld are no sizes of a state-space layer",
                      (long long)d, (long long)expand, (long long)N, (long long)K, (long long)o->rank);
        return;
    }
    const int64_t E = d * expand, R = o->rank != 0 ? o->rank : (d + 15) / 16;
    const struct wf_init_rules dt = {.bias = {.kind = WF_INIT_FUNCTION, .fill = fill_dt_bias}};
    m->channels = E;
    m->states = N;
    m->taps = K;
    m->rank = R;
    wf_linear_init(wf_sub(scope, "in_proj"), &m->in_proj, d, 2 * E, .no_bias = !o->bias, .parts = 2);
    wf_conv1d_init(wf_sub(scope, "conv1d"), &m->conv1d, E, E, K, .groups = E, .axes = &(struct wf_conv_axis){.before = K - 1},
                   .no_bias = o->no_conv_bias);
    wf_linear_init(wf_sub(scope, "x_proj"), &m->x_proj, E, R + 2 * N, .no_bias = true);
    wf_linear_init(wf_with_init(wf_sub(scope, "dt_proj"), &dt), &m->dt_proj, R, E, .init = {.kind = WF_INIT_FAN_IN});
    wf_linear_init(wf_sub(scope, "out_proj"), &m->out_proj, E, d, .no_bias = !o->bias, .residual = true);
    m->a_log = wf_parameter(scope, "A_log", WF_SHAPE(E, N), .init = {.kind = WF_INIT_FUNCTION, .fill = fill_a_log});
    m->d = wf_parameter(scope, "D", WF_SHAPE(E), .init = {.kind = WF_INIT_CONSTANT, .a = 1});
}

int64_t wf_ssm_width(const struct wf_ssm *m)
{
    return m->channels * (m->taps - 1 + m->states);
}

/* --- forward --------------------------------------------------------------------------------------------------------- */

/* What a layer of a cache holds for each row, and what the call leaves there. */
struct states {
    wf_tensor *window; /* [B,K-1,E]: the last inputs of the convolution */
    wf_tensor *h;      /* [B,E,N] */
    wf_tensor *inputs; /* [B,K-1+T,E], of which the new window is a view */
};

static struct states states_before(const struct wf_ssm *m, wf_tensor *x, struct wf_kv *cache)
{
    const int64_t B = wf_dim(x, 0), inputs = (m->taps - 1) * m->channels;
    wf_tensor *all = wf_kv_state(cache, x, wf_ssm_width(m));
    return (struct states){
        .window = wf_reshape(wf_slice(all, 1, 0, inputs), B, m->taps - 1, m->channels),
        .h = wf_reshape(wf_slice(all, 1, inputs, m->channels * m->states), B, m->channels, m->states),
    };
}

static void keep_states(const struct wf_ssm *m, struct wf_kv *cache, const struct states *after)
{
    const int64_t B = wf_dim(after->h, 0);
    wf_tensor *window = wf_reshape(after->window, B, (m->taps - 1) * m->channels), *h = wf_reshape(after->h, B, m->channels * m->states);
    wf_tensor *all = wf_concat((wf_tensor *[]){window, h}, 2, 1);
    wf_kv_set_state(cache, all);
    wf_release(all);
    wf_release(after->h);
    wf_release(after->inputs);
}

/* silu(conv1d(u)), [B,T,E]. With a cache the convolution begins with the inputs in the window, which the last inputs replace. */
static wf_tensor *convolve(const struct wf_ssm *m, wf_tensor *u, struct states *s)
{
    wf_tensor *y;
    if (s->window) {
        s->inputs = wf_concat((wf_tensor *[]){s->window, u}, 2, 1);
        y = wf_conv(wf_transpose(s->inputs, 1, 2), m->conv1d.weight, m->conv1d.bias, .groups = m->channels);
        s->window = wf_slice(s->inputs, 1, wf_dim(u, 1), m->taps - 1);
    } else {
        y = wf_convolution_forward(&m->conv1d, wf_transpose(u, 1, 2));
    }
    wf_tensor *v = wf_silu(wf_transpose(y, 1, 2));
    wf_release(y);
    return v;
}

/* The scan of u [B,T,E], with the states *h before it (NULL: zeros), which the last ones replace. */
static wf_tensor *scan(const struct wf_ssm *m, wf_tensor *u, wf_tensor **h)
{
    const int64_t R = m->rank, N = m->states;
    wf_tensor *chosen = wf_linear_forward(&m->x_proj, u), *dt = wf_linear_forward(&m->dt_proj, wf_slice(chosen, -1, 0, R));
    wf_tensor *power = wf_exp(m->a_log), *a = wf_neg(power), *last = NULL;
    wf_tensor *y = wf_selective_scan(u, dt, a, wf_slice(chosen, -1, R, N), wf_slice(chosen, -1, R + N, N), .d = m->d, .softplus = true,
                                     .state = *h, .last = *h ? &last : NULL);
    *h = last;
    wf_release(power);
    wf_release(a);
    wf_release(dt);
    wf_release(chosen);
    return y;
}

wf_tensor *wf_ssm_forward_with(const struct wf_ssm *m, wf_tensor *x, const struct wf_ssm_call *call)
{
    static const struct wf_ssm_call none;
    call = call ? call : &none;
    wf_tape *tape = wf_tape_of(x);
    if (!tape || wf_is_poison(x))
        return wf_neg(x); /* x is invalid: this op returns poison, and the error is set */
    if (m->channels < 1)
        return wf_tape_fail(tape, WF_ERR_ARGUMENT, "wf_ssm_forward: the module needs wf_ssm_init");
    if (wf_ndim(x) != 3)
        return wf_tape_fail(tape, WF_ERR_SHAPE, "wf_ssm_forward: x must be [B,T,d]");
    if (wf_dim(x, 1) == 0)
        return wf_scale(x, 1); /* no step: y is as empty as x, and states of a cache stay */
    wf_tensor *residual = call->residual, *in = sublayer_begin(x, &residual), *uz[2];
    struct states s = call->cache ? states_before(m, in, call->cache) : (struct states){0};
    wf_tensor *both = wf_linear_forward(&m->in_proj, in);
    wf_split(both, -1, 2, uz);
    wf_tensor *u = convolve(m, uz[0], &s), *y = scan(m, u, &s.h), *gated = wf_swiglu(uz[1], y);
    if (call->cache)
        keep_states(m, call->cache, &s);
    wf_release(u);
    wf_release(y);
    wf_release(both);
    wf_tensor *out = wf_linear_forward(&m->out_proj, gated);
    wf_release(gated);
    return sublayer_end(end_branch(out, 0, residual), in, residual);
}
