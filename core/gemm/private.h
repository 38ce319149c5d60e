/* SPDX-License-Identifier: MIT */
/* The private header of core/gemm, which computes matrix products C = alpha A B + beta C + bias. A product passes through these files:
 *
 *   arrays.c        makes a product, or a batch of products, from strided arrays
 *   dispatch.c      chooses BLIS (blis.c) or Weft's own kernels (own.c) for each product
 *   own.c           divides a product into tasks; split_k.c does so for products with few elements of C and a long k
 *   stages.c        runs the tasks on the team, in one or two stages: a stage is a set of tasks that do not wait for each other
 *   task.c          computes a task: packs A and B, and calls the macro-kernel for each cache block
 *   bf16.c          does what own.c and task.c do, for products in bf16's arithmetic, which has another order of additions (bf16.h)
 *   micro_kernel.c  macro-kernel and micro-kernels; pack.c packs panels; skinny_nt.c, skinny_nn.c and skinny_bf16.c compute products with
 *                   few rows
 *
 * The order of additions: k is divided into cache blocks of gemm_kc(k) steps, a function of k alone. Within a block, an element of C is
 * one chain of multiply-adds in ascending k that starts from 0. The sums of the blocks are added to C in ascending order. Every kernel
 * and every tile, also an incomplete one at an edge, keeps this order. So the bits of the sum for an element depend only on
 * its row of A, its column of B and k. Two paths have another order, and neither is taken if wf_gemm.rows_alone is set: split-K, which adds
 * partial products over ranges of k, and BLIS. */
#ifndef WEFT_GEMM_PRIVATE_H
#define WEFT_GEMM_PRIVATE_H

#include <weft/compute.h>
#include <weft/error.h>
#include <weft/internal/kernels.h>
#include <weft/internal/minmax.h>

/* ---- All constants. Another value in the first section changes bits of results; another value in any other section changes only the time.
 * Costs are in nanoseconds on one core with a peak of 230 GFLOP/s, which has wf_core_speed() 1. An operation is a multiplication or an
 * addition. A chunk is the part of B that all threads pack at once (own.c). */
enum {
    /* the order of additions, which fixes the bits */
    KC = 256,              /* the most steps of k in a cache block */
    KC_GRAIN = 16,         /* if k > KC, each cache block but the last has a multiple of this many steps of k */
    SPLIT_K_MIN = 512,     /* split-K: about the fewest steps of k in a partial product; it is not used if k is less than twice this */
    SPLIT_K_MAX = 16,      /* split-K makes at most this many partial products */
    SPLIT_K_C = 5000,      /* a product with more elements of C does not use split-K */
    LARGE_FLOPS = 1500000, /* a product with fewer operations does not use split-K; one with as many or more is never ONE_TASK (own.c) */
    BLIS_MN = 384,         /* in mode "auto", BLIS computes a product only if m and n are at least this (blis_is_better in dispatch.c) */
    BLIS_K = 512,          /* in mode "auto", BLIS computes a product only if k is at least this */
    BLIS_GRAIN = 96, /* the first row (or column) of a task for BLIS is a multiple of this, and so of most sizes of BLIS's register tiles */

    /* blocks and tasks */
    MC = 112,               /* more rows than this are divided into tasks; the packed A of this many rows fits the second-level cache */
    NC_PER_THREAD = 512,    /* the steps of k in a chunk are chosen as if the chunk had at most this many columns per thread */
    PACKED_B = 1 << 18,     /* limit of packed B per thread, in elements, if the size of the second-level cache is unknown */
    PACKED_B_MIN = 1 << 15, /* if that size is known, the limit of packed B per thread is half of the cache, but at least this */
    PACKED_B_MAX = 1 << 19, /* if that size is known, the limit of packed B per thread is half of the cache, but at most this */
    TASK_NS = 4000,         /* the least cost of a task */
    TASKS_MAX = 128,        /* a product should have at most this many tasks; it has more if they would be too large */
    TASKS_PER_THREAD = 6,   /* a product with more than MC rows should have at most this many tasks per thread */
    EVEN_TASKS = 16,        /* below this many tasks per thread, the number of tasks is made a multiple of the threads, if possible */
    THREAD_PANELS = 4,      /* threads work on different columns only if each has at least this many panels of B */
    TASK_TILES = 2,         /* if the rows of C are divided into tasks, the fewest rows of register tiles in a task */
    TASK_N = 2048 / sizeof(wf_real), /* the most columns of a task in a product with more than MC rows */
    PACK_TASK = 8192,                /* a packing task packs about this many elements of B */
    PACK_TASK_RUNS = 4,     /* if rows of B are contiguous, a packing task packs this many times as much, so it reads longer runs */
    SKINNY_TASKS = 16,      /* the most tasks per thread in a skinny product */
    SKINNY_NN_TASK_N = 256, /* a task of skinny_nn should have at least this many columns */
    REDUCE_TASKS = 8,       /* split-K: the most tasks that add the partial products */
    FLOPS_PER_NS = 150,     /* for estimates of cost: operations of one core per nanosecond, less than its peak */
    ELEMENTS_PER_NS = 6,    /* for estimates of cost: elements that one core reads or writes per nanosecond */

    /* packing */
    PACK_K = 16,        /* if columns of A (or rows of B) are contiguous, packing goes over all panels with this many steps at a time */
    PACK_N = 256,       /* if rows of B are contiguous, a task packs up to this many columns of B at a time */
    PACK_M_MIN = 4,     /* for fewer rows of C, A is read in place, and so is B if its rows are contiguous */
    STACK_B = 2048,     /* a packed B of at most this many elements lies on the stack */
    ALIAS_BYTES = 4096, /* rows of A at a distance of a multiple of this many bytes compete for the same places in the first-level cache */
    ALIAS_PANELS = 4, /* rows of A that compete for the same places in the cache are packed if a task has at least this many panels of B */
    IN_PLACE_BYTES = 1024, /* a B whose rows are contiguous and have at most this many bytes is read in place */

    /* prefetch */
    CACHE_LINE = 64,      /* bytes of a cache line */
    PREFETCHES = 3,       /* the most areas of memory that are prefetched during a cache block */
    STREAM_N = 512,       /* columns of B that are multiplied by all rows of A before the next columns; they fit the second-level cache */
    FAR_K = 48,           /* a register tile with at least this many steps of k prefetches its C */
    FAR_A = 8192,         /* a cache block with at least this many elements of A prefetches the next rows of A */
    FAR_B = 1 << 16,      /* tasks prefetch B if the whole B has at least this many elements */
    PACK_LINES_AHEAD = 4, /* if k is contiguous, packing prefetches this many cache lines ahead */
    PACK_K_AHEAD = 16,    /* if the columns of A (or rows of B) are contiguous, packing with masks prefetches this many steps of k ahead */

    /* skinny products */
    NT_VECTORS = 2,                      /* skinny_nt computes this many vectors of columns together for up to NT_PAIRED_M rows */
    NT_PAIRED_M = 3,                     /* skinny_nt computes one vector of columns at a time for more rows than this */
    NT_SHORT_K = 4096 / sizeof(wf_real), /* skinny_nt prefetches the next columns of B if these are at most this many elements apart */
    NT_K_AHEAD = 1024 / sizeof(wf_real), /* skinny_nt prefetches the same columns, this many steps of k ahead, if they are further apart */
    NN_K = 8,                            /* skinny_nn computes this many steps of k together */
    NN_SUMS = 16384 / sizeof(wf_real),   /* skinny_nn keeps this many partial sums at a time; they fit the first-level cache */

    /* batches, and BLIS */
    BATCH_FLOPS = 20000000,     /* if each product of a batch has at least this many operations, they run one by one, each on all threads */
    BATCH_TASK_FLOPS = 1000000, /* smaller products of a batch are grouped into tasks of up to this many operations */
    BATCH_NS = 20,              /* for estimates of cost: each product of a batch costs this much in addition to its arithmetic */
    BATCH_FLOPS_PER_NS = 60,    /* for estimates of cost: operations of one core per nanosecond in a batch, and in BLIS */
    BLIS_TASK_FLOPS = 4000000,  /* BLIS computes a product with fewer operations on one thread */
    BLIS_WARM_UP = 144,         /* m, n and k of a product at the start, which only makes BLIS allocate its buffers */
};

#ifdef WF_ISA
/* Constants for the instruction set of this compilation; they change only the time. MR, SKINNY_M and REGISTERS mean the same in both
 * branches. */
#if defined WF_ISA_AVX512
enum { MR = 14, SKINNY_M = 12, REGISTERS = 32 };
#define MASKS_ARE_FREE 1 /* a masked load or store costs as much as a whole one */
#else
enum {
    MR = 6,                                               /* rows of a register tile */
    SKINNY_M = 8,                                         /* the most rows of a skinny product */
    REGISTERS = V_LANES * sizeof(wf_real) == 64 ? 32 : 16 /* number of vector registers */
};
#define MASKS_ARE_FREE 0
#endif
enum {
    NR_VECTORS = 2,                      /* vectors in a row of a register tile */
    NR = NR_VECTORS * V_LANES,           /* columns of a register tile */
    LINE = CACHE_LINE / sizeof(wf_real), /* elements of a cache line */
    A7 = 7,                              /* the second base pointer of A points to row 7; a_row_offset works for no other value */
};
#endif

/* ---- Kernels, which are compiled once per instruction set: micro_kernel.c, pack.c, skinny_nt.c, skinny_nn.c and
 * skinny_bf16.c. */

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

struct conv_band; /* defined in core/conv/patches.h */
struct conv_tiles;
struct conv_sums;
struct gemm_isa {
    int mr;                                              /* rows of a register tile */
    int nr;                                              /* columns of a register tile */
    int lanes;                                           /* elements of a vector */
    int skinny_m;                                        /* the most rows of a skinny product */
    void (*reference)(const struct gemm_cache_block *b); /* for tests; the block must be one register tile at most */
    void (*macro_kernel)(const struct gemm_cache_block *b);
    /* Pack w rows of A (columns of B) with k steps into one panel: out[p * width + i] = s[i * is + p * ps] for i < w and p < k. `width`
     * is MR for A, and NR or V_LANES for B; elements with i >= w are 0. */
    void (*pack_a_panel)(int64_t w, int64_t k, const wf_real *s, int64_t is, int64_t ps, wf_real *out);
    void (*pack_b_panel)(int64_t w, int64_t k, const wf_real *s, int64_t is, int64_t ps, wf_real *out);
    void (*pack_b_vector)(int64_t w, int64_t k, const wf_real *s, int64_t is, int64_t ps, wf_real *out);
    /* Skinny products: they compute up to skinny_m rows over all of k without packing. skinny_nt requires that k is contiguous in B
     * (b_rs 1) and, if there are several rows, in A (a_cs 1). skinny_nn requires that rows of B (b_cs 1) and of C (c_cs 1) are
     * contiguous. The kernels take alpha, beta and bias from the epilogue, not from g. */
    void (*skinny_nt)(const struct wf_gemm *g, const struct gemm_epilogue *epilogue);
    void (*skinny_nn)(const struct wf_gemm *g, const struct gemm_epilogue *epilogue);
    /* core/conv/direct_kernel.c: a padded copy of x, outputs computed from it, and sums for the gradient of the weight; see
     * core/conv/patches.h. The copy needs a vector more of memory at its end. */
    void (*conv_pad)(const struct conv_band *band, wf_real *out);
    void (*conv_tiles)(const struct conv_tiles *tiles);
    void (*conv_sums)(const struct conv_sums *sums);
#ifndef WF_DOUBLE
    /* pack_b_panel for a B in bf16; and skinny_nt for a B in bf16, or for bf16's arithmetic if this instruction set has it (skinny_bf16
     * below). `rounded` has room for m rows of k floats, where k is rounded up to BF16_K; only bf16's arithmetic uses it. */
    void (*pack_b_panel_bf16)(int64_t w, int64_t k, const uint16_t *s, int64_t is, int64_t ps, float *out);
    void (*skinny_bf16)(const struct wf_gemm *g, const struct gemm_epilogue *epilogue, float *rounded);
    bool has_skinny_bf16;
#endif
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

/* The address of an element of B, `offset` elements from the first; read it as wf_real only if B is stored so. */
static inline const wf_real *gemm_b_at(const struct wf_gemm *g, int64_t offset)
{
    const int64_t bytes = g->b_stored == WF_BF16 ? 2 : sizeof(wf_real);
    return (const wf_real *)((const char *)g->b + offset * bytes);
}

/* The area of n rows of A (or columns of B), which are n_step elements apart, with k steps of k, which are k_step elements apart. The
 * area is empty if neither step is 1. */
static inline struct gemm_prefetch gemm_prefetch_of(const wf_real *at, int64_t n, int64_t n_step, int64_t k, int64_t k_step)
{
    return n_step == 1 ? gemm_prefetch(at, n, k_step, k) : gemm_prefetch(at, k, n_step, k_step == 1 ? n : 0);
}

/* The same for n columns and k steps of B from an element on. Two numbers in bf16 count as one element. */
static inline struct gemm_prefetch gemm_prefetch_b(const struct wf_gemm *g, int64_t offset, int64_t n, int64_t k)
{
    const wf_real *at = gemm_b_at(g, offset);
    if (g->b_stored != WF_BF16)
        return gemm_prefetch_of(at, n, g->b_cs, k, g->b_rs);
    return g->b_cs == 1 ? gemm_prefetch(at, n / 2, g->b_rs / 2, k) : gemm_prefetch(at, k / 2, g->b_cs / 2, g->b_rs == 1 ? n : 0);
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
void WF_GEMM(pack_b_vector)(int64_t w, int64_t k, const wf_real *s, int64_t is, int64_t ps, wf_real *out);
void WF_GEMM(skinny_nt)(const struct wf_gemm *g, const struct gemm_epilogue *epilogue);
void WF_GEMM(skinny_nn)(const struct wf_gemm *g, const struct gemm_epilogue *epilogue);
void WF_GEMM(conv_pad)(const struct conv_band *band, wf_real *out);
void WF_GEMM(conv_tiles)(const struct conv_tiles *tiles);
void WF_GEMM(conv_sums)(const struct conv_sums *sums);
#ifndef WF_DOUBLE
void WF_GEMM(pack_b_panel_bf16)(int64_t w, int64_t k, const uint16_t *s, int64_t is, int64_t ps, float *out);
void WF_GEMM(skinny_bf16)(const struct wf_gemm *g, const struct gemm_epilogue *epilogue, float *rounded);
#endif
extern const struct gemm_isa WF_GEMM(isa);
#endif

/* ---- BLIS and Weft's own kernels. */

/* Which kernels compute products, as the environment variable WEFT_GEMM or wf_gemm_use asks. wf_gemm_chosen is defined in dispatch.c;
 * runtime.c sets it while no other thread computes. */
enum gemm_mode { GEMM_AUTO, GEMM_BLIS, GEMM_OWN };
extern enum gemm_mode wf_gemm_chosen;

/* blis.c, the only file that includes BLIS's header. */
/* Sets BLIS's architecture for the instruction set in use, and initialises BLIS and its buffers. wf_init calls it once, before any
 * product, when the threads have started and wait for work. It fails if the environment asks BLIS for an architecture that BLIS or the
 * processor lacks; then it may be called again. */
wf_status wf_blis_start(const char *isa, wf_error *error);
/* Whether BLIS supports the strides of the product; on other strides BLIS ends the process. m, n, k > 0. */
bool wf_blis_can(const struct wf_gemm *g);
/* Computes the product with BLIS: on the calling thread if `serial` or if the caller is in a body of wf_parallel, else on the team. */
void wf_blis_gemm(const struct wf_gemm *g, bool serial);

struct product;
/* own.c. Sizes the blocks for the caches of this processor, which changes no sum. wf_init calls it before any product. */
void wf_gemm_own_start(void);
/* The product with Weft's own kernels. If `serial`, it runs on the calling thread with the same bits. m, n, k > 0. Returns false if
 * there is no memory. */
bool wf_gemm_own(const struct wf_gemm *g, bool serial) WF_CHECKED;
/* Whether the product, as wf_gemm_by_rows gives it, has few rows and strides for a skinny kernel; and the product with that kernel. */
bool wf_gemm_is_skinny(const struct wf_gemm *g);
bool wf_gemm_skinny(const struct product *p, bool serial) WF_CHECKED;
/* Two independent products: neither may read or write what the other writes. Their tasks run in one parallel region, unless one of
 * the products has two stages (SHARED_B and SPLIT_K in own.c) or both are small. The bits are those of wf_gemm_own. */
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

/* own.c. The product, or its transpose if that makes rows of C contiguous; and whether it is the transpose. */
bool wf_gemm_is_transposed(const struct wf_gemm *g);
struct product wf_gemm_by_rows(const struct wf_gemm *given);

/* A task: rows m0 .. m1 - 1 and columns n0 .. n1 - 1 of C, with steps k0 .. k1 - 1 of k. */
struct gemm_task {
    int64_t m0, m1, n0, n1, k0, k1;
};

/* task.c. Whether A is read in place by a task with `columns` columns of C, and B by a task with `rows` rows of C. */
bool wf_gemm_a_in_place(const struct wf_gemm *g, int64_t columns);
bool wf_gemm_b_in_place(const struct wf_gemm *g, int64_t rows);
/* Scratch memory of this thread for `rows` packed rows of A with k steps; NULL if there is no memory. */
wf_real *wf_gemm_packed_a(int64_t rows, int64_t k);
/* The cache block of a task for steps k0 .. k1 - 1, without its B. Its epilogue multiplies C by beta only in the first block of k, and adds
 * the bias only in the last one; the other blocks add to C. */
struct gemm_cache_block wf_gemm_cache_block(const struct product *p, const struct gemm_task *task, int64_t k0, int64_t k1);
/* Packs the A of a cache block into `packed`, and makes the block read A there. */
void wf_gemm_pack_a(struct gemm_cache_block *b, wf_real *packed);
/* Packs k steps of n columns of B into panels; the first of these elements is `offset` elements after the first of B. */
void wf_gemm_pack_b(const struct wf_gemm *g, int64_t n, int64_t k, int64_t offset, wf_real *panels);
/* Computes a task on the calling thread, which packs A and B for it. Returns false if there is no memory. */
bool wf_gemm_task(const struct product *p, const struct gemm_task *task) WF_CHECKED;

/* split_k.c: k is divided into partial products, which are added in order. wf_gemm_split_k_pays tells whether that is faster. The answer
 * depends on m, so it is always false if rows_alone is set: otherwise the bits of a row would depend on the number of rows. wf_gemm_split_k
 * computes the product, and returns false if there is no memory; `cost` is that of wf_gemm_stages. */
bool wf_gemm_split_k_pays(const struct wf_gemm *g);
bool wf_gemm_split_k(const struct product *p, double cost, bool serial) WF_CHECKED;

/* stages.c: runs one or two stages in one parallel region; the tasks of a stage do not wait for each other. The second stage waits for the
 * end of the first unless the stages are independent. Each thread first takes its own share of a stage's tasks, in order, and then tasks of
 * other shares. If a thread's shares of the two stages cover the same columns, the B that it packed in the first stage is in its own cache
 * in the second. */
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
