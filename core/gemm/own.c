/* SPDX-License-Identifier: MIT */
/* Divides a product into tasks for Weft's own kernels. make_plan chooses one of five paths (enum path), and each path divides the
 * product in its own way. The choices depend on shapes, strides, the number of threads and the processor, but not on free memory: if
 * there is no memory for packing, the product fails. Only the choice of split-K changes sums, and this choice depends on shape,
 * strides and rows_alone only. */
#include <unistd.h>

#include <weft/internal/runtime.h>
#include <weft/internal/scratch.h>
#include <weft/runtime.h>

#include "bf16.h"

/* The most elements of packed B for each thread, and of B in a cache block of a task: half of the second-level cache, but within
 * PACKED_B_MIN and PACKED_B_MAX; PACKED_B if the size of the cache is unknown. */
static int64_t packed_b_max = PACKED_B;

/* The least cost of a task on this processor. On a core of speed 0.5 (wf_core_speed) work of the same cost takes twice the time, so a task
 * of half the cost lasts as long. */
static double task_ns(void)
{
    return TASK_NS * wf_core_speed();
}

void wf_gemm_own_start(void)
{
    const int64_t fits = sysconf(_SC_LEVEL2_CACHE_SIZE) / 2 / (int64_t)sizeof(wf_real);
    if (fits > 0)
        packed_b_max = WF_MAX(PACKED_B_MIN, WF_MIN(fits, PACKED_B_MAX));
}

/* ---- Skinny products. */
struct skinny_work {
    const struct product *p;
    int64_t tasks;
};

#ifndef WF_DOUBLE
/* Whether bf16 is the type of B or the arithmetic. */
static bool is_bf16(const struct wf_gemm *g)
{
    return g->b_stored == WF_BF16 || g->precision == WF_PRECISION_BF16;
}
#endif

static bool skinny_task(void *ctx, int64_t index)
{
    const struct skinny_work *w = ctx;
    struct wf_gemm g = w->p->g;
    const struct gemm_range columns = gemm_share(g.n, gemm_isa()->nr, w->tasks, index);
    struct gemm_epilogue epilogue = {g.alpha, g.beta, w->p->bias_n ? w->p->bias_n + columns.begin : NULL, w->p->bias_m};
    g.n = columns.end - columns.begin;
    g.b = gemm_b_at(&g, columns.begin * g.b_cs);
    g.c += columns.begin * g.c_cs;
#ifndef WF_DOUBLE
    if (is_bf16(&g)) {
        float *rounded = NULL;
        if (g.precision == WF_PRECISION_BF16 &&
            !(rounded = wf_scratch(WF_SCRATCH_PACK_A, (size_t)(g.m * gemm_ceil_div(g.k, BF16_K) * BF16_K) * sizeof *rounded)))
            return false;
        gemm_isa()->skinny_bf16(&g, &epilogue, rounded);
        return true;
    }
#endif
    (g.b_rs == 1 ? gemm_isa()->skinny_nt : gemm_isa()->skinny_nn)(&g, &epilogue);
    return true;
}

/* Whether the product has few rows, and strides that skinny_nt (k is contiguous in B) or skinny_nn (rows of B are contiguous) supports. One
 * row with contiguous rows of B is not skinny: the micro-kernel computes it and reads B in place. */
bool wf_gemm_is_skinny(const struct wf_gemm *g)
{
    if (g->m > gemm_isa()->skinny_m || g->n == 1)
        return false;
#ifndef WF_DOUBLE
    if (is_bf16(g))
        return g->b_rs == 1 && (g->precision == WF_PRECISION_BF16 ? gemm_isa()->has_skinny_bf16 : g->a_cs == 1);
#endif
    return (g->b_rs == 1 ? g->m == 1 || g->a_cs == 1 : g->m > 1 && g->b_cs == 1 && g->c_cs == 1);
}

static struct skinny_work divide_skinny(const struct product *p, double cost, bool serial)
{
    const int64_t panels = gemm_ceil_div(p->g.n, gemm_isa()->nr), threads = serial ? 1 : wf_threads();
    int64_t tasks = WF_MIN((int64_t)(cost / task_ns()) + 1, threads == 1 ? 1 : SKINNY_TASKS * threads);
    if (p->g.b_rs != 1 && tasks > 1) /* wide tasks, which read long runs of B's rows; their number is a multiple of the threads */
        tasks = gemm_ceil_div(WF_MIN(tasks, gemm_ceil_div(p->g.n, SKINNY_NN_TASK_N)), threads) * threads;
    return (struct skinny_work){p, WF_MIN(panels, tasks)};
}

/* ---- Independent tasks, for few rows or a B that is read in place. */
struct task_grid {
    const struct product *p;
    int64_t down;           /* number of tasks along m */
    int64_t across;         /* number of tasks along n */
    int64_t n0, n1, k0, k1; /* the chunk of B: columns n0 .. n1 - 1, steps k0 .. k1 - 1 of k */
    wf_real *packed;        /* the packed chunk, which all tasks share; NULL if each task packs its own B */
    int64_t pack_across;    /* number of packing tasks for each cache block */
};

static struct gemm_task task_of(const struct task_grid *w, int64_t index)
{
    const struct wf_gemm *g = &w->p->g;
    /* The rows are divided evenly over the tiles, so that no tile has far fewer rows than the others. wf_gemm_pack_a and the macro-kernel
     * divide them in the same way. */
    const int64_t tiles = gemm_ceil_div(g->m, gemm_isa()->mr);
    const struct gemm_range tile = gemm_share(tiles, 1, w->down, index % w->down);
    const struct gemm_range columns = gemm_share(w->n1 - w->n0, gemm_isa()->nr, w->across, index / w->down);
    return (struct gemm_task){
        .m0 = gemm_cut(g->m, tiles, tile.begin),
        .m1 = gemm_cut(g->m, tiles, tile.end),
        .n0 = w->n0 + columns.begin,
        .n1 = w->n0 + columns.end,
        .k0 = w->k0,
        .k1 = w->k1,
    };
}

static bool independent_task(void *ctx, int64_t index)
{
    const struct task_grid *w = ctx;
    const struct gemm_task task = task_of(w, index);
    return wf_gemm_task(w->p, &task);
}

/* ---- Shared B, for many rows: all threads pack a chunk of B, then compute tasks from it. */
/* The number of steps of k in the cache block that begins at k0. */
static int64_t kc_at(const struct task_grid *w, int64_t k0)
{
    return WF_MIN(w->p->kc, w->k1 - k0);
}

/* The packed panel that begins at column n, in the cache block that begins at k0. */
static wf_real *packed_panel(const struct task_grid *w, int64_t k0, int64_t n)
{
    const int nr = gemm_isa()->nr;
    return w->packed + (k0 - w->k0) * gemm_ceil_div(w->n1 - w->n0, nr) * nr + (n - w->n0) * kc_at(w, k0);
}

static bool pack_b_task(void *ctx, int64_t index)
{
    const struct task_grid *w = ctx;
    const struct wf_gemm *g = &w->p->g;
    const int64_t blocks = gemm_ceil_div(w->k1 - w->k0, w->p->kc), k0 = w->k0 + index % blocks * w->p->kc;
    const struct gemm_range columns = gemm_share(w->n1 - w->n0, gemm_isa()->nr, w->pack_across, index / blocks);
    const int64_t n0 = w->n0 + columns.begin;
    wf_gemm_pack_b(g, columns.end - columns.begin, kc_at(w, k0), n0 * g->b_cs + k0 * g->b_rs, packed_panel(w, k0, n0));
    return true;
}

/* The area of B that this thread packs next: the same columns in the next range of k, or after the last range of k the columns at the same
 * place in the next chunk. It is prefetched during this chunk's products, which leave the memory bus idle. Tasks with the same columns
 * divide the area among themselves; this function gives share i. */
static struct gemm_prefetch prefetch_chunk(const struct task_grid *w, const struct gemm_task *task, int64_t i, int64_t k0)
{
    const struct wf_gemm *g = &w->p->g;
    const bool below = w->k1 < g->k;
    const int64_t p = k0 - w->k0 + (below ? w->k1 : 0), j = task->n0 + (below ? 0 : w->n1 - w->n0);
    const int64_t k = WF_MAX(0, WF_MIN(kc_at(w, k0), g->k - p)), n = WF_MAX(0, WF_MIN(task->n1 - task->n0, g->n - j));
    struct gemm_prefetch all = gemm_prefetch_b(g, p * g->b_rs + j * g->b_cs, n, k);
    const struct gemm_range runs = gemm_share(all.runs, 1, w->down, i);
    return (struct gemm_prefetch){all.at + runs.begin * all.stride, all.lines, all.stride, runs.end - runs.begin};
}

/* Makes the cache block `b` prefetch the A and B of the block that the thread computes next in the same columns: the block of the next
 * steps of k, or else the first block of the rows below. */
static void prefetch_next(const struct task_grid *w, const struct gemm_task *task, int64_t k0, bool a_in_place, struct gemm_cache_block *b)
{
    const struct wf_gemm *g = &w->p->g;
    const int64_t after = k0 + w->p->kc < w->k1 ? k0 + w->p->kc : w->k0, k = kc_at(w, after);
    const int64_t row = after > k0 ? task->m0 : task->m1, rows = WF_MIN(task->m1 - task->m0, g->m - row);
    const wf_real *a = g->a + row * g->a_rs + after * g->a_cs;
    if (a_in_place && rows > 0)
        b->next_a = a;
    else if (rows > 0)
        b->prefetch[1] = gemm_prefetch_of(a, rows, g->a_rs, k, g->a_cs);
    const int nr = gemm_isa()->nr;
    const int64_t tile =
        k * CACHE_LINE / (int64_t)sizeof(wf_real); /* the panels are contiguous, so a run has the k lines that a register tile prefetches */
    b->prefetch[2] =
        gemm_prefetch(packed_panel(w, after, task->n0), tile, tile, gemm_ceil_div(gemm_ceil_div(task->n1 - task->n0, nr) * nr * k, tile));
}

static bool shared_b_task(void *ctx, int64_t index)
{
    const struct task_grid *w = ctx;
    const struct product *p = w->p;
    const struct gemm_task task = task_of(w, index);
    const struct gemm_isa *isa = gemm_isa();
    const int nr = isa->nr;
    const bool a_in_place = wf_gemm_a_in_place(&p->g, task.n1 - task.n0);
    wf_real *room_a = NULL;
    if (!a_in_place && !(room_a = wf_gemm_packed_a(task.m1 - task.m0, p->kc)))
        return false;
    for (int64_t k0 = w->k0; k0 < w->k1; k0 += p->kc) {
        struct gemm_cache_block b = wf_gemm_cache_block(p, &task, k0, k0 + kc_at(w, k0));
        if (!a_in_place)
            wf_gemm_pack_a(&b, room_a);
        b.b = packed_panel(w, k0, task.n0);
        b.b_step = nr;
        b.b_panel = b.k * nr;
        b.b_padded = true;
        b.prefetch[0] = prefetch_chunk(w, &task, index % w->down, k0);
        prefetch_next(w, &task, k0, a_in_place, &b);
        isa->macro_kernel(&b);
    }
    return true;
}

/* Divides C into tasks. A thread works on one range of columns, with all rows or some of them, so that the B that it packs stays in its
 * own second-level cache. Each thread gets several tasks, so that other threads can take some of them if another program uses its
 * processor. */
static void divide(struct task_grid *w, int64_t panels, int64_t max_tasks, int64_t threads)
{
    /* The most panels of B in a task: the B of a cache block, which has up to KC steps of k, has at most packed_b_max elements. */
    const int64_t max_panels = WF_MAX(1, WF_MIN(TASK_N, packed_b_max / KC) / gemm_isa()->nr);
    const int64_t tiles = gemm_ceil_div(w->p->g.m, gemm_isa()->mr),
                  wanted = threads == 1 ? 1 : WF_MIN(max_tasks, TASKS_PER_THREAD * threads);
    /* A tall product is not divided into ranges of columns, because each thread would then pack all of A. */
    const bool tall = w->p->g.m >= 2 * w->p->g.n && !wf_gemm_a_in_place(&w->p->g, w->p->g.n);
    int64_t columns = tall || max_tasks < threads ? 1 : threads;
    while (columns > 1 && (panels < columns * THREAD_PANELS || threads % columns != 0))
        columns--;
    w->across = columns * gemm_ceil_div(panels, columns * max_panels);
    w->down = WF_MAX(gemm_ceil_div(w->p->g.m, MC), WF_MIN(gemm_ceil_div(wanted, w->across), tiles / TASK_TILES));
    const int64_t max_down = WF_MAX(w->down, tiles / TASK_TILES);
    while (w->down * w->across % threads != 0 && w->down * w->across < EVEN_TASKS * threads && w->down < max_down)
        w->down++;
}

/* The most tasks for a product of this cost. */
static int64_t tasks_for(double cost)
{
    return cost < TASKS_MAX * task_ns() ? WF_MAX(1, (int64_t)(cost / task_ns())) : TASKS_MAX;
}

static bool run_shared_b(const struct product *p, double cost, bool serial)
{
    const struct wf_gemm *g = &p->g;
    const int nr = gemm_isa()->nr;
    const int64_t threads = serial ? 1 : wf_threads(), wanted = tasks_for(cost);
    struct task_grid w = {.p = p};
    /* B is one chunk even if it is up to 1.5 times as large as a chunk should be, because that costs less than two chunks. `room` is then
     * doubled, so that all of B still fits after chunk_k has been rounded down to whole cache blocks. */
    const bool whole = gemm_ceil_div(g->n, nr) * nr * g->k <= threads * (packed_b_max + packed_b_max / 2);
    const int64_t room = threads * packed_b_max * (whole ? 2 : 1), columns = WF_MIN(gemm_ceil_div(g->n, nr) * nr, threads * NC_PER_THREAD);
    const int64_t chunk_k = WF_MIN(g->k, WF_MAX(1, room / columns / p->kc) * p->kc);
    const int64_t chunk_n = WF_MIN(gemm_ceil_div(g->n, nr), WF_MAX(1, room / chunk_k / nr)) * nr;
    w.packed = wf_scratch(WF_SCRATCH_PACK_B, (size_t)(chunk_k * chunk_n) * sizeof(wf_real));
    if (!w.packed)
        return false;
    for (w.n0 = 0; w.n0 < g->n; w.n0 = w.n1) {
        w.n1 = WF_MIN(w.n0 + chunk_n, g->n);
        const int64_t panels = gemm_ceil_div(w.n1 - w.n0, nr);
        divide(&w, panels, wanted, threads);
        for (w.k0 = 0; w.k0 < g->k; w.k0 = w.k1) {
            w.k1 = WF_MIN(w.k0 + chunk_k, g->k);
            w.pack_across = gemm_ceil_div(panels, WF_MAX(1, (g->b_cs == 1 ? PACK_TASK_RUNS : 1) * PACK_TASK / (nr * p->kc)));
            const struct stages stages = {
                .count = 2,
                .stage = {{w.pack_across * gemm_ceil_div(w.k1 - w.k0, p->kc), pack_b_task, &w}, {w.down * w.across, shared_b_task, &w}}};
            const double share = (double)(w.k1 - w.k0) / (double)g->k * (double)(w.n1 - w.n0) / (double)g->n;
            if (!wf_gemm_stages(&stages, cost * share, serial))
                return false;
        }
    }
    return true;
}

/* ---- The path of a product. */
/* The cost of a product. It includes memory, because with few rows reading B costs more than the arithmetic. */
static double cost_of(const struct wf_gemm *g, double flops)
{
    const double m = (double)g->m, n = (double)g->n, k = (double)g->k;
    return flops / FLOPS_PER_NS + (m * k + k * n + m * n) / ELEMENTS_PER_NS;
}

enum path {
    ONE_TASK,          /* one task, on the calling thread */
    SKINNY,            /* tasks for skinny_nt or skinny_nn */
    INDEPENDENT_TASKS, /* tasks that pack their own A and B */
    SHARED_B,          /* two stages for each chunk of B: tasks that pack the chunk, then tasks that compute from it */
    SPLIT_K            /* two stages: tasks that compute partial products, then tasks that add them */
};

/* A product, its path, and the tasks of the path if it has one stage. `stage` points to other members of the plan, so a plan must not be
 * copied. */
struct plan {
    struct product p;
    double cost;
    enum path path;
    struct stage stage; /* has 0 tasks if the path has two stages */
    struct skinny_work skinny;
    struct task_grid grid;
};

static bool whole_task(void *ctx, int64_t index)
{
    const struct product *p = ctx;
    (void)index;
    return wf_gemm_task(p, &(struct gemm_task){0, p->g.m, 0, p->g.n, 0, p->g.k});
}

static enum path path_of(const struct product *p, double flops, double cost)
{
    const struct wf_gemm *g = &p->g;
    /* If there is one row and k is contiguous in B, skinny_nt takes the product instead of split-K. Its tasks divide the columns, so k need
     * not be divided. */
    if (flops >= LARGE_FLOPS && !(g->m == 1 && g->n > 1 && g->b_rs == 1) && wf_gemm_split_k_pays(g))
        return SPLIT_K;
    if (wf_gemm_is_skinny(g))
        return SKINNY;
    if (cost < 2 * task_ns() && flops < LARGE_FLOPS)
        return ONE_TASK;
    return g->m <= MC || wf_gemm_b_in_place(g, g->m) ? INDEPENDENT_TASKS : SHARED_B;
}

/* The transposed product is computed if that makes rows of C contiguous, or if C has one column. Its bits are the same, because
 * multiplication commutes. */
bool wf_gemm_is_transposed(const struct wf_gemm *g)
{
    return (g->c_cs != 1 && g->c_rs == 1 && g->n > 1) || (g->n == 1 && g->m > 1);
}

struct product wf_gemm_by_rows(const struct wf_gemm *given)
{
    struct product p = {.g = *given, .bias_n = given->bias, .kc = gemm_kc(given->k)};
    if (wf_gemm_is_transposed(given)) {
        struct wf_gemm *g = &p.g;
        g->m = given->n, g->n = given->m;
        g->a = given->b, g->a_rs = given->b_cs, g->a_cs = given->b_rs;
        g->b = given->a, g->b_rs = given->a_cs, g->b_cs = given->a_rs;
        g->c_rs = given->c_cs, g->c_cs = given->c_rs;
        p.bias_m = given->bias;
        p.bias_n = NULL;
    }
    return p;
}

static void make_plan(struct plan *w, const struct wf_gemm *given, bool serial)
{
    w->p = wf_gemm_by_rows(given);
    const struct wf_gemm *g = &w->p.g;
    const double flops = 2. * (double)g->m * (double)g->n * (double)g->k;
    w->cost = cost_of(g, flops);
    w->path = path_of(&w->p, flops, w->cost);
    w->stage = (struct stage){0};
    if (w->path == ONE_TASK) {
        w->stage = (struct stage){1, whole_task, &w->p};
    } else if (w->path == SKINNY) {
        w->skinny = divide_skinny(&w->p, w->cost, serial);
        w->stage = (struct stage){w->skinny.tasks, skinny_task, &w->skinny};
    } else if (w->path == INDEPENDENT_TASKS) {
        const int64_t panels = gemm_ceil_div(g->n, gemm_isa()->nr), wanted = tasks_for(w->cost);
        w->grid = (struct task_grid){.p = &w->p, .n0 = 0, .n1 = g->n, .k0 = 0, .k1 = g->k, .down = 1};
        w->grid.across = WF_MAX(1, WF_MIN(panels, wanted));
        if (g->m > MC)
            divide(&w->grid, panels, wanted, serial ? 1 : wf_threads());
        w->stage = (struct stage){w->grid.down * w->grid.across, independent_task, &w->grid};
    }
}

static bool run_plan(const struct plan *w, bool serial)
{
    if (w->path == SPLIT_K)
        return wf_gemm_split_k(&w->p, w->cost, serial);
    if (w->path == SHARED_B)
        return run_shared_b(&w->p, w->cost, serial);
    if (w->stage.tasks == 1)
        return w->stage.run(w->stage.ctx, 0);
    const struct stages stages = {.count = 1, .stage = {w->stage}};
    return wf_gemm_stages(&stages, w->cost, serial);
}

bool wf_gemm_skinny(const struct product *p, bool serial)
{
    const struct wf_gemm *g = &p->g;
    const double cost = cost_of(g, 2. * (double)g->m * (double)g->n * (double)g->k);
    struct skinny_work w = divide_skinny(p, cost, serial);
    const struct stages stages = {.count = 1, .stage = {{w.tasks, skinny_task, &w}}};
    return wf_gemm_stages(&stages, cost, serial);
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
    const struct stages stages = {.count = 2, .independent = true, .stage = {w[0].stage, w[1].stage}};
    const int64_t first = w[0].stage.tasks, second = w[1].stage.tasks;
    if (first == 0 || second == 0 || (first == 1 && second == 1 && cost < 2 * task_ns()))
        return run_plan(&w[0], false) && run_plan(&w[1], false);
    return wf_gemm_stages(&stages, cost, false);
}

void wf_gemm_no_sum(const struct wf_gemm *g)
{
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            wf_real *c = g->c + i * g->c_rs + j * g->c_cs;
            *c = (g->beta != 0 ? g->beta * *c : 0) + (g->bias ? g->bias[j] : 0);
        }
}
