/* SPDX-License-Identifier: MIT */
/* wf_parallel and wf_parallel_ranges (weft/compute.h): decide whether the team shares the blocks, and divide them among its threads. */
#include <omp.h>
#include <stdatomic.h>

#include <weft/internal/minmax.h>
#include <weft/internal/runtime.h>
#include <weft/internal/scratch.h>
#include <weft/internal/shares.h>
#include <weft/internal/testing.h>
#include <weft/runtime.h>

#include "team.h"

/* Costs are nanoseconds on a core with a peak of 230 GFLOP/s (AVX-512). If the cost of the work is below the cutoff, the caller runs all
 * blocks.
 *
 * While the workers spin, starting a job takes the caller 0.6 to 0.7 microseconds (bench/overhead), mostly to move cache lines from one
 * core to another. With more threads than processors, workers always sleep between jobs, and the system takes 30 to 70 microseconds to
 * wake one. A core with half this peak or less (without AVX-512, or Zen 4) computes a block in twice the time but starts a job as fast,
 * so its cutoff is half as high. */
enum { CUTOFF = 2500, CUTOFF_CROWDED = 60000 };

static _Atomic int threads = 1;
static _Atomic int cutoff = CUTOFF;
static _Atomic double speed = 1;

static _Thread_local bool serial; /* this thread runs all blocks itself, because another thread has the team */
static _Thread_local int worker;

static void set_cutoff(void)
{
    atomic_store(&cutoff, (int)(atomic_load(&speed) * (atomic_load(&threads) > wf_processors() ? CUTOFF_CROWDED : CUTOFF)));
}

double wf_core_speed(void)
{
    return atomic_load_explicit(&speed, memory_order_relaxed);
}

void wf_core_speed_set(double value)
{
    atomic_store(&speed, value);
    set_cutoff();
}

int wf_parallel_threads(void)
{
    return atomic_load_explicit(&threads, memory_order_relaxed);
}

static void set_threads(int workers)
{
    atomic_store(&threads, workers + 1);
    set_cutoff();
}

void wf_parallel_start(int count)
{
    team_restart(count - 1, set_threads);
}

bool wf_parallel_running(void)
{
    return serial || team_inside();
}

bool wf_parallel_inside(void)
{
    return wf_parallel_running() || omp_in_parallel();
}

int wf_worker(void)
{
    return worker;
}

/* ---- scratch memory of the workers ---------------------------------------------------------------------------------- */

/* The wf_scratch_version to which all workers have grown their scratch memory. The caller that has the team writes it. */
static unsigned team_version;

static void get_ready(void *ctx, int thread)
{
    (void)ctx;
    if (thread != 0) /* the caller may be using a block of its scratch memory */
        wf_scratch_get_ready();
}

static void drop(void *ctx, int thread)
{
    (void)ctx, (void)thread;
    wf_scratch_free();
}

void wf_scratch_drop(void)
{
    wf_scratch_forget();
    if (!team_take()) {
        drop(NULL, 0);
        return;
    }
    team_run_all(drop, NULL);
    team_give_back();
}

/* ---- blocks --------------------------------------------------------------------------------------------------------- */

struct blocks {
    void (*body)(void *ctx, int64_t block);
    void *ctx;
    struct wf_share *share;
    int shares;
};

static void run_blocks(void *ctx, int thread)
{
    const struct blocks *b = ctx;
    worker = thread;
    int at = thread % b->shares, left = b->shares;
    for (int64_t block; (block = wf_shares_take(b->share, b->shares, &at, &left)) >= 0;)
        b->body(b->ctx, block);
    worker = 0;
}

static void run_on_team(struct blocks *b, int64_t blocks)
{
    const int count = wf_parallel_threads(); /* no other thread can change it while this thread has the team */
    b->shares = (int)WF_MIN(blocks, count);
    const unsigned version = wf_scratch_version();
    /* Grows the scratch memory of all workers now. Otherwise a worker that happens to run no block of this region would have to allocate
     * when it runs one in a later training step. */
    if (version != team_version)
        team_run_all(get_ready, NULL);
    team_version = version;
    struct wf_share share[WF_MAX_THREADS];
    b->share = share;
    wf_shares_divide(share, b->shares, blocks);
    team_run(b->shares - 1, run_blocks, b);
    team_give_back();
}

void wf_parallel(int64_t blocks, double cost, void (*body)(void *ctx, int64_t block), void *ctx)
{
    const int count = wf_parallel_threads();
    const bool small = blocks < 2 || count < 2 || cost < atomic_load_explicit(&cutoff, memory_order_relaxed) || wf_parallel_inside();
    if (!small && team_take()) {
        run_on_team(&(struct blocks){.body = body, .ctx = ctx}, blocks);
        return;
    }
    const bool before = serial;
    serial |= !small;
    for (int64_t block = 0; block < blocks; block++)
        body(ctx, block);
    serial = before;
}

struct ranges {
    int64_t n, grain;
    void (*body)(void *ctx, int64_t begin, int64_t end);
    void *ctx;
};

static void one_range(void *ctx, int64_t block)
{
    const struct ranges *r = ctx;
    int64_t begin = block * r->grain;
    r->body(r->ctx, begin, begin + WF_MIN(r->grain, r->n - begin));
}

void wf_parallel_ranges(int64_t n, int64_t grain, double cost, void (*body)(void *ctx, int64_t begin, int64_t end), void *ctx)
{
    if (n <= 0)
        return;
    struct ranges r = {n, grain, body, ctx};
    wf_parallel((n - 1) / grain + 1, cost, one_range, &r);
}
