/* SPDX-License-Identifier: MIT */
/* Measures the speed of core/gemm, with Weft's own kernels and with BLIS, on the shapes of small transformers.
 *
 *   gemm [-t threads] [-i isa] [-m own,blis,auto,bf16,bf16-vector] [-c 1] [-p peak] [OP m n k [count]]...
 *
 * bf16: in bf16's arithmetic, packing of both operands included; bf16-vector: the same without AMX.
 *
 * OP is NT (forward, B stored as [n, k], with a bias), NN (dX) or TN (dW, added to C). NTr and NNr are NT and NN with wf_gemm.rows_alone
 * set, as in passes of mode WF_INFER. -c 1 measures processor time instead of elapsed time; use it with one thread on a busy machine.
 * -p: the peak that ./peak prints, in GFLOP/s.
 *
 * Prints GFLOP/s with hot operands, which are the same in each run, and with cold operands, which are others in each run, taken from
 * 576 MB, more than the caches hold. Each number is the median of up to 101 samples, with the best sample in parentheses. Then follows the
 * time of one product, or of all `count` products, with cold operands. For m = 1 also prints the bandwidth of reading B, which limits such
 * products.
 *
 * With -p also prints the share of the peak that the median with cold operands reaches. The last line has the geometric mean and the
 * minimum of these shares, over single products with m and n >= 256 and k >= 64. */
#include <math.h>
#include <omp.h>
#include <string.h>

#include <weft/compute.h>
#include <weft/core.h>
#include <weft/internal/testing.h>

#include "measure.h"

/* Many short samples, because on a busy machine some of them run undisturbed. */
enum { SAMPLES = 101 };

struct shape {
    const char *op;
    int64_t m, n, k, count;
};

static const struct shape all[] = {
    {"NT", 256, 512, 2048, 1},
    {"NT", 256, 768, 3072, 1},
    {"NT", 64, 512, 2048, 1},
    {"NT", 4096, 256, 64, 1},
    {"NT", 256, 768, 768, 1},
    {"NT", 256, 50257, 768, 1},
    {"TN", 384, 384, 1024, 1},
    {"NN", 256, 3072, 768, 1},
    {"NN", 64, 64, 64, 1},
    {"TN", 64, 64, 4096, 1},
    {"NT", 2048, 2048, 512, 1},
    {"NN", 2048, 512, 2048, 1},
    {"TN", 2048, 512, 2048, 1},
    {"NT", 64, 64, 32, 384},
    {"NN", 64, 32, 64, 384},
    {"TN", 64, 32, 64, 384},
    {"NT", 256, 256, 64, 48},
    /* preset nanogpt-char-small */
    {"NT", 768, 384, 128, 1},
    {"NN", 768, 128, 384, 1},
    {"TN", 384, 128, 768, 1},
    {"NT", 768, 128, 128, 1},
    {"NN", 768, 128, 128, 1},
    {"TN", 128, 128, 768, 1},
    {"NT", 768, 512, 128, 1},
    {"NN", 768, 128, 512, 1},
    {"TN", 512, 128, 768, 1},
    {"NT", 768, 128, 512, 1},
    {"NN", 768, 512, 128, 1},
    {"TN", 128, 512, 768, 1},
    {"NT", 768, 65, 128, 1},
    {"NN", 768, 128, 65, 1},
    {"TN", 65, 128, 768, 1},
    /* preset char-rms */
    {"NT", 4096, 64, 64, 1},
    {"NN", 4096, 64, 64, 1},
    {"NT", 4096, 192, 64, 1},
    {"NN", 4096, 64, 192, 1},
    {"TN", 192, 64, 4096, 1},
    {"NN", 4096, 64, 256, 1},
    {"TN", 256, 64, 4096, 1},
    {"NT", 4096, 64, 256, 1},
    {"NN", 4096, 256, 64, 1},
    {"TN", 64, 256, 4096, 1},
    {"NT", 4096, 70, 64, 1},
    {"NN", 4096, 64, 70, 1},
    {"TN", 70, 64, 4096, 1},
    /* tiny shapes */
    {"NT", 6, 8, 6, 1},
    {"NN", 6, 8, 6, 1},
    {"NT", 10, 10, 8, 96},
    {"NT", 36, 32, 32, 1},
    {"NT", 32, 32, 32, 1},
    /* generation and evaluation */
    {"NTr", 1, 128, 128, 1},
    {"NTr", 1, 512, 128, 1},
    {"NTr", 1, 384, 384, 1},
    {"NTr", 1, 1536, 384, 1},
    {"NTr", 1, 3072, 768, 1},
    {"NTr", 1, 50257, 768, 1},
    {"NTr", 1, 4096, 4096, 1},
    {"NNr", 1, 1024, 64, 1},
    {"NTr", 4, 1536, 384, 1},
    {"NTr", 64, 384, 384, 1},
    {"NTr", 768, 384, 128, 1},
    {"NTr", 4096, 256, 64, 1},
};

static clockid_t clock_used = CLOCK_MONOTONIC;

static double now(void)
{
    struct timespec t;
    clock_gettime(clock_used, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Memory for the operands. `at` is the index in `data` where the current operand begins; cold operands are taken one after another. */
static struct operand {
    wf_real *data;
    size_t at;
} as, bs, cs;
static size_t elements_max;

/* Returns an operand of `elements` elements: with `cold` the next one, else always the first one. */
static wf_real *next(struct operand *o, int64_t elements, bool cold)
{
    const size_t size = ((size_t)elements + 15) / 16 * 16;
    o->at = cold && o->at + 2 * size <= elements_max ? o->at + size : 0;
    return o->data + o->at;
}

static enum wf_precision precision;

static void run(const struct shape *s, bool cold)
{
    wf_real *a = next(&as, s->m * s->k * s->count, cold), *b = next(&bs, s->n * s->k * s->count, cold),
            *c = next(&cs, s->m * s->n * s->count, cold);
    const bool ta = s->op[0] == 'T', tb = s->op[1] == 'T', alone = s->op[2] == 'r';
    struct wf_gemm g = {s->m,          s->n, s->k, 1, ta ? 1 : 0,          a,     ta ? 1 : s->k, ta ? s->m : 1, b, tb ? 1 : s->n,
                        tb ? s->k : 1, c,    s->n, 1, tb ? as.data : NULL, alone, precision};
    if (wf_gemm_batched(&g, &(struct wf_gemm_batch){1, {s->count}, {s->m * s->k}, {s->n * s->k}, {s->m * s->n}}) != WF_OK)
        exit(fail("no memory for packing"));
}

/* Returns the seconds of one run: the median of up to SAMPLES samples. *best becomes the smallest sample. */
static double shape_seconds(const struct shape *s, bool cold, double *best)
{
    double times[SAMPLES];
    run(s, cold);
    double start = now();
    run(s, cold);
    double once = now() - start;
    const int64_t repeats = 1 + (int64_t)(0.0005 / once);
    int taken = 0;
    for (double spent = 0; taken < SAMPLES && (taken < 7 || spent < 0.5); spent += times[taken++] * (double)repeats) {
        start = now();
        for (int64_t r = 0; r < repeats; r++)
            run(s, cold);
        times[taken] = (now() - start) / (double)repeats;
    }
    const double middle = median(times, taken);
    *best = times[0];
    return middle;
}

static double peak, logarithms, lowest = 100;
static int counted;

/* Returns `share`, a share of the peak in per cent. Adds it to the statistics if the shape is large enough to come near the peak. */
static double count(const struct shape *s, double share)
{
    if (s->m >= 256 && s->n >= 256 && s->k >= 64 && s->count == 1) {
        counted++;
        logarithms += log(share);
        lowest = share < lowest ? share : lowest;
    }
    return share;
}

static void measure(const struct shape *s, const char *modes)
{
    const double flops = 2. * (double)s->m * (double)s->n * (double)s->k * (double)s->count;
    if ((size_t)(s->m * s->k * s->count) > elements_max || (size_t)(s->n * s->k * s->count) > elements_max ||
        (size_t)(s->m * s->n * s->count) > elements_max) {
        printf("%s %lld %lld %lld: too large\n", s->op, (long long)s->m, (long long)s->n, (long long)s->k);
        return;
    }
    printf("%-3s %5lld %5lld %5lld x%-3lld", s->op, (long long)s->m, (long long)s->n, (long long)s->k, (long long)s->count);
    char copy[64], *rest = copy;
    snprintf(copy, sizeof copy, "%s", modes);
    for (char *mode; (mode = strsep(&rest, ","));) {
        wf_error error = {0};
        precision = strncmp(mode, "bf16", 4) == 0 ? WF_PRECISION_BF16 : WF_PRECISION_REAL;
        if (precision == WF_PRECISION_BF16)
            wf_amx_use(strcmp(mode, "bf16") == 0);
        else if (wf_gemm_use(mode, &error) != WF_OK)
            exit(fail(error.message));
        double best, best_cold;
        const double hot = shape_seconds(s, false, &best), t = shape_seconds(s, true, &best_cold);
        printf("  %s hot %6.1f (%5.1f) cold %6.1f (%5.1f) %9.2f us", mode, flops / hot * 1e-9, flops / best * 1e-9, flops / t * 1e-9,
               flops / best_cold * 1e-9, t * 1e6);
        if (peak > 0)
            printf(" %3.0f %%", count(s, flops / t * 1e-7 / peak));
        if (s->m == 1)
            printf(" %5.1f GB/s", (double)s->n * (double)s->k * sizeof(wf_real) / t * 1e-9);
        fflush(stdout);
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    const char *given[128] = {NULL};
    wf_error error = {0};
    if (!read_options(argc, argv, "+t:i:m:c:p:", given)) {
        fprintf(stderr, "usage: gemm [-t threads] [-i isa] [-m own,blis,auto,bf16,bf16-vector] [-c 1] [-p peak] [OP m n k [count]]...\n");
        return 2;
    }
    const char *modes = given['m'] ? given['m'] : "own,blis";
    peak = number_or(given['p'], 0);
    clock_used = number_or(given['c'], 0) ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
    if (given['i'])
        setenv("WEFT_ISA", given['i'], 1);
    if (wf_init(&error, .threads = (int)number_or(given['t'], 0)) != WF_OK)
        return fail(error.message);
    printf("%s, %s, %d threads; GFLOP/s\n", wf_blas(), wf_isa(), wf_threads());
    elements_max = (size_t)48 << 20;
    for (struct operand *const *o = (struct operand *const[]){&as, &bs, &cs, NULL}; *o; o++)
        if (!((*o)->data = wf_alloc(elements_max * sizeof(wf_real))))
            return fail("no memory");
    for (size_t e = 0; e < elements_max; e++)
        as.data[e] = (wf_real)(e % 13) / 13, bs.data[e] = (wf_real)(e % 11) / 11, cs.data[e] = 0;
    int i = optind;
    if (i == argc)
        for (size_t s = 0; s < sizeof all / sizeof *all; s++)
            measure(&all[s], modes);
    while (i + 3 < argc) {
        struct shape s = {argv[i], atoll(argv[i + 1]), atoll(argv[i + 2]), atoll(argv[i + 3]), 1};
        i += 4;
        if (i < argc && argv[i][0] >= '0' && argv[i][0] <= '9')
            s.count = atoll(argv[i++]);
        measure(&s, modes);
    }
    if (counted > 0)
        printf("cold, 256 rows and columns and more: geometric mean %.0f %% of the peak, the least %.0f %%\n", exp(logarithms / counted),
               lowest);
    return 0;
}
