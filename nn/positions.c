/* SPDX-License-Identifier: MIT */
/* Positional encodings that are added to the embeddings. */
#include <math.h>

#include "internal.h"

/* PE(p, 2i) = sin(p / 10000^(2i/d)) and PE(p, 2i+1) = cos(p / 10000^(2i/d)) (Vaswani et al. 2017, section 3.5). */
static void sinusoidal(void *ctx, wf_real *value, const wf_shape *shape, uint64_t seed, const char *name)
{
    (void)ctx, (void)seed, (void)name;
    int64_t length = shape->dim[0], d = shape->dim[1];
    for (int64_t p = 0; p < length; p++)
        for (int64_t i = 0; i < d; i++) {
            double angle = (double)p * exp((double)(i / 2 * 2) * (-log(10000.0) / (double)d));
            value[p * d + i] = (wf_real)(i % 2 == 0 ? sin(angle) : cos(angle));
        }
}

void wf_positions_init_with(wf_scope scope, struct wf_positions *m, int64_t length, int64_t d, const struct wf_positions_options *o)
{
    o = o ? o : &(struct wf_positions_options){0};
    wf_shape shape = {2, {length, d}};
    m->length = length;
    if (o->learned)
        m->weight = wf_parameter(scope, "weight", &shape,
                                 .init = init_or(&o->init, scope.rules ? &scope.rules->embedding : NULL, WF_INIT_NORMAL, 1), .table = true);
    else
        m->weight = wf_parameter(scope, "table", &shape, .buffer = true, .init = {.kind = WF_INIT_FUNCTION, .fill = sinusoidal});
}

wf_tensor *wf_positions_forward(const struct wf_positions *m, wf_tensor *x, const struct wf_cache *cache)
{
    wf_tape *tape = wf_tape_of(x);
    int64_t rows = wf_dim(x, 0), length = wf_dim(x, 1), start = cache && cache->rows > 0 ? cache->length[0] : 0, last = start;
    bool even = true;
    if (wf_is_poison(x))
        return x;
    if (!tape)
        return wf_tape_fail(tape, WF_ERR_STATE, "positions: no tape");
    if (wf_ndim(x) != 3)
        return wf_tape_fail(tape, WF_ERR_SHAPE, "positions: '%s' is not [B,T,d]", wf_name_of(x));
    if (wf_dim(x, 2) != wf_dim(m->weight, 1))
        return wf_tape_fail(tape, WF_ERR_SHAPE, "positions: '%s' has width %lld, but the positions have %lld", wf_name_of(x),
                            (long long)wf_dim(x, 2), (long long)wf_dim(m->weight, 1));
    if (cache && cache->error.code != WF_OK)
        return wf_tape_fail(tape, cache->error.code, "positions: %s", cache->error.message);
    for (int64_t b = 0; cache && b < cache->rows; b++) {
        even &= cache->length[b] == start;
        last = cache->length[b] > last ? cache->length[b] : last;
    }
    if (cache && cache->rows != rows)
        return wf_tape_fail(tape, WF_ERR_SHAPE, "positions: %lld rows, but the cache has %lld", (long long)rows, (long long)cache->rows);
    if (last + length > m->length)
        return wf_tape_fail(tape, WF_ERR_SHAPE, "positions: %lld positions are needed, the model has %lld: shorten the input",
                            (long long)(last + length), (long long)m->length);
    wf_tape_use(tape); /* so that the slice of a parameter, which has no tape, is made on this tape */
    if (even)
        return wf_add(x, wf_slice(m->weight, 0, start, length));
    int32_t *place = wf_tape_memory(tape, (size_t)(rows * length) * sizeof *place);
    if (!place)
        return wf_tape_fail(tape, WF_ERR_MEMORY, "no memory for positions");
    for (int64_t b = 0; b < rows; b++)
        for (int64_t t = 0; t < length; t++)
            place[b * length + t] = cache->length[b] + (int32_t)t;
    return end_branch(wf_embedding(m->weight, wf_ids(tape, place, rows, length)), 0, x);
}

wf_tensor *wf_positions_packed(const struct wf_positions *m, wf_tensor *x, struct wf_packed packed)
{
    wf_tape *tape = wf_tape_of(x);
    wf_error error = {0};
    if (wf_is_poison(x))
        return x;
    if (!tape)
        return wf_tape_fail(tape, WF_ERR_STATE, "positions: no tape");
    if (wf_ndim(x) != 2 || wf_dim(x, 1) != wf_dim(m->weight, 1))
        return wf_tape_fail(tape, WF_ERR_SHAPE, "positions: '%s' is not [N,%lld]", wf_name_of(x), (long long)wf_dim(m->weight, 1));
    if (wf_packed_check(packed, wf_dim(x, 0), "positions: packed", &error) != WF_OK)
        return wf_tape_fail(tape, error.code, "%s", error.message);
    int32_t *place = wf_tape_memory(tape, (size_t)(wf_dim(x, 0) + 1) * sizeof *place);
    if (!place)
        return wf_tape_fail(tape, WF_ERR_MEMORY, "no memory for positions");
    for (int i = 0; i < packed.count; i++) {
        const int64_t length = packed.offsets[i + 1] - packed.offsets[i];
        if (length > m->length)
            return wf_tape_fail(tape, WF_ERR_SHAPE, "positions: sequence %d has length %lld, but the model has %lld positions: shorten it",
                                i, (long long)length, (long long)m->length);
        for (int32_t t = 0; t < length; t++)
            place[packed.offsets[i] + t] = t;
    }
    return end_branch(wf_embedding(m->weight, wf_ids_of(tape, place, WF_SHAPE(wf_dim(x, 0)))), 0, x); /* [N,d] */
}
