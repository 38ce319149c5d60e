/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#if defined __x86_64__
#include <cpuid.h>
#endif

#include <weft/internal/gemm_init.h>
#include <weft/internal/kernels.h>
#include <weft/internal/runtime.h>
#include <weft/internal/testing.h>
#include <weft/runtime.h>

enum { MAX_THREADS = 256, MAX_PER_PROCESSOR = 4 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool up;
static _Atomic int processors;

static const char *const isas[] = {"avx512", "avx2", "base"}; /* best first */
static const char *const modes[] = {[WF_GEMM_AUTO] = "auto", [WF_GEMM_BLIS] = "blis", [WF_GEMM_OWN] = "own"};

const char *wf_version(void)
{
    return WF_VERSION;
}

int wf_processors(void)
{
    int count = atomic_load(&processors);
    if (count == 0) {
        count = wf_count_processors();
        atomic_store(&processors, count);
    }
    return count;
}

int wf_threads(void)
{
    return wf_parallel_threads();
}

static int most_threads(void)
{
    return wf_processors() > MAX_THREADS / MAX_PER_PROCESSOR ? MAX_THREADS : MAX_PER_PROCESSOR * wf_processors();
}

wf_status wf_set_threads(int threads, wf_error *error)
{
    int most = most_threads();
    if (threads < 1 || threads > most)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%d threads: give 1 to %d (4 for each processor, at most %d)", threads, most,
                            MAX_THREADS);
    wf_parallel_start(threads);
    return WF_OK;
}

#if defined __x86_64__
static bool has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif

/* __builtin_cpu_supports also asks whether the system saves the registers; clang's does not know f16c. The list is that of the root
 * meson.build. */
bool wf_isa_supported(const char *isa)
{
    if (!wf_kernels_built(isa))
        return false;
    if (strcmp(isa, "base") == 0)
        return true;
#if defined __x86_64__
    __builtin_cpu_init();
    bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c() && __builtin_cpu_supports("bmi2");
    if (strcmp(isa, "avx2") == 0)
        return has_avx2;
    if (strcmp(isa, "avx512") == 0)
        return has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl");
#endif
    return false;
}

/* `from` says where the name came from. */
static wf_status use_isa(const char *isa, const char *from, wf_error *error)
{
    size_t known = 0;
    while (known < sizeof isas / sizeof *isas && strcmp(isas[known], isa) != 0)
        known++;
    if (known == sizeof isas / sizeof *isas)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s: unknown instruction set \"%.40s\"; give avx512, avx2 or base", from, isa);
    if (!wf_isa_supported(isa) || !wf_kernels_select(isa))
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s: this processor, system or build does not support %s; give %s", from, isa,
                            wf_isa_supported("avx2") ? "avx2 or base" : "base");
    wf_gemm_isa_changed(wf_kernel->isa);
    return WF_OK;
}

wf_status wf_isa_use(const char *isa, wf_error *error)
{
    wf_status status = wf_init_default(error);
    return status != WF_OK ? status : use_isa(isa, "wf_isa_use", error);
}

const char *wf_isa(void)
{
    return wf_kernel->isa;
}

static wf_status use_mode(const char *mode, const char *from, wf_error *error)
{
    for (int i = 0; i < (int)(sizeof modes / sizeof *modes); i++)
        if (strcmp(modes[i], mode) == 0) {
            wf_gemm_mode_set(i);
            return WF_OK;
        }
    return wf_error_set(error, WF_ERR_ARGUMENT, "%s: unknown value \"%.40s\"; give auto, blis or own", from, mode);
}

wf_status wf_gemm_use(const char *mode, wf_error *error)
{
    wf_status status = wf_init_default(error);
    return status != WF_OK ? status : use_mode(mode, "wf_gemm_use", error);
}

const char *wf_gemm_mode(void)
{
    return modes[wf_gemm_mode_get()];
}

const char *wf_blas(void)
{
    return wf_gemm_blas_name();
}

/* An environment variable, or NULL when it is unset or empty. */
static const char *setting(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* The first time, under the lock. A failure leaves the library down, so that it can be tried again. */
static wf_status start(int threads, wf_error *error)
{
    wf_status status;
    const char *isa = setting("WEFT_ISA"), *mode = setting("WEFT_GEMM");
    for (size_t i = 0; !isa; i++)
        if (wf_isa_supported(isas[i]) && wf_kernels_select(isas[i]))
            isa = isas[i];
    if ((status = use_isa(isa, "WEFT_ISA", error)) != WF_OK || (status = use_mode(mode ? mode : "auto", "WEFT_GEMM", error)) != WF_OK)
        return status;
    if ((status = wf_set_threads(threads, error)) != WF_OK)
        return status;
    if ((status = wf_gemm_init(error)) != WF_OK)
        return status;
    atomic_store(&up, true);
    return WF_OK;
}

wf_status wf_init_with(const struct wf_init_options *options, wf_error *error)
{
    int threads = options ? options->threads : 0;
    if (threads == 0)
        threads = wf_processors() < MAX_THREADS ? wf_processors() : MAX_THREADS;
    pthread_mutex_lock(&lock);
    wf_status status = atomic_load(&up) ? wf_set_threads(threads, error) : start(threads, error);
    pthread_mutex_unlock(&lock);
    return status;
}

wf_status wf_init_default(wf_error *error)
{
    if (atomic_load_explicit(&up, memory_order_acquire))
        return WF_OK;
    pthread_mutex_lock(&lock);
    int threads = wf_processors() < MAX_THREADS ? wf_processors() : MAX_THREADS;
    wf_status status = atomic_load(&up) ? WF_OK : start(threads, error);
    pthread_mutex_unlock(&lock);
    return status;
}
