/* SPDX-License-Identifier: MIT */
/* Our own products: how one is cut into blocks, what is packed, and who computes what. All choices depend on shapes, strides and the number
 * of threads, which changes no sum, never on memory: where there is none for packing the product fails. */
#include <unistd.h>

#include <weft/internal/scratch.h>
#include <weft/runtime.h>

#include "parts.h"
#include "phases.h"

enum {
    SMALL_PACK = 2048, /* elements of B that are packed on the stack */
    CHUNK_N = 512,     /* columns of B for each thread, before its k is cut */
    ITEM_ROWS = 112,   /* rows of an item: what of A is packed fits the second-level cache, and B is read once for all */
    MOST_ITEMS = 128,
    ITEMS = 6,       /* for each thread, where the product is large enough; */
    EVEN_ITEMS = 16, /* where they are fewer for each than this, as many for each */
    ITEM_PANELS = 4, /* panels of a thread, and tiles of rows of an item, at least */
    ITEM_TILES = 2,
    VECTOR_ITEMS = 16, /* for each thread, of a row times a matrix */
    STEPS = 16,        /* of k, that are packed together where they lie apart */
    MOST_PANELS = 16,  /* of an item: those of a k-block stay in the second-level cache */
    SLICE = 512,
    MOST_SLICES = 16,
    SLICED = 5000,       /* sliced k: its length, and for C up to this size */
    ROW_CLASH = 4096,    /* bytes between rows that fall on the same lines of the first-level cache */
    IN_PLACE_ROW = 1024, /* bytes of a row of B that is not packed */
};
static const double item_flops = 1.5e6; /* some microseconds */
static const double flops_per_ns = 150; /* of one core, for the cost of a region */

static int64_t up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Elements of B that are packed together for each thread: half of what its second-level cache holds. */
static int64_t thread_chunk = 1 << 18;

void wf_gemm_own_start(void)
{
    const int64_t fits = sysconf(_SC_LEVEL2_CACHE_SIZE) / 2 / (int64_t)sizeof(wf_real);
    if (fits > 0)
        thread_chunk = most(1 << 15, least(fits, 1 << 19));
}

/* The product, turned so that rows of C are stored where that is possible, with its bias along the row or the column. */
struct product {
    struct wf_gemm g;
    const wf_real *bias_n, *bias_m;
    int64_t k_block;
    int64_t more; /* of k after the end, for another product */
};

/* ---- Part of a product on the calling thread: A in place or packed here, B in place or packed here, panel by panel. */
struct part {
    int64_t m0, m1, n0, n1, k0, k1;
};

static struct gemm_block block_of(const struct product *p, const struct part *part, int64_t k0, int64_t k1)
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

/* Packs the rows of a block and makes it read them there. */
static void pack_rows(struct gemm_block *b, wf_real *room)
{
    const int mr = gemm_isa()->mr;
    const int64_t tiles = up(b->m, mr);
    /* With contiguous columns a few steps of k at a time over all tiles: a line of memory is used whole before the next. */
    const int64_t steps = b->a_rs == 1 ? STEPS : b->k;
    for (int64_t k0 = 0; k0 < b->k; k0 += steps)
        for (int64_t i = 0; i < tiles; i++) {
            const int64_t row = gemm_cut(b->m, tiles, i), rows = gemm_cut(b->m, tiles, i + 1) - row;
            gemm_isa()->pack_m(rows, least(steps, b->k - k0), b->a + row * b->a_rs + k0 * b->a_cs, b->a_rs, b->a_cs,
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
static bool rows_in_place(const struct wf_gemm *g, int64_t columns)
{
    if (g->m < 4 || columns <= (g->a_rs == 1 ? 1 : 2) * gemm_isa()->nr)
        return true;
    if (g->a_cs == 1) /* rows whole pages apart fall on the same lines of the first-level cache */
        return g->a_rs * (int64_t)sizeof(wf_real) % ROW_CLASH != 0 || columns < 4 * gemm_isa()->nr;
    return false;
}

static bool columns_in_place(const struct wf_gemm *g, int64_t rows)
{
    return g->b_cs == 1 && (rows <= 4 * gemm_isa()->mr || g->n * (int64_t)sizeof(wf_real) <= IN_PLACE_ROW);
}

/* Room for the rows of a part in blocks of k. */
static wf_real *room_for_rows(int64_t rows, int64_t k)
{
    const int mr = gemm_isa()->mr;
    return wf_scratch(WF_SCRATCH_PACK_A, (size_t)(up(rows, mr) * mr * k) * sizeof(wf_real));
}

static bool compute(const struct product *p, const struct part *part)
{
    const struct wf_gemm *g = &p->g;
    const struct gemm_isa *isa = gemm_isa();
    const int nr = isa->nr;
    const int64_t m = part->m1 - part->m0, n = part->n1 - part->n0, kb = least(p->k_block, g->k);
    const bool a_here = rows_in_place(g, n), b_here = columns_in_place(g, m);
    wf_real small[SMALL_PACK] __attribute__((aligned(64)));
    wf_real *room_a = NULL, *room_b = small;
    /* Packed ahead of the tiles: all columns if that is little, else one panel at a time. */
    const int64_t ahead = kb * up(n, nr) * nr <= SMALL_PACK ? up(n, nr) * nr : nr;
    if (!a_here && !(room_a = room_for_rows(m, kb)))
        return false;
    if (!b_here && ahead * kb > SMALL_PACK && !(room_b = wf_scratch(WF_SCRATCH_GEMM, (size_t)(ahead * kb) * sizeof(wf_real))))
        return false;
    for (int64_t k0 = part->k0; k0 < part->k1; k0 += kb) {
        struct gemm_block b = block_of(p, part, k0, least(k0 + kb, part->k1));
        const wf_real *from = g->b + k0 * g->b_rs + part->n0 * g->b_cs;
        if (!a_here)
            pack_rows(&b, room_a);
        if (b_here) {
            const int64_t k = least(kb, g->k + p->more - k0 - b.k); /* of the next block */
            if (k > 0 && g->b_rs == n)
                b.next[0] = (struct gemm_span){from + b.k * g->b_rs, k * n};
            if (k > 0 && !a_here && g->a_cs == m)
                b.next[1] = (struct gemm_span){g->a + part->m0 + (k0 + b.k) * g->a_cs, k * m};
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
            b.n = least(ahead, n - j);
            for (int64_t i = 0; i < b.n; i += nr)
                isa->pack_n(least(nr, b.n - i), b.k, from + (j + i) * g->b_cs, g->b_cs, g->b_rs, room_b + i * b.k);
            isa->block(&b);
            b.c += ahead * b.c_cs;
            if (b.end.bias_n)
                b.end.bias_n += ahead;
        }
    }
    return true;
}

/* ---- A row times a matrix. */
struct vector_work {
    const struct product *p;
    int64_t items;
};

static bool vector_item(void *ctx, int64_t item)
{
    const struct vector_work *v = ctx;
    const struct wf_gemm *g = &v->p->g;
    const int nr = gemm_isa()->nr;
    const int64_t panels = up(g->n, nr), from = gemm_cut(panels, v->items, item) * nr,
                  to = least(gemm_cut(panels, v->items, item + 1) * nr, g->n);
    struct gemm_end end = {g->alpha, g->beta, v->p->bias_n ? v->p->bias_n + from : NULL, v->p->bias_m};
    gemm_isa()->vector(to - from, g->k, g->a, g->a_cs, g->b + from * g->b_cs, g->b_cs, g->c + from * g->c_cs, g->c_cs, &end);
    return true;
}

/* ---- Few rows, or nothing to pack: parts with nothing shared between them. */
struct parts {
    const struct product *p;
    int64_t down, across;   /* items */
    int64_t n0, n1, k0, k1; /* of B, in this chunk */
    wf_real *packed;        /* shared: panels of k-blocks; NULL: every part packs for itself */
    int64_t pack_across;    /* items of packing in a k-block */
};

static struct part part_of(const struct parts *w, int64_t item)
{
    const struct wf_gemm *g = &w->p->g;
    const int mr = gemm_isa()->mr, nr = gemm_isa()->nr;
    const int64_t i = item % w->down, j = item / w->down, tiles = up(g->m, mr), panels = up(w->n1 - w->n0, nr);
    return (struct part){
        .m0 = gemm_cut(g->m, tiles, gemm_cut(tiles, w->down, i)),
        .m1 = gemm_cut(g->m, tiles, gemm_cut(tiles, w->down, i + 1)),
        .n0 = w->n0 + gemm_cut(panels, w->across, j) * nr,
        .n1 = least(w->n0 + gemm_cut(panels, w->across, j + 1) * nr, w->n1),
        .k0 = w->k0,
        .k1 = w->k1,
    };
}

static bool alone_item(void *ctx, int64_t item)
{
    const struct parts *w = ctx;
    const struct part part = part_of(w, item);
    return compute(w->p, &part);
}

/* ---- Many rows: B is packed once, by all threads, then tiles are computed from it. */
static bool pack_item(void *ctx, int64_t item)
{
    const struct parts *w = ctx;
    const struct wf_gemm *g = &w->p->g;
    const int nr = gemm_isa()->nr;
    const int64_t blocks = up(w->k1 - w->k0, w->p->k_block), across = item / blocks;
    const int64_t panels = up(w->n1 - w->n0, nr), k0 = w->k0 + item % blocks * w->p->k_block, k = least(w->p->k_block, w->k1 - k0);
    const int64_t from = gemm_cut(panels, w->pack_across, across), to = gemm_cut(panels, w->pack_across, across + 1);
    const int64_t steps = g->b_cs == 1 ? STEPS : k;
    for (int64_t p = 0; p < k; p += steps)
        for (int64_t panel = from; panel < to; panel++) {
            const int64_t j = w->n0 + panel * nr;
            gemm_isa()->pack_n(least(nr, w->n1 - j), least(steps, k - p), g->b + j * g->b_cs + (k0 + p) * g->b_rs, g->b_cs, g->b_rs,
                               w->packed + (k0 - w->k0) * panels * nr + (panel * k + p) * nr);
        }
    return true;
}

/* After a block comes the next of k, or the first of the next rows, with the same columns. */
static void fetch_next(const struct parts *w, const struct part *part, int64_t k0, bool a_here, struct gemm_block *b)
{
    const struct wf_gemm *g = &w->p->g;
    const int nr = gemm_isa()->nr;
    const int64_t panels = up(w->n1 - w->n0, nr), after = k0 + w->p->k_block < w->k1 ? k0 + w->p->k_block : w->k0;
    const int64_t k = least(w->p->k_block, w->k1 - after), row = after > k0 ? part->m0 : part->m1;
    b->next[0] =
        (struct gemm_span){w->packed + (after - w->k0) * panels * nr + (part->n0 - w->n0) * k, up(part->n1 - part->n0, nr) * nr * k};
    if (a_here && row < g->m)
        b->next_a = g->a + row * g->a_rs + after * g->a_cs;
}

static bool shared_item(void *ctx, int64_t item)
{
    const struct parts *w = ctx;
    const struct product *p = w->p;
    const struct part part = part_of(w, item);
    const struct gemm_isa *isa = gemm_isa();
    const int nr = isa->nr;
    const int64_t panels = up(w->n1 - w->n0, nr);
    const bool a_here = rows_in_place(&p->g, part.n1 - part.n0);
    wf_real *room_a = NULL;
    if (!a_here && !(room_a = room_for_rows(part.m1 - part.m0, p->k_block)))
        return false;
    for (int64_t k0 = w->k0; k0 < w->k1; k0 += p->k_block) {
        struct gemm_block b = block_of(p, &part, k0, least(k0 + p->k_block, w->k1));
        if (!a_here)
            pack_rows(&b, room_a);
        b.b = w->packed + (k0 - w->k0) * panels * nr + (part.n0 - w->n0) * b.k;
        b.b_step = nr;
        b.b_panel = b.k * nr;
        b.b_padded = true;
        fetch_next(w, &part, k0, a_here, &b);
        isa->block(&b);
    }
    return true;
}

/* ---- Few elements of C, long sums: k in slices, partial results added in their order. Not under the row rule. */
struct sliced {
    const struct product *p;
    int64_t slices, adds;
    wf_real *partial;
};

static bool slice_item(void *ctx, int64_t item)
{
    const struct sliced *w = ctx;
    const struct wf_gemm *g = &w->p->g;
    const int64_t blocks = up(g->k, w->p->k_block), k0 = gemm_cut(blocks, w->slices, item) * w->p->k_block;
    const int64_t k1 = least(gemm_cut(blocks, w->slices, item + 1) * w->p->k_block, g->k);
    struct product slice = {.g = *g, .k_block = w->p->k_block, .more = g->k - k1};
    slice.g.alpha = 1;
    slice.g.beta = 0;
    slice.g.k = k1 - k0;
    slice.g.a += k0 * g->a_cs;
    slice.g.b += k0 * g->b_rs;
    slice.g.c = w->partial + item * g->m * g->n;
    slice.g.c_rs = g->n;
    slice.g.c_cs = 1;
    return compute(&slice, &(struct part){0, g->m, 0, g->n, 0, slice.g.k});
}

static bool add_item(void *ctx, int64_t item)
{
    const struct sliced *w = ctx;
    const struct wf_gemm *g = &w->p->g;
    const int64_t from = gemm_cut(g->m, w->adds, item), to = gemm_cut(g->m, w->adds, item + 1), all = g->m * g->n;
    wf_real *sum = w->partial;
    for (int64_t s = 1; s < w->slices; s++)
        for (int64_t e = from * g->n; e < to * g->n; e++)
            sum[e] += w->partial[s * all + e];
    for (int64_t i = from; i < to; i++) {
        wf_real *c = g->c + i * g->c_rs;
        for (int64_t j = 0; j < g->n; j++, c += g->c_cs) {
            wf_real value = g->alpha * sum[i * g->n + j];
            if (g->beta != 0)
                value += g->beta * *c;
            *c = value + (w->p->bias_n ? w->p->bias_n[j] : w->p->bias_m ? w->p->bias_m[i] : 0);
        }
    }
    return true;
}

static bool slices_pay(const struct wf_gemm *g)
{
    return !g->rows_alone && g->k >= 2 * SLICE && g->m <= SLICED && g->n <= SLICED && g->m * g->n <= SLICED;
}

static bool in_slices(const struct product *p, double cost, bool serial)
{
    const struct wf_gemm *g = &p->g;
    struct sliced w = {.p = p, .slices = least(g->k / SLICE, MOST_SLICES), .adds = least(g->m, 8)};
    w.partial = wf_scratch(WF_SCRATCH_PACK_B, (size_t)(w.slices * g->m * g->n) * sizeof(wf_real));
    if (!w.partial)
        return false;
    struct phases phases = {.count = 2, .items = {w.slices, w.adds}, .run = {slice_item, add_item}, .ctx = &w};
    return wf_gemm_phases(&phases, cost, serial);
}

/* A thread's share of the items is a range of columns with all rows, or some rows, of it: then what it packs of B lies in its own
 * second-level cache, for all of its items. Some items for each thread even out what others take from the processors. */
static void share_out(struct parts *w, int64_t panels, int64_t most_items, int64_t threads)
{
    const int64_t tiles = up(w->p->g.m, gemm_isa()->mr), wanted = threads == 1 ? 1 : least(most_items, ITEMS * threads);
    const bool tall = w->p->g.m >= 2 * w->p->g.n && !rows_in_place(&w->p->g, w->p->g.n); /* each would pack all of A */
    int64_t columns = tall || most_items < threads ? 1 : threads;
    while (columns > 1 && (panels < columns * ITEM_PANELS || threads % columns != 0))
        columns--;
    w->across = columns * up(panels, columns * MOST_PANELS);
    w->down = most(up(w->p->g.m, ITEM_ROWS), least(up(wanted, w->across), tiles / ITEM_TILES));
    const int64_t most_down = most(w->down, tiles / ITEM_TILES);
    while (w->down * w->across % threads != 0 && w->down * w->across < EVEN_ITEMS * threads && w->down < most_down)
        w->down++;
}

static bool in_parts(const struct product *p, double flops, bool serial)
{
    const struct wf_gemm *g = &p->g;
    const int nr = gemm_isa()->nr;
    const int64_t threads = serial ? 1 : wf_threads();
    const double wanted_items = flops / item_flops;
    const int64_t wanted = wanted_items < 1 ? 1 : wanted_items < MOST_ITEMS ? (int64_t)wanted_items : MOST_ITEMS;
    struct parts w = {.p = p, .n0 = 0, .n1 = g->n, .k0 = 0, .k1 = g->k};
    if (g->m <= ITEM_ROWS) {
        w.down = 1;
        w.across = most(1, least(up(g->n, nr), wanted));
        struct phases phases = {.count = 1, .items = {w.across}, .run = {alone_item}, .ctx = &w};
        return wf_gemm_phases(&phases, flops / flops_per_ns, serial);
    }
    share_out(&w, up(g->n, nr), wanted, threads);
    if (columns_in_place(g, g->m)) {
        struct phases phases = {.count = 1, .items = {w.down * w.across}, .run = {alone_item}, .ctx = &w};
        return wf_gemm_phases(&phases, flops / flops_per_ns, serial);
    }
    const bool whole = up(g->n, nr) * nr * g->k <= threads * (thread_chunk + thread_chunk / 2); /* a little more costs less than a cut */
    const int64_t room = threads * thread_chunk * (whole ? 2 : 1), columns = least(up(g->n, nr) * nr, threads * CHUNK_N);
    const int64_t chunk_k = least(g->k, most(1, room / columns / p->k_block) * p->k_block);
    const int64_t chunk_n = least(up(g->n, nr), most(1, room / chunk_k / nr)) * nr;
    w.packed = wf_scratch(WF_SCRATCH_PACK_B, (size_t)(chunk_k * chunk_n) * sizeof(wf_real));
    if (!w.packed)
        return false;
    for (w.n0 = 0; w.n0 < g->n; w.n0 = w.n1) {
        w.n1 = least(w.n0 + chunk_n, g->n);
        const int64_t panels = up(w.n1 - w.n0, nr);
        share_out(&w, panels, wanted, threads);
        for (w.k0 = 0; w.k0 < g->k; w.k0 = w.k1) {
            w.k1 = least(w.k0 + chunk_k, g->k);
            w.pack_across = up(panels, most(1, (g->b_cs == 1 ? 4 : 1) * 8192 / (nr * p->k_block)));
            struct phases phases = {.count = 2,
                                    .items = {w.pack_across * up(w.k1 - w.k0, p->k_block), w.down * w.across},
                                    .run = {pack_item, shared_item},
                                    .ctx = &w};
            const double share = (double)(w.k1 - w.k0) / (double)g->k * (double)(w.n1 - w.n0) / (double)g->n;
            if (!wf_gemm_phases(&phases, flops * share / flops_per_ns, serial))
                return false;
        }
    }
    return true;
}

bool wf_gemm_own(const struct wf_gemm *given, bool serial)
{
    struct product p = {.g = *given, .bias_n = given->bias, .k_block = gemm_k_block(given->k)};
    struct wf_gemm *g = &p.g;
    /* The transposed product has the same bits: multiplication commutes. */
    if ((g->c_cs != 1 && g->c_rs == 1 && g->n > 1) || (g->n == 1 && g->m > 1)) {
        *g = (struct wf_gemm){given->n, given->m,    given->k,    given->alpha, given->beta, given->b,    given->b_cs, given->b_rs,
                              given->a, given->a_cs, given->a_rs, given->c,     given->c_cs, given->c_rs, NULL,        given->rows_alone};
        p.bias_m = given->bias;
        p.bias_n = NULL;
    }
    const double flops = 2. * (double)g->m * (double)g->n * (double)g->k;
    if (g->m == 1 && g->b_rs == 1 && g->n > 1) {
        struct vector_work v = {&p, least(up(g->n, gemm_isa()->nr), least((int64_t)(flops / 65536) + 1, VECTOR_ITEMS * wf_threads()))};
        struct phases phases = {.count = 1, .items = {v.items}, .run = {vector_item}, .ctx = &v};
        return wf_gemm_phases(&phases, flops / 10, serial || v.items == 1);
    }
    if (flops < item_flops)
        return compute(&p, &(struct part){0, g->m, 0, g->n, 0, g->k});
    return slices_pay(g) ? in_slices(&p, flops / flops_per_ns, serial) : in_parts(&p, flops, serial);
}

void wf_gemm_no_sum(const struct wf_gemm *g)
{
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            wf_real *c = g->c + i * g->c_rs + j * g->c_cs;
            *c = (g->beta != 0 ? g->beta * *c : 0) + (g->bias ? g->bias[j] : 0);
        }
}
