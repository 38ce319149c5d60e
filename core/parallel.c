/* SPDX-License-Identifier: MIT */
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include <weft/internal/runtime.h>
#include <weft/internal/scratch.h>
#include <weft/internal/shares.h>
#include <weft/internal/testing.h>
#include <weft/memory.h>
#include <weft/runtime.h>

/* ThreadSanitizer does not see libgomp's barriers: it is told that the threads of a region begin after what their caller did, and end
 * before what it does next. The function with the region itself reads what libgomp hands over, unseen. */
#if defined __SANITIZE_THREAD__
void __tsan_acquire(void *at);
void __tsan_release(void *at);
#define comes_after(at) __tsan_acquire(at)
#define comes_before(at) __tsan_release(at)
#define HANDED_OVER __attribute__((noinline, no_sanitize("thread")))
#else
#define comes_after(at) ((void)(at))
#define comes_before(at) ((void)(at))
#define HANDED_OVER
#endif

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

/* Scratch: thread-local, freed by the destructor of a key when its thread ends. */
struct scratch {
    void *block[WF_SCRATCH_SLOTS];
    size_t size[WF_SCRATCH_SLOTS];
    unsigned version;      /* of `requested`, that this thread has grown its blocks to */
    unsigned team_version; /* the same, of this thread's team */
    int worker;            /* wf_worker() */
    bool registered;
    bool serial; /* runs all blocks of a region itself while its threads are kept waiting */
};

static _Thread_local struct scratch scratch;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool have_key;

static void free_scratch(void *p)
{
    struct scratch *s = p;
    for (int i = 0; i < WF_SCRATCH_SLOTS; i++) {
        wf_free(s->block[i]);
        s->block[i] = NULL;
        s->size[i] = 0;
    }
    s->registered = false;
}

static void make_key(void)
{
    have_key = pthread_key_create(&key, free_scratch) == 0;
}

/* The program's first thread ends without running destructors of keys. */
__attribute__((destructor)) static void free_main_scratch(void)
{
    free_scratch(&scratch);
}

/* What any thread of a region has asked for, by slot. A thread that came too late for a block of some kind in the first steps
 * would otherwise allocate in a later one: so each gets ready at the start of the next region, and a caller, who may hold a block of its
 * own over a region, at the start of the next pass. What a caller asks for that does the team's blocks alone counts too: later the team
 * does them. */
static _Atomic size_t requested[WF_SCRATCH_SLOTS];
static _Atomic unsigned requested_version;

static void *grow(int slot, size_t size)
{
    struct scratch *s = &scratch;
    size_t others = atomic_load_explicit(&requested[slot], memory_order_relaxed);
    size = others > size ? others : size;
    if (!s->registered) {
        pthread_once(&once, make_key);
        if (!have_key || pthread_setspecific(key, s) != 0)
            return NULL;
        s->registered = true;
    }
    wf_free(s->block[slot]);
    s->block[slot] = wf_alloc(size);
    s->size[slot] = s->block[slot] ? size : 0;
    return s->block[slot];
}

void wf_scratch_get_ready(void)
{
    unsigned version = atomic_load_explicit(&requested_version, memory_order_acquire);
    if (version == scratch.version)
        return;
    scratch.version = version;
    for (int i = 0; i < WF_SCRATCH_SLOTS; i++) {
        size_t size = atomic_load_explicit(&requested[i], memory_order_relaxed);
        if (size > scratch.size[i] && grow(i, size))
            memset(scratch.block[i], 0, size); /* the pages too */
    }
}

void *wf_scratch(int slot, size_t bytes)
{
    if (slot < 0 || slot >= WF_SCRATCH_SLOTS)
        return NULL;
    struct scratch *s = &scratch;
    bool here = bytes <= s->size[slot] && s->block[slot];
    size_t known = atomic_load_explicit(&requested[slot], memory_order_relaxed);
    if (here && bytes <= known)
        return s->block[slot];
    /* Steps of a power of two: growing needs come to rest after a few calls. */
    size_t size = 4096;
    while (size < bytes) {
        if (size > (size_t)PTRDIFF_MAX / 2)
            return NULL;
        size *= 2;
    }
    if (size > known && (s->serial || omp_in_parallel())) {
        while (size > known && !atomic_compare_exchange_weak(&requested[slot], &known, size))
            ;
        atomic_fetch_add_explicit(&requested_version, 1, memory_order_release);
    }
    return here ? s->block[slot] : grow(slot, size);
}

void wf_scratch_drop(void)
{
    for (int i = 0; i < WF_SCRATCH_SLOTS; i++)
        atomic_store(&requested[i], 0);
#pragma omp parallel num_threads(wf_parallel_threads())
    free_scratch(&scratch);
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

static void run_member(struct region *r, int thread)
{
    comes_after(r);
    if (thread != 0) /* the caller may hold a block */
        wf_scratch_get_ready();
    scratch.worker = thread;
    if (thread < r->shares)
        work(r, thread);
    scratch.worker = 0;
    comes_before(r);
}

/* Always the whole team: libgomp ends the threads that a smaller region does not use. */
HANDED_OVER static void run_team(struct region *r, int count)
{
#pragma omp parallel num_threads(count)
    run_member(r, omp_get_thread_num());
}

void wf_parallel(int64_t blocks, double cost, void (*body)(void *ctx, int64_t block), void *ctx)
{
    int count = wf_parallel_threads();
    bool alone =
        blocks < 2 || count < 2 || cost < atomic_load_explicit(&cutoff, memory_order_relaxed) || omp_in_parallel() || scratch.serial;
    int64_t begin = alone ? 0 : clock_now();
    unsigned version = atomic_load_explicit(&requested_version, memory_order_acquire);
    bool paused =
        !alone && cost < LARGE && begin < atomic_load_explicit(&alone_until, memory_order_relaxed) && version == scratch.team_version;
    if (alone || paused) {
        scratch.serial |= paused;
        for (int64_t block = 0; block < blocks; block++)
            body(ctx, block);
        scratch.serial &= !paused;
        if (paused)
            adapt_pause(begin, cost, true);
        return;
    }
    scratch.team_version = version;
    struct wf_share share[WF_MAX_THREADS];
    struct region r = {body, ctx, share, blocks < count ? (int)blocks : count};
    wf_shares_divide(share, r.shares, blocks);
    comes_before(&r);
    run_team(&r, count);
    comes_after(&r);
    adapt_pause(begin, cost, false);
}

int wf_worker(void)
{
    return scratch.worker;
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
