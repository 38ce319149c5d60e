/* SPDX-License-Identifier: MIT */
/* wf_check_module: compares the gradients of parameters with central differences. wf_check_function does the same with the
 * gradients of inputs. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weft/check.h>
#include <weft/random.h>

#include "internal.h"

enum {
    DIRECTIONS = 3, /* random directions for each parameter */
    SMALL = 24      /* in a parameter of at most this many elements, each element is checked alone, too */
};
#define STREAM(name) wf_stream_of("wf_check_module " name)

struct module_check {
    wf_registry *registry;
    wf_function fn;
    void *ctx;
    int inputs;
    const wf_shape *shapes;
    uint64_t seed;
    double tolerance, step;
    wf_tape *tape;
    wf_arena *arena;
    wf_real *input[WF_MAX_INPUTS];
    wf_real *weight; /* R: a random factor for each element of the function's result y */
    int64_t results;
    double size; /* |sum(y * R)|, from which the rounding error of differences is bounded */
    wf_error *error;
};

static void *room(struct module_check *k, int64_t count)
{
    void *memory = wf_arena_get(k->arena, (size_t)count * sizeof(wf_real));
    if (!memory)
        wf_error_set(k->error, WF_ERR_MEMORY, "wf_check_module: no memory for %lld numbers", (long long)count);
    return memory;
}

/* Resets the tape, and computes sum(y * R) on it. NULL with the error set on failure. */
static wf_tensor *run(struct module_check *k)
{
    wf_tensor *in[WF_MAX_INPUTS];
    wf_tape_reset(k->tape, WF_GRADIENTS, .seed = k->seed);
    for (int i = 0; i < k->inputs; i++)
        in[i] = wf_input(k->tape, k->input[i], &k->shapes[i], true); /* the function may take gradients by it */
    wf_tensor *y = k->fn(k->ctx, k->tape, in);
    if (!y) {
        wf_error_set(k->error, WF_ERR_ARGUMENT, "wf_check_module: the function returned NULL, not a tensor");
        return NULL;
    }
    wf_shape shape = wf_shape_of(y);
    int64_t count = wf_shape_count(&shape);
    if (!wf_is_poison(y) && !k->weight && (k->weight = room(k, count))) {
        k->results = count;
        wf_fill_normal(k->weight, count, 0, 1, k->seed, STREAM("R"));
    }
    if (wf_is_poison(y) || k->results != count) {
        wf_tape_status(k->tape, k->error);
        wf_error_set(k->error, WF_ERR_STATE, "wf_check_module: the function returns %lld elements now, and %lld before", (long long)count,
                     (long long)k->results);
        return NULL;
    }
    return wf_sum(wf_mul(y, wf_input(k->tape, k->weight, &shape, false)));
}

static wf_status value_at(struct module_check *k, wf_tensor *p, const wf_real *moved, int64_t count, double *value)
{
    if (wf_parameter_set(p, moved, count, k->error) != WF_OK)
        return k->error->code;
    wf_tensor *sum = run(k);
    return !sum ? k->error->code : wf_item(sum, value) == WF_OK ? WF_OK : wf_tape_status(k->tape, k->error);
}

/* Compares two slopes of sum(y * R) along `direction`: that of central differences, and that of the gradient. */
static wf_status compare(struct module_check *k, wf_tensor *p, const wf_real *value, const wf_real *gradient, const wf_real *direction,
                         wf_real *moved, int64_t count, const char *along)
{
    double slope = 0, norm = 0, side[2];
    for (int64_t i = 0; i < count; i++) {
        slope += (double)gradient[i] * (double)direction[i];
        norm += (double)gradient[i] * (double)gradient[i];
    }
    for (int s = 0; s < 2; s++) {
        for (int64_t i = 0; i < count; i++)
            moved[i] = value[i] + (wf_real)((s ? k->step : -k->step) * (double)direction[i]);
        if (value_at(k, p, moved, count, &side[s]) != WF_OK)
            return k->error->code;
    }
    const double difference = (side[1] - side[0]) / (2 * k->step);
    const double lost = 8 * (sizeof(wf_real) == 8 ? 2.2e-16 : 1.2e-7) * (1 + k->size) / k->step; /* bound of the rounding error */
    if (fabs(difference - slope) <= k->tolerance * fmax(sqrt(norm), fabs(difference)) + lost)
        return WF_OK;
    return wf_error_set(k->error, WF_ERR_NUMERIC,
                        "wf_check_module: parameter '%s': along %s its gradient says %.9g, and central differences %.9g", wf_name_of(p),
                        along, slope, difference);
}

static wf_status check_parameter(struct module_check *k, wf_tensor *p, const wf_real *gradient, const wf_real *value, int64_t count)
{
    wf_real *direction = room(k, count), *moved = room(k, count);
    wf_status status = direction && moved ? WF_OK : WF_ERR_MEMORY;
    char along[64];
    for (int d = 0; d < DIRECTIONS && status == WF_OK; d++) {
        wf_fill_normal(direction, count, 0, 1, k->seed + (uint64_t)d, wf_stream_of(wf_name_of(p)));
        snprintf(along, sizeof along, "random direction %d", d + 1);
        status = compare(k, p, value, gradient, direction, moved, count, along);
    }
    for (int64_t i = 0; i < count && count <= SMALL && status == WF_OK; i++) {
        memset(direction, 0, (size_t)count * sizeof *direction);
        direction[i] = 1;
        snprintf(along, sizeof along, "element %lld", (long long)i);
        status = compare(k, p, value, gradient, direction, moved, count, along);
    }
    return status;
}

/* Computes all gradients first, because the differences change values. */
static wf_status check_parameters(struct module_check *k)
{
    const int count = wf_registry_count(k->registry);
    wf_real **gradient = wf_arena_get(k->arena, (size_t)(count + 1) * sizeof *gradient);
    wf_grads_zero(wf_registry_grads(k->registry));
    wf_tensor *sum = gradient ? run(k) : NULL;
    if (!sum)
        return gradient ? k->error->code : wf_error_set(k->error, WF_ERR_MEMORY, "wf_check_module: no memory");
    if (wf_item(sum, &k->size) != WF_OK || wf_backward(sum) != WF_OK)
        return wf_tape_status(k->tape, k->error);
    k->size = fabs(k->size);
    for (int i = 0; i < count; i++) {
        wf_tensor *p = wf_registry_at(k->registry, i);
        const struct wf_parameter_info *info = wf_parameter_info(p);
        const wf_real *g = wf_grads_at(info->grads, p);
        const int64_t n = wf_array_count(&info->value);
        gradient[i] = NULL;
        if (info->frozen)
            continue;
        if (!(gradient[i] = room(k, n)))
            return WF_ERR_MEMORY;
        if (g)
            memcpy(gradient[i], g, (size_t)n * sizeof *g);
        else /* a missing gradient stands for 0, and the differences check that */
            memset(gradient[i], 0, (size_t)n * sizeof *g);
    }
    wf_status status = WF_OK;
    for (int i = 0; i < count && status == WF_OK; i++) {
        wf_tensor *p = wf_registry_at(k->registry, i);
        const wf_array *value = &wf_parameter_info(p)->value;
        const int64_t n = wf_array_count(value);
        wf_real *was = gradient[i] ? room(k, n) : NULL;
        if (!gradient[i])
            continue;
        if (!was)
            return WF_ERR_MEMORY;
        memcpy(was, value->data, (size_t)n * sizeof *was);
        status = check_parameter(k, p, gradient[i], was, n);
        wf_tape_reset(k->tape, WF_INFER);
        wf_status restored = wf_parameter_set(p, was, n, status == WF_OK ? k->error : NULL);
        status = status == WF_OK ? restored : status;
    }
    wf_grads_zero(wf_registry_grads(k->registry));
    return status;
}

wf_status wf_check_module(wf_registry *registry, wf_function fn, void *ctx, int inputs, const wf_shape *shapes,
                          const struct wf_gradcheck_options *options, wf_error *error)
{
    static const struct wf_gradcheck_options none = {0};
    const struct wf_gradcheck_options *o = options ? options : &none;
    wf_error failure = {0};
    struct module_check k = {
        .registry = registry, .fn = fn, .ctx = ctx, .inputs = inputs, .shapes = shapes, .seed = o->seed, .error = &failure};
    k.tolerance = o->tolerance > 0 ? o->tolerance : sizeof(wf_real) == 8 ? 1e-6 : 3e-2;
    k.step = o->step > 0 ? o->step : sizeof(wf_real) == 8 ? 1e-5 : 1e-2;
    if (!registry || !fn)
        return wf_error_set(error, WF_ERR_ARGUMENT, "wf_check_module: the %s is NULL", registry ? "function" : "registry");
    if (inputs < 0 || inputs > WF_MAX_INPUTS || (inputs > 0 && !shapes))
        return wf_error_set(error, WF_ERR_ARGUMENT, "wf_check_module: %d inputs is out of range, 0 to %d, or shapes is NULL", inputs,
                            WF_MAX_INPUTS);
    if (!wf_registry_grads(registry))
        return wf_error_set(error, WF_ERR_STATE, "wf_check_module: the registry has no gradients: call wf_registry_build first");
    if (inputs > 0 && wf_check_function(fn, ctx, inputs, shapes, NULL, options, error) != WF_OK) {
        wf_error_prefix(error, "wf_check_module");
        return error ? error->code : WF_ERR_NUMERIC;
    }
    k.tape = wf_tape_new(&failure);
    k.arena = wf_arena_new();
    wf_status status = k.tape && k.arena ? WF_OK : wf_error_set(&failure, WF_ERR_MEMORY, "wf_check_module: no memory");
    for (int i = 0; i < inputs && status == WF_OK; i++) {
        const int64_t n = wf_shape_count(&shapes[i]);
        if (!(k.input[i] = room(&k, n)))
            status = WF_ERR_MEMORY;
        else
            wf_fill_normal(k.input[i], n, 0, 1, k.seed + (uint64_t)i, STREAM("input"));
    }
    if (status == WF_OK)
        status = check_parameters(&k);
    wf_tape_free(k.tape);
    wf_arena_free(k.arena);
    return failure.code ? wf_error_set(error, failure.code, "%s", failure.message) : status;
}
