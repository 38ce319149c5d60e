/* SPDX-License-Identifier: MIT */
/* Products under memory shortage: whichever allocation fails, the product fails or has the bits that it has otherwise. */
#include "products.h"

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

/* A problem's operands, and C before the product. */
struct operands {
    struct wf_gemm g;
    wf_real *before;
};

static struct operands operands_of(const struct problem *p)
{
    struct operands o = {product(p->m, p->n, p->k, p->form, p->count), NULL};
    o.before = copy_of(o.g.c, p->m * p->n * p->count);
    o.g.beta = p->form == TN;
    o.g.bias = random_numbers(p->n);
    o.g.rows_alone = p->rows_alone;
    return o;
}

static wf_status multiply(const struct problem *p, const struct operands *o)
{
    memcpy(o->g.c, o->before, (size_t)(p->m * p->n * p->count) * sizeof *o->g.c);
    return wf_gemm_batched(&o->g, &(struct wf_gemm_batch){1, {p->count}, {p->m * p->k}, {p->n * p->k}, {p->m * p->n}});
}

/* The number of products that failed. */
static int fail_each_allocation(const struct problem *p)
{
    const struct operands o = operands_of(p);
    const int64_t elements = p->m * p->n * p->count;
    wf_scratch_drop();
    const int64_t before = wf_alloc_count();
    ck_assert_int_eq(multiply(p, &o), WF_OK);
    const int64_t allocations = wf_alloc_count() - before;
    const wf_real *want = copy_of(o.g.c, elements);
    int failed = 0;
    for (int64_t n = 0; n < allocations + 1; n++) {
        wf_scratch_drop();
        wf_alloc_fail_after(n);
        const wf_status status = multiply(p, &o);
        wf_alloc_fail_after(-1);
        failed += status != WF_OK;
        expect(status == WF_OK ? same_bits(o.g.c, want, elements) : status == WF_ERR_MEMORY,
               "%s, x%d, %d threads, allocation %d of %d failed: status %d", describe(&o.g), (int)p->count, wf_threads(), (int)n,
               (int)allocations, status);
    }
    /* and the next one finds all in order */
    ck_assert_int_eq(multiply(p, &o), WF_OK);
    ck_assert(same_bits(o.g.c, want, elements));
    free_case();
    return failed;
}

static int fail_all(const char *isa, const char *mode)
{
    int failed = 0;
    ck_ok(wf_isa_use(isa, error));
    ck_ok(wf_gemm_use(mode, error));
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++)
        failed += fail_each_allocation(&problems[i]);
    return failed;
}

static void fail_all_on(int threads)
{
    ck_ok(wf_init(error, .threads = threads));
    const char *best = NULL;
    EACH_ISA
    {
        /* The paths are those of all sets; `base` takes ten times as long, so once is enough. */
        if (best && (sizeof(wf_real) == 8 || sanitized()))
            continue;
        best = best ? best : isa;
        int failed = fail_all(isa, "own");
        ck_assert_msg(failed > 10, "%s: %d products failed", isa, failed);
    }
    int failed = fail_all(best, "blis");
    ck_assert_msg(failed > 2, "%d products failed", failed); /* only products under the row rule: BLIS allocates for the others by itself */
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

/* The tests above rely on this: without scratch the first product allocates, and with it none. */
START_TEST(scratch_is_dropped)
{
    const struct problem *p = &problems[0];
    ck_ok(wf_init(error, .threads = 2));
    ck_ok(wf_gemm_use("own", error));
    const struct operands o = operands_of(p);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(multiply(p, &o), WF_OK);
    ck_assert_int_gt(wf_alloc_live(), 0);
    wf_scratch_drop();
    ck_assert_int_eq(wf_alloc_live(), 0);
    ck_assert_int_eq(multiply(p, &o), WF_OK);
    ck_assert_int_gt(wf_alloc_live(), 0);
    free_case();
}
END_TEST

WF_TEST_MAIN("gemm_memory", one_thread, two_threads, scratch_is_dropped)
