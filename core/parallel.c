/* SPDX-License-Identifier: MIT */
#include <omp.h>
#include <stdatomic.h>
#include <time.h>

#include <weft/internal/runtime.h>
#include <weft/internal/scratch.h>
#include <weft/internal/shares.h>
#include <weft/internal/testing.h>
#include <weft/runtime.h>

#include "hold.h"
#include "races.h"

/* A region costs about 0.5 microseconds while its threads wait in a spin, and 30 to 70 when the system has to wake them,
 * as with more threads than processors: libgomp, which counts them, then waits in the kernel almost at once. On a slower core
 * blocks take longer than their cost says, and a region does not. */
enum { CUTOFF = 5000, CUTOFF_CROWDED = 60000 };

static _Atomic int threads = 1;
static _Atomic int cutoff = CUTOFF;
static _Atomic double speed = 1;

static void set_cutoff(void)
{
    atomic_store(&cutoff, (int)(atomic_load(&speed) * (atomic_load(&threads) > wf_processors() ? CUTOFF_CROWDED : CUTOFF)));
}

/* Against 0.5 microseconds of libgomp's; measured at 0.12. But what one thread has written is in its caches and not in the other's,
 * so that smaller pieces than half as large are no faster. */
double wf_region_price(void)
{
    const struct hold *held = hold_mine();
    return held && hold_spins(held) ? 0.5 : 1;
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

void wf_parallel_start(int count)
{
    atomic_store(&threads, count);
    set_cutoff();
    if (count > 1 && !omp_in_parallel()) {
        /* libgomp allocates its teams here, and not in the middle of a training step. */
#pragma omp parallel num_threads(count)
        __asm__ volatile("");
    }
}

/* Of the calling thread. */
struct state {
    unsigned team_version; /* of wf_scratch_version, that its team has seen */
    int worker;            /* wf_worker() */
    bool serial;           /* runs all blocks of a region itself while its threads are kept waiting */
};

static _Thread_local struct state state;

bool wf_parallel_inside(void)
{
    return state.serial || (omp_in_parallel() && !hold_mine());
}

static void drop(void *ctx, int thread)
{
    (void)ctx, (void)thread;
    wf_scratch_free();
}

void wf_scratch_drop(void)
{
    wf_scratch_forget();
    struct hold *held = hold_mine();
    if (held) {
        hold_run(held, drop, NULL);
        return;
    }
#pragma omp parallel num_threads(wf_parallel_threads())
    drop(NULL, 0);
}

struct region {
    void (*body)(void *ctx, int64_t block);
    void *ctx;
    struct wf_share *share;
    int shares;
};

static void work(struct region *r, int thread)
{
    int at = thread, left = r->shares;
    for (int64_t block; (block = wf_shares_take(r->share, r->shares, &at, &left)) >= 0;)
        r->body(r->ctx, block);
}

/* Where other programs run too, a thread that the system has set aside makes a region of microseconds last as long as another
 * program's turn, milliseconds (libgomp's threads spin that long before they sleep). A region that takes far longer than its cost is the
 * sign: after it the caller works alone for a while, which doubles as long as the signs go on and shrinks again with every good region.
 * `pace` is what a region takes of its cost at best, where that is more than half: costs are of a fast machine. */
enum { STALL = 400000, FAR = 8, FIRST_PAUSE = 4000000, LONGEST_PAUSE = 256000000, LARGE = 20000000, SLOWLY = 6, PACE = 1024 };
static _Atomic int64_t alone_until, next_pause, pace = PACE / 2;
static _Atomic bool ignored;

void wf_stalls_heed(bool heed)
{
    atomic_store(&ignored, !heed);
    atomic_store(&alone_until, 0);
    atomic_store(&next_pause, 0);
}

/* Nanoseconds, more or less, for the price of a few. */
static int64_t clock_now(void)
{
#if defined __x86_64__
    return (int64_t)(__builtin_ia32_rdtsc() / 3);
#else
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
#endif
}

static void adapt_pause(int64_t begin, double cost, bool alone)
{
    int64_t now = clock_now(), pause = atomic_load_explicit(&next_pause, memory_order_relaxed);
    double took = (double)(now - begin), known = (double)atomic_load_explicit(&pace, memory_order_relaxed), this = PACE * took / cost;
    double better = this < known ? this : known + known / (1 << SLOWLY) + 1;
    atomic_store_explicit(&pace, better < PACE / 2 ? PACE / 2 : (int64_t)better, memory_order_relaxed);
    if (alone)
        return;
    if (took > FAR * known / PACE * cost + STALL && !atomic_load_explicit(&ignored, memory_order_relaxed)) {
        pause = pause < FIRST_PAUSE ? FIRST_PAUSE : pause;
        atomic_store_explicit(&alone_until, now + pause, memory_order_relaxed);
        atomic_store_explicit(&next_pause, pause < LONGEST_PAUSE ? 2 * pause : pause, memory_order_relaxed);
    } else if (pause != 0) {
        atomic_store_explicit(&next_pause, pause < FIRST_PAUSE ? 0 : pause - (pause >> SLOWLY), memory_order_relaxed);
    }
}

static void run_member(void *region, int thread)
{
    struct region *r = region;
    if (thread != 0) /* the caller may hold a block */
        wf_scratch_get_ready();
    state.worker = thread;
    if (thread < r->shares)
        work(r, thread);
    state.worker = 0;
}

static void run_team_member(struct region *r, int thread)
{
    comes_after(r);
    run_member(r, thread);
    comes_before(r);
}

/* Always the whole team: libgomp ends the threads that a smaller region does not use. */
HANDED_OVER static void run_team(struct region *r, int count)
{
#pragma omp parallel num_threads(count)
    run_team_member(r, omp_get_thread_num());
}

void wf_parallel(int64_t blocks, double cost, void (*body)(void *ctx, int64_t block), void *ctx)
{
    int count = wf_parallel_threads();
    bool alone =
        blocks < 2 || count < 2 || cost < wf_region_price() * atomic_load_explicit(&cutoff, memory_order_relaxed) || wf_parallel_inside();
    int64_t begin = alone ? 0 : clock_now();
    unsigned version = wf_scratch_version();
    bool paused =
        !alone && cost < LARGE && begin < atomic_load_explicit(&alone_until, memory_order_relaxed) && version == state.team_version;
    if (alone || paused) {
        state.serial |= paused;
        for (int64_t block = 0; block < blocks; block++)
            body(ctx, block);
        state.serial &= !paused;
        if (paused)
            adapt_pause(begin, cost, true);
        return;
    }
    state.team_version = version;
    struct wf_share share[WF_MAX_THREADS];
    struct region r = {body, ctx, share, blocks < count ? (int)blocks : count};
    wf_shares_divide(share, r.shares, blocks);
    struct hold *held = hold_mine();
    if (held) {
        hold_run(held, run_member, &r);
    } else {
        comes_before(&r);
        run_team(&r, count);
        comes_after(&r);
    }
    adapt_pause(begin, cost, false);
}

int wf_worker(void)
{
    return state.worker;
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
    r->body(r->ctx, begin, r->n - begin < r->grain ? r->n : begin + r->grain);
}

void wf_parallel_ranges(int64_t n, int64_t grain, double cost, void (*body)(void *ctx, int64_t begin, int64_t end), void *ctx)
{
    if (n <= 0)
        return;
    struct ranges r = {n, grain, body, ctx};
    wf_parallel((n - 1) / grain + 1, cost, one_range, &r);
}
