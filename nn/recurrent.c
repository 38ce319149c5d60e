/* SPDX-License-Identifier: MIT */
/* States of recurrent layers in a cache. */
#include "internal.h"

/* Whether the cache holds states of `rows` rows and this width, and the tape is in WF_INFER. If not, the tape has the error. */
static bool states_fit(wf_tape *tape, const char *what, const struct wf_kv *kv, int64_t rows, int64_t width)
{
    const struct wf_cache *cache = kv->cache;
    if (!cache || cache->error.code != WF_OK)
        wf_tape_fail(tape, cache ? cache->error.code : WF_ERR_ARGUMENT, "%s: %s", what,
                     cache ? cache->error.message : "the cache was not made with wf_cache_init_states");
    else if (!cache->states)
        wf_tape_fail(tape, WF_ERR_STATE, "%s: the cache holds keys and values: make it with wf_cache_init_states", what);
    else if (wf_tape_mode(tape) != WF_INFER)
        wf_tape_fail(tape, WF_ERR_STATE, "%s: a cache works in WF_INFER only", what);
    else if (rows != cache->rows || width != cache->key_width)
        wf_tape_fail(tape, WF_ERR_SHAPE, "%s: the cache has %lld rows with states of width %lld, but the call has %lld rows of %lld", what,
                     (long long)cache->rows, (long long)cache->key_width, (long long)rows, (long long)width);
    else
        return true;
    return false;
}

wf_tensor *wf_kv_state(const struct wf_kv *kv, wf_tensor *x, int64_t width)
{
    wf_tape *tape = wf_tape_of(x);
    if (!x || !tape)
        return wf_tape_fail(tape, WF_ERR_ARGUMENT, "wf_kv_state: x is NULL, or there is no tape");
    if (wf_is_poison(x))
        return x;
    const int64_t rows = wf_dim(x, 0);
    if (width < 1)
        return wf_tape_fail(tape, WF_ERR_ARGUMENT, "wf_kv_state: width = %lld must be at least 1", (long long)width);
    if (!kv)
        return wf_zeros(tape, WF_SHAPE(rows, width));
    return states_fit(tape, "wf_kv_state", kv, rows, width) ? wf_input(tape, kv->keys, WF_SHAPE(rows, width), false)
                                                            : wf_tape_fail(tape, WF_ERR_STATE, "wf_kv_state");
}

void wf_kv_set_state(struct wf_kv *kv, wf_tensor *state)
{
    wf_tape *tape = wf_tape_of(state);
    wf_array a;
    if (!kv || (state && wf_is_poison(state)))
        return;
    if (!state || !tape)
        wf_tape_fail(tape, WF_ERR_ARGUMENT, "wf_kv_set_state: the state is NULL, or there is no tape");
    else if (wf_ndim(state) != 2 || wf_dtype_of(state) != WF_REAL)
        wf_tape_fail(tape, WF_ERR_SHAPE, "wf_kv_set_state: '%s' is not [R,width] of reals", wf_name_of(state));
    else if (states_fit(tape, "wf_kv_set_state", kv, wf_dim(state, 0), wf_dim(state, 1)) && wf_view(state, &a) == WF_OK) {
        const wf_array to = wf_array_contiguous(kv->keys, WF_REAL, WF_SHAPE(a.dim[0], a.dim[1]));
        wf_array_copy(&to, &a);
        kv->written = true;
    }
}
