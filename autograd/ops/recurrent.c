/* SPDX-License-Identifier: MIT */
/* LSTM (Hochreiter and Schmidhuber 1997) and GRU (Cho et al. 2014) over whole sequences, in one direction: forward, test cases and
 * constructors. Backward is in recurrent_backward.c, the kernels of a step are in core/kernels/recurrent.c.
 *
 * One product computes x W_ih^T + b for all steps. Then each step has one product with W_hh, which is packed once for all steps, and the
 * arithmetic of the gates in the same pass. The bits of a sequence depend on this sequence alone, apart from those of the first product,
 * and on no division of the work; so the division may depend on anything. */
#include <string.h>

#include "recurrent.h"

/* --- shape ----------------------------------------------------------------------------------------------------------- */

static bool is_gru(const wf_call *c)
{
    return c->op == &wf_op_gru;
}

/* Fails unless operand i is absent or has this shape. */
static wf_status want_shape(wf_call *c, int i, const char *what, int64_t rows, int64_t columns)
{
    if (!wf_has(c, i))
        return WF_OK;
    if (wf_want(c, i, WF_REAL) != WF_OK)
        return WF_ERR_ARGUMENT;
    const wf_array *a = &c->in[i];
    return a->ndim == 2 && a->dim[0] == rows && a->dim[1] == columns
               ? WF_OK
               : wf_call_fail(c, WF_ERR_SHAPE, "%s must be [%lld,%lld]", what, (long long)rows, (long long)columns);
}

static wf_status recurrent_shape(wf_call *c)
{
    const struct recurrent_attr *a = c->attr;
    const bool gru = is_gru(c), packed = wf_is_packed(a->packed);
    const int64_t G = gru ? 3 : 4;
    if (wf_want(c, X, WF_REAL) != WF_OK || wf_want_stored(c, W_IH) != WF_OK || wf_want(c, W_HH, WF_REAL) != WF_OK)
        return WF_ERR_ARGUMENT;
    const wf_array *x = &c->in[X], *w = &c->in[W_IH], *u = &c->in[W_HH];
    if (x->ndim != (packed ? 2 : 3))
        return wf_call_fail(c, WF_ERR_SHAPE, packed ? "packed x must be [N,in]" : "x must be [B,T,in], or [N,in] with .packed");
    if (packed && wf_want_packed(c, a->packed, "packed", x->dim[0]) != WF_OK)
        return WF_ERR_ARGUMENT;
    const int64_t in = x->dim[x->ndim - 1], B = packed ? a->packed.count : x->dim[0];
    if (u->ndim != 2 || u->dim[0] != G * u->dim[1])
        return wf_call_fail(c, WF_ERR_SHAPE, "weight_hh must be [%d*H,H]", (int)G);
    const int64_t H = u->dim[1];
    if (w->ndim != 2 || w->dim[0] != G * H || w->dim[1] != in)
        return wf_call_fail(
            c, WF_ERR_SHAPE, "weight_ih must be [%d*H,in] = [%lld,%lld] for x %s%s", (int)G, (long long)(G * H), (long long)in,
            packed ? "[N,in]" : "[B,T,in]",
            !packed && w->ndim == 2 && w->dim[1] == x->dim[1] && w->dim[1] != in ? "; wf_transpose(x, 1, 2) makes it of x [B,in,T]" : "");
    if (wf_want_vector(c, B_IH, "bias_ih", G * H) != WF_OK || wf_want_vector(c, B_HH, "bias_hh", G * H) != WF_OK ||
        want_shape(c, H0, "the initial state h", B, H) != WF_OK || want_shape(c, C0, "the initial state c", B, H) != WF_OK)
        return WF_ERR_SHAPE;
    wf_shape shape = wf_array_shape(x), state = {2, {B, H}};
    shape.dim[shape.ndim - 1] = H;
    c->out[Y] = c->saved[KEPT] = wf_call_shape(WF_REAL, &shape);
    for (int i = 1; i < c->outputs; i++)
        c->out[i] = wf_call_shape(WF_REAL, &state);
    shape.dim[shape.ndim - 1] = G * H;
    c->saved[GATES] = wf_call_shape(WF_REAL, &shape);
    return WF_OK;
}

/* --- the steps of all sequences -------------------------------------------------------------------------------------- */

wf_real *wf_recurrence_temp(wf_call *c, int64_t count)
{
    return wf_call_temp(c, WF_REAL, &(wf_shape){1, {WF_MAX(count, 1)}}).data;
}

struct packing {
    bool gru, back;
    int64_t hidden, units;
    const wf_real *from;
    wf_real *to;
};

static void pack_units(void *ctx, int64_t block)
{
    const struct packing *p = ctx;
    const int64_t begin = block * p->units, end = WF_MIN(begin + p->units, p->hidden);
    (p->back ? wf_kernel->internal->cell_pack_back : wf_kernel->internal->cell_pack)(p->gru, p->hidden, p->from, begin, end, p->to);
}

static int64_t units_of(bool back)
{
    return back ? WF_CELL_UNITS_BACK : WF_CELL_UNITS;
}

bool wf_recurrence_of(wf_call *c, bool back, struct recurrence *r)
{
    const struct recurrent_attr *a = c->attr;
    const wf_array *x = &c->in[X], w = wf_call_contiguous(c, &c->in[W_HH]);
    const bool packed = wf_is_packed(a->packed);
    *r = (struct recurrence){.c = c,
                             .gru = is_gru(c),
                             .reverse = a->reverse,
                             .packed = a->packed,
                             .sequences = packed ? a->packed.count : x->dim[0],
                             .length = packed ? 0 : x->dim[1],
                             .longest = packed ? wf_packed_longest(a->packed) : x->dim[1],
                             .n = packed ? x->dim[0] : x->dim[0] * x->dim[1],
                             .hidden = w.dim[1],
                             .gates = w.dim[0]};
    struct packing p = {r->gru, back, r->hidden, units_of(back), w.data, wf_recurrence_temp(c, wf_cell_packed(r->gru, r->hidden, back))};
    const wf_array h0 = wf_has(c, H0) ? wf_call_contiguous(c, &c->in[H0]) : (wf_array){0};
    const wf_array c0 = wf_has(c, C0) ? wf_call_contiguous(c, &c->in[C0]) : (wf_array){0};
    const wf_real *bias;
    if (!w.data || !p.to || (wf_has(c, H0) && !h0.data) || (wf_has(c, C0) && !c0.data) || !wf_vector_of(c, B_HH, &bias))
        return false;
    wf_parallel((r->hidden + p.units - 1) / p.units, 0.5 * (double)r->hidden * (double)r->gates, pack_units, &p);
    r->weights = p.to;
    r->bias = bias && r->gru ? bias + 2 * r->hidden : NULL;
    r->h0 = h0.data;
    r->c0 = c0.data;
    return true;
}

/* Two ways to divide the work. If the weights fit into a core's cache, a block of work is some sequences with all their steps, and threads
 * need not wait for each other. Otherwise a block is some units and rows of one step, so that each thread reads only its part of the
 * weights. */
enum {
    CACHED = 384 * 1024, /* bytes of weights that fit */
    TOGETHER = 8,        /* sequences in a block of the first way */
    CHUNK = 48           /* rows in a block of the second way */
};

struct work {
    struct recurrence *r;
    bool back;
    wf_recurrence_step *step;
    int64_t first, end;
    int64_t chunks;      /* second way: blocks for the same units */
    struct wf_cell cell; /* second way: the step */
};

static struct wf_cell cell_of(const struct recurrence *r)
{
    return (struct wf_cell){.gru = r->gru, .hidden = r->hidden, .weights = r->weights, .bias = r->bias};
}

static void run_units(const struct wf_cell *cell, bool back, int64_t begin, int64_t end)
{
    if (cell->rows > 0)
        (back ? wf_kernel->internal->cell_back : wf_kernel->internal->cell)(cell, begin, end);
}

static void run_sequences(void *ctx, int64_t begin, int64_t end)
{
    const struct work *w = ctx;
    struct wf_cell_row rows[TOGETHER];
    struct wf_cell cell = cell_of(w->r);
    cell.row = rows;
    for (int64_t s = w->first; s != w->end; s += w->back ? -1 : 1) {
        cell.rows = w->step(w->r, s, begin, end, rows, &cell.products);
        run_units(&cell, w->back, 0, w->r->hidden);
    }
}

static void run_block(void *ctx, int64_t block)
{
    const struct work *w = ctx;
    struct wf_cell cell = w->cell;
    const int64_t units = units_of(w->back), u = block / w->chunks * units, i = block % w->chunks * CHUNK;
    cell.row += i;
    cell.rows = WF_MIN(cell.rows - i, CHUNK);
    cell.products = WF_MIN(WF_MAX(cell.products - i, 0), cell.rows);
    run_units(&cell, w->back, u, WF_MIN(u + units, cell.hidden));
}

wf_status wf_recurrence_run(struct recurrence *r, bool back, wf_recurrence_step *step, int64_t first, int64_t end)
{
    struct work w = {.r = r, .back = back, .step = step, .first = first, .end = end};
    const double cost = (double)r->gates * (2 + 0.01 * (double)r->hidden); /* nanoseconds for a row of a step */
    const int64_t units = units_of(back);
    if (r->sequences > 1 && r->gates * r->hidden * (int64_t)sizeof(wf_real) <= CACHED) {
        const int64_t blocks = (r->sequences + TOGETHER - 1) / TOGETHER;
        wf_parallel_ranges(r->sequences, (r->sequences + blocks - 1) / blocks, cost * (double)r->n, run_sequences, &w);
        return WF_OK;
    }
    const int64_t bytes = (WF_MAX(r->sequences, 1)) * (int64_t)sizeof(struct wf_cell_row);
    struct wf_cell_row *rows = wf_call_temp(r->c, WF_I32, &(wf_shape){1, {bytes / (int64_t)sizeof(int32_t)}}).data;
    if (!rows)
        return WF_ERR_MEMORY;
    for (int64_t s = first; s != end; s += back ? -1 : 1) {
        w.cell = cell_of(r);
        w.cell.row = rows;
        w.cell.rows = step(r, s, 0, r->sequences, rows, &w.cell.products);
        w.chunks = (w.cell.rows + CHUNK - 1) / CHUNK;
        wf_parallel((r->hidden + units - 1) / units * w.chunks, cost * (double)w.cell.rows, run_block, &w);
    }
    return WF_OK;
}

/* --- forward --------------------------------------------------------------------------------------------------------- */

/* b_ih + b_hh, but for a GRU's n only b_ih, because its b_hh is multiplied by r. Stores NULL if there are no biases. False without memory.
 */
static bool input_bias(wf_call *c, const struct recurrence *r, const wf_real **sum)
{
    const wf_real *ih, *hh;
    *sum = NULL;
    if (!wf_vector_of(c, B_IH, &ih) || !wf_vector_of(c, B_HH, &hh))
        return false;
    if (!ih && !hh)
        return true;
    wf_real *b = wf_recurrence_temp(c, r->gates);
    if (!b)
        return false;
    for (int64_t i = 0; i < r->gates; i++)
        b[i] = (ih ? ih[i] : 0) + (hh && !(r->gru && i >= 2 * r->hidden) ? hh[i] : 0);
    *sum = b;
    return true;
}

static int64_t forward_step(const struct recurrence *r, int64_t s, int64_t begin, int64_t end, struct wf_cell_row *rows, int64_t *products)
{
    const int64_t H = r->hidden;
    int64_t count = 0;
    for (int64_t b = begin; b < end; b++) {
        if (wf_recurrence_length(r, b) <= s)
            continue;
        const int64_t now = wf_recurrence_place(r, b, s), before = s > 0 ? wf_recurrence_place(r, b, s - 1) : 0;
        const wf_real *h = s > 0 ? r->y + before * H : r->h0 ? r->h0 + b * H : NULL;
        const wf_real *cell = s > 0 ? r->kept + (r->keep ? before : b) * H : r->c0 ? r->c0 + b * H : NULL;
        rows[count++] = (struct wf_cell_row){.from = h,
                                             .gates = r->gate + now * r->gates,
                                             .kept = r->kept + (r->keep ? now : b) * H,
                                             .before = r->gru ? h : cell,
                                             .h = r->y + now * H};
    }
    *products = s > 0 || r->h0 ? count : 0;
    return count;
}

/* Copies the last states of the sequences to `to` [B, H]: of sequence b its last row of `from` [N, H] (or row b, if it has one row for each
 * sequence), or `first` if it has no steps. */
static void last_states(const struct recurrence *r, const wf_real *from, bool each_step, const wf_real *first, wf_real *to)
{
    const int64_t H = r->hidden;
    for (int64_t b = 0; b < r->sequences; b++, to += H) {
        const int64_t steps = wf_recurrence_length(r, b);
        const wf_real *row = steps == 0  ? (first ? first + b * H : NULL)
                             : each_step ? from + wf_recurrence_place(r, b, steps - 1) * H
                                         : from + b * H;
        if (row)
            memcpy(to, row, (size_t)H * sizeof *to);
        else
            memset(to, 0, (size_t)H * sizeof *to);
    }
}

static wf_status recurrent_forward(wf_call *c)
{
    struct recurrence r;
    const wf_real *bias;
    if (!wf_recurrence_of(c, false, &r) || !input_bias(c, &r, &bias))
        return WF_ERR_MEMORY;
    wf_array gates = c->saved[GATES];
    gates.data = c->grad ? gates.data : wf_recurrence_temp(c, r.n * r.gates);
    r.gate = gates.data;
    r.keep = c->grad;
    r.kept = r.keep ? c->saved[KEPT].data : wf_recurrence_temp(c, r.sequences * r.hidden);
    r.y = c->out[Y].data;
    if (r.n > 0 && (!r.gate || !r.kept || !r.y))
        return WF_ERR_MEMORY;
    if (r.n * r.gates > 0) {
        const wf_array wt = wf_swap_last(&c->in[W_IH]);
        wf_status status = wf_product(c, &c->in[X], &wt, &gates, false, bias, c->rows_alone);
        if (status == WF_OK)
            status = wf_recurrence_run(&r, false, forward_step, 0, r.longest);
        if (status != WF_OK)
            return status;
    }
    if (c->outputs > H_LAST)
        last_states(&r, r.y, true, r.h0, c->out[H_LAST].data);
    if (c->outputs > C_LAST)
        last_states(&r, r.kept, r.keep, r.c0, c->out[C_LAST].data);
    return WF_OK;
}

/* --- descriptors and constructors ------------------------------------------------------------------------------------ */

/* clang-format off */
#define A(...) .attr = &(const struct recurrent_attr){__VA_ARGS__}
#define PACKED(n, ...) .packed = {(const int32_t[]){__VA_ARGS__}, n}
#define N WF_FILL_NORMAL
#define NONE WF_FILL_ABSENT
/* The operands for gates of G H rows. */
#define WEIGHTS(G, H, in) {G * H, in}, {G * H}, {G * H, H}, {G * H}
#define CASES(G, STATES, STATES_OF_NONE) \
    {"plain", {{2, 4, 3}, WEIGHTS(G, 5, 3)}, A(0), .inputs = 5}, \
    {"states", {{3, 4, 2}, WEIGHTS(G, 3, 2), STATES(3, 3)}, A(0)}, \
    {"reverse", {{2, 4, 3}, WEIGHTS(G, 5, 3)}, A(.reverse = true), .inputs = 5}, \
    {"reverse, states", {{3, 3, 2}, WEIGHTS(G, 3, 2), STATES(3, 3)}, A(.reverse = true)}, \
    {"no biases", {{2, 3, 4}, {G * 3, 4}, {0}, {G * 3, 3}}, A(0), .inputs = 4, .fill = {N, N, NONE, N}}, \
    {"one bias", {{2, 3, 4}, {G * 3, 4}, {0}, {G * 3, 3}, {G * 3}}, A(0), .inputs = 5, .fill = {N, N, NONE, N, N}}, \
    {"one step", {{2, 1, 3}, WEIGHTS(G, 4, 3), STATES(2, 4)}, A(0)}, \
    {"one row", {{1, 5, 3}, WEIGHTS(G, 4, 3)}, A(0), .inputs = 5}, \
    {"ones", {{1, 1, 1}, WEIGHTS(G, 1, 1)}, A(0), .inputs = 5}, \
    {"packed", {{9, 3}, WEIGHTS(G, 4, 3), STATES(4, 4)}, A(PACKED(4, 0, 4, 4, 8, 9))}, \
    {"packed, reverse", {{9, 3}, WEIGHTS(G, 4, 3), STATES(4, 4)}, A(.reverse = true, PACKED(4, 0, 2, 7, 7, 9))}, \
    {"packed, from zeros", {{7, 2}, WEIGHTS(G, 3, 2)}, A(.reverse = true, PACKED(3, 0, 1, 5, 7)), .inputs = 5}, \
    {"wide", {{2, 2, 3}, WEIGHTS(G, 37, 3), STATES(2, 37)}, A(0)}, \
    {"many rows", {{19, 2, 2}, WEIGHTS(G, 2, 2)}, A(0), .inputs = 5}, \
    {"no steps", {{2, -1, 3}, WEIGHTS(G, 2, 3), STATES(2, 2)}, A(0)}, \
    {"no rows", {{-1, 4, 3}, WEIGHTS(G, 2, 3), STATES_OF_NONE(2)}, A(0)}, \
    {"no inputs", {{2, 3, -1}, {G * 2, -1}, {G * 2}, {G * 2, 2}, {G * 2}}, A(0), .inputs = 5}
#define LSTM_STATES(B, H) {B, H}, {B, H}
#define LSTM_NO_STATES(H) {-1, H}, {-1, H}
#define GRU_STATES(B, H) {B, H}
#define GRU_NO_STATES(H) {-1, H}
/* clang-format on */

const wf_op wf_op_lstm = {
    .name = "lstm",
    .operands = "x weight_ih bias_ih weight_hh bias_hh h c",
    .attr_size = sizeof(struct recurrent_attr),
    .outputs = 3,
    .reads = WF_READS_INPUT(X) | WF_READS_INPUT(W_IH) | WF_READS_INPUT(W_HH) | WF_READS_INPUT(H0) | WF_READS_INPUT(C0) | WF_READS_OUTPUT(Y),
    .rounds = WF_READS_INPUT(X), /* x is the second operand of the product that gives the gradient of weight_ih */
    .shape = recurrent_shape,
    .forward = recurrent_forward,
    .backward = wf_recurrent_backward,
    .cases = WF_CASES(CASES(4, LSTM_STATES, LSTM_NO_STATES)),
};

const wf_op wf_op_gru = {
    .name = "gru",
    .operands = "x weight_ih bias_ih weight_hh bias_hh h",
    .attr_size = sizeof(struct recurrent_attr),
    .outputs = 2,
    .reads = WF_READS_INPUT(X) | WF_READS_INPUT(W_IH) | WF_READS_INPUT(W_HH) | WF_READS_INPUT(H0) | WF_READS_OUTPUT(Y),
    .rounds = WF_READS_INPUT(X),
    .shape = recurrent_shape,
    .forward = recurrent_forward,
    .backward = wf_recurrent_backward,
    .cases = WF_CASES(CASES(3, GRU_STATES, GRU_NO_STATES)),
};

static wf_tensor *apply(const wf_op *op, wf_tensor *const in[7], const struct wf_recurrent_options *o)
{
    const int inputs = op == &wf_op_gru ? 6 : 7;
    wf_tape *tape = wf_tape_of_operands(inputs, in);
    const struct recurrent_attr a = {.reverse = o->reverse, .packed = wf_packed_copy(tape, o->packed)};
    wf_tensor *out[3] = {NULL};
    if (tape && op == &wf_op_gru && (o->c || o->last_c))
        out[Y] = out[H_LAST] = out[C_LAST] =
            wf_tape_fail(tape, WF_ERR_ARGUMENT, "gru: .c and .last_c are for the LSTM: a GRU has no state c");
    else
        wf_apply_multi(op, &a, inputs, in, o->last_c ? 3 : o->last_h ? 2 : 1, out);
    if (o->last_h)
        *o->last_h = out[H_LAST];
    if (o->last_c)
        *o->last_c = out[C_LAST];
    return out[Y];
}

wf_tensor *wf_lstm_with(wf_tensor *x, wf_tensor *weight_ih, wf_tensor *weight_hh, wf_tensor *bias_ih, wf_tensor *bias_hh,
                        const struct wf_recurrent_options *options)
{
    const struct wf_recurrent_options *o = options ? options : &(const struct wf_recurrent_options){0};
    return apply(&wf_op_lstm, (wf_tensor *[]){x, weight_ih, bias_ih, weight_hh, bias_hh, o->h, o->c}, o);
}

wf_tensor *wf_gru_with(wf_tensor *x, wf_tensor *weight_ih, wf_tensor *weight_hh, wf_tensor *bias_ih, wf_tensor *bias_hh,
                       const struct wf_recurrent_options *options)
{
    const struct wf_recurrent_options *o = options ? options : &(const struct wf_recurrent_options){0};
    return apply(&wf_op_gru, (wf_tensor *[]){x, weight_ih, bias_ih, weight_hh, bias_hh, o->h, NULL}, o);
}
