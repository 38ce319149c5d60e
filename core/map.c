/* SPDX-License-Identifier: MIT */
/* The maps of weft/compute.h: call a kernel for the elements of strided arrays. */
#include <string.h>

#include <weft/compute.h>
#include <weft/internal/minmax.h>
#include <weft/internal/shape.h>

enum {
    PIECE = 8192, /* the most elements of a kernel's call, which then takes some microseconds and keeps its operands in the caches */
    GATHER = 512  /* elements that are gathered at a time, that is, copied from a strided input to a contiguous buffer */
};

struct map {
    int inputs;
    /* At most one of the kernels typed, any, unary, binary and grad is set. If none is set, the map is scale x + shift. */
    wf_map_any_kernel *typed;
    wf_map_kernel *any;
    const void *ctx;
    wf_unary_kernel *unary;
    wf_binary_kernel *binary;
    wf_grad_kernel *grad;
    wf_real scale, shift;
    bool broadcasts; /* the kernel accepts inputs with a step of 0 */
    bool gathers;    /* an input must be gathered */
    const void *in[WF_MAP_INPUTS];
    char *out;
    int64_t size[WF_MAP_INPUTS]; /* bytes of an element of each input */
    int64_t out_size;            /* bytes of an element of out */
    int ndim;                    /* number of merged dimensions, the innermost first */
    int64_t dim[WF_MAX_DIMS];
    int64_t stride[WF_MAP_INPUTS][WF_MAX_DIMS];
    int64_t pieces; /* number of pieces into which the innermost dimension is divided */
};

static void call_kernel(const struct map *m, int64_t n, const void *const in[WF_MAP_INPUTS], const int step[2], void *to)
{
    const wf_real *x[WF_MAP_INPUTS] = {in[0], in[1], in[2], in[3]};
    wf_real *out = to;
    if (m->typed)
        m->typed(m->ctx, n, in, to);
    else if (m->any)
        m->any(m->ctx, n, x, out);
    else if (m->binary)
        m->binary(n, x[0], step[0], x[1], step[1], out);
    else if (m->grad)
        m->grad(n, x[0], x[1], out);
    else if (m->unary)
        m->unary(n, x[0], out);
    else
        wf_kernel->affine(n, m->scale, m->shift, x[0], out);
}

#define GATHER_BYTES(bytes)                                                                                                                \
    for (int64_t i = 0; i < n; i++)                                                                                                        \
        memcpy(to + i * (bytes), from + i * stride * (bytes), bytes);

/* Copies n elements of `size` bytes to `to`, one directly after the other. In `from` they are `stride` elements apart. */
static void gather(int64_t n, int64_t size, const unsigned char *from, int64_t stride, unsigned char *to)
{
    if (size == 8)
        GATHER_BYTES(8)
    else if (size == 4)
        GATHER_BYTES(4)
    else if (size == 2)
        GATHER_BYTES(2)
    else
        GATHER_BYTES(1)
}

static void call_gathering(const struct map *m, int64_t n, const void *const in[WF_MAP_INPUTS], char *out)
{
    _Alignas(64) unsigned char buffer[WF_MAP_INPUTS][GATHER * 8]; /* an element has at most 8 bytes */
    for (int64_t done = 0; done < n; done += GATHER) {
        int64_t now = WF_MIN(n - done, GATHER);
        const void *from[WF_MAP_INPUTS] = {NULL};
        int step[WF_MAP_INPUTS] = {1, 1, 1, 1};
        for (int k = 0; k < m->inputs; k++) {
            int64_t stride = m->stride[k][0];
            from[k] = (const char *)in[k] + done * stride * m->size[k];
            if (stride == 0 && m->broadcasts) {
                step[k] = 0;
            } else if (stride != 1) {
                if (stride != 0 || done == 0)
                    gather(now, m->size[k], from[k], stride, buffer[k]);
                from[k] = buffer[k];
            }
        }
        call_kernel(m, now, from, step, out + done * m->out_size);
    }
}

static void map_body(void *ctx, int64_t begin, int64_t end)
{
    const struct map *m = ctx;
    int64_t row = begin / m->pieces, piece = begin % m->pieces, inner = m->dim[0];
    int64_t index[WF_MAX_DIMS] = {0}, offset[WF_MAP_INPUTS] = {0};
    for (int64_t d = 1, rest = row; d < m->ndim; d++) {
        index[d] = rest % m->dim[d];
        rest /= m->dim[d];
        for (int k = 0; k < m->inputs; k++)
            offset[k] += index[d] * m->stride[k][d];
    }
    int step[2] = {(int)m->stride[0][0], (int)m->stride[1][0]};
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t from = piece * PIECE, n = WF_MIN(inner - from, PIECE);
        const void *in[WF_MAP_INPUTS] = {NULL};
        for (int k = 0; k < m->inputs; k++)
            in[k] = (const char *)m->in[k] + (offset[k] + from * m->stride[k][0]) * m->size[k];
        char *out = m->out + (row * inner + from) * m->out_size;
        if (m->gathers)
            call_gathering(m, n, in, out);
        else
            call_kernel(m, n, in, step, out);
        if (++piece < m->pieces)
            continue;
        piece = 0;
        row++;
        for (int d = 1; d < m->ndim; d++) {
            bool next = ++index[d] < m->dim[d];
            for (int k = 0; k < m->inputs; k++)
                offset[k] += m->stride[k][d] - (next ? 0 : m->dim[d] * m->stride[k][d]);
            if (next)
                break;
            index[d] = 0;
        }
    }
}

/* Whether `a` is row-major and has the shape of out. */
static bool is_like(const wf_array *a, const wf_array *out)
{
    bool same = a->ndim == out->ndim;
    for (int d = 0; same && d < out->ndim; d++)
        same = a->dim[d] == out->dim[d];
    return same && array_is_contiguous(a);
}

/* Merges neighbouring dimensions where all operands allow it. */
static void merge(struct map *m, const wf_array *const x[], const wf_array *out)
{
    wf_shape shape = array_shape(out);
    wf_array in[WF_MAP_INPUTS];
    for (int k = 0; k < m->inputs; k++)
        in[k] = wf_array_expand(x[k], &shape);
    for (int d = out->ndim - 1; d >= 0; d--) {
        if (out->dim[d] == 1)
            continue;
        int last = m->ndim - 1;
        bool merges = last >= 0;
        for (int k = 0; merges && k < m->inputs; k++)
            merges = in[k].stride[d] == m->stride[k][last] * m->dim[last];
        if (merges) {
            m->dim[last] *= out->dim[d];
            continue;
        }
        m->dim[m->ndim] = out->dim[d];
        for (int k = 0; k < m->inputs; k++)
            m->stride[k][m->ndim] = in[k].stride[d];
        m->ndim++;
    }
    if (m->ndim == 0) {
        m->dim[m->ndim++] = 1;
        for (int k = 0; k < m->inputs; k++)
            m->stride[k][0] = 1;
    }
}

/* The index of a large input whose elements are contiguous along another dimension than those of out, as in a transpose, or -1. Such an
 * input is first copied to out, in squares, and then mapped in place, because gathering it row by row would read another cache line for
 * each element. The result is also -1 if out is one of the inputs, because the copy would overwrite that input. */
static int lies_across(const struct map *m, const wf_array *const x[], const wf_array *out)
{
    const int64_t count = wf_array_count(out);
    int found = -1;
    if (count <= PIECE || !m->gathers)
        return -1;
    for (int k = 0; k < m->inputs; k++) {
        if (m->in[k] == out->data)
            return -1;
        if (m->stride[k][0] > 1 && wf_array_count(x[k]) == count && x[k]->dtype == out->dtype)
            found = k;
    }
    return found;
}

static void run(struct map *m, int inputs, const wf_array *const x[], const wf_array *out, double cost)
{
    int64_t count = wf_array_count(out);
    if (count <= 0 || !out->data)
        return;
    bool flat = true;
    m->inputs = inputs;
    m->out = out->data;
    m->out_size = (int64_t)wf_dtype_size(out->dtype);
    for (int k = 0; k < inputs; k++) {
        m->in[k] = x[k]->data;
        m->size[k] = (int64_t)wf_dtype_size(x[k]->dtype);
        m->stride[k][0] = 1;
        flat = flat && is_like(x[k], out);
    }
    if (flat) {
        m->ndim = 1;
        m->dim[0] = count;
    } else {
        merge(m, x, out);
    }
    for (int k = 0; k < m->inputs; k++)
        m->gathers |= m->stride[k][0] != 1 && !(m->broadcasts && m->stride[k][0] == 0);
    const int across = flat ? -1 : lies_across(m, x, out);
    if (across >= 0) {
        const wf_shape shape = array_shape(out);
        const wf_array from = wf_array_expand(x[across], &shape), *in[WF_MAP_INPUTS] = {NULL};
        for (int k = 0; k < inputs; k++)
            in[k] = k == across ? out : x[k];
        wf_array_copy(out, &from);
        m->ndim = 0;
        m->gathers = false;
        run(m, inputs, in, out, cost);
        return;
    }
    if (flat && count <= PIECE) { /* one block, which need not be divided */
        call_kernel(m, count, m->in, (const int[]){1, 1}, m->out);
        return;
    }
    int64_t inner = m->dim[0];
    m->pieces = (inner + PIECE - 1) / PIECE;
    int64_t grain = inner < PIECE ? PIECE / inner : 1;
    wf_parallel_ranges(count / inner * m->pieces, grain, (double)count * cost * (m->gathers ? 2 : 1), map_body, m);
}

/* Whether x broadcasts to the shape of out. */
static bool fits(const wf_array *x, const wf_array *out)
{
    wf_shape from = array_shape(x), to = array_shape(out), both;
    return wf_shape_broadcast(&from, &to, &both) && wf_shape_equal(&both, &to);
}

/* Checks the operands of a map and runs it. `real`: all operands must be WF_REAL. */
static wf_status run_checked(struct map *m, bool real, int inputs, const wf_array *const in[], const wf_array *out, double cost)
{
    if ((!m->any && !m->typed) || inputs < 1 || inputs > WF_MAP_INPUTS || (real && out->dtype != WF_REAL) || !array_is_contiguous(out))
        return WF_ERR_ARGUMENT;
    for (int k = 0; k < inputs; k++) {
        if (real && in[k]->dtype != WF_REAL)
            return WF_ERR_ARGUMENT;
        if (!fits(in[k], out))
            return WF_ERR_SHAPE;
    }
    run(m, inputs, in, out, cost);
    return out->data ? WF_OK : WF_ERR_MEMORY;
}

wf_status wf_map(wf_map_kernel *f, const void *ctx, int inputs, const wf_array *const in[], const wf_array *out, double cost)
{
    return run_checked(&(struct map){.any = f, .ctx = ctx}, true, inputs, in, out, cost);
}

wf_status wf_map_any(wf_map_any_kernel *f, const void *ctx, int inputs, const wf_array *const in[], const wf_array *out, double cost)
{
    return run_checked(&(struct map){.typed = f, .ctx = ctx}, false, inputs, in, out, cost);
}

void wf_map_unary(wf_unary_kernel *f, const wf_array *x, const wf_array *out, double cost)
{
    struct map m = {.unary = f};
    run(&m, 1, &x, out, cost);
}

void wf_map_binary(wf_binary_kernel *f, const wf_array *a, const wf_array *b, const wf_array *out, double cost)
{
    struct map m = {.binary = f, .broadcasts = true};
    run(&m, 2, (const wf_array *const[]){a, b}, out, cost);
}

void wf_map_grad(wf_grad_kernel *f, const wf_array *x, const wf_array *dy, const wf_array *out, double cost)
{
    struct map m = {.grad = f};
    run(&m, 2, (const wf_array *const[]){x, dy}, out, cost);
}

void wf_map_affine(double scale, double shift, const wf_array *x, const wf_array *out)
{
    struct map m = {.scale = (wf_real)scale, .shift = (wf_real)shift};
    run(&m, 1, &x, out, 0.08);
}
