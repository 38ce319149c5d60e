/* SPDX-License-Identifier: MIT */
/* Products under memory shortage: whichever allocation fails, the product fails or has the bits that it has otherwise. */
#include "check_weft.h"

#include <weft/compute.h>

static const char *const isas[] = {"avx512", "avx2", "base"};

static wf_real *numbers(int64_t n, uint64_t seed)
{
    wf_real *x = malloc((size_t)n * sizeof *x);
    ck_assert_ptr_nonnull(x);
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        x[i] = (wf_real)((double)(seed >> 40) / (1 << 23) - 1);
    }
    return x;
}

enum form { NN, NT, TN };

struct problem {
    int64_t m, n, k, count;
    enum form form;
    bool rows_alone;
};

/* Each way of own.c: packed chunks of B over two chunks of k, and over two chunks of n; independent tasks; B in place; split-K; less than a
 * task; batches of small products and of large ones. The first has rows of A whole pages apart, which are packed. */
static const struct problem problems[] = {
    {120, 264, 3072, 1, NN}, {120, 264, 3072, 1, TN}, {120, 264, 3072, 1, NN, true}, {150, 1100, 1024, 1, NT},
    {60, 300, 600, 1, NT},   {60, 300, 600, 1, TN},   {300, 100, 530, 1, TN},        {40, 40, 5000, 1, NT},
    {40, 40, 5000, 1, TN},   {70, 100, 100, 1, NT},   {70, 100, 100, 1, NT, true},   {90, 80, 70, 1, TN},
    {40, 45, 200, 9, NT},    {40, 45, 200, 9, TN},    {200, 260, 300, 3, NT},        {200, 260, 300, 3, TN, true},
};

struct operands {
    wf_real *a, *b, *before, *c, *bias;
    int64_t elements; /* of c */
};

static wf_status multiply(const struct problem *p, const struct operands *o, wf_real *c)
{
    const bool ta = p->form == TN, tb = p->form == NT;
    const struct wf_gemm g = {p->m, p->n,          p->k,          1, p->form == TN, o->a, ta ? 1 : p->k, ta ? p->m : 1,
                              o->b, tb ? 1 : p->n, tb ? p->k : 1, c, p->n,          1,    o->bias,       p->rows_alone};
    memcpy(c, o->before, (size_t)o->elements * sizeof *c);
    return wf_gemm_batched(&g, &(struct wf_gemm_batch){1, {p->count}, {p->m * p->k}, {p->n * p->k}, {p->m * p->n}});
}

/* The number of products that failed. */
static int fail_each_allocation(const struct problem *p, const struct operands *o, const char *what)
{
    const size_t bytes = (size_t)o->elements * sizeof(wf_real);
    wf_real *want = malloc(bytes);
    wf_scratch_drop();
    const int64_t before = wf_alloc_count();
    ck_assert_int_eq(multiply(p, o, want), WF_OK);
    const int64_t allocations = wf_alloc_count() - before;
    int failed = 0;
    for (int64_t n = 0; n < allocations + 1; n++) {
        wf_scratch_drop();
        wf_alloc_fail_after(n);
        const wf_status status = multiply(p, o, o->c);
        wf_alloc_fail_after(-1);
        failed += status != WF_OK;
        if (status != WF_OK ? status != WF_ERR_MEMORY : memcmp(o->c, want, bytes) != 0)
            ck_abort_msg("%s, m %d n %d k %d x%d form %d, allocation %d of %d failed: status %d%s", what, (int)p->m, (int)p->n, (int)p->k,
                         (int)p->count, p->form, (int)n, (int)allocations, status, status == WF_OK ? " with other bits" : "");
    }
    /* and the next one finds all in order */
    ck_assert_int_eq(multiply(p, o, o->c), WF_OK);
    ck_assert_int_eq(memcmp(o->c, want, bytes), 0);
    free(want);
    return failed;
}

static int fail_all(int threads, const char *isa, const char *mode)
{
    char what[64];
    int failed = 0;
    snprintf(what, sizeof what, "%s %s, %d threads", isa, mode, threads);
    ck_ok(wf_isa_use(isa, error));
    ck_ok(wf_gemm_use(mode, error));
    ck_ok(wf_set_threads(threads, error));
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        const struct problem *p = &problems[i];
        const int64_t elements = p->m * p->n * p->count;
        struct operands o = {numbers(p->m * p->k * p->count, 1),
                             numbers(p->k * p->n * p->count, 2),
                             numbers(elements, 3),
                             malloc((size_t)elements * sizeof(wf_real)),
                             numbers(p->n, 4),
                             elements};
        failed += fail_each_allocation(p, &o, what);
        free(o.a), free(o.b), free(o.before), free(o.c), free(o.bias);
    }
    return failed;
}

static void fail_all_on(int threads)
{
    ck_ok(wf_init(error, .threads = threads));
    const char *best = NULL;
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++) {
        /* The paths are those of all sets; `base` takes ten times as long, so once is enough. */
        if (!wf_isa_supported(isas[i]) || (best && (sizeof(wf_real) == 8 || sanitized())))
            continue;
        best = best ? best : isas[i];
        int failed = fail_all(threads, isas[i], "own");
        ck_assert_msg(failed > 10, "%s: %d products failed", isas[i], failed);
    }
    int failed = fail_all(threads, best, "blis");
    ck_assert_msg(failed > 2, "%d products failed", failed); /* those under the row rule: BLIS has memory of its own for the others */
}

START_TEST(one_thread)
{
    fail_all_on(1);
}
END_TEST

START_TEST(two_threads)
{
    fail_all_on(2);
}
END_TEST

/* What a test above relies on: without scratch the first product allocates, and with it none. */
START_TEST(scratch_is_dropped)
{
    const struct problem *p = &problems[0];
    ck_ok(wf_init(error, .threads = 2));
    ck_ok(wf_gemm_use("own", error));
    struct operands o = {numbers(p->m * p->k, 1), numbers(p->k * p->n, 2), numbers(p->m * p->n, 3),
                         numbers(p->m * p->n, 4), numbers(p->n, 5),        p->m * p->n};
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(multiply(p, &o, o.c), WF_OK);
    const int64_t live = wf_alloc_live();
    ck_assert_int_gt(live, 0);
    wf_scratch_drop();
    ck_assert_int_eq(wf_alloc_live(), 0);
    ck_assert_int_eq(multiply(p, &o, o.c), WF_OK);
    ck_assert_int_gt(wf_alloc_live(), 0);
    free(o.a), free(o.b), free(o.before), free(o.c), free(o.bias);
}
END_TEST

WF_TEST_MAIN("gemm_memory", one_thread, two_threads, scratch_is_dropped)
