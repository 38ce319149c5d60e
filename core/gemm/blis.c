/* SPDX-License-Identifier: MIT */
/* Computes products by BLIS (Van Zee and van de Geijn 2015). No other file calls BLIS.
 *
 * BLIS 0.9 chooses its kernels by the family of the processor. On families that are newer than BLIS it uses reference kernels, which are
 * six times slower. So this file chooses BLIS's architecture by the instruction set in use, before the first call of BLIS. The only way
 * that BLIS offers for this is an environment variable. Its value must be a number: BLIS reads a name as 0 (skx), and ends the process on
 * an unknown number. The number of an architecture differs between versions of BLIS. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <blis.h>

#include <weft/compute.h>
#include <weft/internal/runtime.h>
#include <weft/runtime.h>

#include "private.h"

static char name[64] = "BLIS";

const char *wf_blas(void)
{
    return name;
}

/* Whether the processor has the instructions of an architecture. Only the architectures listed in this function are used. */
static bool arch_fits(const char *arch)
{
    if (strcmp(arch, "generic") == 0)
        return true;
#if defined __x86_64__
    if (strcmp(arch, "skx") == 0)
        return wf_isa_supported("avx512");
    if (strcmp(arch, "haswell") == 0 || strcmp(arch, "zen") == 0 || strcmp(arch, "zen2") == 0 || strcmp(arch, "zen3") == 0)
        return wf_isa_supported("avx2");
    if (strcmp(arch, "sandybridge") == 0)
        return __builtin_cpu_supports("avx");
    return strcmp(arch, "penryn") == 0 && __builtin_cpu_supports("sse3");
#else
    return false;
#endif
}

static int arch_number(const char *arch)
{
    for (int i = 0; i < BLIS_NUM_ARCHS; i++)
        if (strcmp(bli_arch_string((arch_t)i), arch) == 0)
            return i;
    return -1;
}

#if defined __x86_64__
#define VARIABLE "BLIS_ARCH_TYPE"
#define UNSET "-1" /* with this value BLIS chooses the architecture */

/* Weft's entry of the environment, if the user has not set the variable. setenv could move the environment while other threads read it.
 * So the entry is made when the library is loaded, and later only the text after '=' is changed, for as long as BLIS needs to read it. The
 * entry is never freed, because the environment points to it. */
static char *entry;

static bool is_set(const char *value)
{
    return value && *value && strcmp(value, UNSET) != 0;
}

__attribute__((constructor)) static void make_entry(void)
{
    if (is_set(getenv(VARIABLE)) || !(entry = strdup(VARIABLE "=" UNSET)) || putenv(entry) == 0)
        return;
    free(entry);
    entry = NULL;
}

/* The number of BLIS's architecture for Weft's instruction set: the first one in the order below that the linked BLIS has. */
static int wanted_arch(const char *isa)
{
    static const char *const amd[] = {"zen3", "zen2", "zen", "haswell", NULL}, *const intel[] = {"haswell", NULL};
    if (strcmp(isa, "avx512") == 0 && arch_number("skx") >= 0)
        return arch_number("skx");
    if (strcmp(isa, "base") != 0)
        for (const char *const *arch = __builtin_cpu_is("amd") ? amd : intel; *arch; arch++)
            if (arch_number(*arch) >= 0)
                return arch_number(*arch);
    return arch_number("generic");
}

static wf_status check_setting(const char *value, wf_error *error)
{
    char *end, known[256] = "";
    long number = strtol(value, &end, 10);
    if (end != value && *end == 0 && number >= 0 && number < BLIS_NUM_ARCHS && arch_fits(bli_arch_string((arch_t)number)))
        return WF_OK;
    for (int i = 0; i < BLIS_NUM_ARCHS; i++)
        if (arch_fits(bli_arch_string((arch_t)i)))
            snprintf(known + strlen(known), sizeof known - strlen(known), "%s%d (%s)", *known ? ", " : "", i, bli_arch_string((arch_t)i));
    return wf_error_set(error, WF_ERR_ARGUMENT,
                        "BLIS_ARCH_TYPE=%.40s: BLIS takes a number here; this processor and library have %s; unset it for the best one",
                        value, known);
}
#endif

/* Computes C = alpha A B + beta C on the calling thread, with this beta instead of g's: the caller passes 1 if C holds beta C + bias
 * already. */
static void multiply(const struct wf_gemm *g, wf_real beta)
{
    /* BLIS's path for small matrices is off, because it gives other bits, and the shape of the task decides whether BLIS takes it */
    rntm_t how;
    bli_rntm_init(&how);
    bli_rntm_set_num_threads(1, &how);
    bli_rntm_disable_l3_sup(&how);
    wf_real alpha = g->alpha;
#ifdef WF_DOUBLE
    bli_dgemm_ex(
#else
    bli_sgemm_ex(
#endif
        BLIS_NO_TRANSPOSE, BLIS_NO_TRANSPOSE, g->m, g->n, g->k, &alpha, (wf_real *)g->a, g->a_rs, g->a_cs, (wf_real *)g->b, g->b_rs,
        g->b_cs, &beta, g->c, g->c_rs, g->c_cs, NULL, &how);
}

wf_status wf_blis_start(const char *isa, wf_error *error)
{
#if defined __x86_64__
    __builtin_cpu_init();
    char *value = getenv(VARIABLE);
    wf_status status = is_set(value) ? check_setting(value, error) : WF_OK;
    if (status != WF_OK)
        return status;
    const bool ours = entry && value == entry + strlen(VARIABLE "="); /* if false, the user or BLIS chooses */
    if (ours)
        snprintf(value, sizeof UNSET, "%d", wanted_arch(isa));
    bli_init();
    bli_arch_query_id();
    if (ours)
        strcpy(value, UNSET);
#else
    (void)isa, (void)error;
    bli_init();
#endif
    snprintf(name, sizeof name, "BLIS %s (%s)", bli_info_get_version_str(), bli_arch_string(bli_arch_query_id()));
    /* Makes BLIS allocate its packing buffers, which it does at its first product. */
    static wf_real a[BLIS_WARM_UP * BLIS_WARM_UP], c[BLIS_WARM_UP * BLIS_WARM_UP];
    const struct wf_gemm g = {BLIS_WARM_UP, BLIS_WARM_UP, BLIS_WARM_UP, 1, 0, a, BLIS_WARM_UP, 1, a, BLIS_WARM_UP, 1, c, BLIS_WARM_UP, 1,
                              NULL,         false};
    wf_blis_gemm(&g, false);
    return WF_OK;
}

static bool contiguous(int64_t rows, int64_t columns, int64_t rs, int64_t cs)
{
    return (cs == 1 && rs >= columns) || (rs == 1 && cs >= rows);
}

bool wf_blis_can(const struct wf_gemm *g)
{
    return contiguous(g->m, g->k, g->a_rs, g->a_cs) && contiguous(g->k, g->n, g->b_rs, g->b_cs) && contiguous(g->m, g->n, g->c_rs, g->c_cs);
}

/* Tasks of a product, each of which BLIS computes on one thread. The tasks divide C but not k, so the bits are those of the whole
 * product. */
struct blis_tasks {
    const struct wf_gemm *g;
    int64_t count;
    bool rows; /* tasks are ranges of rows of C; if false, ranges of columns */
};

static void blis_task(void *ctx, int64_t i)
{
    const struct blis_tasks *w = ctx;
    struct wf_gemm g = *w->g;
    int64_t *size = w->rows ? &g.m : &g.n;
    const struct gemm_range range = gemm_share(*size, BLIS_GRAIN, w->count, i);
    *size = range.end - range.begin;
    g.c += range.begin * (w->rows ? g.c_rs : g.c_cs);
    if (w->rows)
        g.a += range.begin * g.a_rs;
    else
        g.b += range.begin * g.b_cs;
    if (g.bias && !w->rows)
        g.bias += range.begin;
    if (g.bias)
        wf_gemm_no_sum(&g);
    multiply(&g, g.bias ? 1 : g.beta);
}

void wf_blis_gemm(const struct wf_gemm *g, bool serial)
{
    const double flops = 2. * (double)g->m * (double)g->n * (double)g->k;
    struct blis_tasks w = {g, 1, g->m > g->n};
    const int64_t grains = gemm_ceil_div(w.rows ? g->m : g->n, BLIS_GRAIN);
    if (!serial && flops >= BLIS_TASK_FLOPS) /* few tasks, because each task packs its own A and B */
        w.count = WF_MIN(grains, wf_threads());
    wf_parallel(w.count, flops / BATCH_FLOPS_PER_NS, blis_task, &w);
}
