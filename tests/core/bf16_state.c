/* SPDX-License-Identifier: MIT */
/* Products in bf16 in a program's life: they leave the mode of the floating-point unit and the tile registers as a program expects them,
 * and have the same bits in any mode, under signals on a small stack, beside fork, and after exec. */
#include "products.h"

#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined __SSE__
#include <xmmintrin.h>
#endif

#include <weft/internal/runtime.h>

enum { M = 150, N = 130, K = 170, C = M * N };

static void start(int threads)
{
    ck_ok(wf_init(error, .threads = threads));
}

/* A product with the same numbers each time, and its bits when nothing disturbs it. */
static struct wf_gemm subject(enum wf_precision precision)
{
    state = 88172645463325252u;
    struct wf_gemm g = product(M, N, K, NT, 1);
    g.precision = precision;
    return g;
}

static float *undisturbed(const struct wf_gemm *g)
{
    ck_assert_int_eq(wf_gemm(g), WF_OK);
    return copy_of(g->c, C);
}

static bool again(const struct wf_gemm *g, const float *want)
{
    memset(g->c, 0, C * sizeof *want);
    return wf_gemm(g) == WF_OK && memcmp(g->c, want, C * sizeof *want) == 0;
}

#if defined __SSE__
/* ---- The mode of the floating-point unit. */
enum { MODE = 0xffc0, FLUSH = 0x8040, UNMASKED = 0x1f80 & ~_MM_MASK_INVALID & ~_MM_MASK_DIV_ZERO & ~_MM_MASK_UNDERFLOW };
static const unsigned modes[] = {0x1f80, 0x1f80 | FLUSH, 0x1f80 | _MM_ROUND_TOWARD_ZERO, 0x1f80 | _MM_ROUND_UP, UNMASKED};
enum { MODES = sizeof modes / sizeof *modes };

/* The plain C of "base" has no code for the mode of a processor: its bits depend on how the caller rounds, and it raises exceptions. */
static bool any_mode(void)
{
    return strcmp(wf_isa(), "base") != 0;
}

/* Both precisions, in each mode: bf16 has the same bits and leaves the mode; float's bits are as before a product in bf16. */
struct mode_test {
    struct wf_gemm exact, rounded[8]; /* one for each body: they write to C */
    const float *want;
    int wrong[8];
};

static int check_modes(struct wf_gemm *exact, const struct wf_gemm *rounded, const float *want)
{
    const unsigned before = _mm_getcsr();
    int wrong = 0;
    for (int i = 0; i < (any_mode() ? MODES : MODES - 1); i++) {
        float *first = exact ? malloc(C * sizeof *first) : NULL;
        _mm_setcsr(modes[i] == UNMASKED ? modes[0] : modes[i]);
        if (exact) {
            wrong |= wf_gemm(exact) != WF_OK;
            memcpy(first, exact->c, C * sizeof *first);
        }
        _mm_setcsr(modes[i]);
        memset(rounded->c, 0, C * sizeof *want);
        wrong |= wf_gemm(rounded) != WF_OK;
        if ((_mm_getcsr() & MODE) != modes[i])
            wrong |= 2 << i;
        _mm_setcsr(modes[i] == UNMASKED ? modes[0] : modes[i]);
        if (any_mode() && memcmp(rounded->c, want, C * sizeof *want) != 0)
            wrong |= 0x100 << i;
        if (exact) {
            wrong |= wf_gemm(exact) != WF_OK;
            if (memcmp(exact->c, first, C * sizeof *first) != 0)
                wrong |= 0x10000 << i;
        }
        _mm_setcsr(before);
        free(first);
    }
    return wrong;
}

static void in_a_worker(void *ctx, int64_t block)
{
    struct mode_test *t = ctx;
    t->wrong[block] = check_modes(NULL, &t->rounded[block], t->want);
}

START_TEST(modes_are_the_callers)
{
    start(2);
    EACH_ISA
    {
        static struct mode_test t;
        t.exact = subject(WF_PRECISION_REAL);
        for (int64_t i = 0; i < M * K; i++)
            ((float *)(uintptr_t)t.exact.a)[i] *= i / K % 2 ? 0x1p-125f : 1; /* half of C's rows are denormal or near it */
        for (int i = 0; i < 8; i++) {
            t.rounded[i] = t.exact;
            t.rounded[i].c = room_of(C);
            t.rounded[i].precision = WF_PRECISION_BF16;
        }
        t.want = undisturbed(&t.rounded[0]);
        const int wrong = check_modes(NULL, &t.rounded[0], t.want);
        ck_assert_msg(wrong == 0, "%s: modes 0x%x", isa, (unsigned)wrong);
        ck_ok(wf_set_threads(1, error)); /* a worker computes float's products in its own mode */
        const int alone = check_modes(&t.exact, &t.rounded[0], t.want);
        ck_assert_msg(alone == 0, "%s: modes 0x%x on one thread", isa, (unsigned)alone);
        ck_ok(wf_set_threads(2, error));
        wf_parallel(8, 1e9, in_a_worker, &t);
        for (int i = 0; i < 8; i++)
            ck_assert_msg(t.wrong[i] == 0, "%s: modes 0x%x in body %d", isa, (unsigned)t.wrong[i], i);
        free_case();
    }
}
END_TEST
#define FOR_SSE modes_are_the_callers,
#else
#define FOR_SSE
#endif

/* ---- Signals. */
static volatile sig_atomic_t signals;

static void count_signal(int number)
{
    (void)number;
    signals++;
}

/* Has signals handled on a stack of `bytes`, and computes until some have come. False if the system wants a larger stack. */
__attribute__((unused)) static bool compute_under_signals(size_t bytes, bool send)
{
    const stack_t stack = {.ss_sp = malloc(bytes), .ss_size = bytes};
    ck_assert_ptr_nonnull(stack.ss_sp);
    if (sigaltstack(&stack, NULL) != 0) {
        free(stack.ss_sp);
        return false;
    }
    start(2); /* asks for AMX, with this stack */
    const struct wf_gemm g = subject(WF_PRECISION_BF16);
    const float *want = undisturbed(&g);
    const struct sigaction action = {.sa_handler = count_signal, .sa_flags = SA_ONSTACK | SA_RESTART};
    struct itimerval timer = {{0, 1000}, {0, 1000}};
    ck_assert_int_eq(sigaction(SIGALRM, &action, NULL), 0);
    if (send)
        ck_assert_int_eq(setitimer(ITIMER_REAL, &timer, NULL), 0);
    for (int i = 0; send ? signals < 50 : i < 50; i++)
        ck_assert_msg(again(&g, want), "another product after %d signals", (int)signals);
    timer = (struct itimerval){0};
    setitimer(ITIMER_REAL, &timer, NULL);
    free_case();
    return true;
}

#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__ /* they have a stack for signals already, and need more of it */
/* The smallest stack on which this system delivers a signal, and 1 KiB for the handler. */
START_TEST(signals_on_a_small_stack)
{
    const long least = sysconf(_SC_MINSIGSTKSZ);
    ck_assert_int_gt(least, 0);
    ck_assert(compute_under_signals((size_t)least + 1024, true));
}
END_TEST

/* A stack that is too small for AMX's registers, as programs have that know MINSIGSTKSZ as 2048: the system refuses AMX, and the product is
 * the same without it. No signal is sent, since the registers of AVX-512 do not fit either. */
START_TEST(a_stack_too_small_for_amx)
{
    if (!compute_under_signals(2048, false))
        fprintf(stderr, "skipped: the system refuses an alternate signal stack of 2048 bytes\n");
    else
        ck_assert(!wf_amx());
}
END_TEST
#define FOR_STACKS signals_on_a_small_stack, a_stack_too_small_for_amx,
#else
#define FOR_STACKS
#endif

/* ---- Processes. */

/* The output of a child, a hash in text. */
static void child_says(const char *want, void (*in_child)(int out))
{
    int ends[2], status;
    char got[64] = "";
    ck_assert_int_eq(pipe(ends), 0);
    fflush(NULL);
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        alarm(60); /* a child that hangs */
        in_child(ends[1]);
        _exit(1);
    }
    close(ends[1]);
    for (size_t n = 0; n < sizeof got - 1;) {
        const ssize_t more = read(ends[0], got + n, sizeof got - 1 - n);
        if (more <= 0)
            break;
        n += (size_t)more;
    }
    close(ends[0]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child's status is 0x%x", (unsigned)status);
    ck_assert_str_eq(got, want);
}

/* Computes the product and writes its hash (FNV-1a). Returns whether it could. */
static bool write_hash(char *text)
{
    const struct wf_gemm g = subject(WF_PRECISION_BF16);
    const bool computed = wf_gemm(&g) == WF_OK;
    uint64_t hash = 0xcbf29ce484222325u;
    for (int i = 0; i < (int)(C * sizeof *g.c); i++)
        hash = (hash ^ ((const uint8_t *)g.c)[i]) * 0x100000001b3u;
    snprintf(text, 32, "%016llx", (unsigned long long)hash);
    free_case();
    return computed;
}

#if !defined __SANITIZE_THREAD__ /* it supports no threads in a child */
static void forked(int out)
{
    char text[32];
    if (write_hash(text) && write(out, text, strlen(text)) > 0)
        _exit(0);
}

static _Atomic bool over;

static void *keep_computing(void *g)
{
    while (!over)
        if (wf_gemm(g) != WF_OK)
            abort();
    return NULL;
}

/* A fork while another thread computes in bf16, on the team that parent and child each have. */
START_TEST(fork_beside_products)
{
    char want[32], text[32];
    pthread_t other;
    start(2);
    ck_assert(write_hash(want));
    struct wf_gemm g = product(400, 400, 400, NN, 1);
    g.precision = WF_PRECISION_BF16;
    void *const kept[] = {blocks[0], blocks[1], blocks[2]};
    block_count = 0; /* the thread's */
    ck_assert_int_eq(pthread_create(&other, NULL, keep_computing, &g), 0);
    for (int i = 0; i < 5; i++) {
        child_says(want, forked);
        ck_assert(write_hash(text));
        ck_assert_str_eq(text, want);
    }
    over = true;
    pthread_join(other, NULL);
    for (int i = 0; i < 3; i++)
        free(kept[i]);
}
END_TEST
#define FOR_FORK fork_beside_products,
#else
#define FOR_FORK
#endif

static void executed(int out)
{
    char number[16];
    snprintf(number, sizeof number, "%d", out);
    execl("/proc/self/exe", "product", number, (char *)NULL);
}

/* A program that computes in bf16 starts another that does: the system grants AMX to each. */
START_TEST(exec_after_products)
{
    char want[32];
    start(2);
    ck_assert(write_hash(want));
    child_says(want, executed);
}
END_TEST

/* ---- Tile registers. */
#if defined __x86_64__ && defined __linux__
enum { TILE_STATE = 3 << 17 };

/* Whether tile registers of this thread hold something, configuration or data. Only with AMX: then XGETBV has this form. */
static bool tiles_in_use(void)
{
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
    return low & TILE_STATE;
}

/* A configuration unlike Weft's: tiles of 3 rows of 8 bytes. */
static void configure_tiles(void)
{
    static struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } foreign __attribute__((aligned(64))) = {.palette = 1, .row_bytes = {8, 8, 8}, .rows = {3, 3, 3}};
    __asm__ volatile("ldtilecfg %0\n\ttilezero %%tmm0" : : "m"(foreign));
}

static bool left_behind[8], foreign_first;
static struct wf_gemm products_of[8];

static void product_with_tiles(void *ctx, int64_t block)
{
    (void)ctx;
    if (foreign_first)
        configure_tiles();
    left_behind[block] = wf_gemm(&products_of[block]) != WF_OK || tiles_in_use();
}

/* After a product no tile register is in use, in a worker too; a configuration of the program's own code is no obstacle. */
START_TEST(tiles_are_released)
{
    start(2);
    if (!wf_amx()) {
        fprintf(stderr, "skipped: this processor or system has no AMX\n");
        return;
    }
    for (int foreign = 0; foreign < 2; foreign++) {
        struct wf_gemm g = subject(WF_PRECISION_BF16);
        const float *want = undisturbed(&g);
        ck_assert(!tiles_in_use());
        foreign_first = foreign;
        for (int i = 0; i < 8; i++) {
            products_of[i] = g;
            products_of[i].c = room_of(C);
        }
        wf_parallel(8, 1e9, product_with_tiles, NULL);
        for (int i = 0; i < 8; i++) {
            ck_assert_msg(!left_behind[i], "tiles are in use after product %d", i);
            ck_assert_mem_eq(products_of[i].c, want, C * sizeof *want);
        }
        for (int threads = 2; threads > 0; threads--) {
            ck_ok(wf_set_threads(threads, error));
            if (foreign)
                configure_tiles();
            ck_assert(again(&g, want));
            ck_assert((foreign && threads == 2) ||
                      !tiles_in_use()); /* the other thread can take all blocks: then the program's tiles stay */
        }
        ck_ok(wf_set_threads(2, error));
        free_case();
    }
}
END_TEST
#define FOR_TILES tiles_are_released,
#else
#define FOR_TILES
#endif

int main(int count, char **words)
{
    const TTest *const tests[] = {FOR_SSE FOR_STACKS FOR_FORK FOR_TILES exec_after_products};
    if (count > 0 && strcmp(words[0], "product") == 0) { /* exec_after_products */
        char text[32];
        const int out = count > 1 ? atoi(words[1]) : -1;
        return !(wf_init(NULL, .threads = 2) == WF_OK && write_hash(text) && write(out, text, strlen(text)) > 0);
    }
    return run_tests("bf16_state", tests, (int)(sizeof tests / sizeof *tests));
}
