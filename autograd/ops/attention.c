/* SPDX-License-Identifier: MIT */
/* The op attention, fused: forward, test cases and constructor. Backward is in attention_backward.c, and the kernels are in
 * core/kernels/attention_*.c. Forward keeps two numbers for each query and head for backward, and no weights. */
#include <string.h>

#include "attention_plan.h"

/* --- forward ------------------------------------------------------------------------------------------------------- */

enum {
    FEW = 8,       /* up to this many queries the kernel attention_rows is faster than attention_forward */
    BLOCKS = 32,   /* if sequences times heads of keys are fewer, forward divides the queries of a sequence into chunks, for more threads */
    SHORTEST = 128 /* a chunk has about this many queries or more (or four windows, if these are more), since each chunk packs its keys */
};

static void forward_block(void *ctx, int64_t block)
{
    struct attention_plan *p = ctx;
    int64_t head = block / p->chunks, begin = block % p->chunks * p->chunk;
    struct wf_attention a = wf_attention_problem(p, head / p->groups, head % p->groups);
    int64_t end = WF_MIN(a.queries, begin + p->chunk);
    if (begin >= end)
        return;
    if (a.queries <= FEW && !a.top && !a.weights && !a.threshold) {
        wf_kernel->internal->attention_rows(&a, begin, end);
        return;
    }
    wf_real *scratch =
        wf_scratch(WF_SCRATCH_OP, (size_t)wf_attention_forward_scratch(wf_attention_span(&a, begin, end), a.e, a.f) * sizeof *scratch);
    if (scratch)
        wf_kernel->internal->attention_forward(&a, begin, end, scratch);
    else
        atomic_store(&p->no_memory, true);
}

static wf_status attention_forward(wf_call *c)
{
    struct attention_plan p;
    /* A batch without queries has no elements, but its B may be huge: return before any loop over B. */
    if (wf_array_count(&c->out[0]) == 0)
        return WF_OK;
    if (!wf_attention_plan(c, &p))
        return WF_ERR_MEMORY;
    const int64_t window = p.attr->window < p.longest ? p.attr->window : 0, shortest = WF_MAX(4 * window, SHORTEST);
    int64_t heads = p.sequences * p.groups, most = (p.longest + shortest - 1) / shortest;
    p.chunks = heads >= BLOCKS || heads == 0 ? 1 : (BLOCKS + heads - 1) / heads;
    p.chunks = WF_MIN(p.chunks, WF_MAX(most, 1));
    p.chunk = (p.longest + p.chunks * WF_ATTENTION_QUERIES - 1) / (p.chunks * WF_ATTENTION_QUERIES) * WF_ATTENTION_QUERIES;
    double cost = p.scores * (0.5 + 0.03 * (double)(p.e + p.f)) * (c->outputs > 1 ? 2 : 1) + 150 * (double)heads;
    wf_parallel(heads * p.chunks, cost, forward_block, &p);
    return p.no_memory ? wf_call_fail(c, WF_ERR_MEMORY, "no memory for tiles") : WF_OK;
}

/* --- descriptor and constructor ------------------------------------------------------------------------------------ */

/* clang-format off */
#define A(...) .attr = &(const struct attention_attr){__VA_ARGS__}
#define BOOLS(...) .fill = {0, 0, 0, WF_FILL_BOOLS}, .in = {__VA_ARGS__}
#define BIASED(...) .fill = {0, 0, 0, WF_FILL_ABSENT}, .inputs = 5, .in = {__VA_ARGS__}
/* For biases with one value for all keys of a query. Such a bias changes no weight, so its exact gradient is 0. The computed gradient is
 * rounding noise, which cannot be compared with differences. */
#define ONE_FOR_ALL_KEYS .constant = {[BIAS] = true}
#define I32(...) (const int32_t[]){__VA_ARGS__}
#define PACKED(n, q, k) .packed = {q, n}, .k_packed = {k, n}
const wf_op wf_op_attention = {
    .name = "attention", .operands = "q k v mask bias", .attr_size = sizeof(struct attention_attr), .random = true,
    .reads = WF_READS_INPUT(Q) | WF_READS_INPUT(K) | WF_READS_INPUT(V) | WF_READS_INPUT(MASK) | WF_READS_INPUT(BIAS) | WF_READS_OUTPUT(0),
    .rounds = WF_READS_INPUT(Q) | WF_READS_INPUT(K) | WF_READS_INPUT(V),
    .shape = wf_attention_shape, .forward = attention_forward, .backward = wf_attention_backward,
    .cases = WF_CASES(
        {"plain", {{2, 5, 6}, {2, 5, 6}, {2, 5, 6}}, A(2, 2)},
        {"one query", {{2, 1, 6}, {2, 9, 6}, {2, 9, 6}}, A(2, 2, .causal = true)},
        {"causal", {{2, 7, 8}, {2, 7, 8}, {2, 7, 8}}, A(2, 2, .causal = true)},
        {"causal, more keys", {{1, 3, 4}, {1, 8, 4}, {1, 8, 4}}, A(1, 1, .causal = true)},
        {"causal, more queries", {{1, 8, 4}, {1, 3, 4}, {1, 3, 4}}, A(1, 1, .causal = true)},
        {"lengths", {{3, 4, 6}, {3, 5, 6}, {3, 5, 6}}, A(2, 2, .key_lengths = I32(5, 0, 2))},
        {"lengths, causal", {{3, 4, 6}, {3, 6, 6}, {3, 6, 6}}, A(2, 2, .causal = true, .key_lengths = I32(6, 1, 3))},
        {"starts, causal", {{3, 4, 6}, {3, 7, 6}, {3, 7, 6}}, A(2, 2, .causal = true, .starts = I32(3, 0, 7))},
        {"starts, lengths, causal", {{2, 9, 6}, {2, 40, 6}, {2, 40, 6}}, A(2, 2, .causal = true, .starts = I32(31, 2), .key_lengths = I32(40, 11))},
        {"window, causal", {{2, 9, 8}, {2, 9, 8}, {2, 9, 8}}, A(2, 2, .causal = true, .window = 3)},
        {"window", {{2, 9, 8}, {2, 9, 8}, {2, 9, 8}}, A(2, 2, .window = 2)},
        {"window of one", {{1, 5, 4}, {1, 5, 4}, {1, 5, 6}}, A(1, 1, .window = 1)},
        {"window, more keys", {{1, 3, 4}, {1, 12, 4}, {1, 12, 4}}, A(1, 1, .window = 4)},
        {"window, more queries", {{1, 9, 4}, {1, 5, 4}, {1, 5, 4}}, A(1, 1, .causal = true, .window = 2)},
        {"window, starts", {{2, 4, 6}, {2, 9, 6}, {2, 9, 6}}, A(2, 2, .window = 2, .starts = I32(4, 0))},
        {"window, starts, lengths, causal", {{2, 4, 6}, {2, 9, 6}, {2, 9, 6}},
         A(2, 2, .causal = true, .window = 3, .starts = I32(5, 2), .key_lengths = I32(9, 3))},
        {"window, mask, causal", BOOLS({2, 9, 6}, {2, 9, 6}, {2, 9, 6}, {2, 2, 9, 9}), A(2, 2, .causal = true, .window = 4)},
        {"window, packed", {{9, 8}, {9, 4}, {9, 4}}, A(4, 2, .window = 2, PACKED(3, I32(0, 4, 4, 9), I32(0, 4, 4, 9)))},
        {"window over the edges of tiles", {{1, 150, 6}, {1, 150, 6}, {1, 150, 6}}, A(1, 1, .causal = true, .window = 40)},
        {"window over the edges of tiles, dropout", {{1, 90, 6}, {1, 150, 6}, {1, 150, 6}}, A(1, 1, .window = 30, .dropout = 0.3), .train = true},
        {"softcap", {{2, 5, 6}, {2, 7, 6}, {2, 7, 4}}, A(2, 2, .scale = 1.5, .softcap = 0.7)},
        {"softcap, causal", {{2, 7, 8}, {2, 7, 4}, {2, 7, 4}}, A(4, 2, .causal = true, .softcap = 2)},
        {"softcap, mask, window", BOOLS({2, 9, 6}, {2, 11, 6}, {2, 11, 6}, {2, 2, 9, 11}), A(2, 2, .softcap = 1, .window = 6)},
        {"softcap over the edges of tiles, dropout", {{1, 70, 10}, {1, 131, 10}, {1, 131, 6}},
         A(1, 1, .causal = true, .window = 90, .softcap = 3, .dropout = 0.1), .train = true},
        {"softcap, packed, lengths apart", {{9, 6}, {11, 6}, {11, 4}},
         A(2, 2, .softcap = 1, PACKED(4, I32(0, 4, 4, 9, 9), I32(0, 5, 7, 11, 11)))},
        {"bias", BIASED({2, 5, 6}, {2, 7, 6}, {2, 7, 4}, {0}, {2, 2, 5, 7}), A(2, 2)},
        {"bias of heads", BIASED({3, 5, 8}, {3, 7, 4}, {3, 7, 4}, {0}, {4, 5, 7}), A(4, 2, .causal = true)},
        {"bias of pairs", BIASED({2, 5, 6}, {2, 5, 6}, {2, 5, 6}, {0}, {1, 5, 5}), A(2, 2, .window = 3)},
        {"bias of keys", BIASED({2, 5, 6}, {2, 7, 6}, {2, 7, 4}, {0}, {2, 1, 7}), A(2, 2, .key_lengths = I32(7, 3))},
        {"bias of queries, softcap", BIASED({2, 5, 6}, {2, 7, 6}, {2, 7, 4}, {0}, {2, 1, 5, 1}), ONE_FOR_ALL_KEYS, A(2, 2, .softcap = 2)},
        {"bias of one number", BIASED({2, 5, 6}, {2, 7, 6}, {2, 7, 4}, {0}, {1}), ONE_FOR_ALL_KEYS, A(2, 2)},
        {"bias, mask, softcap", .fill = {0, 0, 0, WF_FILL_BOOLS}, .in = {{2, 9, 6}, {2, 11, 6}, {2, 11, 6}, {9, 11}, {1, 2, 9, 11}},
         A(2, 2, .softcap = 1)},
        {"bias over the edges of tiles, dropout", BIASED({2, 70, 6}, {2, 131, 6}, {2, 131, 6}, {0}, {70, 131}),
         A(1, 1, .causal = true, .dropout = 0.1), .train = true},
        {"bias of heads, packed", BIASED({9, 8}, {9, 4}, {9, 4}, {0}, {4, 5, 5}),
         A(4, 2, .causal = true, PACKED(3, I32(0, 4, 4, 9), I32(0, 4, 4, 9)))},
        {"bias of each sequence, packed", BIASED({9, 6}, {11, 6}, {11, 4}, {0}, {4, 2, 5, 5}),
         A(2, 2, .softcap = 2, PACKED(4, I32(0, 4, 4, 9, 9), I32(0, 5, 7, 11, 11)))},
        {"bias larger than all sequences, packed", BIASED({5, 4}, {6, 4}, {6, 4}, {0}, {6, 7}),
         A(2, 2, .window = 3, PACKED(2, I32(0, 2, 5), I32(0, 4, 6)))},
        {"bias of keys, packed", BIASED({5, 4}, {6, 4}, {6, 4}, {0}, {2, 1, 4}), A(2, 2, PACKED(2, I32(0, 2, 5), I32(0, 4, 6)))},
        {"bias over the edges of tiles, packed, dropout", BIASED({80, 6}, {140, 6}, {140, 6}, {0}, {45, 75}),
         A(1, 1, .causal = true, .dropout = 0.1, PACKED(2, I32(0, 35, 80), I32(0, 75, 140))), .train = true},
        {"mask, packed", BOOLS({9, 6}, {11, 6}, {11, 4}, {2, 5, 5}), A(2, 2, PACKED(4, I32(0, 4, 4, 9, 9), I32(0, 5, 7, 11, 11)))},
        {"mask, bias, packed", .fill = {0, 0, 0, WF_FILL_BOOLS}, .in = {{5, 4}, {6, 4}, {6, 4}, {2, 1, 3, 4}, {3, 9}},
         A(2, 2, .causal = true, PACKED(2, I32(0, 2, 5), I32(0, 4, 6)))},
        {"mask", BOOLS({2, 9, 6}, {2, 11, 6}, {2, 11, 6}, {2, 2, 9, 11}), A(2, 2)},
        {"mask of keys", BOOLS({3, 4, 6}, {3, 5, 6}, {3, 5, 6}, {3, 1, 1, 5}), A(2, 2)},
        {"mask of pairs, causal", BOOLS({2, 6, 4}, {2, 6, 4}, {2, 6, 4}, {6, 6}), A(2, 2, .causal = true)},
        {"shared keys, wide values", {{2, 5, 12}, {2, 4, 6}, {2, 4, 10}}, A(4, 2, .scale = 0.3)},
        {"wide values", {{1, 6, 3}, {1, 6, 3}, {1, 6, 21}}, A(1, 1, .causal = true)},
        {"packed, an empty sentence", {{9, 6}, {11, 6}, {11, 4}},
         A(2, 2, PACKED(4, I32(0, 4, 4, 9, 9), I32(0, 5, 7, 11, 11)))},
        {"packed, causal", {{9, 8}, {9, 4}, {9, 4}},
         A(4, 2, .causal = true, PACKED(3, I32(0, 4, 4, 9), I32(0, 4, 4, 9)))},
        {"packed, a sentence without keys", {{5, 4}, {3, 4}, {3, 4}},
         A(2, 2, PACKED(2, I32(0, 2, 5), I32(0, 0, 3)))},
        {"dropout", {{2, 6, 8}, {2, 9, 8}, {2, 9, 8}}, A(2, 2, .dropout = 0.3), .train = true},
        {"dropout, shared keys, causal", {{2, 6, 8}, {2, 6, 4}, {2, 6, 4}}, A(4, 2, .dropout = 0.5, .causal = true), .train = true},
        {"dropout, packed", {{9, 6}, {9, 6}, {9, 6}},
         A(2, 2, .dropout = 0.2, PACKED(2, I32(0, 4, 9), I32(0, 4, 9))), .train = true},
        {"over the edges of tiles", {{1, 70, 10}, {1, 70, 10}, {1, 70, 6}}, A(2, 2, .causal = true)},
        {"over the edges of tiles, dropout", {{1, 37, 17}, {1, 131, 17}, {1, 131, 19}}, A(1, 1, .dropout = 0.1), .train = true},
        {"no queries", {{2, -1, 4}, {2, 3, 4}, {2, 3, 4}}, A(2, 2)},
        {"no keys", {{2, 3, 4}, {2, -1, 4}, {2, -1, 4}}, A(2, 2)},
        {"empty", {{-1, 3, 4}, {-1, 3, 4}, {-1, 3, 4}}, A(2, 2)})};
/* clang-format on */

/* A copy of the first `count` elements of `list` in the tape's memory. NULL if there is no list, or no memory (an error of the tape). */
static const int32_t *copied(wf_tape *tape, const int32_t *list, int64_t count)
{
    if (!tape || !list || count < 0)
        return NULL;
    int32_t *copy = wf_tape_memory(tape, (size_t)(count + 1) * sizeof *copy);
    return copy ? memcpy(copy, list, (size_t)count * sizeof *copy) : NULL;
}

wf_tensor *wf_attention_with(wf_tensor *q, wf_tensor *k, wf_tensor *v, const struct wf_attention_options *options)
{
    static const struct wf_attention_options none;
    const struct wf_attention_options *o = options ? options : &none;
    wf_tape *tape = wf_tape_of_operands(3, (wf_tensor *[]){q, k, v});
    struct attention_attr a = {.heads = o->heads ? o->heads : 1,
                               .scale = o->scale,
                               .dropout = o->dropout,
                               .causal = o->causal,
                               .window = o->window,
                               .softcap = o->softcap};
    a.kv_heads = o->kv_heads ? o->kv_heads : a.heads;
    /* key_lengths and starts have B elements: they are copied only if q and k agree on B. Otherwise the shape rule refuses the operands
     * before it reads the lists. */
    const bool batch = !wf_is_packed(o->packed) && wf_ndim(q) == 3 && wf_ndim(k) == 3 && wf_dim(q, 0) == wf_dim(k, 0);
    a.key_lengths = batch ? copied(tape, o->key_lengths, wf_dim(q, 0)) : o->key_lengths;
    a.starts = batch ? copied(tape, o->starts, wf_dim(q, 0)) : o->starts;
    if (tape && wf_is_packed(o->k_packed) && !wf_is_packed(o->packed))
        wf_tape_fail(tape, WF_ERR_ARGUMENT, "attention: k_packed is given without packed");
    a.packed = wf_packed_copy(tape, o->packed);
    a.k_packed = wf_is_packed(o->k_packed) ? wf_packed_copy(tape, o->k_packed) : a.packed;
    wf_tensor *out[2];
    wf_apply_multi(&wf_op_attention, &a,
                   o->bias   ? 5
                   : o->mask ? 4
                             : 3,
                   (wf_tensor *[]){q, k, v, o->mask, o->bias}, o->weights ? 2 : 1, out);
    if (o->weights)
        *o->weights = out[1];
    return out[0];
}
