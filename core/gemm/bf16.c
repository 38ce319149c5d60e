/* SPDX-License-Identifier: MIT */
/* Products in bf16's arithmetic (bf16.h): blocking, packing and work distribution. The operands are packed in chunks (A may be read in
 * place), then blocks of C are computed from them. A chunk has all k, or with a long k a part of it; the sums then wait in memory for the
 * next part. All choices depend on shapes, strides, the number of threads and the processor, and none changes a bit. */
#include <weft/internal/runtime.h>

#ifndef WF_DOUBLE
#include <weft/internal/scratch.h>
#include <weft/runtime.h>

#include "bf16.h"

enum {
    CHUNK = 1 << 23,     /* speed: elements of an operand that are packed at a time, about */
    CHUNK_K = 1 << 21,   /* speed: the same for a part of a long k */
    SUMS = 1 << 24,      /* speed: the most elements of C whose sums wait in memory */
    FAR_C = 1 << 20,     /* speed: elements of a C that no cache holds until it is read */
    TASK_B = 1 << 18,    /* speed: elements of packed B in a task, about: half of the second-level cache */
    BLOCK_M = 128,       /* speed: rows of a task */
    EMULATED_N = 512,    /* speed: without AMX: columns of a task */
    IN_PLACE = 2,        /* speed: without AMX: A with contiguous k is read in place if at most this many tasks read the same rows */
    PACK = 1 << 15,      /* speed: elements that a task packs */
    FLOPS_NS_AMX = 1000, /* speed: arithmetic of one core, */
    FLOPS_NS = 140,      /* speed: and without AMX */
};

/* An operand: lines are rows of A or columns of B. */
struct operand {
    const void *at; /* floats; numbers in bf16 for pack_stored */
    int64_t lines, line_step, k_step;
    bf16_pack *pack;
    bf16_pack_stored *pack_stored; /* instead of `pack`; NULL: no */
    wf_bf16 *packed;
    int64_t begin, end; /* the chunk of lines that is packed */
    /* Packing tasks of the chunk, and their sides. With contiguous lines a task has long runs of them and few steps. */
    int64_t tasks, task_panels, task_steps, tasks_across;
};

struct bf16_work {
    const struct product *p;
    struct operand a, b;
    int64_t k0, steps; /* the chunk's first k, and its steps */
    float *sums;       /* of C between chunks of k; NULL: a chunk has all k. Sides are multiples of BF16_MR */
    int64_t sums_rs;
    bool pack_a, pack_b;                  /* in this stage */
    bool in_place;                        /* tasks read A in place */
    int64_t down, across, task_m, task_n; /* tasks of C, and their sides */
};

static int64_t panels_of(int64_t lines)
{
    return gemm_ceil_div(lines, BF16_LINES);
}

static void pack_task(const struct operand *o, const struct bf16_work *w, int64_t task)
{
    const int64_t steps = w->steps, k = w->p->g.k - w->k0;
    const int64_t first = task % o->tasks_across * o->task_panels, last = WF_MIN(first + o->task_panels, panels_of(o->end - o->begin));
    const int64_t begin = task / o->tasks_across * o->task_steps, end = WF_MIN(begin + o->task_steps, steps);
    /* With contiguous lines a step of all panels at a time, so that memory is read in its order. */
    const int64_t together = o->line_step == 1 ? 1 : end - begin;
    for (int64_t s = begin; s < end; s += together)
        for (int64_t panel = first; panel < last; panel++) {
            const int64_t line = o->begin + panel * BF16_LINES;
            const int64_t lines = WF_MIN(o->end - line, BF16_LINES), left = k - s * BF16_K;
            const int64_t at = line * o->line_step + (w->k0 + s * BF16_K) * o->k_step;
            wf_bf16 *tiles = o->packed + (panel * steps + s) * BF16_TILE;
            if (o->pack_stored)
                o->pack_stored(lines, left, (const wf_bf16 *)o->at + at, o->line_step, o->k_step, together, tiles);
            else
                o->pack(lines, left, (const float *)o->at + at, o->line_step, o->k_step, together, tiles);
        }
}

static bool pack_stage(void *ctx, int64_t index)
{
    const struct bf16_work *w = ctx;
    const int64_t of_a = w->pack_a ? w->a.tasks : 0;
    if (index < of_a)
        pack_task(&w->a, w, index);
    else
        pack_task(&w->b, w, index - of_a);
    return true;
}

static bool multiply_stage(void *ctx, int64_t index)
{
    const struct bf16_work *w = ctx;
    const struct product *p = w->p;
    const struct wf_gemm *g = &p->g;
    const int64_t i = index % w->down * w->task_m, j = index / w->down * w->task_n;
    const int64_t row = w->a.begin + i, column = w->b.begin + j;
    struct bf16_block block = {
        .m = WF_MIN(w->task_m, w->a.end - row),
        .n = WF_MIN(w->task_n, w->b.end - column),
        .steps = w->steps,
        .a = w->a.packed + i * w->steps * BF16_K,
        .b = w->b.packed + j * w->steps * BF16_K,
        .c = g->c + row * g->c_rs + column * g->c_cs,
        .c_rs = g->c_rs,
        .c_cs = g->c_cs,
        .epilogue = {g->alpha, g->beta, p->bias_n ? p->bias_n + column : NULL, p->bias_m ? p->bias_m + row : NULL},
    };
    /* A transposed A: usually the gradient of a weight, which nothing reads before the optimiser. */
    block.far = g->a_rs == 1 && g->a_cs != 1 && g->m * g->n >= FAR_C;
    if (w->in_place) {
        block.rows = g->a + row * g->a_rs + w->k0 * g->a_cs;
        block.rows_rs = g->a_rs;
        block.k = g->k - w->k0;
    }
    if (w->sums) {
        float *const sums = w->sums + row * w->sums_rs + column;
        if (w->k0 > 0) {
            block.before = sums;
            block.before_rs = w->sums_rs;
        }
        if (w->k0 + w->steps * BF16_K < g->k) { /* whole tiles, whose lines past the end are zeros */
            block.m = panels_of(block.m) * BF16_LINES;
            block.n = panels_of(block.n) * BF16_LINES;
            block.c = sums;
            block.c_rs = w->sums_rs;
            block.c_cs = 1;
            block.epilogue = (struct gemm_epilogue){1, 0, NULL, NULL};
            block.far = false;
        }
    }
    if (wf_amx()) {
        wf_amx_enter();
        wf_amx_block(&block);
        wf_amx_leave();
        return true;
    }
    float *scratch = wf_scratch(WF_SCRATCH_PACK_A, (size_t)bf16_isa()->scratch(&block) * sizeof(float));
    if (!scratch)
        return false;
    bf16_isa()->block(&block, scratch);
    return true;
}

/* Lines of a chunk, or its steps: all, or even chunks of about `size` elements; `each` is the elements of a line, or of a step. */
static int64_t chunk_of(int64_t all, int64_t each, int64_t grain, int64_t size)
{
    const int64_t chunks = WF_MAX(1, (all * each + size / 2) / size);
    return gemm_ceil_div(gemm_ceil_div(all, chunks), grain) * grain;
}

static void set_chunk(struct operand *o, int64_t begin, int64_t lines, int64_t steps)
{
    o->begin = begin;
    o->end = WF_MIN(begin + lines, o->lines);
    const int64_t panels = panels_of(o->end - begin), tiles = PACK / BF16_TILE;
    o->task_panels = WF_MAX(1, WF_MIN(panels, o->line_step == 1 ? tiles : tiles / steps));
    o->task_steps = WF_MAX(1, WF_MIN(steps, tiles / o->task_panels));
    o->tasks_across = gemm_ceil_div(panels, o->task_panels);
    o->tasks = o->tasks_across * gemm_ceil_div(steps, o->task_steps);
}

/* Divides the chunk of C into tasks: at least TASKS_PER_THREAD for each thread if there is that much work. */
static void divide(struct bf16_work *w, int64_t threads, double cost)
{
    const int64_t m = w->a.end - w->a.begin, n = w->b.end - w->b.begin, k = w->steps * BF16_K;
    const int64_t wanted = threads == 1 ? 1 : WF_MIN(TASKS_PER_THREAD * threads, WF_MAX(1, (int64_t)(cost / TASK_NS)));
    const int64_t max_n = wf_amx() ? WF_MAX(BF16_MR, TASK_B / k / BF16_MR * BF16_MR) : EMULATED_N;
    w->across = gemm_ceil_div(n, max_n);
    w->down = gemm_ceil_div(m, BLOCK_M);
    while (w->across * w->down < wanted && (w->across * BF16_MR < n || w->down * BF16_MR < m))
        if (n / w->across >= m / w->down)
            w->across++;
        else
            w->down++;
    w->task_m = gemm_ceil_div(gemm_ceil_div(m, w->down), BF16_MR) * BF16_MR;
    w->task_n = gemm_ceil_div(gemm_ceil_div(n, w->across), BF16_MR) * BF16_MR;
    w->down = gemm_ceil_div(m, w->task_m);
    w->across = gemm_ceil_div(n, w->task_n);
}

static double cost_of(double m, double n, double k)
{
    return 2 * m * n * k / (wf_amx() ? FLOPS_NS_AMX : FLOPS_NS) + (m * k + k * n + m * n) / ELEMENTS_PER_NS;
}

bool wf_gemm_bf16(const struct wf_gemm *given, bool serial)
{
    const struct product p = wf_gemm_by_rows(given);
    const struct wf_gemm *g = &p.g;
    if (wf_gemm_is_skinny(g))
        return wf_gemm_skinny(&p, serial);
    const int64_t steps = gemm_ceil_div(g->k, BF16_K), all_k = steps * BF16_K, longest = WF_MAX(g->m, g->n);
    const int64_t sums_m = gemm_ceil_div(g->m, BF16_MR) * BF16_MR, sums_n = gemm_ceil_div(g->n, BF16_MR) * BF16_MR;
    const bool by_k = g->k > longest && longest * all_k > CHUNK && sums_m * sums_n <= SUMS;
    const int64_t chunk_steps = by_k ? chunk_of(steps, longest * BF16_K, 1, CHUNK_K) : steps, k = chunk_steps * BF16_K;
    struct bf16_work w = {
        .p = &p,
        .a = {g->a, g->m, g->a_rs, g->a_cs, bf16_isa()->pack_a},
        .b = {g->b, g->n, g->b_cs, g->b_rs, bf16_isa()->pack_b, g->b_stored == WF_BF16 ? bf16_isa()->pack_b_stored : NULL},
        .sums_rs = sums_n};
    const int64_t chunk_m = chunk_of(g->m, k, BF16_MR, CHUNK), chunk_n = chunk_of(g->n, k, BF16_MR, CHUNK),
                  threads = serial ? 1 : wf_threads();
    wf_bf16 *packed = wf_scratch(WF_SCRATCH_PACK_B, (size_t)((chunk_m + chunk_n) * k) * sizeof(wf_bf16));
    if (!packed || (by_k && !(w.sums = wf_scratch(WF_SCRATCH_GEMM, (size_t)(sums_m * sums_n) * sizeof(float)))))
        return false;
    w.a.packed = packed;
    w.b.packed = packed + chunk_m * k;
    for (int64_t step = 0; step < steps; step += chunk_steps)
        for (int64_t i = 0; i < g->m; i += chunk_m)
            for (int64_t j = 0; j < g->n; j += chunk_n) {
                w.k0 = step * BF16_K;
                w.steps = WF_MIN(chunk_steps, steps - step);
                w.pack_a = j == 0 || w.in_place; /* if the chunk before was read in place, nothing is packed */
                w.pack_b = i == 0 || chunk_n < g->n;
                set_chunk(&w.a, i, chunk_m, w.steps);
                set_chunk(&w.b, j, chunk_n, w.steps);
                const double cost = cost_of((double)(w.a.end - i), (double)(w.b.end - j), (double)(w.steps * BF16_K));
                divide(&w, threads, cost);
                w.in_place = !wf_amx() && !w.sums && g->a_cs == 1 && w.across <= IN_PLACE;
                w.pack_a = w.pack_a && !w.in_place;
                const struct stages stages = {.count = 2,
                                              .stage = {{(w.pack_a ? w.a.tasks : 0) + (w.pack_b ? w.b.tasks : 0), pack_stage, &w},
                                                        {w.down * w.across, multiply_stage, &w}}};
                if (!wf_gemm_stages(&stages, cost, serial))
                    return false;
            }
    return true;
}
#endif

static bool rounding;

void wf_bf16_rounding_use(bool wanted)
{
#if defined __x86_64__
    __builtin_cpu_init();
    rounding = wanted && __builtin_cpu_supports("avx512bf16");
#else
    (void)wanted;
#endif
}

bool wf_bf16_rounding(void)
{
    return rounding;
}
