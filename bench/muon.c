/* SPDX-License-Identifier: MIT */
/* Times whole steps of Muon beside the products that its iterations consist of, computed in full by wf_gemm: the step computes half of each
 * symmetric product, and adds the momentum, the norm and the update.
 *
 *   muon [-t THREADS] [-r ROUNDS]     for each matrix: median milliseconds of both, in turn, and the products' divided by the step's
 */
#include <weft/compute.h>
#include <weft/ops.h>
#include <weft/optim.h>
#include <weft/random.h>
#include <weft/runtime.h>

#include "measure.h"

enum { MOST = 1000, ITERATIONS = 5 };
static const int64_t shapes[][2] = {{128, 128}, {384, 384}, {384, 1536}, {1536, 384}, {768, 768}, {768, 3072}, {2304, 768}};

/* c [m,n] = a [m,k] b, where b is [k,n], or its transpose [n,k]. */
static bool product(int64_t m, int64_t n, int64_t k, const wf_real *a, const wf_real *b, bool transposed, wf_real *c)
{
    return wf_gemm(&(struct wf_gemm){.m = m,
                                     .n = n,
                                     .k = k,
                                     .alpha = 1,
                                     .a = a,
                                     .a_rs = k,
                                     .a_cs = 1,
                                     .b = b,
                                     .b_rs = transposed ? 1 : n,
                                     .b_cs = transposed ? k : 1,
                                     .c = c,
                                     .c_rs = n,
                                     .c_cs = 1}) == WF_OK;
}

/* The products of one iteration for X [n,m], n <= m. */
static bool products(int64_t n, int64_t m, const wf_real *x, wf_real *square, wf_real *polynomial, wf_real *out)
{
    return product(n, n, m, x, x, true, square) && product(n, n, n, square, square, true, polynomial) &&
           product(n, m, n, polynomial, x, false, out);
}

static wf_status gradient(wf_tape *tape, wf_tensor *weight)
{
    wf_tape_reset(tape, WF_TRAIN);
    return wf_backward(wf_sum(wf_square(weight)));
}

static bool one(int64_t rows, int64_t columns, int rounds, wf_error *error)
{
    const int64_t n = rows < columns ? rows : columns, m = rows + columns - n;
    double step[MOST], full[MOST];
    struct wf_optimizer muon = {0};
    wf_registry *registry = wf_registry_new(error);
    wf_tape *tape = wf_tape_new(error);
    if (!registry || !tape)
        return false;
    wf_tensor *weight = wf_parameter(wf_root(registry), "weight", WF_SHAPE(rows, columns), .init = {WF_INIT_NORMAL, 0.02});
    if (wf_registry_build(registry, 1, error) != WF_OK || wf_muon_init(&muon, registry, error, .iterations = ITERATIONS) != WF_OK)
        return false;
    wf_real *x = room(n * m, sizeof *x), *out = room(n * m, sizeof *out), *square = room(n * n, sizeof *square),
            *polynomial = room(n * n, sizeof *polynomial);
    wf_fill_normal(x, n * m, 0, 1 / 64., 1, 1);
    bool ran = true;
    for (int i = -1; i < rounds && ran; i++) { /* one round first, for the memory */
        ran = gradient(tape, weight) == WF_OK;
        const double begin = seconds();
        ran = ran && wf_optimizer_step(&muon, error) == WF_OK;
        const double between = seconds();
        for (int k = 0; k < ITERATIONS && ran; k++)
            ran = products(n, m, x, square, polynomial, out);
        if (i >= 0) {
            step[i] = 1e3 * (between - begin);
            full[i] = 1e3 * (seconds() - between);
        }
    }
    const double flops = ITERATIONS * (4. * (double)(n * n) * (double)m + 2. * (double)(n * n) * (double)n);
    const double a = median(step, rounds), b = median(full, rounds);
    printf("[%lld,%lld]: step %.2f ms, products %.2f ms (%.0f GFLOP/s), ratio %.2f\n", (long long)rows, (long long)columns, a, b,
           flops / b / 1e6, b / a);
    wf_optimizer_free(&muon);
    wf_tape_free(tape);
    wf_registry_free(registry);
    free(x), free(out), free(square), free(polynomial);
    return ran;
}

int main(int argc, char **argv)
{
    const char *value[128] = {0};
    wf_error error = {0};
    if (!read_options(argc, argv, "t:r:", value) || optind != argc)
        return fail("usage: muon [-t THREADS] [-r ROUNDS]");
    const int rounds = (int)number_or(value['r'], 21);
    if (rounds < 1 || rounds > MOST)
        return fail("-r: 1 to 1000 rounds");
    if (wf_init(&error, .threads = (int)number_or(value['t'], 0)) != WF_OK)
        return fail(error.message);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (!one(shapes[i][0], shapes[i][1], rounds, &error))
            return fail(error.message[0] ? error.message : "out of memory");
    return 0;
}
