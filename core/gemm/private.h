/* SPDX-License-Identifier: MIT */
/* The private header of core/gemm, which computes matrix products C = alpha A B + beta C + bias. A product passes through these files:
 *
 *   arrays.c        makes a product, or a batch of products, from strided arrays
 *   dispatch.c      chooses BLIS (blis.c) or Weft's own kernels (own.c) for each product
 *   own.c           divides a product into tasks; split_k.c does so for products with few elements of C and a long k
 *   stages.c        runs the tasks on the team
 *   task.c          computes a task: packs A and B, and calls the macro-kernel for each cache block
 *   micro_kernel.c  macro-kernel and micro-kernels; pack.c packs panels; skinny_nt.c and skinny_nn.c compute products with few rows
 *
 * The order of additions: k is divided into cache blocks of gemm_kc(k) steps, a function of k alone. Within a block, an element of C is
 * one chain of multiply-adds in ascending k that starts from 0. The sums of the blocks are added to C in ascending order. Every kernel
 * and every tile, also an incomplete one at an edge, keeps this order. So the bits of an element depend only on its row of A, its column
 * of B and k. Two paths have another order, and neither is taken if rows_alone is set: split-K, which adds partial products over ranges of
 * k, and BLIS. */
#ifndef WEFT_GEMM_PRIVATE_H
#define WEFT_GEMM_PRIVATE_H

#include <weft/compute.h>
#include <weft/error.h>
#include <weft/internal/kernels.h>
#include <weft/internal/minmax.h>

/* ---- All constants. "bits": another value changes bits of results. "speed": another value changes only the time. Costs are in
 * nanoseconds on one core with a peak of 230 GFLOP/s (wf_core_speed 1). */
enum {
    /* the order of additions */
    KC = 256,              /* bits: the most steps of k in a cache block */
    KC_GRAIN = 16,         /* bits: for k > KC, the steps of a cache block are a multiple of this */
    SPLIT_K_MIN = 512,     /* bits: split-K: the fewest steps of k in a partial product */
    SPLIT_K_MAX = 16,      /* bits: split-K: the most partial products */
    SPLIT_K_C = 5000,      /* bits: split-K: the most elements of C */
    LARGE_FLOPS = 1500000, /* bits: from this number of operations on, a product may use split-K and is never ONE_TASK */
    BLIS_MN = 384,         /* bits: in mode "auto" with AVX2, BLIS may compute products with m and n from this number on */
    BLIS_K = 512,          /* bits: in mode "auto" with AVX2, BLIS may compute products with k from this number on */
    BLIS_GRAIN = 96, /* bits: rows or columns of a task for BLIS are a multiple of this, which is a multiple of BLIS's register tiles */

    /* blocks and tasks */
    MC = 112,            /* speed: the most rows of a task; their packed A fits the second-level cache */
    NC_PER_THREAD = 512, /* speed: a chunk (the B that is packed at once) gets its steps of k as if it had at most these columns a thread */
    PACKED_B = 1 << 18,  /* speed: elements of packed B for each thread if the size of the second-level cache is unknown */
    PACKED_B_MIN = 1 << 15, /* speed: the fewest elements of packed B for each thread if the size of the second-level cache is known */
    PACKED_B_MAX = 1 << 19, /* speed: the most elements of packed B for each thread if the size of the second-level cache is known */
    TASK_NS = 4000,         /* speed: the least cost of a task */
    TASKS_MAX = 128,        /* speed: the most tasks of a product */
    TASKS_PER_THREAD = 6,   /* speed: tasks for each thread in a large product */
    EVEN_TASKS = 16,        /* speed: with fewer tasks for each thread, the number of tasks becomes a multiple of the number of threads */
    THREAD_PANELS = 4,      /* speed: the fewest panels of B in a thread's range of columns */
    TASK_TILES = 2,         /* speed: the fewest rows of register tiles in a task, unless the product has only one */
    TASK_N = 2048 / sizeof(wf_real), /* speed: the most columns of a task */
    PACK_TASK = 8192,                /* speed: elements of B that a packing task packs */
    PACK_TASK_RUNS = 4,              /* speed: factor of PACK_TASK if rows of B are contiguous */
    SKINNY_TASKS = 16,               /* speed: the most tasks for each thread in a skinny product */
    SKINNY_NN_TASK_N = 256,          /* speed: the fewest columns of a task of skinny_nn */
    REDUCE_TASKS = 8,                /* speed: split-K: the most tasks that add the partial products */
    FLOPS_PER_NS = 150,              /* speed: operations per nanosecond of one core with a peak of 230 GFLOP/s */
    ELEMENTS_PER_NS = 6,             /* speed: elements that one core reads and writes per nanosecond */

    /* packing */
    PACK_K = 16,    /* speed: with contiguous columns of A or rows of B, all panels are packed together, this many steps of k at a time */
    PACK_N = 256,   /* speed: columns of B that a task packs at a time if rows of B are contiguous */
    PACK_M_MIN = 4, /* speed: with fewer rows of C, neither A nor a B with contiguous rows is packed */
    STACK_B = 2048, /* speed: a packed B of at most this many elements lies on the stack */
    ALIAS_BYTES = 4096,    /* speed: rows of A that are a multiple of this apart compete for the same lines of the first-level cache */
    ALIAS_PANELS = 4,      /* speed: such rows of A are packed if a task has at least this many panels of B */
    IN_PLACE_BYTES = 1024, /* speed: a B with contiguous rows of at most this size is read in place */

    /* prefetch */
    CACHE_LINE = 64,      /* speed: bytes of a cache line */
    PREFETCHES = 3,       /* speed: the most areas that a cache block prefetches */
    STREAM_N = 512,       /* speed: columns of B that stream past a tile of A; they fit the second-level cache */
    FAR_K = 48,           /* speed: from this many steps of k on, a tile prefetches its C */
    FAR_A = 8192,         /* speed: from this many elements of A in a cache block on, A is prefetched */
    FAR_B = 1 << 16,      /* speed: from this many elements of B on, B is prefetched */
    PACK_LINES_AHEAD = 4, /* speed: packing along a contiguous k prefetches this many cache lines ahead */
    PACK_K_AHEAD = 16,    /* speed: packing across a k that is not contiguous prefetches this many steps of k ahead */

    /* skinny products */
    NT_VECTORS = 2,                      /* speed: skinny_nt: vectors of columns that are computed together, for up to NT_PAIRED_M rows */
    NT_PAIRED_M = 3,                     /* speed: skinny_nt: with more rows than this, one vector of columns is computed at a time */
    NT_SHORT_K = 4096 / sizeof(wf_real), /* speed: skinny_nt: for b_cs up to this, the next columns are prefetched */
    NT_K_AHEAD = 1024 / sizeof(wf_real), /* speed: skinny_nt: for a larger b_cs, steps of k this far ahead are prefetched */
    NN_K = 8,                            /* speed: skinny_nn: steps of k that are computed together */
    NN_SUMS = 16384 / sizeof(wf_real),   /* speed: skinny_nn: sums that fit the first-level cache */

    /* batches, and BLIS */
    BATCH_FLOPS = 20000000,     /* speed: from this many operations on, products of a batch run one after the other, each on all threads */
    BATCH_TASK_FLOPS = 1000000, /* speed: smaller products of a batch are grouped into tasks of up to this many operations */
    BATCH_NS = 20,              /* speed: cost of each product of a batch in addition to its arithmetic */
    BATCH_FLOPS_PER_NS = 60,    /* speed: operations per nanosecond in a batch, and in BLIS */
    BLIS_TASK_FLOPS = 4000000,  /* speed: BLIS computes products with fewer operations on one thread */
    BLIS_WARM_UP = 144,         /* speed: m, n and k of a product that makes BLIS allocate its buffers */
};

#ifdef WF_ISA
/* Constants for the instruction set of this compilation. */
#if defined WF_ISA_AVX512
enum { MR = 14, SKINNY_M = 12, REGISTERS = 32 };
#define MASKS_ARE_FREE 1 /* speed: a masked load or store costs as much as a whole one */
#else
enum {
    MR = 6,                                               /* speed: rows of a register tile */
    SKINNY_M = 8,                                         /* speed: the most rows of a skinny product */
    REGISTERS = V_LANES * sizeof(wf_real) == 64 ? 32 : 16 /* speed: number of vector registers */
};
#define MASKS_ARE_FREE 0
#endif
enum {
    NR_VECTORS = 2,                      /* speed: vectors in a row of a register tile */
    NR = NR_VECTORS * V_LANES,           /* speed: columns of a register tile */
    LINE = CACHE_LINE / sizeof(wf_real), /* speed: elements of a cache line */
    A7 = 7,                              /* speed: the second base pointer of A points to this row; a_row_offset is written for 7 */
};
#endif

/* ---- Kernels, which are compiled once per instruction set: micro_kernel.c, pack.c, skinny_nt.c and skinny_nn.c. */

/* The epilogue of an element: c = alpha sum + beta c + bias. The bias has a number for each column of C (bias_n) or for each row
 * (bias_m), or both pointers are NULL. */
struct gemm_epilogue {
    wf_real alpha, beta; /* if beta is 0, c is not read */
    const wf_real *bias_n, *bias_m;
};

/* An area to prefetch: `runs` runs of `lines` cache lines each. A run begins `stride` elements after the run before it. */
struct gemm_prefetch {
    const wf_real *at;
    int64_t lines, stride, runs;
};

/* A cache block, which is the work of one call of the macro-kernel: up to KC steps of k for m x n elements of C. */
struct gemm_cache_block {
    int64_t m, n, k;
    /* If A is read in place, a_panel is 0, and element (i, p) is a[i * a_rs + p * a_cs]. If A is packed, it has panels of MR rows, which
     * are a_panel elements apart; a_rs is 1 and a_cs is MR. */
    const wf_real *a;
    int64_t a_rs, a_cs, a_panel;
    /* B has panels of NR columns, which are b_panel elements apart; element (p, j) of a panel is b[p * b_step + j]. Packed panels are
     * padded with zeros (b_padded is true). If B is read in place, b_panel is NR, and b_padded is false, because columns from n on must not
     * be read. */
    const wf_real *b;
    int64_t b_step, b_panel;
    bool b_padded;
    wf_real *c;
    int64_t c_rs, c_cs;
    struct gemm_epilogue epilogue;
    /* Memory that is read after this block and is therefore prefetched during it. next_a: the next rows of A, in the layout of this
     * block's A; NULL if not known. The areas of `prefetch` are prefetched in order. */
    const wf_real *next_a;
    struct gemm_prefetch prefetch[PREFETCHES];
};

struct gemm_isa {
    int mr;                                              /* rows of a register tile */
    int nr;                                              /* columns of a register tile */
    int lanes;                                           /* elements of a vector */
    int skinny_m;                                        /* the most rows of a skinny product */
    void (*reference)(const struct gemm_cache_block *b); /* for tests; the block must be one register tile at most */
    void (*macro_kernel)(const struct gemm_cache_block *b);
    /* Pack w rows of A (columns of B) with k steps into one panel: out[p * width + i] = s[i * is + p * ps] for i < w and p < k. `width`
     * is MR for A and NR for B; elements with i >= w are 0. */
    void (*pack_a_panel)(int64_t w, int64_t k, const wf_real *s, int64_t is, int64_t ps, wf_real *out);
    void (*pack_b_panel)(int64_t w, int64_t k, const wf_real *s, int64_t is, int64_t ps, wf_real *out);
    /* Skinny products: they compute up to skinny_m rows over all of k without packing. skinny_nt requires that k is contiguous in B
     * (b_rs 1) and, if there are several rows, in A (a_cs 1). skinny_nn requires that rows of B (b_cs 1) and of C (c_cs 1) are
     * contiguous. The kernels take alpha, beta and bias from the epilogue, not from g. */
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

/* The first element of share i, if m elements are divided into t shares whose sizes differ by at most 1. */
static inline int64_t gemm_cut(int64_t m, int64_t t, int64_t i)
{
    int64_t q = m / t, r = m % t;
    return i * q + WF_MIN(i, r);
}

struct gemm_range {
    int64_t begin, end;
};

/* Share i, if n elements are divided into t even shares of whole grains; only the last grain may be shorter than `grain`. */
static inline struct gemm_range gemm_share(int64_t n, int64_t grain, int64_t t, int64_t i)
{
    const int64_t grains = gemm_ceil_div(n, grain);
    return (struct gemm_range){gemm_cut(grains, t, i) * grain, WF_MIN(gemm_cut(grains, t, i + 1) * grain, n)};
}

/* The number of steps of k in a cache block; the last block may have fewer. */
static inline int64_t gemm_kc(int64_t k)
{
    if (k <= KC)
        return k;
    return gemm_ceil_div(gemm_ceil_div(k, gemm_ceil_div(k, KC)), KC_GRAIN) * KC_GRAIN;
}

/* The area of `runs` runs of `elements` elements. It has as many cache lines as if `at` were the first element of a line; if `at` is
 * not, the last line of a run may not be prefetched. */
static inline struct gemm_prefetch gemm_prefetch(const wf_real *at, int64_t elements, int64_t stride, int64_t runs)
{
    return (struct gemm_prefetch){at, gemm_ceil_div(elements, CACHE_LINE / (int64_t)sizeof(wf_real)), stride, runs};
}

/* The area of n rows of A (or columns of B), which are n_step elements apart, with k steps of k, which are k_step elements apart. The
 * area is empty if neither step is 1. */
static inline struct gemm_prefetch gemm_prefetch_of(const wf_real *at, int64_t n, int64_t n_step, int64_t k, int64_t k_step)
{
    return n_step == 1 ? gemm_prefetch(at, n, k_step, k) : gemm_prefetch(at, k, n_step, k_step == 1 ? n : 0);
}

#ifdef WF_ISA
/* The offset of row r of A from its base pointer. There are two base pointers, to rows 0 and 7, because pointers to all 14 rows would
 * not fit the registers. r1, r3 and r5 are the offsets of 1, 3 and 5 rows and lie in registers; the other offsets are 2 or 4 times one
 * of these, which the processor computes as part of an address. */
V_INLINE int64_t a_row_offset(const int r, int64_t r1, int64_t r3, int64_t r5)
{
    const int q = r % A7;
    return q == 0 ? 0 : q == 1 ? r1 : q == 2 ? 2 * r1 : q == 3 ? r3 : q == 4 ? 4 * r1 : q == 5 ? r5 : 2 * r3;
}

/* Expands to what(1) what(2) ... what(SKINNY_M), because a skinny kernel has one function for each number of rows. */
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

/* ---- BLIS and Weft's own kernels. */

/* The value of WEFT_GEMM. runtime.c sets it while no other thread computes. (dispatch.c) */
enum gemm_mode { GEMM_AUTO, GEMM_BLIS, GEMM_OWN };
extern enum gemm_mode wf_gemm_chosen;

/* blis.c, the only file that includes BLIS's header. */
/* Sets BLIS's architecture for the instruction set in use, and initialises BLIS and its buffers. wf_init calls it once, before any
 * product, when the threads have started and wait for work. It fails if the environment asks BLIS for an architecture that BLIS or the
 * processor lacks; then it may be called again. */
wf_status wf_blis_start(const char *isa, wf_error *error);
/* Whether BLIS supports the strides of the product; on other strides BLIS ends the process. m, n, k > 0. */
bool wf_blis_can(const struct wf_gemm *g);
/* Runs on the calling thread if `serial`, or if the caller is in a body of wf_parallel; otherwise on the team. */
void wf_blis_gemm(const struct wf_gemm *g, bool serial);

/* own.c. Sizes the blocks for the caches of this processor, which changes no sum. wf_init calls it before any product. */
void wf_gemm_own_start(void);
/* The product with Weft's own kernels. If `serial`, it runs on the calling thread with the same bits. m, n, k > 0. Returns false if
 * there is no memory. */
bool wf_gemm_own(const struct wf_gemm *g, bool serial) WF_CHECKED;
/* Two independent products: neither may read or write what the other writes. They share a parallel region unless one of them has two
 * stages (SHARED_B and SPLIT_K in own.c). The bits are those of wf_gemm_own. */
bool wf_gemm_own_two(const struct wf_gemm g[2]) WF_CHECKED;
/* C = beta C + bias, for products with k = 0 or alpha = 0. */
void wf_gemm_no_sum(const struct wf_gemm *g);

/* ---- Tasks of Weft's own products. */

/* A product as own.c computes it. It is transposed if that makes rows of C contiguous or if C has one column. The bias then belongs to
 * the rows (bias_m) instead of the columns (bias_n). */
struct product {
    struct wf_gemm g;
    const wf_real *bias_n, *bias_m;
    int64_t kc;
    int64_t k_after; /* split-K: number of steps of k that follow in other partial products; a task prefetches the first */
};

/* A task: rows m0 .. m1 - 1 and columns n0 .. n1 - 1 of C, with steps k0 .. k1 - 1 of k. */
struct gemm_task {
    int64_t m0, m1, n0, n1, k0, k1;
};

/* task.c. Whether A is read in place by a task with `columns` columns of C, and B by a task with `rows` rows of C. */
bool wf_gemm_a_in_place(const struct wf_gemm *g, int64_t columns);
bool wf_gemm_b_in_place(const struct wf_gemm *g, int64_t rows);
/* Scratch memory of this thread for `rows` packed rows of A with k steps; NULL if there is no memory. */
wf_real *wf_gemm_packed_a(int64_t rows, int64_t k);
/* The cache block of a task for steps k0 .. k1 - 1, without its B. */
struct gemm_cache_block wf_gemm_cache_block(const struct product *p, const struct gemm_task *task, int64_t k0, int64_t k1);
/* Packs the A of a cache block into `packed`, and makes the block read A there. */
void wf_gemm_pack_a(struct gemm_cache_block *b, wf_real *packed);
/* Packs k steps of n columns of B into panels. `b` points to the first of these elements. */
void wf_gemm_pack_b(const struct wf_gemm *g, int64_t n, int64_t k, const wf_real *b, wf_real *panels);
/* Computes a task on the calling thread, which packs A and B for it. Returns false if there is no memory. */
bool wf_gemm_task(const struct product *p, const struct gemm_task *task) WF_CHECKED;

/* split_k.c: k is divided into partial products, which are added in order. wf_gemm_split_k_pays is false if rows_alone, because split-K
 * depends on m. `cost` is that of wf_gemm_stages. Returns false if there is no memory. */
bool wf_gemm_split_k_pays(const struct wf_gemm *g);
bool wf_gemm_split_k(const struct product *p, double cost, bool serial) WF_CHECKED;

/* stages.c: runs one or two stages of tasks in one parallel region. The second stage waits for the end of the first unless the stages
 * are independent. Each thread first takes its own share of a stage's tasks, in order, and then tasks of other shares. If a thread's
 * shares of the two stages cover the same columns, the B that it packed in the first stage is in its own cache in the second. */
struct stage {
    int64_t tasks;
    bool (*run)(void *ctx, int64_t task); /* returns false if there is no memory; the stages then skip the remaining tasks */
    void *ctx;
};
struct stages {
    int count;
    bool independent;
    struct stage stage[2];
};

/* `cost` is that of wf_parallel. If `serial`, all tasks run on the calling thread. Returns false if a task had no memory. */
bool wf_gemm_stages(const struct stages *w, double cost, bool serial) WF_CHECKED;

#endif
