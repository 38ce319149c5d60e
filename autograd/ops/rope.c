/* SPDX-License-Identifier: MIT */
/* Rotary positions. Forward makes a table of cosines and sines, computed in double precision, with a row for each position in the call. It
 * keeps the table for backward, which turns by the negative angles. A position is split as p = 64 h + l, so that few sines are enough: for
 * a frequency f the rotation by p f is the product of the rotations by 64hf and by lf,
 *
 *   cos p f = cos 64hf cos lf - sin 64hf sin lf,   sin p f = sin 64hf cos lf + cos 64hf sin lf
 *
 * so T positions take T / 64 + 64 sines for each frequency. */
#include <math.h>
#include <string.h>

#include "common.h"

enum { X, POSITIONS, FREQUENCIES }; /* indices of the operands in a call */
enum { LOW = 64 };                  /* positions in a group, those with the same h; l is in 0 .. LOW-1 */

struct rope_attr {
    int heads;
    struct wf_rotary rotary;
    int64_t start;
    const int32_t *starts;
    struct wf_packed packed;
    bool back; /* turn by the negative angles: the transpose, which `gradient` applies */
};

/* --- shape --------------------------------------------------------------------------------------------------------- */

static wf_status check_frequencies(wf_call *c, int64_t width)
{
    const struct wf_rotary *r = &((const struct rope_attr *)c->attr)->rotary;
    const bool given = r->frequencies || wf_has(c, FREQUENCIES);
    if (given && (r->base != 0 || r->scaling != WF_ROPE_UNSCALED))
        return wf_call_fail(c, WF_ERR_ARGUMENT, "given frequencies cannot be combined with base or scaling");
    if (r->frequencies && wf_has(c, FREQUENCIES))
        return wf_call_fail(c, WF_ERR_ARGUMENT, "give either frequencies or frequency_tensor");
    for (int64_t i = 0; r->frequencies && i < width / 2; i++)
        if (!isfinite(r->frequencies[i]))
            return wf_call_fail(c, WF_ERR_ARGUMENT, "frequencies[%lld] = %g is not finite", (long long)i, r->frequencies[i]);
    if (wf_has(c, FREQUENCIES)) {
        if (c->need[FREQUENCIES])
            return wf_call_fail(c, WF_ERR_ARGUMENT, "there is no gradient for frequency_tensor: freeze it, or give wf_detach of it");
        return wf_want_vector(c, FREQUENCIES, "frequency_tensor", width / 2);
    }
    if (!(r->base >= 0) || isinf(r->base))
        return wf_call_fail(c, WF_ERR_ARGUMENT, "base = %g must be positive and finite; 0 stands for 10000", r->base);
    if ((unsigned)r->scaling > WF_ROPE_LLAMA3)
        return wf_call_fail(c, WF_ERR_ARGUMENT, "scaling = %d is none of enum wf_rope_scaling", (int)r->scaling);
    if (r->scaling != WF_ROPE_UNSCALED && (!(r->factor > 0) || isinf(r->factor)))
        return wf_call_fail(c, WF_ERR_ARGUMENT, "the scaling needs a positive, finite factor, not %g", r->factor);
    if (r->scaling == WF_ROPE_UNSCALED && r->factor != 0)
        return wf_call_fail(c, WF_ERR_ARGUMENT, "factor = %g without a scaling: choose WF_ROPE_LINEAR, WF_ROPE_NTK or WF_ROPE_LLAMA3",
                            r->factor);
    const bool llama = r->scaling == WF_ROPE_LLAMA3;
    if (llama && !(r->low_frequency > 0 && r->high_frequency > r->low_frequency && r->original_context > 0 && isfinite(r->high_frequency) &&
                   isfinite(r->original_context)))
        return wf_call_fail(c, WF_ERR_ARGUMENT,
                            "WF_ROPE_LLAMA3 needs 0 < low_frequency < high_frequency and an original_context > 0; they are %g, %g and %g",
                            r->low_frequency, r->high_frequency, r->original_context);
    if (!llama && (r->low_frequency != 0 || r->high_frequency != 0 || r->original_context != 0))
        return wf_call_fail(c, WF_ERR_ARGUMENT, "low_frequency, high_frequency and original_context need WF_ROPE_LLAMA3");
    return WF_OK;
}

static wf_status check_positions(wf_call *c)
{
    const struct rope_attr *a = c->attr;
    const wf_array *x = &c->in[X], *ids = &c->in[POSITIONS];
    if (!wf_has(c, POSITIONS))
        return WF_OK;
    if (wf_want(c, POSITIONS, WF_I32) != WF_OK)
        return WF_ERR_ARGUMENT;
    if (a->start != 0 || a->starts || wf_is_packed(a->packed))
        return wf_call_fail(c, WF_ERR_ARGUMENT, "positions cannot be combined with start, starts or packed");
    const int rows = x->ndim - 1;
    const bool whole = ids->ndim == rows && ids->dim[0] == x->dim[0] && ids->dim[rows - 1] == x->dim[rows - 1];
    if (!whole && !(ids->ndim == 1 && ids->dim[0] == x->dim[rows - 1]))
        return wf_call_fail(c, WF_ERR_SHAPE, x->ndim == 3 ? "positions must be [B,T] or [T]" : "positions must be [N]");
    return WF_OK;
}

/* The number of rows of the table: one for each position in the call. */
static int64_t table_rows(const wf_call *c)
{
    const struct rope_attr *a = c->attr;
    const wf_array *x = &c->in[X];
    if (wf_has(c, POSITIONS))
        return wf_array_count(&c->in[POSITIONS]);
    return a->packed.offsets ? wf_packed_longest(a->packed) : x->dim[x->ndim - 2] * (a->starts ? x->dim[0] : 1);
}

static wf_status rope_shape(wf_call *c)
{
    const struct rope_attr *a = c->attr;
    const wf_array *x = &c->in[X];
    if (wf_same_shape(c) != WF_OK)
        return WF_ERR_ARGUMENT;
    if (x->ndim != 2 && x->ndim != 3)
        return wf_call_fail(c, WF_ERR_SHAPE, "x must be [B,T,H*E] or [N,H*E]");
    if (a->heads < 1 || x->dim[x->ndim - 1] < 1 || x->dim[x->ndim - 1] % a->heads != 0)
        return wf_call_fail(c, WF_ERR_SHAPE, "the width %lld of x is not divisible by %d heads", (long long)x->dim[x->ndim - 1], a->heads);
    const int64_t e = x->dim[x->ndim - 1] / a->heads, width = a->rotary.width ? a->rotary.width : e;
    if (width < 2 || width % 2 != 0 || width > e)
        return wf_call_fail(c, WF_ERR_ARGUMENT, "rotary.width = %lld must be even and in 2 .. %lld, the width of a head", (long long)width,
                            (long long)e);
    if (a->start < -((int64_t)1 << 31) || a->start > (int64_t)1 << 31)
        return wf_call_fail(c, WF_ERR_ARGUMENT, "start = %lld is not in -2^31 .. 2^31", (long long)a->start);
    if (a->starts && (x->ndim != 3 || wf_is_packed(a->packed) || a->start != 0))
        return wf_call_fail(c, WF_ERR_ARGUMENT, "starts need x [B,T,H*E], and cannot be combined with start or packed");
    if (wf_is_packed(a->packed) && x->ndim != 2)
        return wf_call_fail(c, WF_ERR_SHAPE, "packed x must be [N,H*E]");
    if (check_frequencies(c, width) != WF_OK || (wf_is_packed(a->packed) && wf_want_packed(c, a->packed, "packed", x->dim[0]) != WF_OK) ||
        check_positions(c) != WF_OK)
        return WF_ERR_ARGUMENT;
    c->saved[0] = wf_call_shape(WF_REAL, &(wf_shape){2, {table_rows(c), width}});
    return WF_OK;
}

/* --- the table ------------------------------------------------------------------------------------------------------ */

struct table {
    int64_t rows;            /* number of positions */
    int64_t n;               /* number of frequencies */
    const double *frequency; /* [n] */
    const double *low;       /* [LOW][2 n]: cosines and sines of positions 0 .. LOW-1; NULL: each row computes its own */
    const int32_t *ids;      /* [rows]: the positions of the rows, if the call has the operand POSITIONS; or NULL */
    const int32_t *starts;   /* [B]: the position of each sequence's first row; or NULL */
    int64_t start;           /* the position of row 0, if `ids` and `starts` are NULL */
    int64_t length;          /* T, the rows of a sequence */
    wf_real *value;          /* [rows][2 n]: the cosines and sines of the table */
};

static int64_t position_of(const struct table *t, int64_t row)
{
    return t->ids ? t->ids[row] : t->starts ? (int64_t)t->starts[row / t->length] + row % t->length : t->start + row;
}

static void sines(int64_t n, const double *frequency, int64_t position, double *to)
{
    for (int64_t i = 0; i < n; i++) {
        double angle = (double)position * frequency[i];
        to[i] = cos(angle);
        to[n + i] = sin(angle);
    }
}

static void low_rows(void *ctx, int64_t begin, int64_t end)
{
    const struct table *t = ctx;
    for (int64_t l = begin; l < end; l++)
        sines(t->n, t->frequency, l, (double *)t->low + l * 2 * t->n);
}

static int64_t group_of(int64_t position)
{
    return (position < 0 ? position - LOW + 1 : position) / LOW;
}

enum { PIECE = 128 }; /* frequencies that are computed at a time, in arrays on the stack */

static void table_rows_body(void *ctx, int64_t begin, int64_t end)
{
    const struct table *t = ctx;
    double high[2 * PIECE], own[2 * PIECE];
    for (int64_t i0 = 0; i0 < t->n; i0 += PIECE) {
        const int64_t n = WF_MIN(t->n - i0, PIECE);
        int64_t group = INT64_MAX;
        for (int64_t row = begin; row < end; row++) {
            const int64_t p = position_of(t, row), g = group_of(p);
            const double *cos_low = own, *sin_low = own + n;
            wf_real *cosine = t->value + row * 2 * t->n + i0, *sine = cosine + t->n;
            if (g != group)
                sines(n, t->frequency + i0, (group = g) * LOW, high);
            if (t->low) {
                cos_low = t->low + (p - g * LOW) * 2 * t->n + i0;
                sin_low = cos_low + t->n;
            } else {
                sines(n, t->frequency + i0, p - g * LOW, own);
            }
            for (int64_t i = 0; i < n; i++) {
                cosine[i] = (wf_real)(high[i] * cos_low[i] - high[n + i] * sin_low[i]);
                sine[i] = (wf_real)(high[n + i] * cos_low[i] + high[i] * sin_low[i]);
            }
        }
    }
}

static void fill_frequencies(const wf_call *c, const wf_real *given, int64_t width, double *f)
{
    const struct wf_rotary *r = &((const struct rope_attr *)c->attr)->rotary;
    double base = r->base > 0 ? r->base : 10000;
    if (r->scaling == WF_ROPE_NTK && width > 2)
        base *= pow(r->factor, (double)width / (double)(width - 2));
    for (int64_t i = 0; i < width / 2; i++) {
        if (given || r->frequencies) {
            f[i] = given ? (double)given[i] : r->frequencies[i];
            continue;
        }
        f[i] = pow(base, -2.0 * (double)i / (double)width);
        double turns = r->original_context * f[i] / (2 * M_PI);
        if (r->scaling == WF_ROPE_LINEAR || (r->scaling == WF_ROPE_LLAMA3 && turns < r->low_frequency)) {
            f[i] /= r->factor;
        } else if (r->scaling == WF_ROPE_LLAMA3 && turns <= r->high_frequency) {
            double s = (turns - r->low_frequency) / (r->high_frequency - r->low_frequency);
            f[i] = s * f[i] + (1 - s) * f[i] / r->factor;
        }
    }
}

static bool make_table(wf_call *c, wf_real *value, int64_t rows, int64_t width)
{
    const struct rope_attr *a = c->attr;
    /* With more than LOW rows, the sines of l f are computed once for all rows. Otherwise each row computes its own, with the
     * same bits. */
    const bool shared = rows > LOW;
    struct table t = {.rows = rows, .n = width / 2, .starts = a->starts, .start = a->start, .value = value};
    const wf_real *given;
    wf_array f = wf_call_temp(c, WF_F64, &(wf_shape){1, {t.n}}), low = {0}, ids = {0};
    if (!f.data || !wf_vector_of(c, FREQUENCIES, &given))
        return false;
    fill_frequencies(c, given, width, f.data);
    t.frequency = f.data;
    t.length = c->in[X].dim[c->in[X].ndim - 2];
    if (wf_has(c, POSITIONS)) {
        ids = wf_call_contiguous(c, &c->in[POSITIONS]);
        if (!(t.ids = ids.data))
            return false;
    }
    if (shared) {
        low = wf_call_temp(c, WF_F64, &(wf_shape){2, {LOW, width}});
        if (!(t.low = low.data))
            return false;
        wf_parallel_ranges(LOW, 8, 20.0 * LOW * (double)width, low_rows, &t);
    }
    wf_parallel_ranges(rows, LOW, (shared ? 1.5 : 40.0) * (double)rows * (double)width, table_rows_body, &t);
    return true;
}

/* --- turning -------------------------------------------------------------------------------------------------------- */

struct turning {
    const struct rope_attr *attr;
    int64_t rows;   /* rows of x */
    int64_t length; /* T, the rows of a sequence */
    int64_t e;      /* width of a head */
    int64_t width;  /* elements of a head that are turned */
    bool by_row;    /* the table has a row for each row of x; false: for each position in a sequence */
    const wf_real *table, *x;
    int64_t x_item, x_step;
    wf_real *y;
    int64_t y_item, y_step;
    bool back; /* turn by the negative angles */
    bool add;  /* add to y; false: overwrite y */
};

/* The packed sequence that holds a row: the last one that begins at or before the row. It is never empty. */
static int sequence_of(const struct rope_attr *a, int64_t row)
{
    int low = 0, high = a->packed.count;
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (a->packed.offsets[middle] <= row)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void turn_rows(void *ctx, int64_t begin, int64_t end)
{
    const struct turning *s = ctx;
    const struct rope_attr *a = s->attr;
    const int32_t *offsets = a->packed.offsets;
    int sequence = offsets ? sequence_of(a, begin) : 0;
    for (int64_t row = begin; row < end; row++) {
        int64_t b = row / s->length, t = row - b * s->length, place = s->by_row ? row : t;
        if (offsets) {
            while (offsets[sequence + 1] <= row)
                sequence++;
            place = row - offsets[sequence];
        }
        wf_kernel->internal->rope(a->heads, s->e, s->width / 2, a->rotary.interleaved, s->back, s->add,
                                  s->x + b * s->x_item + t * s->x_step, s->table + place * s->width, s->y + b * s->y_item + t * s->y_step);
    }
}

static bool elements_adjoin(const wf_array *a)
{
    return a->dim[a->ndim - 1] <= 1 || a->stride[a->ndim - 1] == 1;
}

static void turn(const wf_call *c, const wf_real *table, const wf_array *x, const wf_array *y, bool back, bool add)
{
    const struct rope_attr *a = c->attr;
    const int last = x->ndim - 1;
    struct turning s = {.attr = a, .table = table, .x = x->data, .y = y->data, .back = back, .add = add};
    s.length = x->dim[last - 1];
    s.rows = s.length * (last == 2 ? x->dim[0] : 1);
    s.e = x->dim[last] / a->heads;
    s.width = a->rotary.width ? a->rotary.width : s.e;
    s.by_row = a->starts || c->in[POSITIONS].ndim == last; /* if POSITIONS is absent, its ndim is 0, and `last` is at least 1 */
    s.x_item = last == 2 ? x->stride[0] : 0;
    s.y_item = last == 2 ? y->stride[0] : 0;
    s.x_step = x->stride[last - 1];
    s.y_step = y->stride[last - 1];
    const int64_t grain = 8192 / x->dim[last];
    wf_parallel_ranges(s.rows, WF_MAX(grain, 1), 0.3 * (double)s.rows * (double)x->dim[last], turn_rows, &s);
}

static wf_status rope_forward(wf_call *c)
{
    const struct rope_attr *a = c->attr;
    wf_array x = elements_adjoin(&c->in[X]) ? c->in[X] : wf_call_contiguous(c, &c->in[X]);
    const wf_shape shape = {2, {table_rows(c), a->rotary.width ? a->rotary.width : x.dim[x.ndim - 1] / a->heads}};
    wf_array table = c->grad ? c->saved[0] : wf_call_temp(c, WF_REAL, &shape);
    if (!x.data || !table.data || !make_table(c, table.data, shape.dim[0], shape.dim[1]))
        return WF_ERR_MEMORY;
    turn(c, table.data, &x, &c->out[0], a->back, false);
    return WF_OK;
}

/* y = R x with an orthogonal R, so dx = R^T dy, the rotation by the negative angles. */
static wf_status rope_backward(wf_call *c)
{
    wf_array dy = elements_adjoin(&c->dout[0]) ? c->dout[0] : wf_call_contiguous(c, &c->dout[0]);
    bool add;
    if (!dy.data)
        return WF_ERR_MEMORY;
    if (((const struct rope_attr *)c->attr)->back) { /* the kernel adds only what it turns back */
        wf_array turned = wf_grad_new(c, X);
        if (!turned.data)
            return WF_ERR_MEMORY;
        turn(c, c->saved[0].data, &dy, &turned, false, false);
        wf_grad_give(c, X, &turned);
        return WF_OK;
    }
    wf_array dx = wf_grad_into(c, X, &add);
    if (!dx.data)
        return WF_ERR_MEMORY;
    if (elements_adjoin(&dx)) {
        turn(c, c->saved[0].data, &dy, &dx, true, add);
        return WF_OK;
    }
    wf_array all = wf_call_temp(c, WF_REAL, &(wf_shape){dx.ndim, {dx.dim[0], dx.dim[1], dx.dim[2]}});
    if (!all.data)
        return WF_ERR_MEMORY;
    if (add)
        wf_array_copy(&all, &dx);
    turn(c, c->saved[0].data, &dy, &all, true, add);
    wf_array_copy(&dx, &all);
    return WF_OK;
}

static void rope_gradient(const wf_gradient_call *c)
{
    struct rope_attr a = *(const struct rope_attr *)c->attr;
    wf_tensor *in[] = {c->dy[X], c->inputs > POSITIONS ? c->x[POSITIONS] : NULL, c->inputs > FREQUENCIES ? c->x[FREQUENCIES] : NULL};
    a.back = !a.back;
    c->dx[X] = wf_apply(&wf_op_rope, &a, c->inputs, in);
}

/* --- descriptor and constructor ------------------------------------------------------------------------------------ */

/* clang-format off */
#define A(...) .attr = &(const struct rope_attr){__VA_ARGS__}
#define I32(...) (const int32_t[]){__VA_ARGS__}
#define FREQUENCY .inputs = 3, .fill = {0, WF_FILL_ABSENT, WF_FILL_POSITIVE}, .constant = {[FREQUENCIES] = true}
#define FREQUENCY_OF_POSITIONS .fill = {0, WF_FILL_IDS, WF_FILL_POSITIVE}, .limit = {0, 30}, .constant = {[FREQUENCIES] = true}
#define IDS .fill = {0, WF_FILL_IDS}, .limit = {0, 3000}
const wf_op wf_op_rope = {
    .name = "rope", .attr_size = sizeof(struct rope_attr), .reads = WF_READS_NOTHING,
    .shape = rope_shape, .forward = rope_forward, .backward = rope_backward, .gradient = rope_gradient,
    .cases = WF_CASES(
        {"halves", {{2, 5, 8}}, A(1)},
        {"heads", {{2, 5, 24}}, A(3, .start = 7)}, {"backwards", {{2, 5, 24}}, A(3, .start = 7, .back = true)},
        {"interleaved", {{2, 5, 24}}, A(2, {.interleaved = true}, .start = -3)},
        {"a part of the head", {{2, 5, 22}}, A(2, {.width = 6}, .start = 100)},
        {"a part of the head, interleaved", {{2, 5, 14}}, A(2, {.width = 2, .interleaved = true})},
        {"wide", {{1, 3, 86}}, A(1, {.base = 500})},
        {"wide, interleaved", {{1, 3, 86}}, A(1, {.interleaved = true})},
        {"wider than a piece", {{1, 2, 300}}, A(1, .start = 70)},
        {"linear", {{1, 5, 8}}, A(1, {.scaling = WF_ROPE_LINEAR, .factor = 4}, .start = 40)},
        {"ntk", {{1, 5, 8}}, A(1, {.scaling = WF_ROPE_NTK, .factor = 4}, .start = 40)},
        {"llama 3", {{1, 5, 32}}, A(1, {.base = 500000, .scaling = WF_ROPE_LLAMA3, .factor = 8, .low_frequency = 1, .high_frequency = 4,
                                        .original_context = 8192}, .start = 1000)},
        {"given frequencies", {{2, 5, 8}}, A(2, {.frequencies = (const double[]){1, -0.3}})},
        {"frequencies as an operand", {{2, 5, 8}, {0}, {2}}, FREQUENCY, A(2, .start = 9)},
        {"frequencies as an operand, a part of the head", {{7, 10}, {7}, {3}}, FREQUENCY_OF_POSITIONS, A(1, {.width = 6})},
        {"far away", {{1, 3, 8}}, A(1, .start = 100000)},
        {"starts", {{3, 4, 8}}, A(2, .starts = I32(5, 0, 130))},
        {"one sequence of rows", {{9, 8}}, A(2, .start = 60)},
        {"packed", {{9, 8}}, A(2, .packed = {I32(0, 0, 4, 4, 5, 9, 9), 6})},
        {"positions of rows", {{2, 4, 8}, {2, 4}}, IDS, A(2)},
        {"positions of places", {{2, 4, 8}, {4}}, IDS, A(2)},
        {"positions, packed", {{7, 8}, {7}}, IDS, A(2)},
        {"over a group of positions", {{2, 130, 4}}, A(1, .start = 30)},
        {"no rows", {{2, -1, 4}}, A(1)}, {"no sequences", {{-1, 2, 4}}, A(1)}, {"nothing packed", {{-1, 4}}, A(1, .packed = {I32(0), 0})})};
/* clang-format on */

/* A copy of `list` in the tape's memory. NULL if there is no list, or no memory (then the tape has the error). */
static const void *copied(wf_tape *tape, const void *list, int64_t count, size_t size)
{
    if (!tape || !list || count < 0)
        return NULL;
    void *copy = wf_tape_memory(tape, (size_t)(count + 1) * size);
    return copy ? memcpy(copy, list, (size_t)count * size) : NULL;
}

wf_tensor *wf_rope_with(wf_tensor *x, const struct wf_rope_options *options)
{
    static const struct wf_rope_options none;
    const struct wf_rope_options *o = options ? options : &none;
    wf_tape *tape = wf_tape_of_operands(1, &x);
    struct rope_attr a = {.heads = o->heads ? o->heads : 1, .rotary = o->rotary, .start = o->start};
    /* A list is copied if its length is known. Otherwise the shape rule refuses the operands before it reads the list. */
    const int64_t e = a.heads > 0 ? wf_dim(x, -1) / a.heads : 0, width = o->rotary.width ? o->rotary.width : e;
    a.rotary.frequencies = width <= e ? copied(tape, o->rotary.frequencies, width / 2, sizeof(double)) : o->rotary.frequencies;
    a.starts = wf_ndim(x) == 3 ? copied(tape, o->starts, wf_dim(x, 0), sizeof(int32_t)) : o->starts;
    a.packed = wf_packed_copy(tape, o->packed);
    return wf_apply(&wf_op_rope, &a,
                    o->rotary.frequency_tensor ? 3
                    : o->positions             ? 2
                                               : 1,
                    (wf_tensor *[]){x, o->positions, o->rotary.frequency_tensor});
}
