/* SPDX-License-Identifier: MIT */
/* core/gemm against a plain triple loop in double: every edge, stride order, scaling, instruction set, own kernels and BLIS;
 * and its promises about bits: any number of threads, rows alone or together. */
#include "products.h"

#include <unistd.h>

#include <weft/internal/gemm.h>

#include "../../core/gemm/private.h"

static const char *const modes[] = {"own", "blis", "auto"};

/* Runs the statement that follows once for each way of computing products. */
#define EACH_MODE for (int mode = 0; mode < 3 && use_mode(mode); mode++)

static bool use_mode(int mode)
{
    ck_ok(wf_gemm_use(modes[mode], error));
    return true;
}

static void multiply(const struct wf_gemm *g)
{
    expect(wf_gemm(g) == WF_OK, "no memory");
}

/* The reference is more exact than what it judges. */
#ifdef WF_DOUBLE
typedef long double more;
#else
typedef double more;
#endif

/* One element by the book, and what its error is measured by. */
static double plain(const struct wf_gemm *g, int64_t i, int64_t j, double before, double *size)
{
    more sum = 0, all = 0;
    for (int64_t p = 0; p < g->k; p++) {
        const more term = (more)g->a[i * g->a_rs + p * g->a_cs] * (more)g->b[p * g->b_rs + j * g->b_cs];
        sum += term;
        all += term < 0 ? -term : term;
    }
    *size = fabs((double)g->alpha) * (double)all + fabs((double)g->beta * before) + fabs(g->bias ? (double)g->bias[j] : 0);
    return (double)g->alpha * (double)sum + (g->beta != 0 ? (double)g->beta * before : 0) + (g->bias ? (double)g->bias[j] : 0);
}

/* Errors of long sums grow like the square root of their length; the bound is several times that. */
static double bound(int64_t k, double size)
{
    return 2 * EPS * (4 + 2 * sqrt((double)k)) * size + 1e-300;
}

/* ---- Every m, n, k from 0 to twice the largest tile (14 x 32) plus one, k beyond twice a vector of 16. */
enum { M = 30, N = 66, K = 34 };
static double sums[K][M][N], sizes[K][M][N];

static wf_real *stored(const wf_real *x, int64_t rows, int64_t columns, struct order o)
{
    wf_real *y = room_of(o.room);
    for (int64_t i = 0; i < o.room; i++)
        y[i] = NAN; /* gaps: reading one shows */
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[o.from + i * o.rs + j * o.cs] = x[i * columns + j];
    return y;
}

static void cube(void)
{
    wf_real *a0 = random_numbers(M * K), *b0 = random_numbers(K * N), *a[ORDERS], *b[ORDERS], *c[ORDERS];
    struct order oa[ORDERS], ob[ORDERS], oc[ORDERS];
    for (int o = 0; o < ORDERS; o++) {
        oa[o] = order_of(o, M, K), ob[o] = order_of(o, K, N), oc[o] = order_of(o, M, N);
        a[o] = stored(a0, M, K, oa[o]), b[o] = stored(b0, K, N, ob[o]), c[o] = room_of(oc[o].room);
    }
    memset(sums, 0, sizeof sums), memset(sizes, 0, sizeof sizes);
    for (int k = 1; k < K; k++)
        for (int i = 0; i < M; i++)
            for (int j = 0; j < N; j++) {
                const double term = (double)a0[i * K + k - 1] * (double)b0[(k - 1) * N + j];
                sums[k][i][j] = sums[k - 1][i][j] + term, sizes[k][i][j] = sizes[k - 1][i][j] + fabs(term);
            }
    for (int k = 0; k < K; k++)
        for (int m = 0; m < M; m++)
            for (int n = 0; n < N; n++) {
                if (sampled() && below(sanitized() ? 120 : 4) > 0)
                    continue;
                const int64_t ka = below(ORDERS), kb = below(ORDERS), kc = below(ORDERS);
                const struct order o = oc[kc];
                const struct wf_gemm g = {.m = m,
                                          .n = n,
                                          .k = k,
                                          .alpha = 1,
                                          .a = a[ka] + oa[ka].from,
                                          .a_rs = oa[ka].rs,
                                          .a_cs = oa[ka].cs,
                                          .b = b[kb] + ob[kb].from,
                                          .b_rs = ob[kb].rs,
                                          .b_cs = ob[kb].cs,
                                          .c = c[kc] + o.from,
                                          .c_rs = o.rs,
                                          .c_cs = o.cs,
                                          .rows_alone = below(4) == 0};
                const wf_real guard = 77;
                /* NaN where the product goes, since beta is 0; a number that must stay around it. */
                for (int i = 0; i <= m && i < M; i++)
                    for (int j = 0; j <= n && j < N; j++)
                        g.c[i * o.rs + j * o.cs] = i < m && j < n ? (wf_real)NAN : guard;
                multiply(&g);
                for (int i = 0; i <= m && i < M; i++)
                    for (int j = 0; j <= n && j < N; j++) {
                        const bool in = i < m && j < n;
                        const double got = (double)g.c[i * o.rs + j * o.cs], want = in ? sums[k][i][j] : (double)guard;
                        expect(fabs(got - want) <= (in ? bound(k, sizes[k][i][j]) : 0), "%s: element %d %d: %g instead of %g", describe(&g),
                               i, j, got, want);
                    }
            }
    free_case();
}

START_TEST(all_edges)
{
    ck_ok(wf_init(error, .threads = 2));
    EACH_ISA
    EACH_MODE
    if (mode < 2)
        cube();
}
END_TEST

/* ---- Shapes that reach every path: small, a row, few rows, many rows, several k-blocks, sliced sums, several chunks. */
static const int64_t shapes[][3] = {
    {1, 70, 300},    {1, 3, 1000},   {70, 1, 300},   {1, 1, 5000},   {37, 41, 19},   {3, 1000, 300},   {100, 700, 600},
    {300, 200, 530}, {301, 65, 128}, {64, 64, 1100}, {65, 70, 2100}, {600, 130, 70}, {130, 130, 2500}, {2, 2, 40000},
    {29, 31, 257},   {15, 33, 512},  {9, 900, 300},  {12, 600, 700}, {1, 1, 800000},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* Strides of a matrix inside a buffer of at most `room` elements; zero strides for operands. Returns where (0, 0) lies. */
static int64_t any_strides(int64_t rows, int64_t columns, bool zeros, int64_t *rs, int64_t *cs, int64_t *room)
{
    const int kind = (int)below(zeros ? 8 : 6);
    const int64_t gap = below(3);
    *rs = columns + gap, *cs = 1;
    if (kind & 1)
        *rs = 1, *cs = rows + gap;
    if (kind == 4)
        *rs = 2 * (columns + gap), *cs = 2;
    if (kind == 5)
        *rs = -*rs, *cs = -*cs;
    if (kind == 6)
        *rs = 0, *cs = 1;
    if (kind == 7)
        *cs = 0, *rs = 1;
    const int64_t far = (rows > 0 ? (rows - 1) * llabs(*rs) : 0) + (columns > 0 ? (columns - 1) * llabs(*cs) : 0);
    *room = far + 1;
    return *rs < 0 ? far : 0;
}

/* One of every `every` elements is compared. */
static void one_case(int64_t m, int64_t n, int64_t k, int every)
{
    static const wf_real scales[] = {1, 0, -1, 0.5, 2};
    struct wf_gemm g = {.m = m, .n = n, .k = k, .alpha = scales[below(5)], .beta = scales[below(5)], .rows_alone = below(3) == 0};
    int64_t room_a, room_b, room_c;
    const int64_t from_a = any_strides(m, k, true, &g.a_rs, &g.a_cs, &room_a), from_b = any_strides(k, n, true, &g.b_rs, &g.b_cs, &room_b),
                  from_c = any_strides(m, n, false, &g.c_rs, &g.c_cs, &room_c);
    wf_real *c = random_numbers(room_c);
    const wf_real *before = copy_of(c, room_c);
    if (g.beta == 0)
        for (int64_t i = 0; i < room_c; i++)
            c[i] = NAN;
    g.a = random_numbers(room_a) + from_a, g.b = random_numbers(room_b) + from_b, g.c = c + from_c;
    g.bias = below(2) ? random_numbers(n) : NULL;
    multiply(&g);
    for (int64_t e = every == 1 ? 0 : below(every); e < m * n; e += every) {
        const int64_t i = e / n, j = e % n, at = from_c + i * g.c_rs + j * g.c_cs;
        double size;
        const double want = plain(&g, i, j, (double)before[at], &size), got = (double)c[at];
        expect(fabs(got - want) <= bound(k, size), "%s: element %d %d: %.9g instead of %.9g", describe(&g), (int)i, (int)j, got, want);
    }
    free_case();
}

START_TEST(strides_and_scales)
{
    ck_ok(wf_init(error, .threads = 2));
    EACH_ISA
    EACH_MODE
    {
        for (int i = 0; i < (sampled() ? 80 : 800); i++)
            one_case(below(50), below(80), below(i % 8 ? 40 : 600), 1);
        for (int i = 0; i < (sampled() ? SHAPES : 3 * SHAPES); i++)
            one_case(shapes[i % SHAPES][0], shapes[i % SHAPES][1], shapes[i % SHAPES][2], 17);
        one_case(30, 1200, 1200, 101);
        one_case(200, 2100, 1100, 1009); /* two chunks */
        one_case(150, 70, 5000, 101);    /* chunks of k */
    }
}
END_TEST

/* NaN and infinity reach exactly the elements that they reach in the plain loop, padding included. */
START_TEST(not_finite)
{
    ck_ok(wf_init(error, .threads = 2));
    EACH_ISA
    for (int t = 0; t < 400; t++) {
        const int64_t m = 1 + below(t % 2 ? 40 : 3), n = 1 + below(70), k = 1 + below(40);
        struct wf_gemm g = product(m, n, k, (enum form)below(4), 1);
        wf_real *a = copy_of(g.a, m * k), *b = copy_of(g.b, k * n);
        use_mode(t % 3);
        a[below(m * k)] = t % 5 ? (wf_real)INFINITY : (wf_real)NAN;
        if (t % 7 == 0)
            b[below(k * n)] = (wf_real)(t % 3 ? NAN : -INFINITY);
        g.a = a, g.b = b, g.rows_alone = below(2);
        multiply(&g);
        for (int64_t e = 0; e < m * n; e++) {
            double size;
            const double want = plain(&g, e / n, e % n, 0, &size), got = (double)g.c[e];
            expect(isnan(want)   ? isnan(got)
                   : isinf(want) ? got == want
                                 : fabs(got - want) <= bound(k, size),
                   "%s: %g instead of %g", describe(&g), got, want);
        }
        free_case();
    }
}
END_TEST

/* ---- Bits. */
/* One register tile: the tuned micro-kernel has the bits of the reference, with operands in place and packed. */
START_TEST(reference_micro_kernel)
{
    static const wf_real scales[] = {1, 0, -1, (wf_real)0.3};
    ck_ok(wf_init(error, .threads = 1));
    EACH_ISA
    {
        const struct gemm_isa *kernels = gemm_isa();
        const int mr = kernels->mr, nr = kernels->nr;
        for (int t = 0; t < 3000; t++) {
            const int64_t m = 1 + below(mr), n = 1 + below(nr), k = 1 + below(t % 4 ? 40 : KC), c_cs = 1 + below(2), size_c = mr * nr * 2;
            const bool ta = below(2), pack_a = below(2), pack_b = below(2);
            wf_real *a = random_numbers(m * k), *b = random_numbers(k * nr), *packed_a = room_of(mr * k), *packed_b = room_of(k * nr),
                    *c = random_numbers(size_c), *want = copy_of(c, size_c), *bias = random_numbers(mr + nr);
            const int by = (int)below(3);
            struct gemm_cache_block g = {
                m,          n, k,        a,    ta ? 1 : k,
                ta ? m : 1, 0, b,        nr,   nr,
                pack_b,     c, n * c_cs, c_cs, {scales[below(4)], scales[below(4)], by == 1 ? bias : NULL, by == 2 ? bias : NULL}};
            if (pack_a) {
                kernels->pack_a_panel(m, k, a, g.a_rs, g.a_cs, packed_a);
                g.a = packed_a, g.a_rs = 1, g.a_cs = mr, g.a_panel = k * mr;
            }
            if (pack_b) {
                kernels->pack_b_panel(n, k, b, 1, nr, packed_b);
                g.b = packed_b, g.b_panel = k * nr;
            }
            kernels->macro_kernel(&g);
            g.c = want;
            kernels->reference(&g);
            expect(same_bits(c, want, size_c), "%s: m %d n %d k %d, packed %d %d, bias %d: not the reference's bits", isa, (int)m, (int)n,
                   (int)k, pack_a, pack_b, by);
            free_case();
        }
    }
}
END_TEST

static void in_body(void *ctx, int64_t block)
{
    if (block == 1)
        multiply(ctx);
}

START_TEST(threads_do_not_matter)
{
    enum { IN_A_BODY = 5 };
    EACH_ISA
    EACH_MODE
    for (int s = 0; s < SHAPES; s++)
        for (int form = sampled() ? (s + mode) % 3 : 0; form < 3; form += sampled() ? 3 : 1) {
            const int64_t m = shapes[s][0], n = shapes[s][1], k = shapes[s][2];
            struct wf_gemm g = product(m, n, k, (enum form)form, 1);
            wf_real *first = g.c, *start = copy_of(first, m * n), *c = room_of(m * n);
            g.beta = form == TN, g.bias = form == NT ? g.b : NULL;
            ck_ok(wf_set_threads(1, error));
            multiply(&g);
            g.c = c;
            for (int threads = sampled() ? 2 : 1; threads <= IN_A_BODY; threads += sampled() ? 3 : 1) {
                memcpy(c, start, (size_t)(m * n) * sizeof *c);
                if (threads < IN_A_BODY) {
                    ck_ok(wf_set_threads(threads, error));
                    multiply(&g);
                } else {
                    wf_parallel(2, 1e9, in_body, &g);
                }
                expect(same_bits(c, first, m * n), "%s: other bits with %d threads", describe(&g), threads);
            }
            free_case();
        }
}
END_TEST

START_TEST(rows_alone_and_together)
{
    static const int64_t sides[][2] = {{1, 1},    {65, 128}, {128, 128}, {70, 64},   {33, 300}, {192, 64}, {7, 1000},
                                       {64, 513}, {300, 31}, {1, 700},   {16, 2100}, {2100, 9}, {700, 261}};
    enum { MOST = 130 };
    EACH_ISA
    for (size_t s = 0; s < sizeof sides / sizeof *sides; s++)
        for (int form = 0; form < 4; form++) {
            const int64_t n = sides[s][0], k = sides[s][1];
            struct wf_gemm g = product(MOST, n, k, (enum form)form, 1);
            const wf_real *a = g.a;
            wf_real *alone = g.c, *c = room_of(MOST * n);
            ck_ok(wf_set_threads(s % 4 == 0 ? 2 : 1, error));
            use_mode((int)(s + (size_t)form) % 3);
            g.alpha = form == TT ? (wf_real)0.3 : 1, g.bias = form & NT ? random_numbers(n) : NULL, g.rows_alone = true, g.m = 1;
            for (int64_t i = 0; i < MOST; i++) {
                g.a = a + i * g.a_rs, g.c = alone + i * n;
                multiply(&g);
            }
            for (int64_t m = 1; m <= MOST; m += sampled() ? 11 : 1) {
                const int64_t from = MOST - m ? below(MOST - m) : 0; /* any place in a batch */
                g.m = m, g.a = a + from * g.a_rs, g.c = c;
                memset(c, 0xff, (size_t)(m * n) * sizeof *c);
                multiply(&g);
                expect(same_bits(c, alone + from * n, m * n), "%s: other bits than each row alone", describe(&g));
            }
            /* and in a batch of thousands, with C by columns */
            const int64_t many = k <= 128 ? 1500 : 150;
            wf_real *rows = room_of(many * k), *by_columns = room_of(many * n);
            for (int64_t i = 0; i < many; i++)
                for (int64_t p = 0; p < k; p++)
                    rows[i * k + p] = a[i % MOST * g.a_rs + p * g.a_cs];
            g.m = many, g.a = rows, g.a_rs = k, g.a_cs = 1, g.c = by_columns, g.c_rs = 1, g.c_cs = many;
            multiply(&g);
            for (int64_t e = 0; e < many * n; e++)
                expect(same_bits(&by_columns[e / n + e % n * many], &alone[e / n % MOST * n + e % n], 1), "%s: row %d", describe(&g),
                       (int)(e / n));
            free_case();
        }
}
END_TEST

/* ---- Batches, with steps of 0 where an operand is shared. */
START_TEST(batches)
{
    ck_ok(wf_init(error, .threads = 2));
    EACH_ISA
    for (int t = 0; t < 60; t++) {
        const bool large = t % 20 == 0, shared = below(2);
        const int64_t most = large ? 300 : 40, m = 1 + below(most), n = 1 + below(most), k = 1 + below(most);
        const int64_t d0 = below(4), d1 = 1 + below(3), d2 = 1 + below(large ? 3 : 20), count = d0 * d1 * d2;
        struct wf_gemm g = product(m, n, k, below(2) ? NT : NN, count + 1);
        wf_real *want = copy_of(g.c, m * n * count);
        const struct wf_gemm_batch batch = {3,
                                            {d2, d1, d0},
                                            {m * k, d2 * m * k, d1 * d2 * m * k},
                                            {k * n, shared ? 0 : d2 * k * n, d1 * d2 * k * n},
                                            {m * n, d2 * m * n, d1 * d2 * m * n}};
        use_mode(t % 3);
        g.beta = 1, g.rows_alone = below(2);
        expect(wf_gemm_batched(&g, &batch) == WF_OK, "no memory");
        for (int64_t i = 0; i < count; i++) {
            struct wf_gemm one = g;
            one.a += i * m * k, one.c = want + i * m * n;
            one.b += i / (d1 * d2) * batch.b_step[2] + i / d2 % d1 * batch.b_step[1] + i % d2 * batch.b_step[0];
            multiply(&one);
        }
        expect(same_bits(g.c, want, m * n * count), "%d products, %s", (int)count, describe(&g));
        free_case();
    }
}
END_TEST

/* ---- Two at once: the bits of one after the other, whichever way each goes. */
START_TEST(two_at_once)
{
    static const int64_t side[] = {0, 1, 3, 12, 20, 64, 113, 130, 300};
    const int64_t count = sizeof side / sizeof *side;
    EACH_ISA
    for (int t = 0; t < (sampled() ? 60 : 300); t++) {
        struct wf_gemm g[2];
        wf_real *want[2];
        use_mode(t % 3);
        ck_ok(wf_set_threads(1 + t / 3 % 3, error));
        for (int i = 0; i < 2; i++) {
            const int64_t m = side[below(count)], n = side[below(count)], k = below(8) ? side[below(count)] : 2000;
            g[i] = product(m, n, k, (enum form)below(4), 1);
            g[i].alpha = number(next(), -1, 1), g[i].beta = (wf_real)below(2);
            wf_real *c = copy_of(g[i].c, m * n + 1);
            want[i] = g[i].c;
            multiply(&g[i]);
            g[i].c = c;
        }
        expect(wf_gemm_two(g) == WF_OK, "no memory");
        for (int i = 0; i < 2; i++)
            expect(same_bits(g[i].c, want[i], g[i].m * g[i].n + 1), "product %d of %s beside %d %d %d", i, describe(&g[i]), (int)g[1 - i].m,
                   (int)g[1 - i].n, (int)g[1 - i].k);
        free_case();
    }
}
END_TEST

/* Other threads may read the environment while the library starts: neither its list nor a variable is another afterwards. */
START_TEST(environment_stays)
{
    enum { MOST = 4096 };
    static char *entry[MOST], *text[MOST];
    int count = 0;
    char **before = environ;
    for (; environ[count]; count++) {
        ck_assert_int_lt(count, MOST);
        entry[count] = environ[count];
        text[count] = strdup(environ[count]);
    }
    ck_ok(wf_init(error));
    ck_assert_ptr_eq(environ, before);
    for (int i = 0; i < count; i++) {
        ck_assert_ptr_eq(environ[i], entry[i]);
        ck_assert_str_eq(environ[i], text[i]);
        free(text[i]);
    }
    ck_assert_ptr_null(environ[count]);
}
END_TEST

/* A variable's entry in the environment, as putenv takes it; NULL: there is none. */
static char *entry_of(const char *name)
{
    for (char **e = environ; *e; e++)
        if (strncmp(*e, name, strlen(name)) == 0 && (*e)[strlen(name)] == '=')
            return *e;
    return NULL;
}

START_TEST(blis_settings)
{
    char *before = entry_of("BLIS_ARCH_TYPE");
    setenv("BLIS_ARCH_TYPE", "skx", 1);
    ck_fails(wf_init(error), WF_ERR_ARGUMENT, "BLIS_ARCH_TYPE=skx");
    setenv("BLIS_ARCH_TYPE", "99", 1);
    ck_fails(wf_init(error), WF_ERR_ARGUMENT, "BLIS_ARCH_TYPE=99");
    if (before)
        putenv(before);
    else
        unsetenv("BLIS_ARCH_TYPE");
    ck_ok(wf_init(error));
    ck_assert_ptr_nonnull(strstr(wf_blas(), "BLIS "));
#if defined __x86_64__
    if (strcmp(wf_isa(), "base") != 0)
        ck_assert_ptr_null(strstr(wf_blas(), "generic"));
#endif
}
END_TEST

/* BLIS is printed and recorded if it computes. The product is the gradient of a weight, the only kind that "auto" may give to BLIS. */
START_TEST(blis_is_named_where_it_computes)
{
    enum { SIDE = 384, DEPTH = 700 }; /* Weft adds 240 steps of k at a time, BLIS 256 or 512 */
    EACH_ISA
    {
        struct wf_gemm g = product(SIDE, SIDE, DEPTH, TN, 1);
        wf_real *c[3];
        EACH_MODE
        {
            g.c = c[mode] = room_of(SIDE * SIDE);
            multiply(&g);
            const char *blas = wf_gemm_blas();
            if (mode < 2)
                ck_assert_msg(mode == 0 ? !blas : blas && strcmp(blas, wf_blas()) == 0, "%s, %s: %s", isa, modes[mode], blas ? blas : "-");
        }
        /* in double some kernels of both add in the same order */
        const bool differ = !same_bits(c[0], c[1], SIDE * SIDE);
        ck_assert_msg(differ || sizeof(wf_real) == 8, "%s: own and BLIS give the same bits", isa);
        bool named = wf_gemm_blas() != NULL, computes = !same_bits(c[2], c[0], SIDE * SIDE);
        ck_assert_msg(named == computes || !differ, "%s: BLIS %s, but it computes %s", isa, named ? "is named" : "is not named",
                      computes ? "something" : "nothing");
        free_case();
    }
}
END_TEST

/* blis_settings comes first: where all tests run in one process, the library must not be up yet. */
WF_TEST_MAIN("gemm", blis_settings, environment_stays, all_edges, strides_and_scales, not_finite, reference_micro_kernel,
             threads_do_not_matter, rows_alone_and_together, batches, two_at_once, blis_is_named_where_it_computes)
