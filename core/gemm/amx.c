/* SPDX-License-Identifier: MIT */
/* bf16's arithmetic on AMX, the matrix unit of some x86 processors: permission, tile registers, the macro-kernel. */
#include <weft/internal/runtime.h>

#ifndef WF_DOUBLE
#include "../tiles.h"
#include "bf16.h"

#if defined __x86_64__ && defined __linux__
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    CPUID_FEATURES = 7,
    AMX_BF16 = 1 << 22, /* of EDX */
    AMX_TILE = 1 << 24,
    XSAVE_TILES = 3 << 17,        /* of XCR0: the system saves tile registers */
    ARCH_REQ_XCOMP_PERM = 0x1023, /* arch_prctl */
    XFEATURE_XTILEDATA = 18,
    TILES = 8,
    FETCHED_ROWS = 2, /* speed: rows of the next C that are fetched in a step */
};

/* The memory format of LDTILECFG. */
static const struct __attribute__((packed)) {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} config __attribute__((aligned(64))) = {
    .palette = 1,
    .row_bytes = {TILE_ROW, TILE_ROW, TILE_ROW, TILE_ROW, TILE_ROW, TILE_ROW, TILE_ROW, TILE_ROW},
    .rows = {BF16_LINES, BF16_LINES, BF16_LINES, BF16_LINES, BF16_LINES, BF16_LINES, BF16_LINES, BF16_LINES},
};

static bool supported(void)
{
    unsigned a, b, c, d, low, high;
    if (!__get_cpuid_count(CPUID_FEATURES, 0, &a, &b, &c, &d) || !(d & AMX_BF16) || !(d & AMX_TILE))
        return false;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
        return false;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low & XSAVE_TILES) == XSAVE_TILES;
}

static bool permitted(void)
{
    return supported() && syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}

void wf_amx_enter(void)
{
    __asm__ volatile("ldtilecfg %0" : : "m"(config));
}

void wf_amx_leave(void)
{
    __asm__ volatile("tilerelease");
}

/* The C of the micro-kernel's next call. Its lines are fetched for writing while this call computes: without that a store waits for
 * memory, which costs as much as the arithmetic. */
struct next_c {
    const float *at;
    int64_t rs, rows; /* 0 rows: nothing is fetched */
};

static inline __attribute__((always_inline)) void fetch_c(const struct next_c *next, int64_t row)
{
    if (row < next->rows) {
        const float *const at = next->at + row * next->rs;
        __asm__ volatile("prefetchw %0" : : "m"(*at));
        __asm__ volatile("prefetchw %0" : : "m"(at[CACHE_LINE / sizeof(float)]));
    }
}

/* Up to 2 x 2 tiles of C. */
struct micro_tile {
    int64_t steps;
    const wf_bf16 *a, *b;
    const float *before; /* as in bf16_block */
    int64_t before_rs;
    float *sum;
    int64_t sum_rs;
    struct next_c next;
};

#define TILE_BEGIN(tile, row, column)                                                                                                      \
    do {                                                                                                                                   \
        if (t->before)                                                                                                                     \
            TILE_LOAD(tile, t->before + (row)*BF16_LINES * t->before_rs + (column)*BF16_LINES, t->before_rs * (int64_t)sizeof(float));     \
        else                                                                                                                               \
            TILE_ZERO(tile);                                                                                                               \
    } while (0)
#define TILE_END(tile, row, column)                                                                                                        \
    TILE_STORE(tile, t->sum + (row)*BF16_LINES * t->sum_rs + (column)*BF16_LINES, t->sum_rs * (int64_t)sizeof(float))

/* what(tile register, row, column) for the tiles of C that there are. */
#define EACH_TILE(what)                                                                                                                    \
    do {                                                                                                                                   \
        what(0, 0, 0);                                                                                                                     \
        if (columns)                                                                                                                       \
            what(1, 0, 1);                                                                                                                 \
        if (rows)                                                                                                                          \
            what(2, 1, 0);                                                                                                                 \
        if (rows && columns)                                                                                                               \
            what(3, 1, 1);                                                                                                                 \
    } while (0)

/* The sums stay in tile registers 0 to 3 over all steps. `rows`, `columns`: whether there is a second tile down, across. A step loads all
 * its tiles before it multiplies: a load between the products waits for them. */
static inline __attribute__((always_inline)) void multiply(const bool rows, const bool columns, const struct micro_tile *t)
{
    const int64_t panel = t->steps * BF16_TILE;
    const wf_bf16 *a = t->a, *b = t->b;
    int64_t fetched = 0;
    EACH_TILE(TILE_BEGIN);
    for (const wf_bf16 *const end = a + panel; a < end; a += BF16_TILE, b += BF16_TILE) {
        for (int64_t i = 0; i < FETCHED_ROWS; i++)
            fetch_c(&t->next, fetched++);
        TILE_LOAD(4, a, TILE_ROW);
        TILE_LOAD(6, b, TILE_ROW);
        if (columns)
            TILE_LOAD(7, b + panel, TILE_ROW);
        if (rows)
            TILE_LOAD(5, a + panel, TILE_ROW);
        TILE_MULTIPLY(0, 4, 6);
        if (columns)
            TILE_MULTIPLY(1, 4, 7);
        if (rows)
            TILE_MULTIPLY(2, 5, 6);
        if (rows && columns)
            TILE_MULTIPLY(3, 5, 7);
    }
    EACH_TILE(TILE_END);
    for (; fetched < t->next.rows; fetched++)
        fetch_c(&t->next, fetched);
}

/* The C after the one at row i and column j: below it, or at the top of the next columns. */
static struct next_c after(const struct bf16_block *b, int64_t i, int64_t j)
{
    const bool below = i + BF16_MR < b->m;
    const int64_t row = below ? i + BF16_MR : 0, column = below ? j : j + BF16_MR;
    if (column >= b->n || b->c_cs != 1)
        return (struct next_c){0};
    return (struct next_c){b->c + row * b->c_rs + column, b->c_rs, WF_MIN(b->m - row, BF16_MR)};
}

void wf_amx_block(const struct bf16_block *b)
{
    float copy[BF16_MR * BF16_MR] __attribute__((aligned(64)));
    const struct gemm_epilogue *e = &b->epilogue;
    const bool plain = e->alpha == 1 && e->beta == 0 && !e->bias_n && !e->bias_m && b->c_cs == 1;
    const bool far =
        b->far && bf16_isa()->store_far && (uintptr_t)b->c % CACHE_LINE == 0 && b->c_rs * (int64_t)sizeof(float) % CACHE_LINE == 0;
    const int64_t panel = b->steps * BF16_TILE;
    for (int64_t j = 0; j < b->n; j += BF16_MR)
        for (int64_t i = 0; i < b->m; i += BF16_MR) {
            const int64_t m = WF_MIN(b->m - i, BF16_MR), n = WF_MIN(b->n - j, BF16_MR);
            const bool whole = plain && m % BF16_LINES == 0 && n % BF16_LINES == 0, past_caches = far && n == BF16_MR && whole;
            const bool direct = whole && !past_caches;
            const struct micro_tile t = {
                .steps = b->steps,
                .a = b->a + i / BF16_LINES * panel,
                .b = b->b + j / BF16_LINES * panel,
                .before = b->before ? b->before + i * b->before_rs + j : NULL,
                .before_rs = b->before_rs,
                .sum = direct ? b->c + i * b->c_rs + j : copy,
                .sum_rs = direct ? b->c_rs : BF16_MR,
                .next = past_caches ? (struct next_c){0} : after(b, i, j),
            };
            if (m > BF16_LINES && n > BF16_LINES)
                multiply(true, true, &t);
            else if (m > BF16_LINES)
                multiply(true, false, &t);
            else if (n > BF16_LINES)
                multiply(false, true, &t);
            else
                multiply(false, false, &t);
            if (past_caches)
                bf16_isa()->store_far(m, copy, b->c + i * b->c_rs + j, b->c_rs);
            else if (!direct)
                bf16_isa()->store(b, m, n, i, j, t.sum, t.sum_rs);
        }
}
#else
static bool permitted(void)
{
    return false;
}

void wf_amx_enter(void) {}

void wf_amx_leave(void) {}

void wf_amx_block(const struct bf16_block *b)
{
    (void)b;
}
#endif
#else
static bool permitted(void)
{
    return false;
}
#endif

static bool in_use;

void wf_amx_use(bool wanted)
{
    in_use = wanted && permitted();
}

bool wf_amx(void)
{
    return in_use;
}
