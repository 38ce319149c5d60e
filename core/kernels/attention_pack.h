/* SPDX-License-Identifier: MIT */
/* Copies operands into the tiles of the attention kernels and results out of the tiles, by transposes and copies of rows. For products in
 * bf16, packing rounds the operands. Packing also reports NaN and infinities, of rounded values: the check is cheap because the values are
 * in registers anyway. */
#ifndef WEFT_KERNELS_ATTENTION_PACK_H
#define WEFT_KERNELS_ATTENTION_PACK_H

#include "../transpose.h"
#include "attention_tile.h"

#define LOWER_HALVES(lane, h) ((lane) < (h) ? (lane) : V_LANES + (lane) - (h))
#define SWAPPED_HALVES(lane, h) (((lane) + (h)) % V_LANES)

/* Notes in *found if a value is not finite: x * 0 is +0 or -0 if x is finite, else a NaN. all_finite, which ignores the sign bits, tells
 * whether no such value was noted. */
V_INLINE void note_nonfinite(vi *found, vr x)
{
    *found |= (vi)(x * 0);
}

V_INLINE bool all_finite(vi found)
{
    return !v_any(found & v_seti(~V_SIGN));
}

enum { HALF = V_LANES / 2 };

/* Returns the lower half of a, followed by the lower half of b. */
V_INLINE vr lower_halves(vr a, vr b)
{
    return __builtin_shufflevector(a, b, V_LIST(LOWER_HALVES, HALF));
}

/* Returns `a` with its halves swapped, so that its upper half is in the lower lanes. */
V_INLINE vr upper_half(vr a)
{
    return __builtin_shufflevector(a, a, V_LIST(SWAPPED_HALVES, HALF));
}

/* Transposes one square of pack_queries, V_LANES by V_LANES. `rows` and `columns` count the rows and columns from this square to the end of
 * the matrix. Rows beyond the end count as 0, columns beyond the end are not stored. `full`: the square has all rows and columns. */
V_INLINE void pack_square(const bool bf16, bool full, int64_t rows, int64_t columns, const wf_real *from, int64_t step, vr scale, vi *found,
                          wf_real *to)
{
    vr r[V_LANES];
    if (!full && columns <= HALF) {
        /* Only half of the columns or fewer exist: rows l and l + HALF share a register, so that one transpose with half the shuffles is
         * enough. */
#pragma GCC unroll 8
        for (int l = 0; l < HALF; l++) {
            vr a = l < rows ? v_load_n(from + l * step, columns, 0) : v_set(0);
            vr b = l + HALF < rows ? v_load_n(from + (l + HALF) * step, columns, 0) : v_set(0);
            r[l] = operand(bf16, lower_halves(a, b));
            note_nonfinite(found, r[l]);
        }
        v_transpose_halves(r);
#pragma GCC unroll 8
        for (int l = 0; l < HALF; l++)
            if (l < columns)
                v_store(to + l * QUERIES, r[l] * scale);
        return;
    }
#pragma GCC unroll 16
    for (int l = 0; l < V_LANES; l++) {
        r[l] = operand(bf16, full ? v_load(from + l * step) : l < rows ? v_load_at_most(from + l * step, columns) : v_set(0));
        note_nonfinite(found, r[l]);
    }
    v_transpose(r);
#pragma GCC unroll 16
    for (int l = 0; l < V_LANES; l++)
        if (full || l < columns)
            v_store(to + l * QUERIES, r[l] * scale);
}

/* to[column][row] = scale * from[row][column] for `rows` <= QUERIES rows, where a row of `to` has QUERIES lanes. If `rows` ends
 * inside a register, the remaining lanes of this register become 0; the registers after it are not written. Returns true if all values are
 * finite. */
V_INLINE bool pack_queries_in(const bool bf16, int64_t rows, int64_t columns, const wf_real *from, int64_t step, wf_real scale, wf_real *to)
{
    vi found = v_seti(0);
    for (int64_t i = 0; i < rows; i += V_LANES)
        for (int64_t j = 0; j < columns; j += V_LANES) {
            const wf_real *square = from + i * step + j;
            if (i + V_LANES <= rows && j + V_LANES <= columns)
                pack_square(bf16, true, V_LANES, V_LANES, square, step, v_set(scale), &found, to + j * QUERIES + i);
            else
                pack_square(bf16, false, rows - i, columns - j, square, step, v_set(scale), &found, to + j * QUERIES + i);
        }
    return all_finite(found);
}

V_NOINLINE bool pack_queries(int64_t rows, int64_t columns, const wf_real *from, int64_t step, wf_real scale, wf_real *to)
{
    return pack_queries_in(false, rows, columns, from, step, scale, to);
}

#ifndef WF_DOUBLE
V_NOINLINE bool pack_queries_bf16(int64_t rows, int64_t columns, const wf_real *from, int64_t step, wf_real scale, wf_real *to)
{
    return pack_queries_in(true, rows, columns, from, step, scale, to);
}
#endif

V_INLINE void put_row(wf_real *p, vr x, int64_t columns, bool add)
{
    v_store_at_most(p, add ? v_load_at_most(p, columns) + x : x, columns);
}

V_INLINE void unpack_square(bool full, int64_t rows, int64_t columns, const wf_real *from, wf_real *to, int64_t step, bool add)
{
    vr r[V_LANES];
    if (!full && columns <= HALF) {
#pragma GCC unroll 8
        for (int l = 0; l < HALF; l++)
            r[l] = l < columns ? v_load(from + l * QUERIES) : v_set(0);
        v_transpose_halves(r);
#pragma GCC unroll 8
        for (int l = 0; l < HALF; l++) {
            if (l < rows)
                put_row(to + l * step, r[l], columns, add);
            if (l + HALF < rows)
                put_row(to + (l + HALF) * step, upper_half(r[l]), columns, add);
        }
        return;
    }
#pragma GCC unroll 16
    for (int l = 0; l < V_LANES; l++)
        r[l] = full || l < columns ? v_load(from + l * QUERIES) : v_set(0);
    v_transpose(r);
#pragma GCC unroll 16
    for (int l = 0; l < V_LANES; l++)
        if (full || l < rows)
            put_row(to + l * step, r[l], full ? V_LANES : columns, add);
}

/* to[row][column] = from[column][row], or += with `add`; a row of `from` has QUERIES lanes. */
V_NOINLINE void unpack_queries(int64_t rows, int64_t columns, const wf_real *from, wf_real *to, int64_t step, bool add)
{
    for (int64_t i = 0; i < rows; i += V_LANES)
        for (int64_t j = 0; j < columns; j += V_LANES) {
            const wf_real *square = from + j * QUERIES + i;
            if (i + V_LANES > rows || j + V_LANES > columns)
                unpack_square(false, rows - i, columns - j, square, to + i * step + j, step, add);
            else if (add)
                unpack_square(true, V_LANES, V_LANES, square, to + i * step + j, step, true);
            else
                unpack_square(true, V_LANES, V_LANES, square, to + i * step + j, step, false);
        }
}

/* Copies `rows` rows of `columns` elements. A row of `to` has to_step elements, up to V_LANES - 1 more than `columns`; the additional
 * elements become 0. Returns true if all values are finite. */
V_INLINE bool pack_rows_in(const bool bf16, int64_t rows, int64_t columns, const wf_real *from, int64_t step, wf_real *to, int64_t to_step)
{
    vi found = v_seti(0);
    const int64_t whole = columns / V_LANES * V_LANES, rest = columns - whole;
    for (int64_t i = 0; i < rows; i++, from += step, to += to_step) {
        for (int64_t j = 0; j < whole; j += V_LANES) {
            vr x = operand(bf16, v_load(from + j));
            note_nonfinite(&found, x);
            v_store(to + j, x);
        }
        if (rest) {
            vr x = operand(bf16, v_load_n(from + whole, rest, 0));
            note_nonfinite(&found, x);
            v_store_at_most(to + whole, x, to_step - whole);
        }
    }
    return all_finite(found);
}

V_NOINLINE bool pack_rows(int64_t rows, int64_t columns, const wf_real *from, int64_t step, wf_real *to, int64_t to_step)
{
    return pack_rows_in(false, rows, columns, from, step, to, to_step);
}

#ifndef WF_DOUBLE
V_NOINLINE bool pack_rows_bf16(int64_t rows, int64_t columns, const wf_real *from, int64_t step, wf_real *to, int64_t to_step)
{
    return pack_rows_in(true, rows, columns, from, step, to, to_step);
}
#endif

/* Rows to prefetch, because they are read or written soon. The rows of a head lie pages apart, and the hardware prefetcher does not follow
 * such steps. So fetch_some prefetches a few rows at a time between the products of a tile, while the processor computes. The rows go into
 * the second-level cache; in the first-level cache, rows whose distance is a whole number of pages would evict each other. */
struct fetch {
    struct {
        const char *p;
        int64_t rows, bytes, step;
    } part[8];
    int parts, at;
};

V_INLINE void fetch_later(struct fetch *f, const wf_real *p, int64_t rows, int64_t columns, int64_t step)
{
    if (p && rows > 0) {
        const int64_t size = sizeof *p;
        f->part[f->parts].p = (const char *)p;
        f->part[f->parts].rows = rows;
        f->part[f->parts].bytes = columns * size;
        f->part[f->parts++].step = step * size;
    }
}

V_NOINLINE void fetch_some(struct fetch *f, int64_t rows)
{
    for (; rows > 0 && f->at < f->parts; f->at++) {
        const char *p = f->part[f->at].p;
        const int64_t left = f->part[f->at].rows, n = WF_MIN(rows, left);
        for (int64_t i = 0; i < n; i++, p += f->part[f->at].step)
            for (int64_t j = 0; j < f->part[f->at].bytes; j += 64)
                __builtin_prefetch(p + j, 0, 2);
        rows -= n;
        if (n < left) {
            f->part[f->at].p = p;
            f->part[f->at].rows = left - n;
            return;
        }
    }
}

/* Adds to `f` the rows of the next keys and values: up to QUERIES keys from key k0 on, below key `end`. With a causal mask, the next tile
 * of queries sees that many more keys than this one. */
V_INLINE void fetch_keys(struct fetch *f, const struct wf_attention *a, int64_t k0, int64_t end)
{
    const int64_t n = WF_MIN(end - k0, QUERIES);
    fetch_later(f, a->k + k0 * a->k_step, n, a->e, a->k_step);
    fetch_later(f, a->v + k0 * a->v_step, n, a->f, a->v_step);
}

/* Packs the keys and values of n <= QUERIES keys from k0 on into to_k and to_v. *k_nonfinite and *v_nonfinite become true if the part of
 * their tile that is packed so far holds a NaN or an infinity. With `more`, the caller packs the next keys right after these, so they are
 * prefetched first. */
V_INLINE void pack_keys(const struct wf_attention *a, int64_t k0, int64_t n, bool more, int64_t end, wf_real *to_k, wf_real *to_v,
                        bool *k_nonfinite, bool *v_nonfinite)
{
    if (more) {
        struct fetch f = {.parts = 0};
        fetch_keys(&f, a, k0 + n, end);
        fetch_some(&f, 2 * QUERIES);
    }
    const bool begins = k0 % KEYS == 0;
    const bool bf16 = in_bf16(a);
    *k_nonfinite = !CHOOSE(bf16, pack_rows)(n, a->e, a->k + k0 * a->k_step, a->k_step, to_k, a->e) || (!begins && *k_nonfinite);
    *v_nonfinite = !CHOOSE(bf16, pack_rows)(n, a->f, a->v + k0 * a->v_step, a->v_step, to_v, a->f) || (!begins && *v_nonfinite);
}

#endif
