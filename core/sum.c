/* SPDX-License-Identifier: MIT */
/* wf_array_sum. It sorts the dimensions by the strides of src, so that the innermost dimension walks through memory, and merges
 * neighbours where both arrays allow it. Three cases remain:
 *
 *   columns  the innermost dimension is contiguous in both arrays and stays in dst: the kernel sum_rows_at adds rows of src
 *   runs     the innermost dimension is contiguous in src and is summed over: the kernel sum adds each run in double; short runs that lie
 *            end to end are added several at a time
 *   others   element by element, in double
 *
 * The sum for one element of dst is divided into blocks, and the sums of the blocks are added in order. How it is divided depends only on
 * the number of its terms and, in the cases runs and others, on their length, so the bits do not depend on the threads. In the case
 * columns, a place is one row of dst along the innermost dimension, and its terms are the rows of src that are added to it. In the other
 * cases, a place is one element of dst, and its terms are runs; a run goes along the innermost of the dimensions that are summed over.
 *
 * wf_array_sum_in_order adds in the order of a contiguous copy of src. It copies each block just before it adds the block, so that the
 * copy lies in the caches. */
#include <stdatomic.h>
#include <stdlib.h>

#include <weft/internal/kernels.h>
#include <weft/internal/minmax.h>
#include <weft/internal/scratch.h>
#include <weft/internal/shape.h>

enum {
    ROWS = 64,        /* rows of a block if a sum has more than 2 ROWS rows; doubled for long sums, to limit the number of blocks */
    MOST_ROWS = 1024, /* the most rows of a block */
    COLUMNS = 1024,   /* the most columns of a piece of a row */
    FEW_COLUMNS = 64, /* the most columns of a piece if rows are copied; the copy of a block then fits the second-level cache */
    ELEMENTS = 16384  /* in the cases runs and others, a block has about this many elements; a thread takes about as many at a time */
};

struct dim {
    int64_t n;
    int64_t from; /* stride in src, in elements */
    int64_t to;   /* stride in dst, in elements; 0 if the dimension is summed over */
};

/* Dimensions in the order in which an index counts them, the innermost first. */
struct dims {
    int count;
    struct dim d[WF_MAX_DIMS];
};

struct sum {
    wf_real *dst;
    const wf_real *src;
    const wf_array *view; /* wf_array_sum_in_order: the array to sum. src is then NULL, and offsets count the view's elements in order */
    wf_array planes;      /* the view reshaped to [places, terms, inner]; data is NULL if the view does not have this form */
    int64_t columns;      /* the most columns of a piece of a row */
    double scale;
    bool add;
    struct dims kept;       /* the dimensions that stay in dst, without `inner` */
    struct dims summed;     /* the dimensions that are summed over, without `inner` */
    struct dim inner;       /* the dimension along a row (case columns) or along a run (other cases) */
    int64_t places;         /* number of places: the product of the sizes of `kept` */
    int64_t terms;          /* number of terms of a place: the product of the sizes of `summed` */
    int64_t block;          /* terms of a block */
    int64_t blocks;         /* blocks of a place; if runs have several pieces, each piece of each term is a block */
    int64_t pieces;         /* pieces of a row or of a run */
    _Atomic bool no_memory; /* true: there was no memory for a copy of elements of the view */
    /* Sums of blocks: wf_real [places][blocks][elements of a row] in the case columns, double [places][blocks] in the other cases. NULL if
     * each place has one block. */
    void *partial;
};

/* A running index over some dimensions, and its offsets in both arrays. */
struct place {
    int64_t index[WF_MAX_DIMS], from, to;
};

static struct place place_at(const struct dims *dims, int64_t i)
{
    struct place p = {.from = 0};
    for (int k = 0; k < dims->count; k++) {
        p.index[k] = i % dims->d[k].n;
        i /= dims->d[k].n;
        p.from += p.index[k] * dims->d[k].from;
        p.to += p.index[k] * dims->d[k].to;
    }
    return p;
}

static void next_place(const struct dims *dims, struct place *p)
{
    for (int k = 0; k < dims->count; k++) {
        const struct dim *d = &dims->d[k];
        p->from += d->from;
        p->to += d->to;
        if (++p->index[k] < d->n)
            return;
        p->from -= d->n * d->from;
        p->to -= d->n * d->to;
        p->index[k] = 0;
    }
}

/* The number of runs of a view that are copied together. If a run of a transposed view were copied alone, each of its elements would read
 * another cache line; neighbouring runs use the other elements of these lines. */
static int64_t runs_at_once(const struct sum *s)
{
    enum { MOST = 64, COPIED = 1 << 18 };
    const int64_t fit = s->view && s->terms == 1 && s->inner.n <= ELEMENTS ? COPIED / s->inner.n : 1;
    return WF_MIN(MOST, fit);
}

/* Scratch memory for n elements of a view. If there is none, the function sets no_memory and returns NULL. */
static wf_real *room_for(struct sum *s, int64_t n)
{
    wf_real *room = wf_scratch(WF_SCRATCH_ELEMENTS, (size_t)n * sizeof *room);
    if (!room)
        atomic_store_explicit(&s->no_memory, true, memory_order_relaxed);
    return room;
}

/* Elements at .. at + n - 1 of src, or a contiguous copy of these elements of the view. NULL if there is no memory. */
static const wf_real *elements(struct sum *s, int64_t at, int64_t n)
{
    if (!s->view)
        return s->src + at;
    wf_real *copy = room_for(s, n);
    if (copy)
        wf_array_copy_range(s->view, at, n, copy);
    return copy;
}

/* Writes the sum of a place to *dst, or adds it to *dst. */
static void put(const struct sum *s, wf_real *dst, double sum)
{
    *dst = s->add ? (wf_real)((double)*dst + s->scale * sum) : (wf_real)(s->scale * sum);
}

/* --- columns ------------------------------------------------------------------------------------------------------- */

/* Writes scale * sum to y, or adds it to y. The sum is that of the rows x + offset[i], or of the partial sums x + i * stride if offset
 * is NULL. */
static void add_rows(const struct sum *s, int64_t rows, int64_t columns, const wf_real *x, int64_t stride, const int64_t *offset,
                     wf_real *y)
{
    wf_real scaled[COLUMNS], *to = s->scale == 1 ? y : scaled;
    if (offset)
        wf_kernel->internal->sum_rows_at(rows, columns, x, offset, to == y && s->add, to);
    else
        wf_kernel->internal->sum_partials(rows, columns, x, stride, to == y && s->add, to);
    if (to != y && s->add)
        wf_kernel->axpy(columns, (wf_real)s->scale, scaled, y);
    else if (to != y)
        wf_kernel->affine(columns, (wf_real)s->scale, 0, scaled, y);
}

static int64_t piece_length(int64_t all, int64_t piece, int64_t length)
{
    return WF_MIN(all - piece * length, length);
}

/* Copies the rows of a view's block end to end. */
static const wf_real *copy_rows(struct sum *s, int64_t place, int64_t first, int64_t rows, int64_t at, int64_t columns,
                                const int64_t *offset)
{
    wf_real *copy = room_for(s, rows * columns);
    if (copy && s->planes.data) {
        const wf_array plane = wf_array_slice(wf_array_slice(s->planes, 0, place, 1), 1, first, rows),
                       box = wf_array_slice(plane, 2, at % s->inner.n, columns),
                       to = wf_array_contiguous(copy, WF_REAL, &(wf_shape){3, {1, rows, columns}});
        wf_array_copy(&to, &box);
    } else if (copy) {
        for (int64_t i = 0; i < rows; i++)
            wf_array_copy_range(s->view, at + offset[i], columns, copy + i * columns);
    }
    return copy;
}

static void column_block(void *ctx, int64_t begin, int64_t end)
{
    struct sum *s = ctx;
    int64_t offset[MOST_ROWS], end_to_end[MOST_ROWS], known = -1, rows = 0;
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t piece = unit % s->pieces, at = unit / s->pieces, block = at % s->blocks;
        if (block != known) {
            struct place term = place_at(&s->summed, block * s->block);
            rows = piece_length(s->terms, block, s->block);
            for (int64_t i = 0; i < rows; i++, next_place(&s->summed, &term))
                offset[i] = term.from;
            known = block;
        }
        const int64_t column = piece * s->columns, columns = piece_length(s->inner.n, piece, s->columns), *where = offset;
        const struct place p = place_at(&s->kept, at / s->blocks);
        const wf_real *x;
        if (!s->view) {
            x = s->src + p.from + column;
        } else {
            x = copy_rows(s, at / s->blocks, block * s->block, rows, p.from + column, columns, offset);
            for (int64_t i = 0; i < rows; i++)
                end_to_end[i] = i * columns;
            where = end_to_end;
            if (!x)
                return;
        }
        if (s->partial)
            wf_kernel->internal->sum_rows_at(rows, columns, x, where, false, (wf_real *)s->partial + at * s->inner.n + column);
        else
            add_rows(s, rows, columns, x, 0, where, s->dst + p.to + column);
    }
}

static void combine_columns(void *ctx, int64_t begin, int64_t end)
{
    const struct sum *s = ctx;
    for (int64_t unit = begin; unit < end; unit++) {
        const int64_t column = unit % s->pieces * s->columns, d = s->inner.n;
        const wf_real *x = (const wf_real *)s->partial + unit / s->pieces * s->blocks * d + column;
        add_rows(s, s->blocks, piece_length(d, unit % s->pieces, s->columns), x, d, NULL,
                 s->dst + place_at(&s->kept, unit / s->pieces).to + column);
    }
}

static wf_status sum_columns(struct sum *s)
{
    const int64_t d = s->inner.n, width = WF_MIN(d, s->columns);
    s->pieces = (d - 1) / s->columns + 1;
    s->block = ROWS;
    while (s->terms / s->block > 256 && s->block < MOST_ROWS)
        s->block *= 2;
    if (s->terms <= 2 * ROWS)
        s->block = s->terms;
    s->blocks = (s->terms - 1) / s->block + 1;
    if (s->blocks > 1 && !(s->partial = wf_scratch(WF_SCRATCH_SUM, (size_t)(s->places * s->blocks * d) * sizeof(wf_real))))
        return WF_ERR_MEMORY;
    const double cost = (s->view ? 0.3 : 0.05) * (double)s->places * (double)d;
    wf_parallel_ranges(s->places * s->blocks * s->pieces, ELEMENTS / (s->block * width + 1) + 1, cost * (double)s->terms, column_block, s);
    if (s->partial)
        wf_parallel_ranges(s->places * s->pieces, ELEMENTS / (s->blocks * width + 1) + 1, cost * (double)s->blocks, combine_columns, s);
    return WF_OK;
}

/* --- runs and others ------------------------------------------------------------------------------------------------ */

static double run_sum(const struct sum *s, const wf_real *x, int64_t n)
{
    if (s->inner.from == 1)
        return wf_kernel->sum(n, x);
    if (s->inner.from == 0) /* one element, repeated n times */
        return (double)n * (double)x[0];
    double sum[4] = {0};
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (int k = 0; k < 4; k++)
            sum[k] += (double)x[(i + k) * s->inner.from];
    for (; i < n; i++)
        sum[0] += (double)x[i * s->inner.from];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

static void run_block(void *ctx, int64_t begin, int64_t end)
{
    struct sum *s = ctx;
    struct place p = place_at(&s->kept, begin / s->blocks);
    const int64_t together = runs_at_once(s);
    for (int64_t unit = begin; together > 1 && unit < end; unit += together) {
        const int64_t runs = WF_MIN(end - unit, together);
        const wf_real *x = elements(s, p.from, runs * s->inner.n); /* these runs follow each other in the logical order */
        if (!x)
            return;
        for (int64_t i = 0; i < runs; i++, next_place(&s->kept, &p))
            put(s, s->dst + p.to, run_sum(s, x + i * s->inner.n, s->inner.n));
    }
    for (int64_t unit = begin, block = begin % s->blocks; together == 1 && unit < end; unit++) {
        double sum = 0;
        const bool cut = s->pieces > 1; /* true: a run is divided into blocks; false: a block has whole runs */
        const int64_t piece = cut ? block % s->pieces : 0, n = cut ? piece_length(s->inner.n, piece, ELEMENTS) : s->inner.n;
        struct place term = place_at(&s->summed, cut ? block / s->pieces : block * s->block);
        for (int64_t i = cut ? 1 : piece_length(s->terms, block, s->block); i > 0; i--, next_place(&s->summed, &term)) {
            const wf_real *x = elements(s, p.from + term.from + piece * ELEMENTS * s->inner.from, n);
            if (!x)
                return;
            sum += run_sum(s, x, n);
        }
        if (s->partial)
            ((double *)s->partial)[unit] = sum;
        else
            put(s, s->dst + p.to, sum);
        if (++block == s->blocks) {
            block = 0;
            next_place(&s->kept, &p);
        }
    }
}

enum { SHORT = 32, AT_ONCE = 256 };

/* Sums runs of at most SHORT elements that lie end to end, one for each place. A single run goes through the same kernel, so that the
 * bits of its sum depend on its elements alone, not on the number of runs. */
static void short_runs(void *ctx, int64_t begin, int64_t end)
{
    struct sum *s = ctx;
    struct place p = place_at(&s->kept, begin);
    double sum[AT_ONCE];
    for (int64_t unit = begin; unit < end;) {
        const int64_t count = WF_MIN(end - unit, AT_ONCE);
        const wf_real *x = elements(s, p.from, count * s->inner.n);
        if (!x)
            return;
        wf_kernel->internal->sum_each_row(count, s->inner.n, x, sum);
        for (int64_t i = 0; i < count; i++, next_place(&s->kept, &p))
            put(s, s->dst + p.to, sum[i]);
        unit += count;
    }
}

static bool end_to_end(const struct sum *s)
{
    return s->inner.from == 1 && s->inner.n <= SHORT && s->terms == 1 &&
           (s->kept.count == 0 || (s->kept.count == 1 && s->kept.d[0].from == s->inner.n));
}

static wf_status sum_runs(struct sum *s)
{
    const int64_t n = s->inner.n;
    if (end_to_end(s)) {
        wf_parallel_ranges(s->places, ELEMENTS / (n + 1) + 1, (s->view ? 3 : 1) * (0.1 * (double)n + 1) * (double)s->places, short_runs, s);
        return WF_OK;
    }
    s->pieces = (n - 1) / ELEMENTS + 1;
    s->block = s->pieces > 1 ? 1 : (ELEMENTS - 1) / n + 1;
    s->blocks = s->pieces > 1 ? s->terms * s->pieces : (s->terms - 1) / s->block + 1;
    if (s->blocks > 1 && !(s->partial = wf_scratch(WF_SCRATCH_SUM, (size_t)(s->places * s->blocks) * sizeof(double))))
        return WF_ERR_MEMORY;
    const int64_t terms = WF_MIN(s->block, s->terms), length = terms * WF_MIN(n, ELEMENTS);
    const double cost = (s->view ? 0.5 : s->inner.from == 1 ? 0.05 : 1) * (double)s->places * (double)s->terms * (double)n;
    const int64_t grain = ELEMENTS / (length + 1) + 1, together = runs_at_once(s);
    wf_parallel_ranges(s->places * s->blocks, WF_MAX(grain, together), cost, run_block, s);
    struct place p = place_at(&s->kept, 0);
    for (int64_t i = 0; s->partial && i < s->places; i++, next_place(&s->kept, &p)) {
        const double *partial = (const double *)s->partial + i * s->blocks;
        double sum = 0;
        for (int64_t k = 0; k < s->blocks; k++)
            sum += partial[k];
        put(s, s->dst + p.to, sum);
    }
    return WF_OK;
}

/* --- the choice of the case ----------------------------------------------------------------------------------------- */

/* Sets *all to the dimensions of src whose size is not 1, the smallest stride first, and merges neighbours. Returns false if dst does
 * not broadcast to src. */
static bool arrange(const wf_array *dst, const wf_array *src, struct dims *all)
{
    for (int d = 0; d < dst->ndim - src->ndim; d++)
        if (dst->dim[d] != 1)
            return false;
    for (int d = src->ndim - 1; d >= 0; d--) {
        const int t = d + dst->ndim - src->ndim;
        struct dim x = {src->dim[d], src->stride[d], t >= 0 && dst->dim[t] != 1 ? dst->stride[t] : 0};
        if (t >= 0 && dst->dim[t] != 1 && dst->dim[t] != x.n)
            return false;
        if (x.n == 1)
            continue;
        int at = all->count++;
        for (; at > 0 && llabs(all->d[at - 1].from) > llabs(x.from); at--)
            all->d[at] = all->d[at - 1];
        all->d[at] = x;
    }
    int last = 0;
    for (int k = 1; k < all->count; k++) {
        struct dim *low = &all->d[last], x = all->d[k];
        if ((low->to == 0) == (x.to == 0) && x.from == low->from * low->n && x.to == low->to * low->n)
            low->n *= x.n;
        else
            all->d[++last] = x;
    }
    all->count = all->count ? last + 1 : 0;
    return true;
}

static void append(struct dims *dims, int64_t *count, struct dim d)
{
    dims->d[dims->count++] = d;
    *count *= d.n;
}

/* The sum of no elements: dst becomes 0, or stays as it is if `add`. */
static wf_status nothing(const wf_array *dst, bool add)
{
    static const wf_real zero;
    wf_shape shape = wf_array_shape(dst);
    wf_array none = wf_array_contiguous((void *)&zero, WF_REAL, &(wf_shape){0});
    none = wf_array_expand(&none, &shape);
    if (!add)
        wf_array_copy(dst, &none);
    return WF_OK;
}

static void set_inner(struct sum *s, const struct dims *all, bool columns)
{
    int inner = columns ? 0 : -1;
    for (int k = 0; inner < 0 && k < all->count; k++)
        if (all->d[k].to == 0)
            inner = k;
    for (int k = 0; k < all->count; k++)
        if (k == inner)
            s->inner = all->d[k];
        else if (all->d[k].to == 0)
            append(&s->summed, &s->terms, all->d[k]);
        else
            append(&s->kept, &s->places, all->d[k]);
}

/* `order` has the shape of src, and its strides determine the order of the additions. */
static wf_status sum_by(struct sum *s, const wf_array *dst, const wf_array *src, const wf_array *order)
{
    struct dims all = {0};
    if (dst->dtype != WF_REAL || src->dtype != WF_REAL)
        return WF_ERR_ARGUMENT;
    if (!arrange(dst, order, &all))
        return WF_ERR_SHAPE;
    if (wf_array_count(dst) == 0)
        return WF_OK;
    if (wf_array_count(src) == 0)
        return nothing(dst, s->add);
    const bool columns = all.count > 0 && all.d[0].from == 1 && all.d[0].to == 1;
    set_inner(s, &all, columns);
    if (s->view && !columns && s->inner.from != 1 && s->inner.n > 1) /* in this case dst is not row-major */
        return WF_ERR_ARGUMENT;
    const bool middle = s->summed.count <= 1 && (s->kept.count == 0 || (s->kept.count == 1 && s->kept.d[0].from == s->terms * s->inner.n));
    if (s->view && middle && !wf_array_reshape(src, &(wf_shape){3, {s->places, s->terms, s->inner.n}}, &s->planes))
        s->planes.data = NULL;
    wf_status status = columns ? sum_columns(s) : sum_runs(s);
    return status == WF_OK && atomic_load(&s->no_memory) ? WF_ERR_MEMORY : status;
}

wf_status wf_array_sum(const wf_array *dst, const wf_array *src, double scale, bool add)
{
    struct sum s = {
        .dst = dst->data, .src = src->data, .scale = scale, .add = add, .places = 1, .terms = 1, .inner = {1, 1, 0}, .columns = COLUMNS};
    return sum_by(&s, dst, src, src);
}

wf_status wf_array_sum_in_order(const wf_array *dst, const wf_array *src, double scale)
{
    if (wf_array_is_contiguous(src))
        return wf_array_sum(dst, src, scale, false);
    struct sum s = {.dst = dst->data, .view = src, .scale = scale, .places = 1, .terms = 1, .inner = {1, 1, 0}, .columns = FEW_COLUMNS};
    const wf_shape shape = wf_array_shape(src);
    const wf_array order = wf_array_contiguous(NULL, WF_REAL, &shape);
    return sum_by(&s, dst, src, &order);
}
