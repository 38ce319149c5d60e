/* SPDX-License-Identifier: MIT */
/* A call of attention, for its forward and its backward. (attention_plan.c) */
#ifndef WEFT_OPS_ATTENTION_PLAN_H
#define WEFT_OPS_ATTENTION_PLAN_H

#include <stdatomic.h>

#include <weft/internal/attention.h>

#include "attention.h"
#include "common.h"

/* An operand [B, T, width] or packed [N, width] with its elements side by side. */
struct attention_rows {
    wf_real *data;
    int64_t item, step;
};

struct attention_plan {
    const wf_call *c;
    const struct attention_attr *attr;
    int64_t sequences, heads, groups, share;        /* `share` query heads to each of the groups of keys */
    int64_t queries, keys, e, f;                    /* T and S; of packed rows N and M */
    int64_t longest;                                /* T of the longest sequence */
    double scores;                                  /* scores that are computed, all heads */
    struct attention_rows in[3], out, dout, din[3]; /* data NULL where there is none */
    bool add[3];
    wf_array mask, bias; /* as [B, H, T, S], of packed rows [n, H, L, M] */
    wf_array dbias;      /* the same, but of size 1 where the bias is broadcast over batch, queries or keys; data NULL if not wanted */
    bool in_turn;        /* backward: one block computes all sequences, which add to one gradient of the bias */
    struct wf_attention common; /* the members that all sequences and heads share */
    int64_t chunk, chunks;      /* forward: queries of a block */
    _Atomic bool no_memory;
};

bool wf_attention_adjoin(const wf_array *a); /* elements of a row lie side by side */
struct attention_rows wf_attention_rows(const wf_array *a);
/* `a`, or a copy whose elements lie side by side. False without memory. */
bool wf_attention_operand(wf_call *c, const wf_array *a, struct attention_rows *out);
/* False without memory. */
bool wf_attention_plan(wf_call *c, struct attention_plan *p);
/* The work of a block: sequence i and group g of heads. */
struct wf_attention wf_attention_problem(const struct attention_plan *p, int64_t i, int64_t g);

#endif
