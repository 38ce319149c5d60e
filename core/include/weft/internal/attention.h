/* SPDX-License-Identifier: MIT */
/* The operands of the attention kernels: one sequence and one head of keys, with the query heads that share it. The op
 * (autograd/ops/attention_plan.c) makes one of these for each block of its parallel loops. */
#ifndef WEFT_INTERNAL_ATTENTION_H
#define WEFT_INTERNAL_ATTENTION_H

#include <weft/base.h>

enum {
    WF_ATTENTION_QUERIES = 32, /* of a tile: they lie in the lanes of registers */
    WF_ATTENTION_KEYS = 64,    /* of a tile; tiles begin at multiples of this from key 0 */
    WF_ATTENTION_PIECE = 512   /* queries whose gradients of keys are summed before they are added to those of others */
};

/* From head to head, query to query and key to key of a mask or bias; 0 where it is broadcast. */
struct wf_attention_steps {
    int64_t head, query, key;
};

struct wf_attention {
    int64_t queries, keys; /* T and the keys that may be attended at all: min(S, key length) */
    int64_t all_keys;      /* S: rows of dk and dv, columns of the weights */
    int64_t e, f;          /* sizes of a head of q and k, and of v */
    int64_t heads;         /* query heads that share these keys. Head r of q begins at q + r e, of out at out + r f, ... */
    const wf_real *q, *k, *v;
    int64_t q_step, k_step, v_step; /* from row to row, elements */
    wf_real *out;
    int64_t out_step;
    /* Forward: written unless NULL; backward: read. The greatest score of a query, times log2 e, and 1 over the sum of 2^(score log2 e -
     * top); +inf and 0 for a row that may attend to nothing. Two numbers: in a logarithm of the sum the number of keys is lost where scores
     * are huge. [heads][per_head] each */
    wf_real *top, *inverse;
    int64_t per_head;
    wf_real scale;
    wf_real cap;         /* 0: none; scores are cap tanh(score / cap) before masks */
    int64_t first_limit; /* query t sees keys s < first_limit + t (causal, window); WF_ATTENTION_ALL without that */
    int64_t first_key;   /* and s >= first_key + t (window); -WF_ATTENTION_ALL without that */
    const bool *mask;    /* may be NULL; strides may be 0 */
    struct wf_attention_steps mask_step;
    /* Real, in natural units: added to (capped) scores; -inf masks. bias NULL: none; strides may be 0. */
    const wf_real *bias;
    struct wf_attention_steps bias_step;
    wf_real *weights; /* [heads][queries][all_keys], may be NULL */
    int64_t weights_head;
    /* dropout, as the kernel `dropout` makes it for row first_row + r row_head + t row_query, offset = key */
    uint32_t threshold, call; /* threshold 0: none */
    wf_real keep_scale;
    uint64_t seed, step, first_row, row_head, row_query;
    /* backward */
    const wf_real *dout;
    int64_t dout_step;
    wf_real *dq, *dk, *dv; /* NULL where not wanted; heads as in q, k and v */
    int64_t dq_step, dk_step, dv_step;
    bool dq_add, dk_add, dv_add; /* add to what is there, or overwrite it */
    wf_real key_scale;           /* of dk as it is written: `scale`, or 1 where that comes later */
    wf_real *dbias;              /* added to; NULL where not wanted. A stride of 0 sums over queries, or over keys; the keys' is 1 or 0 */
    struct wf_attention_steps dbias_step;
};
#define WF_ATTENTION_ALL (INT64_MAX / 4)

/* The work of one call of the backward kernel: heads and queries, of which `begin` is a multiple of WF_ATTENTION_PIECE. Alone: one piece of
 * one head, whose dk and dv are for keys wf_attention_first .. wf_attention_end - 1, and nothing is written outside these. */
struct wf_attention_part {
    int64_t head, head_end, begin, end;
    bool alone;
};

/* The key at which kernels begin for queries q0 and later: the first key that one of them may attend to, or a little before. Tiles begin
 * there and at the following multiples of WF_ATTENTION_KEYS. Other keys of a tile are masked; masked keys are exact no-ops. */
static inline int64_t wf_attention_begin(const struct wf_attention *a, int64_t q0)
{
    int64_t first = a->first_key + q0;
    return first > 0 ? first / 16 * 16 : 0;
}
/* The end of the keys that any of the queries q0 .. q0 + rows - 1 may attend to. */
static inline int64_t wf_attention_end(const struct wf_attention *a, int64_t q0, int64_t rows)
{
    int64_t limit = a->first_limit >= WF_ATTENTION_ALL ? a->keys : a->first_limit + q0 + rows - 1;
    return limit < 0 ? 0 : limit < a->keys ? limit : a->keys;
}
/* The first key with a gradient from queries q0 and later: in whole tiles. */
static inline int64_t wf_attention_first(const struct wf_attention *a, int64_t q0)
{
    const int64_t first = wf_attention_begin(a, q0) / WF_ATTENTION_KEYS * WF_ATTENTION_KEYS;
    return first < a->all_keys ? first : a->all_keys;
}
/* The number of keys between them, in whole tiles from key 0 on at the beginning: what the forward kernel packs. */
static inline int64_t wf_attention_span(const struct wf_attention *a, int64_t begin, int64_t end)
{
    int64_t first = wf_attention_begin(a, begin) / WF_ATTENTION_KEYS * WF_ATTENTION_KEYS, last = wf_attention_end(a, begin, end - begin);
    return last > first ? last - first : 0;
}

/* Elements of scratch (64-byte aligned) that the kernels take. */
static inline int64_t wf_attention_pad(int64_t n)
{
    return (n + 15) / 16 * 16;
}
static inline int64_t wf_attention_forward_scratch(int64_t keys, int64_t e, int64_t f)
{
    int64_t pe = wf_attention_pad(e), pf = wf_attention_pad(f);
    return keys * (pe + pf) + WF_ATTENTION_QUERIES * (pe + pf) + 3 * WF_ATTENTION_KEYS * WF_ATTENTION_QUERIES + keys / 16 + 1024;
}
static inline int64_t wf_attention_backward_scratch(int64_t keys, int64_t e, int64_t f)
{
    int64_t pe = wf_attention_pad(e), pf = wf_attention_pad(f);
    return 2 * keys * (pe + pf) + WF_ATTENTION_QUERIES * (3 * pe + 3 * pf) + 5 * WF_ATTENTION_KEYS * WF_ATTENTION_QUERIES + keys / 16 +
           1024;
}

#endif
