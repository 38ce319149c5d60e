/* SPDX-License-Identifier: MIT */
/* wf_array_copy. It sorts the dims by the strides of dst and merges neighbours where both arrays allow it. Three cases remain: rows that
 * are contiguous in both arrays (memcpy), planes that are transposed (tiles in registers), and all others (element by element). */
#include <stdlib.h>
#include <string.h>

#include <weft/compute.h>
#include <weft/internal/minmax.h>
#include <weft/internal/shape.h>

#include "transpose.h"

struct dim {
    int64_t n;
    int64_t to;   /* stride in dst, in bytes */
    int64_t from; /* stride in src, in bytes */
};

struct copy {
    char *dst;
    const char *src;
    int64_t size; /* bytes of an element */
    int ndim;     /* number of dims, the innermost last; the last two form a plane, and an index of the others chooses one of the planes */
    struct dim dim[WF_MAX_DIMS];
    int64_t strips; /* number of strips into which the rows of a plane are divided */
    int64_t rows;   /* rows of a strip; the last strip may have fewer */
};

/* Drops dims of size 1, sorts the others (largest stride of dst first), and merges neighbours where both arrays allow it. Returns false if
 * there is nothing to copy. */
static bool normalise(struct copy *c, const wf_array *dst, const wf_array *src)
{
    c->ndim = 0;
    for (int d = 0; d < dst->ndim; d++) {
        if (dst->dim[d] == 0)
            return false;
        if (dst->dim[d] == 1)
            continue;
        const struct dim x = {dst->dim[d], dst->stride[d] * c->size, src->stride[d] * c->size};
        int at = c->ndim++;
        for (; at > 0 && llabs(c->dim[at - 1].to) < llabs(x.to); at--)
            c->dim[at] = c->dim[at - 1];
        c->dim[at] = x;
    }
    int kept = 0;
    for (int d = 1; d < c->ndim; d++) {
        struct dim *last = &c->dim[kept], x = c->dim[d];
        if (last->to == x.n * x.to && last->from == x.n * x.from)
            *last = (struct dim){last->n * x.n, x.to, x.from};
        else
            c->dim[++kept] = x;
    }
    c->ndim = c->ndim ? kept + 1 : 0;
    return true;
}

/* A plane: `rows` rows of n elements. The strides are in bytes: to_row and from_row go from one row to the next, in dst and in src;
 * `to` and `from` go from one element of a row to the next. */
struct plane {
    char *dst;
    const char *src;
    int64_t rows, to_row, from_row;
    int64_t n, to, from;
};

static void copy_rows(const struct plane *p, int64_t size)
{
    for (int64_t i = 0; i < p->rows; i++)
        memcpy(p->dst + i * p->to_row, p->src + i * p->from_row, (size_t)(p->n * size));
}

#define COPY_ANY(type)                                                                                                                     \
    static void copy_any_##type(const struct plane *p)                                                                                     \
    {                                                                                                                                      \
        for (int64_t i = 0; i < p->rows; i++) {                                                                                            \
            char *dst = p->dst + i * p->to_row;                                                                                            \
            const char *src = p->src + i * p->from_row;                                                                                    \
            if (p->from == 0 && p->to == (int64_t)sizeof(type)) {                                                                          \
                type value = *(const type *)src, *out = (type *)dst;                                                                       \
                for (int64_t j = 0; j < p->n; j++)                                                                                         \
                    out[j] = value;                                                                                                        \
            } else {                                                                                                                       \
                for (int64_t j = 0; j < p->n; j++)                                                                                         \
                    *(type *)(dst + j * p->to) = *(const type *)(src + j * p->from);                                                       \
            }                                                                                                                              \
        }                                                                                                                                  \
    }
COPY_ANY(uint8_t)
COPY_ANY(uint16_t)
COPY_ANY(uint32_t)
COPY_ANY(uint64_t)

typedef uint32_t u32x4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef uint64_t u64x2 __attribute__((vector_size(16), aligned(8), may_alias));

#define TILE(name, word, side)                                                                                                             \
    static inline void name(char *dst, int64_t to_row, const char *src, int64_t from)                                                      \
    {                                                                                                                                      \
        word r[side];                                                                                                                      \
        for (int i = 0; i < side; i++)                                                                                                     \
            r[i] = *(const word *)(src + i * from);                                                                                        \
        V_TRANSPOSE_##side(r);                                                                                                             \
        for (int i = 0; i < side; i++)                                                                                                     \
            *(word *)(dst + i * to_row) = r[i];                                                                                            \
    }
TILE(tile_u32, u32x4, 4)
TILE(tile_u64, u64x2, 2)

/* Copies a plane whose dst is contiguous along n and whose src is contiguous along rows. The plane is copied in squares of SQUARE x SQUARE
 * elements, which stay in the first-level cache; register tiles transpose each square. */
#define TRANSPOSE(name, type, tile, side)                                                                                                  \
    static void name(const struct plane *p)                                                                                                \
    {                                                                                                                                      \
        enum { SQUARE = 16 };                                                                                                              \
        for (int64_t i0 = 0; i0 < p->rows; i0 += SQUARE)                                                                                   \
            for (int64_t j0 = 0; j0 < p->n; j0 += SQUARE) {                                                                                \
                int64_t i1 = WF_MIN(i0 + SQUARE, p->rows), j1 = WF_MIN(j0 + SQUARE, p->n);                                                 \
                int64_t im = i0 + (i1 - i0) / side * side, jm = j0 + (j1 - j0) / side * side;                                              \
                for (int64_t i = i0; i < im; i += side)                                                                                    \
                    for (int64_t j = j0; j < jm; j += side)                                                                                \
                        tile(p->dst + i * p->to_row + j * (int64_t)sizeof(type), p->to_row,                                                \
                             p->src + i * (int64_t)sizeof(type) + j * p->from, p->from);                                                   \
                for (int64_t i = i0; i < i1; i++)                                                                                          \
                    for (int64_t j = i < im ? jm : j0; j < j1; j++)                                                                        \
                        *(type *)(p->dst + i * p->to_row + j * (int64_t)sizeof(type)) =                                                    \
                            *(const type *)(p->src + i * (int64_t)sizeof(type) + j * p->from);                                             \
            }                                                                                                                              \
    }
TRANSPOSE(transpose_u32, uint32_t, tile_u32, 4)
TRANSPOSE(transpose_u64, uint64_t, tile_u64, 2)

static void copy_strips(void *ctx, int64_t begin, int64_t end)
{
    const struct copy *c = ctx;
    const struct dim row = c->dim[c->ndim - 2], last = c->dim[c->ndim - 1];
    const int64_t size = c->size;
    void (*const transpose)(const struct plane *) = size == 4 ? transpose_u32 : size == 8 ? transpose_u64 : NULL;
    void (*const any)(const struct plane *) = size == 1   ? copy_any_uint8_t
                                              : size == 2 ? copy_any_uint16_t
                                              : size == 4 ? copy_any_uint32_t
                                                          : copy_any_uint64_t;
    for (int64_t i = begin; i < end; i++) {
        int64_t first = i % c->strips * c->rows, index = i / c->strips;
        struct plane p = {c->dst + first * row.to,
                          c->src + first * row.from,
                          WF_MIN(row.n - first, c->rows),
                          row.to,
                          row.from,
                          last.n,
                          last.to,
                          last.from};
        for (int d = c->ndim - 3; d >= 0; d--) {
            p.dst += index % c->dim[d].n * c->dim[d].to;
            p.src += index % c->dim[d].n * c->dim[d].from;
            index /= c->dim[d].n;
        }
        if (p.to == size && p.from == size)
            copy_rows(&p, size);
        else if (p.to == size && p.from_row == size && transpose)
            transpose(&p);
        else
            any(&p);
    }
}

/* If src is contiguous along another dim than the last, makes that dim the one before the last. If dst is contiguous along the last dim,
 * copying the plane of these two dims is a transposition. */
static void find_transposed(struct copy *c)
{
    struct dim *row = &c->dim[c->ndim - 2];
    for (struct dim *d = c->dim; d < row && row[1].from != c->size; d++)
        if (d->from == c->size) {
            const struct dim x = *d;
            *d = *row;
            *row = x;
            return;
        }
}

void wf_array_copy(const wf_array *dst, const wf_array *src)
{
    enum { BLOCK_BYTES = 64 << 10 };
    struct copy c = {.dst = dst->data, .src = src->data, .size = (int64_t)wf_dtype_size(dst->dtype)};
    if (!normalise(&c, dst, src))
        return;
    /* A large flat copy is divided into rows, so that several threads can copy it. */
    if (c.ndim == 1 && c.dim[0].to == c.size && c.dim[0].from == c.size && c.dim[0].n * c.size > BLOCK_BYTES) {
        int64_t row = BLOCK_BYTES / c.size, rows = c.dim[0].n / row, rest = c.dim[0].n % row;
        memcpy(c.dst + rows * BLOCK_BYTES, c.src + rows * BLOCK_BYTES, (size_t)(rest * c.size));
        c.ndim = 2;
        c.dim[0] = (struct dim){rows, BLOCK_BYTES, BLOCK_BYTES};
        c.dim[1] = (struct dim){row, c.size, c.size};
    }
    if (c.ndim == 0)
        c.dim[c.ndim++] = (struct dim){1, c.size, c.size};
    if (c.ndim == 1) {
        c.dim[c.ndim++] = c.dim[0];
        c.dim[0] = (struct dim){1, 0, 0};
    }
    find_transposed(&c);
    const struct dim last = c.dim[c.ndim - 1];
    int64_t planes = 1, row = last.n * c.size, rows = c.dim[c.ndim - 2].n;
    for (int d = 0; d < c.ndim - 2; d++)
        planes *= c.dim[d].n;
    bool contiguous = last.from == c.size && last.to == c.size;
    /* A plane that is not contiguous may be a transposed one. The number of rows of a strip is then a multiple of 16, so that a strip is
     * made of whole squares of the loop that transposes (the last strip may have fewer rows). */
    c.rows = BLOCK_BYTES / row;
    if (!contiguous)
        c.rows = c.rows / 16 * 16;
    if (c.rows < 1)
        c.rows = contiguous ? 1 : 16;
    c.strips = (rows - 1) / c.rows + 1;
    int64_t together = c.strips > 1 ? 1 : BLOCK_BYTES / (rows * row) + 1;
    wf_parallel_ranges(planes * c.strips, together, (double)planes * (double)rows * (double)row * (contiguous ? 0.05 : 0.15), copy_strips,
                       &c);
}

/* One index of the first dimension stands for many elements, and the range may begin and end in the middle of them. So this function copies
 * the rest of the first index, then all whole indices at once, then the beginning of the last index. */
void wf_array_copy_range(const wf_array *a, int64_t from, int64_t n, void *to)
{
    wf_array rest = *a;
    const int64_t size = (int64_t)wf_dtype_size(a->dtype);
    if (n <= 0)
        return;
    if (a->ndim <= 1) {
        wf_array part = a->ndim == 1 ? wf_array_slice(*a, 0, from, n) : *a;
        wf_shape shape = wf_array_shape(&part);
        wf_array target = wf_array_contiguous(to, a->dtype, &shape);
        wf_array_copy(&target, &part);
        return;
    }
    rest.ndim--;
    for (int d = 0; d < rest.ndim; d++) {
        rest.dim[d] = a->dim[d + 1];
        rest.stride[d] = a->stride[d + 1];
    }
    const int64_t inner = wf_array_count(&rest);
    for (int64_t done = 0, now; done < n; done += now) {
        const int64_t index = (from + done) / inner, start = (from + done) % inner, left = n - done;
        char *place = (char *)to + done * size;
        if (start == 0 && left >= inner) {
            wf_array whole = wf_array_slice(*a, 0, index, left / inner);
            wf_shape shape = wf_array_shape(&whole);
            wf_array target = wf_array_contiguous(place, a->dtype, &shape);
            wf_array_copy(&target, &whole);
            now = left / inner * inner;
        } else {
            now = WF_MIN(left, inner - start);
            rest.data = (char *)a->data + index * a->stride[0] * size;
            wf_array_copy_range(&rest, start, now, place);
        }
    }
}
