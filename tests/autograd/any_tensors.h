/* SPDX-License-Identifier: MIT */
/* The tensors so far, from which random calls take their operands, and new ones. */
#ifndef TESTS_ANY_TENSORS_H
#define TESTS_ANY_TENSORS_H

#include "any.h"

enum { POOL = 24 };

static wf_tensor *pool[POOL];
static wf_tape *tape, *other;
static const wf_tensor *of_other;

static wf_tensor *any(void)
{
    return below(300) ? pool[below(POOL)] : NULL;
}

/* Mostly a real tensor. */
static wf_tensor *real(void)
{
    for (int i = 0; i < 20; i++) {
        wf_tensor *x = any();
        if (x && wf_dtype_of(x) == WF_REAL && !wf_is_poison(x) && x != of_other)
            return x;
    }
    return any();
}

/* Mostly one that suits a. */
static wf_tensor *like(wf_tensor *a, bool matrix)
{
    for (int i = 0; a && i < 60; i++) {
        wf_tensor *x = real();
        if (matrix ? wf_ndim(x) == 2 && wf_dim(x, 1) == wf_dim(a, -1)
                   : wf_ndim(x) <= wf_ndim(a) && (wf_ndim(x) == 0 || wf_dim(x, -1) == wf_dim(a, -1)))
            return x;
    }
    return any();
}

static wf_tensor *make(int kind)
{
    int32_t ids[64];
    bool may[64];
    wf_shape s = any_shape();
    for (int i = 0; i < 64; i++) {
        ids[i] = (int32_t)(below(3000) ? below(2) : below(3) - 4);
        may[i] = below(2);
    }
    int64_t count = wf_shape_count(&s);
    switch (kind < 2 ? kind : below(9) ? 4 : 2 + (int)below(2)) {
    case 0:
        return count <= 64 ? wf_ids_of(tape, seldom(500) ? NULL : ids, seldom(500) ? NULL : &s) : wf_ids(tape, ids, 2, 4);
    case 1:
        return count <= 64 ? wf_bools(tape, may, &s) : NULL;
    case 2:
        return has_data(&s) ? wf_zeros(tape, seldom(500) ? NULL : &s) : NULL;
    case 3: {
        wf_array a = wf_array_contiguous((void *)any_data, below(200) ? WF_REAL : (wf_dtype)below(40), &s);
        return has_data(&s) && (a.dtype == WF_REAL || count <= 64) ? wf_borrow(tape, &a) : NULL;
    }
    default:
        return has_data(&s) ? wf_input(tape, below(5000) ? any_data : NULL, &s, below(2)) : NULL;
    }
}

/* One more result of a call. */
static void add_to_pool(wf_tensor *x)
{
    pool[8 + below(POOL - 8)] = x;
}

#endif
