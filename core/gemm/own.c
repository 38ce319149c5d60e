/* SPDX-License-Identifier: MIT */
/* Our own products: how one is cut into blocks, what is packed, and who computes what. All choices depend on shapes, strides, the number
 * of threads and the processor, which change no sum, never on memory: where there is none for packing the product fails. */
#include <unistd.h>

#include <weft/internal/runtime.h>
#include <weft/internal/scratch.h>
#include <weft/runtime.h>

#include "phases.h"
#include "product.h"

enum {
    CHUNK_N = 512,   /* columns of B for each thread, before its k is cut */
    ITEM_ROWS = 112, /* rows of an item: what of A is packed fits the second-level cache, and B is read once for all */
    MOST_ITEMS = 128,
    ITEMS = 6,       /* for each thread, where the product is large enough; */
    EVEN_ITEMS = 16, /* where they are fewer for each than this, as many for each */
    ITEM_PANELS = 4, /* panels of a thread, and tiles of rows of an item, at least */
    ITEM_TILES = 2,
    ROWS_ITEMS = 16,                       /* for each thread, of few rows, */
    LINES_COLUMNS = 256,                   /* and their columns, where B is read along its rows */
    ITEM_COLUMNS = 2048 / sizeof(wf_real), /* of an item, at most */
};
static const double large_flops = 1.5e6; /* of a product that is always cut, its k too; fixes the order of sums */
/* What a product reaches on one core with a peak of 230 GFLOP/s: arithmetic, and operands read and written. */
static const double flops_per_ns = 150, elements_per_ns = 6;

/* Elements of B that are packed together for each thread, and of an item in a k-block, at most: half of what its second-level cache
 * holds. */
static int64_t thread_chunk = 1 << 18;

/* The cost of an item, at least: on a slower core it takes as long, and is less. */
static double item_ns(void)
{
    return 4000 * wf_core_speed();
}

void wf_gemm_own_start(void)
{
    const int64_t fits = sysconf(_SC_LEVEL2_CACHE_SIZE) / 2 / (int64_t)sizeof(wf_real);
    if (fits > 0)
        thread_chunk = gemm_most(1 << 15, gemm_least(fits, 1 << 19));
}

/* ---- Few rows. */
struct rows_work {
    const struct product *p;
    int64_t items;
};

static bool rows_item(void *ctx, int64_t item)
{
    const struct rows_work *w = ctx;
    struct wf_gemm g = w->p->g;
    const int nr = gemm_isa()->nr;
    const int64_t panels = gemm_up(g.n, nr), from = gemm_cut(panels, w->items, item) * nr,
                  to = gemm_least(gemm_cut(panels, w->items, item + 1) * nr, g.n);
    struct gemm_end end = {g.alpha, g.beta, w->p->bias_n ? w->p->bias_n + from : NULL, w->p->bias_m};
    g.n = to - from;
    g.b += from * g.b_cs;
    g.c += from * g.c_cs;
    (g.b_rs == 1 ? gemm_isa()->rows : gemm_isa()->lines)(&g, &end);
    return true;
}

static bool few(const struct wf_gemm *g)
{
    return g->m <= gemm_isa()->few && g->n > 1 && (g->b_rs == 1 ? g->m == 1 || g->a_cs == 1 : g->m > 1 && g->b_cs == 1 && g->c_cs == 1);
}

static struct rows_work in_rows(const struct product *p, double cost, bool serial)
{
    const int64_t panels = gemm_up(p->g.n, gemm_isa()->nr), threads = serial ? 1 : wf_threads();
    int64_t items = gemm_least((int64_t)(cost / item_ns()) + 1, threads == 1 ? 1 : ROWS_ITEMS * threads);
    if (p->g.b_rs != 1 && items > 1) /* long runs of its rows, and as many for each thread */
        items = gemm_up(gemm_least(items, gemm_up(p->g.n, LINES_COLUMNS)), threads) * threads;
    return (struct rows_work){p, gemm_least(panels, items)};
}

/* ---- Some rows, or nothing to pack: parts with nothing shared between them. */
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
    const int64_t i = item % w->down, j = item / w->down, tiles = gemm_up(g->m, mr), panels = gemm_up(w->n1 - w->n0, nr);
    return (struct part){
        .m0 = gemm_cut(g->m, tiles, gemm_cut(tiles, w->down, i)),
        .m1 = gemm_cut(g->m, tiles, gemm_cut(tiles, w->down, i + 1)),
        .n0 = w->n0 + gemm_cut(panels, w->across, j) * nr,
        .n1 = gemm_least(w->n0 + gemm_cut(panels, w->across, j + 1) * nr, w->n1),
        .k0 = w->k0,
        .k1 = w->k1,
    };
}

static bool alone_item(void *ctx, int64_t item)
{
    const struct parts *w = ctx;
    const struct part part = part_of(w, item);
    return wf_gemm_part(w->p, &part);
}

/* ---- Many rows: B is packed once, by all threads, then tiles are computed from it. */
/* Elements of the k-block that begins at k0, and its panel of the columns from n on, which begin a panel. */
static int64_t length_of(const struct parts *w, int64_t k0)
{
    return gemm_least(w->p->k_block, w->k1 - k0);
}

static wf_real *panel_of(const struct parts *w, int64_t k0, int64_t n)
{
    const int nr = gemm_isa()->nr;
    return w->packed + (k0 - w->k0) * gemm_up(w->n1 - w->n0, nr) * nr + (n - w->n0) * length_of(w, k0);
}

static bool pack_item(void *ctx, int64_t item)
{
    const struct parts *w = ctx;
    const struct wf_gemm *g = &w->p->g;
    const int nr = gemm_isa()->nr;
    const int64_t blocks = gemm_up(w->k1 - w->k0, w->p->k_block), across = item / blocks;
    const int64_t panels = gemm_up(w->n1 - w->n0, nr), k0 = w->k0 + item % blocks * w->p->k_block, k = length_of(w, k0);
    const int64_t from = w->n0 + gemm_cut(panels, w->pack_across, across) * nr,
                  to = gemm_least(w->n0 + gemm_cut(panels, w->pack_across, across + 1) * nr, w->n1);
    wf_gemm_pack_columns(g, to - from, k, g->b + from * g->b_cs + k0 * g->b_rs, panel_of(w, k0, from));
    return true;
}

/* What lies below this k-block of a part in the next chunk of B, or beside it, as the same thread packs it then where columns are shared
 * out. Memory is free while a chunk is multiplied. The items of one range of columns fetch a share each, this is the i-th. */
static struct gemm_piece next_chunk(const struct parts *w, const struct part *part, int64_t i, int64_t k0)
{
    const struct wf_gemm *g = &w->p->g;
    const bool below = w->k1 < g->k;
    const int64_t p = k0 - w->k0 + (below ? w->k1 : 0), j = part->n0 + (below ? 0 : w->n1 - w->n0);
    const int64_t k = gemm_most(0, gemm_least(length_of(w, k0), g->k - p)), n = gemm_most(0, gemm_least(part->n1 - part->n0, g->n - j));
    const wf_real *b = g->b + p * g->b_rs + j * g->b_cs;
    struct gemm_piece all = gemm_piece_of(b, n, g->b_cs, k, g->b_rs);
    const int64_t from = gemm_cut(all.runs, w->down, i);
    return (struct gemm_piece){all.at + from * all.stride, all.lines, all.stride, gemm_cut(all.runs, w->down, i + 1) - from};
}

/* After a block comes the next of k, or the first of the next rows, with the same columns. */
static void fetch_next(const struct parts *w, const struct part *part, int64_t k0, bool a_here, struct gemm_block *b)
{
    const struct wf_gemm *g = &w->p->g;
    const int64_t after = k0 + w->p->k_block < w->k1 ? k0 + w->p->k_block : w->k0, k = length_of(w, after);
    const int64_t row = after > k0 ? part->m0 : part->m1, rows = gemm_least(part->m1 - part->m0, g->m - row);
    const wf_real *a = g->a + row * g->a_rs + after * g->a_cs;
    if (a_here && rows > 0)
        b->next_a = a;
    else if (rows > 0)
        b->next[1] = gemm_piece_of(a, rows, g->a_rs, k, g->a_cs);
    const int nr = gemm_isa()->nr;
    const int64_t tile = k * CACHE_LINE / (int64_t)sizeof(wf_real); /* elements that one tile fetches, a line for each of k */
    b->next[2] = gemm_piece(panel_of(w, after, part->n0), tile, tile, gemm_up(gemm_up(part->n1 - part->n0, nr) * nr * k, tile));
}

static bool shared_item(void *ctx, int64_t item)
{
    const struct parts *w = ctx;
    const struct product *p = w->p;
    const struct part part = part_of(w, item);
    const struct gemm_isa *isa = gemm_isa();
    const int nr = isa->nr;
    const bool a_here = wf_gemm_rows_in_place(&p->g, part.n1 - part.n0);
    wf_real *room_a = NULL;
    if (!a_here && !(room_a = wf_gemm_room_for_rows(part.m1 - part.m0, p->k_block)))
        return false;
    for (int64_t k0 = w->k0; k0 < w->k1; k0 += p->k_block) {
        struct gemm_block b = wf_gemm_block_of(p, &part, k0, k0 + length_of(w, k0));
        if (!a_here)
            wf_gemm_pack_rows(&b, room_a);
        b.b = panel_of(w, k0, part.n0);
        b.b_step = nr;
        b.b_panel = b.k * nr;
        b.b_padded = true;
        b.next[0] = next_chunk(w, &part, item % w->down, k0);
        fetch_next(w, &part, k0, a_here, &b);
        isa->block(&b);
    }
    return true;
}

/* A thread's share of the items is a range of columns with all rows, or some rows, of it: then what it packs of B lies in its own
 * second-level cache, for all of its items. Some items for each thread even out what others take from the processors. */
static void share_out(struct parts *w, int64_t panels, int64_t most_items, int64_t threads)
{
    const int64_t most_panels = gemm_most(1, gemm_least(ITEM_COLUMNS, thread_chunk / GEMM_K) / gemm_isa()->nr);
    const int64_t tiles = gemm_up(w->p->g.m, gemm_isa()->mr), wanted = threads == 1 ? 1 : gemm_least(most_items, ITEMS * threads);
    const bool tall = w->p->g.m >= 2 * w->p->g.n && !wf_gemm_rows_in_place(&w->p->g, w->p->g.n); /* each would pack all of A */
    int64_t columns = tall || most_items < threads ? 1 : threads;
    while (columns > 1 && (panels < columns * ITEM_PANELS || threads % columns != 0))
        columns--;
    w->across = columns * gemm_up(panels, columns * most_panels);
    w->down = gemm_most(gemm_up(w->p->g.m, ITEM_ROWS), gemm_least(gemm_up(wanted, w->across), tiles / ITEM_TILES));
    const int64_t most_down = gemm_most(w->down, tiles / ITEM_TILES);
    while (w->down * w->across % threads != 0 && w->down * w->across < EVEN_ITEMS * threads && w->down < most_down)
        w->down++;
}

/* Items that a product of this cost is cut into, at most. */
static int64_t items_for(double cost)
{
    return cost < MOST_ITEMS * item_ns() ? gemm_most(1, (int64_t)(cost / item_ns())) : MOST_ITEMS;
}

static bool in_chunks(const struct product *p, double cost, bool serial)
{
    const struct wf_gemm *g = &p->g;
    const int nr = gemm_isa()->nr;
    const int64_t threads = serial ? 1 : wf_threads(), wanted = items_for(cost);
    struct parts w = {.p = p};
    const bool whole =
        gemm_up(g->n, nr) * nr * g->k <= threads * (thread_chunk + thread_chunk / 2); /* a little more costs less than a cut */
    const int64_t room = threads * thread_chunk * (whole ? 2 : 1), columns = gemm_least(gemm_up(g->n, nr) * nr, threads * CHUNK_N);
    const int64_t chunk_k = gemm_least(g->k, gemm_most(1, room / columns / p->k_block) * p->k_block);
    const int64_t chunk_n = gemm_least(gemm_up(g->n, nr), gemm_most(1, room / chunk_k / nr)) * nr;
    w.packed = wf_scratch(WF_SCRATCH_PACK_B, (size_t)(chunk_k * chunk_n) * sizeof(wf_real));
    if (!w.packed)
        return false;
    for (w.n0 = 0; w.n0 < g->n; w.n0 = w.n1) {
        w.n1 = gemm_least(w.n0 + chunk_n, g->n);
        const int64_t panels = gemm_up(w.n1 - w.n0, nr);
        share_out(&w, panels, wanted, threads);
        for (w.k0 = 0; w.k0 < g->k; w.k0 = w.k1) {
            w.k1 = gemm_least(w.k0 + chunk_k, g->k);
            w.pack_across = gemm_up(panels, gemm_most(1, (g->b_cs == 1 ? 4 : 1) * 8192 / (nr * p->k_block)));
            struct phases phases = {.count = 2,
                                    .items = {w.pack_across * gemm_up(w.k1 - w.k0, p->k_block), w.down * w.across},
                                    .run = {pack_item, shared_item},
                                    .ctx = {&w, &w}};
            const double share = (double)(w.k1 - w.k0) / (double)g->k * (double)(w.n1 - w.n0) / (double)g->n;
            if (!wf_gemm_phases(&phases, cost * share, serial))
                return false;
        }
    }
    return true;
}

/* ---- Which way a product goes. */
/* Nanoseconds on one core: where rows are few, what B takes from memory counts more than the arithmetic. */
static double cost_of(const struct wf_gemm *g, double flops)
{
    const double m = (double)g->m, n = (double)g->n, k = (double)g->k;
    return flops / flops_per_ns + (m * k + k * n + m * n) / elements_per_ns;
}

enum way {
    AT_ONCE,   /* one part, on the calling thread */
    IN_ROWS,   /* few rows */
    IN_PARTS,  /* that share nothing */
    IN_CHUNKS, /* of B, packed */
    IN_SLICES  /* of k */
};

/* A product, the way it goes, and, as far as that is one phase, its items. It stays where it was made. */
struct plan {
    struct product p;
    double cost;
    enum way way;
    int64_t items; /* 0: more than one phase */
    bool (*run)(void *ctx, int64_t item);
    void *ctx;
    struct rows_work rows;
    struct parts parts;
};

static bool all_item(void *ctx, int64_t item)
{
    const struct product *p = ctx;
    (void)item;
    return wf_gemm_part(p, &(struct part){0, p->g.m, 0, p->g.n, 0, p->g.k});
}

static enum way way_of(const struct product *p, double flops, double cost)
{
    const struct wf_gemm *g = &p->g;
    if (flops >= large_flops && !(g->m == 1 && g->n > 1 && g->b_rs == 1) && wf_gemm_slices_pay(g))
        return IN_SLICES;
    if (few(g))
        return IN_ROWS;
    if (cost < 2 * item_ns() && flops < large_flops)
        return AT_ONCE;
    return g->m <= ITEM_ROWS || wf_gemm_columns_in_place(g, g->m) ? IN_PARTS : IN_CHUNKS;
}

static void set_items(struct plan *w, int64_t items, bool (*run)(void *ctx, int64_t item), void *ctx)
{
    w->items = items;
    w->run = run;
    w->ctx = ctx;
}

static void make_plan(struct plan *w, const struct wf_gemm *given, bool serial)
{
    w->p = (struct product){.g = *given, .bias_n = given->bias, .k_block = gemm_k_block(given->k)};
    struct wf_gemm *g = &w->p.g;
    /* The transposed product has the same bits: multiplication commutes. */
    if ((g->c_cs != 1 && g->c_rs == 1 && g->n > 1) || (g->n == 1 && g->m > 1)) {
        *g = (struct wf_gemm){given->n, given->m,    given->k,    given->alpha, given->beta, given->b,    given->b_cs, given->b_rs,
                              given->a, given->a_cs, given->a_rs, given->c,     given->c_cs, given->c_rs, NULL,        given->rows_alone};
        w->p.bias_m = given->bias;
        w->p.bias_n = NULL;
    }
    const double flops = 2. * (double)g->m * (double)g->n * (double)g->k;
    w->cost = cost_of(g, flops);
    w->way = way_of(&w->p, flops, w->cost);
    w->items = 0;
    if (w->way == AT_ONCE) {
        set_items(w, 1, all_item, &w->p);
    } else if (w->way == IN_ROWS) {
        w->rows = in_rows(&w->p, w->cost, serial);
        set_items(w, w->rows.items, rows_item, &w->rows);
    } else if (w->way == IN_PARTS) {
        const int64_t panels = gemm_up(g->n, gemm_isa()->nr), wanted = items_for(w->cost);
        w->parts = (struct parts){.p = &w->p, .n0 = 0, .n1 = g->n, .k0 = 0, .k1 = g->k, .down = 1};
        w->parts.across = gemm_most(1, gemm_least(panels, wanted));
        if (g->m > ITEM_ROWS)
            share_out(&w->parts, panels, wanted, serial ? 1 : wf_threads());
        set_items(w, w->parts.down * w->parts.across, alone_item, &w->parts);
    }
}

static bool run_plan(const struct plan *w, bool serial)
{
    if (w->way == IN_SLICES)
        return wf_gemm_in_slices(&w->p, w->cost, serial);
    if (w->way == IN_CHUNKS)
        return in_chunks(&w->p, w->cost, serial);
    if (w->items == 1)
        return w->run(w->ctx, 0);
    struct phases phases = {.count = 1, .items = {w->items}, .run = {w->run}, .ctx = {w->ctx}};
    return wf_gemm_phases(&phases, w->cost, serial);
}

bool wf_gemm_own(const struct wf_gemm *g, bool serial)
{
    struct plan w;
    make_plan(&w, g, serial);
    return run_plan(&w, serial);
}

bool wf_gemm_own_two(const struct wf_gemm g[2])
{
    struct plan w[2];
    for (int i = 0; i < 2; i++)
        make_plan(&w[i], &g[i], false);
    const double cost = w[0].cost + w[1].cost;
    if (w[0].items == 0 || w[1].items == 0 || (w[0].items == 1 && w[1].items == 1 && cost < 2 * item_ns()))
        return run_plan(&w[0], false) && run_plan(&w[1], false);
    struct phases phases = {
        .count = 2, .apart = true, .items = {w[0].items, w[1].items}, .run = {w[0].run, w[1].run}, .ctx = {w[0].ctx, w[1].ctx}};
    return wf_gemm_phases(&phases, cost, false);
}

void wf_gemm_no_sum(const struct wf_gemm *g)
{
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            wf_real *c = g->c + i * g->c_rs + j * g->c_cs;
            *c = (g->beta != 0 ? g->beta * *c : 0) + (g->bias ? g->bias[j] : 0);
        }
}
