/* SPDX-License-Identifier: MIT */
/* The operands of the attention kernels: one sequence, and one head of keys with the query heads that share it. The op
 * (autograd/ops/attention_plan.c) makes one such struct for each block of its parallel loops. */
#ifndef WEFT_INTERNAL_ATTENTION_H
#define WEFT_INTERNAL_ATTENTION_H

#include <weft/array.h>
#include <weft/internal/gemm.h>

enum {
    WF_ATTENTION_QUERIES = 32, /* queries in a tile; they lie in the lanes of registers */
    WF_ATTENTION_KEYS = 64,    /* keys in a tile; tiles begin at multiples of this number from key 0 on */
    WF_ATTENTION_PIECE = 512   /* queries whose contributions to dk and dv are summed before the sum is added to dk and dv */
};

/* Steps in elements of a mask or bias from one head, query and key to the next; 0 along a dimension that is broadcast. */
struct wf_attention_steps {
    int64_t head, query, key;
};

struct wf_attention {
    int64_t queries;  /* T, the number of queries */
    int64_t keys;     /* number of keys that a query may attend to: min(S, key length) */
    int64_t all_keys; /* S, the number of all keys: rows of dk and dv, columns of the weights */
    int64_t e;        /* elements of a head of q and k */
    int64_t f;        /* elements of a head of v and out */
    int64_t heads;    /* query heads that share these keys; head r of q begins at q + r e, head r of out at out + r f */
    const wf_real *q, *k, *v;
    /* The steps q_step to out_step are elements from one row to the next. */
    int64_t q_step, k_step, v_step;
    wf_real *out;
    int64_t out_step;
    /* The statistics of the softmax of each query, [heads][per_head]. The forward kernel writes them unless they are NULL, and the backward
     * kernel reads them. One number, top + log2(1 / inverse), would not be enough: if `top` is huge, this number is rounded to
     * `top`, and it no longer tells how many keys have the greatest score. */
    wf_real *top;                /* the greatest score, times log2 e; +inf for a query that may attend to no key */
    wf_real *inverse;            /* 1 / (sum over keys of 2^(score log2 e - top)); 0 for a query that may attend to no key */
    int64_t per_head;            /* elements of top and inverse from one head to the next */
    enum wf_precision precision; /* the arithmetic of the products with q, k, v, weights and gradients */
    wf_real scale;
    wf_real cap;         /* scores become cap tanh(score / cap) before masks; 0: scores are not capped */
    int64_t first_limit; /* query t sees keys s < first_limit + t (causal, window); WF_ATTENTION_ALL: no such limit */
    int64_t first_key;   /* query t sees keys s >= first_key + t (window); -WF_ATTENTION_ALL: no such limit */
    const bool *mask;    /* true: the query may attend to the key; NULL: no mask */
    struct wf_attention_steps mask_step;
    /* Added to the scores after the cap, and before the factor log2 e; -inf masks a key. NULL: no bias. */
    const wf_real *bias;
    struct wf_attention_steps bias_step;
    wf_real *weights;     /* [heads][queries][all_keys], may be NULL */
    int64_t weights_head; /* elements of `weights` from one head to the next */
    /* The dropout of head r, query t and key s has the bits that the kernel `dropout` uses for element s of row first_row + r row_head +
     * t row_query. */
    uint32_t threshold; /* 0: no dropout */
    uint32_t call;
    wf_real keep_scale;
    uint64_t seed, step, first_row, row_head, row_query;
    /* The members from here on are for the backward kernel. */
    const wf_real *dout;
    int64_t dout_step;
    /* Gradients of q, k and v, with the same layout of heads; NULL if not wanted. */
    wf_real *dq, *dk, *dv;
    int64_t dq_step, dk_step, dv_step;
    /* true: the gradient is added to the contents; false: it overwrites them. */
    bool dq_add, dk_add, dv_add;
    wf_real key_scale; /* factor of dk as it is written: `scale`, or 1 if the caller multiplies by `scale` later */
    wf_real *dbias; /* the gradient is added to it; NULL if not wanted. A step of 0 sums over that dimension; the step of keys is 1 or 0 */
    struct wf_attention_steps dbias_step;
};
#define WF_ATTENTION_ALL (INT64_MAX / 4)

/* The work of one call of the backward kernel: heads head .. head_end - 1 and their queries begin .. end - 1, where `begin` is a
 * multiple of WF_ATTENTION_PIECE. If `alone`, the work is at most WF_ATTENTION_PIECE queries of one head, and the kernel writes only the
 * rows of dk and dv for keys wf_attention_first .. wf_attention_end - 1. */
struct wf_attention_part {
    int64_t head, head_end, begin, end;
    bool alone;
};

/* The key at which the kernels start for queries q0 and later: the first key that one of these queries may attend to, rounded down to a
 * multiple of 16, or in bf16 to the start of a step of its arithmetic. The next tiles start at multiples of WF_ATTENTION_KEYS. A key that a
 * query may not attend to is masked, and a masked key changes no bit of the result. */
static inline int64_t wf_attention_begin(const struct wf_attention *a, int64_t q0)
{
    const int64_t first = a->first_key + q0, grain = a->precision == WF_PRECISION_BF16 ? WF_BF16_K : 16;
    return first > 0 ? first / grain * grain : 0;
}
/* The end of the keys that at least one of the queries q0 .. q0 + rows - 1 may attend to. */
static inline int64_t wf_attention_end(const struct wf_attention *a, int64_t q0, int64_t rows)
{
    int64_t limit = a->first_limit >= WF_ATTENTION_ALL ? a->keys : a->first_limit + q0 + rows - 1;
    return limit < 0 ? 0 : limit < a->keys ? limit : a->keys;
}
/* The first key that gets a gradient from queries q0 and later, rounded down to the start of a tile. */
static inline int64_t wf_attention_first(const struct wf_attention *a, int64_t q0)
{
    const int64_t first = wf_attention_begin(a, q0) / WF_ATTENTION_KEYS * WF_ATTENTION_KEYS;
    return first < a->all_keys ? first : a->all_keys;
}
/* The number of keys that the forward kernel packs for queries begin .. end - 1: from the start of the first tile to wf_attention_end. */
static inline int64_t wf_attention_span(const struct wf_attention *a, int64_t begin, int64_t end)
{
    int64_t first = wf_attention_begin(a, begin) / WF_ATTENTION_KEYS * WF_ATTENTION_KEYS, last = wf_attention_end(a, begin, end - begin);
    return last > first ? last - first : 0;
}

/* The numbers of elements of scratch memory (64-byte aligned) that the kernels need. */
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
