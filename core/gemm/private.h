/* SPDX-License-Identifier: MIT */
/* The private header of core/gemm: constants, the table of kernels of an instruction set, products, tasks and stages, BLIS.
 *
 * The order of additions: k is cut into blocks of KC (gemm_kc, a function of k alone). Within a block an element of C is one chain of
 * multiply-adds in ascending k, started from 0. The blocks are added to C in ascending order. Every kernel, tile and tail keeps this
 * order, so the bits of an element depend only on its row of A, its column of B and k. */
#ifndef WEFT_GEMM_PRIVATE_H
#define WEFT_GEMM_PRIVATE_H

#include <weft/compute.h>
#include <weft/error.h>
#include <weft/internal/kernels.h>
#include <weft/internal/minmax.h>

/* ---- All constants. "bits": another value changes sums. "speed": it changes no sum. Costs are in nanoseconds on one core. */
enum {
    /* the order of sums */
    KC = 256,              /* bits: steps of k in a cache block, at most */
    KC_GRAIN = 16,         /* bits: KC of a longer k is a multiple of this */
    SPLIT_K_MIN = 512,     /* bits: split-K: steps of k in a partial product, at least */
    SPLIT_K_MAX = 16,      /* bits: split-K: partial products, at most */
    SPLIT_K_C = 5000,      /* bits: split-K: elements of C, at most */
    LARGE_FLOPS = 1500000, /* bits: a product of so many operations is always divided; from here on split-K is allowed */
    BLIS_MN = 384,         /* bits: "auto" with AVX2: BLIS computes products with m and n from here on, */
    BLIS_K = 512,          /* bits: and k from here on */
    BLIS_GRAIN = 96,       /* bits: rows or columns of a task for BLIS, a multiple of its register tiles */

    /* blocks and tasks */
    MC = 112,               /* speed: rows of a task, so that its packed A fits the second-level cache */
    NC_PER_THREAD = 512,    /* speed: columns of packed B for each thread, before its k is cut */
    PACKED_B = 1 << 18,     /* speed: elements of packed B for each thread, where the size of the second-level cache is not known; */
    PACKED_B_MIN = 1 << 15, /* speed: at least, */
    PACKED_B_MAX = 1 << 19, /* speed: and at most, where it is known */
    TASK_NS = 4000,         /* speed: cost of a task, at least */
    TASKS_MAX = 128,        /* speed: tasks of a product, at most */
    TASKS_PER_THREAD = 6,   /* speed: tasks for each thread, where the product is large enough */
    EVEN_TASKS = 16,        /* speed: below so many tasks a thread, their number is a multiple of the threads */
    THREAD_PANELS = 4,      /* speed: panels of B of a thread, at least */
    TASK_TILES = 2,         /* speed: register tiles down a task, at least */
    TASK_N = 2048 / sizeof(wf_real), /* speed: columns of a task, at most */
    PACK_TASK = 8192,                /* speed: elements that a task packs of B; */
    PACK_TASK_RUNS = 4,              /* speed: so many times more if rows of B are contiguous */
    SKINNY_TASKS = 16,               /* speed: tasks for each thread of a skinny product */
    SKINNY_NN_TASK_N = 256,          /* speed: columns of a task of skinny_nn, at least */
    REDUCE_TASKS = 8,                /* speed: split-K: tasks that add the partial products, at most */
    FLOPS_PER_NS = 150,              /* speed: arithmetic of one core with a peak of 230 GFLOP/s */
    ELEMENTS_PER_NS = 6,             /* speed: elements that it reads and writes */

    /* packing */
    PACK_K = 16,           /* speed: steps of k that are packed together where they lie apart */
    PACK_N = 256,          /* speed: columns of B that are packed together where they are contiguous */
    PACK_M_MIN = 4,        /* speed: with fewer rows of C neither A nor a contiguous B is packed */
    STACK_B = 2048,        /* speed: elements of B that are packed on the stack */
    ALIAS_BYTES = 4096,    /* speed: rows of A a multiple of this apart fall on the same lines of the first-level cache */
    ALIAS_PANELS = 4,      /* speed: such rows are packed for so many panels of B */
    IN_PLACE_BYTES = 1024, /* speed: a row of B up to this size is read in place */

    /* prefetch */
    CACHE_LINE = 64,      /* speed: bytes */
    PREFETCHES = 3,       /* speed: areas that a cache block prefetches */
    STREAM_N = 512,       /* speed: columns of B that stream past a tile of A, which fit the second-level cache */
    FAR_K = 48,           /* speed: from so many steps of k on, C is prefetched */
    FAR_A = 8192,         /* speed: elements of A in a block from which on A is prefetched */
    FAR_B = 1 << 16,      /* speed: elements of B from which on B is prefetched */
    PACK_LINES_AHEAD = 4, /* speed: packing prefetches so many cache lines ahead along k, */
    PACK_K_AHEAD = 16,    /* speed: and so many steps of k ahead across it */

    /* skinny products */
    NT_VECTORS = 2,                      /* speed: skinny_nt: vectors of C in registers, up to NT_PAIRED_M rows */
    NT_PAIRED_M = 3,                     /* speed: skinny_nt: with more rows one vector */
    NT_SHORT_K = 4096 / sizeof(wf_real), /* speed: skinny_nt: up to this b_cs the next columns are prefetched, */
    NT_K_AHEAD = 1024 / sizeof(wf_real), /* speed: else the same columns, so many steps of k ahead */
    NN_K = 8,                            /* speed: skinny_nn: steps of k at a time */
    NN_SUMS = 16384 / sizeof(wf_real),   /* speed: skinny_nn: sums that the first-level cache keeps */

    /* batches, and BLIS */
    BATCH_FLOPS = 20000000,     /* speed: products of a batch with more operations run one after the other, each on all threads */
    BATCH_TASK_FLOPS = 1000000, /* speed: smaller ones are grouped up to this */
    BATCH_NS = 20,              /* speed: cost of a product of a batch beside its arithmetic */
    BATCH_FLOPS_PER_NS = 60,    /* speed: arithmetic of a batch, and of BLIS */
    BLIS_TASK_FLOPS = 4000000,  /* speed: BLIS computes smaller products on one thread */
    BLIS_WARM_UP = 144,         /* speed: sides of the product at which BLIS allocates its buffers */
};

#ifdef WF_ISA
/* The same, for each instruction set. */
#if defined WF_ISA_AVX512
enum { MR = 14, SKINNY_M = 12, REGISTERS = 32 };
#define MASKS_ARE_FREE 1 /* speed: a masked load or store costs what a whole one does */
#else
enum {
    MR = 6,                                               /* speed: rows of a register tile */
    SKINNY_M = 8,                                         /* speed: rows of a skinny product, at most */
    REGISTERS = V_LANES * sizeof(wf_real) == 64 ? 32 : 16 /* speed: vector registers */
};
#define MASKS_ARE_FREE 0
#endif
enum {
    NR_VECTORS = 2,                      /* speed: vectors in a row of a register tile */
    NR = NR_VECTORS * V_LANES,           /* speed: columns of a register tile */
    LINE = CACHE_LINE / sizeof(wf_real), /* speed: elements of a cache line */
    A7 = 7,                              /* speed: row of A with the second base pointer: a_row_offset is written for 7 */
};
#endif

/* ---- Kernels, once per instruction set: micro_kernel.c, pack.c, skinny_nt.c and skinny_nn.c. */

/* How a finished sum is stored: c = alpha sum + beta c + bias. The bias lies along a row of C (bias_n) or down a column (bias_m). */
struct gemm_epilogue {
    wf_real alpha, beta; /* beta 0: c is not read */
    const wf_real *bias_n, *bias_m;
};

/* An area to prefetch: `runs` runs of `lines` cache lines, each `stride` elements after the one before. */
struct gemm_prefetch {
    const wf_real *at;
    int64_t lines, stride, runs;
};

/* A cache block: up to KC steps of k for m x n elements of C. A in place: a_panel 0, element (i, p) at a[i * a_rs + p * a_cs]; packed:
 * panels of MR rows, a_panel apart, a_rs 1, a_cs MR. B: panels of NR columns b_panel apart, element (p, j) of one at b[p * b_step + j].
 * In place b_panel is NR, and columns past n are never read (b_padded false). Packed panels are padded with zeros. */
struct gemm_cache_block {
    int64_t m, n, k;
    const wf_real *a;
    int64_t a_rs, a_cs, a_panel;
    const wf_real *b;
    int64_t b_step, b_panel;
    bool b_padded;
    wf_real *c;
    int64_t c_rs, c_cs;
    struct gemm_epilogue epilogue;
    /* Prefetched during this block, in this order, because it is read afterwards; NULL: not known. next_a: rows of A, stored as those of
     * this block. */
    const wf_real *next_a;
    struct gemm_prefetch prefetch[PREFETCHES];
};

struct gemm_isa {
    int mr, nr, lanes;                                   /* register tile; elements of a vector */
    int skinny_m;                                        /* rows of a skinny product, at most */
    void (*reference)(const struct gemm_cache_block *b); /* for tests: at most one register tile */
    void (*macro_kernel)(const struct gemm_cache_block *b);
    /* out[p * width + i] = s[i * is + p * ps] for i < w, p < k. Width is MR for A; for B it is NR, and i from w on gives 0. */
    void (*pack_a_panel)(int64_t w, int64_t k, const wf_real *s, int64_t is, int64_t ps, wf_real *out);
    void (*pack_b_panel)(int64_t w, int64_t k, const wf_real *s, int64_t is, int64_t ps, wf_real *out);
    /* Skinny products: up to skinny_m rows over all k, without packing. NT: B's k is contiguous (b_rs 1), and A's (a_cs 1) if there are
     * several rows. NN: rows of B (b_cs 1) and of C (c_cs 1) are contiguous. alpha, beta and bias come from the epilogue alone. */
    void (*skinny_nt)(const struct wf_gemm *g, const struct gemm_epilogue *epilogue);
    void (*skinny_nn)(const struct wf_gemm *g, const struct gemm_epilogue *epilogue);
};

static inline const struct gemm_isa *gemm_isa(void)
{
    return wf_kernel->internal->gemm;
}

static inline int64_t gemm_ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* The first of share i, if m is divided into t even shares. */
static inline int64_t gemm_cut(int64_t m, int64_t t, int64_t i)
{
    int64_t q = m / t, r = m % t;
    return i * q + WF_MIN(i, r);
}

struct gemm_range {
    int64_t begin, end;
};

/* Share i, if n elements are divided into t even shares of whole grains; the last grain may be shorter. */
static inline struct gemm_range gemm_share(int64_t n, int64_t grain, int64_t t, int64_t i)
{
    const int64_t grains = gemm_ceil_div(n, grain);
    return (struct gemm_range){gemm_cut(grains, t, i) * grain, WF_MIN(gemm_cut(grains, t, i + 1) * grain, n)};
}

/* Steps of k in a cache block; the last may have fewer. */
static inline int64_t gemm_kc(int64_t k)
{
    if (k <= KC)
        return k;
    return gemm_ceil_div(gemm_ceil_div(k, gemm_ceil_div(k, KC)), KC_GRAIN) * KC_GRAIN;
}

/* Lines are counted from the first element on: if that begins no line, the last line is left out. */
static inline struct gemm_prefetch gemm_prefetch(const wf_real *at, int64_t elements, int64_t stride, int64_t runs)
{
    return (struct gemm_prefetch){at, gemm_ceil_div(elements, CACHE_LINE / (int64_t)sizeof(wf_real)), stride, runs};
}

/* n rows, or columns, of an operand, n_step apart, with k steps of k, k_step apart. Empty if neither is contiguous. */
static inline struct gemm_prefetch gemm_prefetch_of(const wf_real *at, int64_t n, int64_t n_step, int64_t k, int64_t k_step)
{
    return n_step == 1 ? gemm_prefetch(at, n, k_step, k) : gemm_prefetch(at, k, n_step, k_step == 1 ? n : 0);
}

#ifdef WF_ISA
/* Rows of A are read through two pointers, to row 0 and to row 7, because 14 pointers would not fit the registers. The offset of row r from
 * its pointer is a multiple of r1, the offset of one row; those of 3 and 5 rows are kept in registers. */
V_INLINE int64_t a_row_offset(const int r, int64_t r1, int64_t r3, int64_t r5)
{
    const int q = r % A7;
    return q == 0 ? 0 : q == 1 ? r1 : q == 2 ? 2 * r1 : q == 3 ? r3 : q == 4 ? 4 * r1 : q == 5 ? r5 : 2 * r3;
}

/* For skinny kernels, with one function for each number of rows: what(1) what(2) ... what(SKINNY_M). */
#define UP_TO_8(what) what(1) what(2) what(3) what(4) what(5) what(6) what(7) what(8)
#if defined WF_ISA_AVX512
#define EACH_SKINNY_M(what) UP_TO_8(what) what(9) what(10) what(11) what(12)
#else
#define EACH_SKINNY_M(what) UP_TO_8(what)
#endif

void WF_GEMM(macro_kernel)(const struct gemm_cache_block *b);
void WF_GEMM(pack_a_panel)(int64_t w, int64_t k, const wf_real *s, int64_t is, int64_t ps, wf_real *out);
void WF_GEMM(pack_b_panel)(int64_t w, int64_t k, const wf_real *s, int64_t is, int64_t ps, wf_real *out);
void WF_GEMM(skinny_nt)(const struct wf_gemm *g, const struct gemm_epilogue *epilogue);
void WF_GEMM(skinny_nn)(const struct wf_gemm *g, const struct gemm_epilogue *epilogue);
extern const struct gemm_isa WF_GEMM(isa);
#endif

/* ---- BLIS or our own kernels. */

/* WEFT_GEMM. (dispatch.c; set by runtime.c while no other thread computes) */
enum gemm_mode { GEMM_AUTO, GEMM_BLIS, GEMM_OWN };
extern enum gemm_mode wf_gemm_chosen;

/* blis.c, which alone includes BLIS's header. */
/* Once, from wf_init, when the threads have started and wait, and before any product: sets BLIS's architecture for the instruction set in
 * use, and initialises BLIS and its buffers. Fails if the environment asks BLIS for an architecture that it lacks; it may be called again
 * after that. */
wf_status wf_blis_start(const char *isa, wf_error *error);
/* Whether BLIS can compute the product: it ends the process on strides that it does not support. m, n, k > 0. */
bool wf_blis_can(const struct wf_gemm *g);
/* `serial`, or from inside a parallel body: on the calling thread. */
void wf_blis_gemm(const struct wf_gemm *g, bool serial);

/* own.c. From wf_init, before any product: sizes the blocks for the caches of this processor, which changes no sum. */
void wf_gemm_own_start(void);
/* The product with our own kernels. `serial`: without a parallel region, the same bits. m, n, k > 0. False without memory. */
bool wf_gemm_own(const struct wf_gemm *g, bool serial) WF_CHECKED;
/* Two independent products: neither reads or writes what the other writes. They share a region unless one of them has two stages. The bits
 * are those of wf_gemm_own. */
bool wf_gemm_own_two(const struct wf_gemm g[2]) WF_CHECKED;
/* C = beta C + bias. */
void wf_gemm_no_sum(const struct wf_gemm *g);

/* ---- Tasks of our own products. */

/* The product, transposed if that makes rows of C contiguous, so that its bias lies along the row or the column. */
struct product {
    struct wf_gemm g;
    const wf_real *bias_n, *bias_m;
    int64_t kc;
    int64_t k_after; /* split-K: steps of k after the last, which belong to other partial products */
};

/* A task: a range of C and of k. */
struct gemm_task {
    int64_t m0, m1, n0, n1, k0, k1;
};

/* task.c. Whether A is read in place for so many columns of C, or B for so many rows. */
bool wf_gemm_a_in_place(const struct wf_gemm *g, int64_t columns);
bool wf_gemm_b_in_place(const struct wf_gemm *g, int64_t rows);
/* This thread's scratch for so many packed rows of A with k steps; NULL without memory. */
wf_real *wf_gemm_packed_a(int64_t rows, int64_t k);
/* The cache block of a task from k0 to k1, all but its B. */
struct gemm_cache_block wf_gemm_cache_block(const struct product *p, const struct gemm_task *task, int64_t k0, int64_t k1);
/* Packs the A of a cache block, which then reads it there. */
void wf_gemm_pack_a(struct gemm_cache_block *b, wf_real *packed);
/* Packs k steps of n columns of B, from b on, into panels. */
void wf_gemm_pack_b(const struct wf_gemm *g, int64_t n, int64_t k, const wf_real *b, wf_real *panels);
/* Computes a task on the calling thread and packs its operands. False without memory. */
bool wf_gemm_task(const struct product *p, const struct gemm_task *task) WF_CHECKED;

/* split_k.c: k is cut into partial products, which are added in their order. Never under the row rule. `cost` as for wf_gemm_stages;
 * false without memory. */
bool wf_gemm_split_k_pays(const struct wf_gemm *g);
bool wf_gemm_split_k(const struct product *p, double cost, bool serial) WF_CHECKED;

/* stages.c: one or two stages of tasks in one region. The second waits for the first unless they are independent. Each thread begins with
 * its share of a stage's tasks, in order, and then helps the others: B that it packed in the first stage is in its own cache in the second
 * if both shares are of the same columns. */
struct stage {
    int64_t tasks;
    bool (*run)(void *ctx, int64_t task); /* false without memory: tasks not yet begun are then left out */
    void *ctx;
};
struct stages {
    int count;
    bool independent;
    struct stage stage[2];
};

/* `cost` as for wf_parallel; `serial`: on the calling thread. False if a task had no memory. */
bool wf_gemm_stages(const struct stages *w, double cost, bool serial) WF_CHECKED;

#endif
