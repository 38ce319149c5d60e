/* SPDX-License-Identifier: MIT */
/* Part of a product on the calling thread: A in place or packed here, B in place or packed here, some panels at a time. */
#include <weft/internal/scratch.h>

#include "product.h"

enum {
    SMALL_PACK = 2048,   /* elements of B that are packed on the stack */
    ROW_CLASH = 4096,    /* bytes between rows that fall on the same lines of the first-level cache */
    IN_PLACE_ROW = 1024, /* bytes of a row of B that is not packed */
    AHEAD = 256,         /* columns that are packed together where they are contiguous */
    FAR_B = 1 << 16,     /* elements of B that a near cache does not hold, so that fetching pays */
};

struct gemm_block wf_gemm_block_of(const struct product *p, const struct part *part, int64_t k0, int64_t k1)
{
    const struct wf_gemm *g = &p->g;
    const bool last = k1 == g->k;
    return (struct gemm_block){
        .m = part->m1 - part->m0,
        .n = part->n1 - part->n0,
        .k = k1 - k0,
        .a = g->a + part->m0 * g->a_rs + k0 * g->a_cs,
        .a_rs = g->a_rs,
        .a_cs = g->a_cs,
        .c = g->c + part->m0 * g->c_rs + part->n0 * g->c_cs,
        .c_rs = g->c_rs,
        .c_cs = g->c_cs,
        .end = {g->alpha, k0 == 0 ? g->beta : 1, last && p->bias_n ? p->bias_n + part->n0 : NULL,
                last && p->bias_m ? p->bias_m + part->m0 : NULL},
    };
}

void wf_gemm_pack_rows(struct gemm_block *b, wf_real *room)
{
    const int mr = gemm_isa()->mr;
    const int64_t tiles = gemm_up(b->m, mr);
    /* With contiguous columns a few steps of k at a time over all tiles: a line of memory is used whole before the next. */
    const int64_t steps = b->a_rs == 1 ? GEMM_STEPS : b->k;
    for (int64_t k0 = 0; k0 < b->k; k0 += steps)
        for (int64_t i = 0; i < tiles; i++) {
            const int64_t row = gemm_cut(b->m, tiles, i), rows = gemm_cut(b->m, tiles, i + 1) - row;
            gemm_isa()->pack_m(rows, gemm_least(steps, b->k - k0), b->a + row * b->a_rs + k0 * b->a_cs, b->a_rs, b->a_cs,
                               room + (i * b->k + k0) * mr);
        }
    b->a = room;
    b->a_rs = 1;
    b->a_cs = mr;
    b->a_panel = b->k * mr;
}

/* Reading rows in place costs less than packing them: A is read by broadcasts, so a contiguous k is as good as a contiguous row. Where
 * columns are contiguous (a weight's gradient) each step of k is on another line, many of which fall on the same place of the first-level
 * cache: packed, they are read once in the order in which they lie. */
bool wf_gemm_rows_in_place(const struct wf_gemm *g, int64_t columns)
{
    if (g->m < 4 || columns <= (g->a_rs == 1 ? 1 : 2) * gemm_isa()->nr)
        return true;
    if (g->a_cs == 1) /* rows whole pages apart fall on the same lines of the first-level cache */
        return g->a_rs * (int64_t)sizeof(wf_real) % ROW_CLASH != 0 || columns < 4 * gemm_isa()->nr;
    return false;
}

bool wf_gemm_columns_in_place(const struct wf_gemm *g, int64_t rows)
{
    return g->b_cs == 1 && (rows < 4 || g->n * (int64_t)sizeof(wf_real) <= IN_PLACE_ROW);
}

wf_real *wf_gemm_room_for_rows(int64_t rows, int64_t k)
{
    const int mr = gemm_isa()->mr;
    return wf_scratch(WF_SCRATCH_PACK_A, (size_t)(gemm_up(rows, mr) * mr * k) * sizeof(wf_real));
}

void wf_gemm_pack_columns(const struct wf_gemm *g, int64_t n, int64_t k, const wf_real *b, wf_real *panels)
{
    const int nr = gemm_isa()->nr;
    const int64_t steps = g->b_cs == 1 ? GEMM_STEPS : k;
    for (int64_t p = 0; p < k; p += steps)
        for (int64_t j = 0; j < n; j += nr)
            gemm_isa()->pack_n(gemm_least(nr, n - j), gemm_least(steps, k - p), b + j * g->b_cs + p * g->b_rs, g->b_cs, g->b_rs,
                               panels + j * k + p * nr);
}

bool wf_gemm_part(const struct product *p, const struct part *part)
{
    const struct wf_gemm *g = &p->g;
    const struct gemm_isa *isa = gemm_isa();
    const int nr = isa->nr;
    const int64_t m = part->m1 - part->m0, n = part->n1 - part->n0, kb = gemm_least(p->k_block, g->k);
    const bool a_here = wf_gemm_rows_in_place(g, n), b_here = wf_gemm_columns_in_place(g, m), far = g->n * g->k >= FAR_B;
    wf_real small[SMALL_PACK] __attribute__((aligned(64)));
    wf_real *room_a = NULL, *room_b = small;
    /* Packed ahead of the tiles: all columns if that is little, else one panel at a time, of contiguous columns as many as make a good run
     * of memory. */
    const int64_t wide = gemm_up(n, nr) * nr, ahead = kb * wide <= SMALL_PACK ? wide : g->b_cs == 1 ? gemm_least(wide, AHEAD) : nr;
    if (!a_here && !(room_a = wf_gemm_room_for_rows(m, kb)))
        return false;
    if (!b_here && ahead * kb > SMALL_PACK && !(room_b = wf_scratch(WF_SCRATCH_GEMM, (size_t)(ahead * kb) * sizeof(wf_real))))
        return false;
    for (int64_t k0 = part->k0; k0 < part->k1; k0 += kb) {
        const int64_t k_more = gemm_least(kb, g->k + p->more - gemm_least(k0 + kb, part->k1)); /* of the next block */
        struct gemm_block b = wf_gemm_block_of(p, part, k0, gemm_least(k0 + kb, part->k1));
        const wf_real *from = g->b + k0 * g->b_rs + part->n0 * g->b_cs;
        if (!a_here)
            wf_gemm_pack_rows(&b, room_a);
        if (b_here) {
            if (far)
                b.next[0] = gemm_piece_of(from + b.k * g->b_rs, n, g->b_cs, k_more, g->b_rs);
            if (!a_here)
                b.next[1] = gemm_piece_of(g->a + part->m0 * g->a_rs + (k0 + b.k) * g->a_cs, m, g->a_rs, k_more, g->a_cs);
            b.b = from;
            b.b_step = g->b_rs;
            b.b_panel = nr;
            isa->block(&b);
            continue;
        }
        b.b = room_b;
        b.b_step = nr;
        b.b_panel = b.k * nr;
        b.b_padded = true;
        for (int64_t j = 0; j < n; j += ahead) {
            b.n = gemm_least(ahead, n - j);
            const int64_t left = n - j - ahead;
            if (far && left > 0)
                b.next[0] = gemm_piece_of(from + (j + ahead) * g->b_cs, gemm_least(ahead, left), g->b_cs, b.k, g->b_rs);
            else if (far && k_more > 0)
                b.next[0] = gemm_piece_of(from + b.k * g->b_rs, gemm_least(ahead, n), g->b_cs, k_more, g->b_rs);
            else if (far) /* of the part beside this one, which the same thread may take next */
                b.next[0] = gemm_piece_of(g->b + part->n1 * g->b_cs, gemm_least(ahead, g->n - part->n1), g->b_cs, kb, g->b_rs);
            wf_gemm_pack_columns(g, b.n, b.k, from + j * g->b_cs, room_b);
            isa->block(&b);
            b.c += ahead * b.c_cs;
            if (b.end.bias_n)
                b.end.bias_n += ahead;
        }
    }
    return true;
}
