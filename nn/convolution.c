/* SPDX-License-Identifier: MIT */
/* Convolution over sequences and pictures, and its transpose, as modules. */
#include <weft/internal/minmax.h>

#include "internal.h"

static void init(wf_scope scope, struct wf_convolution *m, int dims, bool transposed, int64_t channels, int64_t filters, int64_t kernel,
                 const struct wf_convolution_options *o)
{
    o = o ? o : &(struct wf_convolution_options){0};
    *m = (struct wf_convolution){.groups = o->groups > 0 ? o->groups : 1, .transposed = transposed};
    if (o->groups < 0 || channels < 1 || filters < 1 || channels % m->groups != 0 || filters % m->groups != 0)
        wf_scope_fail(scope, WF_ERR_ARGUMENT, "convolution: %lld groups do not divide %lld channels and %lld filters", (long long)o->groups,
                      (long long)channels, (long long)filters);
    if (o->axes && (o->stride || o->padding || o->dilation || o->output_padding))
        wf_scope_fail(scope, WF_ERR_ARGUMENT, "convolution: give .axes, or .stride, .padding, .dilation and .output_padding, not both");
    if (o->output_padding && !transposed)
        wf_scope_fail(scope, WF_ERR_ARGUMENT, "convolution: .output_padding is for transposed convolutions");
    if (o->output_padding < 0 || (o->output_padding > 0 && o->output_padding >= WF_MAX(WF_MAX(o->stride, o->dilation), 1)))
        wf_scope_fail(scope, WF_ERR_ARGUMENT,
                      "convolution: .output_padding is %lld: it must be at least 0, and below the stride or the dilation",
                      (long long)o->output_padding);
    wf_shape shape = {.ndim = dims + 2, .dim = {transposed ? channels : filters, (transposed ? filters : channels) / m->groups}};
    int64_t taps = 1;
    for (int d = 0; d < dims; d++) {
        shape.dim[d + 2] = o->kernel ? o->kernel[d] : kernel;
        taps *= shape.dim[d + 2];
        m->axis[d] = o->axes ? o->axes[d] : (struct wf_conv_axis){o->stride, o->padding, o->padding - o->output_padding, o->dilation};
    }
    const struct wf_init_rules *rules = scope.rules;
    struct wf_initializer weight = init_or(&o->init, rules ? &rules->weight : NULL, WF_INIT_FAN_IN, 0);
    struct wf_initializer bias = init_or(rules ? &rules->bias : NULL, NULL, WF_INIT_FAN_IN, 0);
    /* as PyTorch counts them, also for the transpose */
    fan_in_or(&weight, shape.dim[1] * taps);
    fan_in_or(&bias, shape.dim[1] * taps);
    weight.fan_out = weight.fan_out > 0 ? weight.fan_out : shape.dim[0] * taps;
    m->weight = wf_parameter(scope, "weight", &shape, .init = weight);
    m->bias = o->no_bias ? NULL : wf_parameter(scope, "bias", &((wf_shape){1, {filters}}), .init = bias);
}

void wf_conv1d_init_with(wf_scope scope, struct wf_convolution *m, int64_t channels, int64_t filters, int64_t kernel,
                         const struct wf_convolution_options *options)
{
    init(scope, m, 1, false, channels, filters, kernel, options);
}

void wf_conv2d_init_with(wf_scope scope, struct wf_convolution *m, int64_t channels, int64_t filters, int64_t kernel,
                         const struct wf_convolution_options *options)
{
    init(scope, m, 2, false, channels, filters, kernel, options);
}

void wf_conv_transpose1d_init_with(wf_scope scope, struct wf_convolution *m, int64_t channels, int64_t filters, int64_t kernel,
                                   const struct wf_convolution_options *options)
{
    init(scope, m, 1, true, channels, filters, kernel, options);
}

void wf_conv_transpose2d_init_with(wf_scope scope, struct wf_convolution *m, int64_t channels, int64_t filters, int64_t kernel,
                                   const struct wf_convolution_options *options)
{
    init(scope, m, 2, true, channels, filters, kernel, options);
}

wf_tensor *wf_convolution_forward(const struct wf_convolution *m, wf_tensor *x)
{
    return m->transposed ? wf_conv_transpose(x, m->weight, m->bias, .groups = m->groups, .axes = m->axis)
                         : wf_conv(x, m->weight, m->bias, .groups = m->groups, .axes = m->axis);
}
