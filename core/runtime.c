/* SPDX-License-Identifier: MIT */
/* Starts the library: chooses the instruction set and the kernels of products, and starts BLIS and the team (weft/runtime.h). */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#if defined __x86_64__
#include <cpuid.h>
#endif

#include <weft/internal/fork.h>
#include <weft/internal/minmax.h>
#include <weft/internal/runtime.h>
#include <weft/internal/shares.h>
#include <weft/internal/testing.h>
#include <weft/runtime.h>

#include "gemm/private.h"

enum { MAX_PER_PROCESSOR = 4 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
WF_FREE_AFTER_FORK(lock)
static _Atomic bool up;
static _Atomic int processors;

/* The tables of kernels, with the best instruction set first; NULL if the build lacks one. */
#define TABLE(isa) extern const struct wf_kernels wf_kernel_table_##isa;
TABLE(avx512)
TABLE(avx2)
TABLE(base)
#if defined __x86_64__ && !defined WF_NO_AVX512
#define AVX512 &wf_kernel_table_avx512
#else
#define AVX512 NULL
#endif
#if defined __x86_64__ && !defined WF_NO_AVX2
#define AVX2 &wf_kernel_table_avx2
#else
#define AVX2 NULL
#endif
static const struct {
    const char *name;
    const struct wf_kernels *kernels;
} isas[] = {{"avx512", AVX512}, {"avx2", AVX2}, {"base", &wf_kernel_table_base}};
const struct wf_kernels *wf_kernel = &wf_kernel_table_base;

static const char *const modes[] = {[GEMM_AUTO] = "auto", [GEMM_BLIS] = "blis", [GEMM_OWN] = "own"};

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

static int max_threads(void)
{
    return MAX_PER_PROCESSOR * WF_MIN(wf_processors(), WF_MAX_THREADS / MAX_PER_PROCESSOR);
}

wf_status wf_set_threads(int threads, wf_error *error)
{
    const int max = max_threads();
    if (threads < 1 || threads > max)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%d threads is out of range, 1 to %d (4 per processor, at most %d)", threads, max,
                            WF_MAX_THREADS);
    if (wf_parallel_running())
        return wf_error_set(error, WF_ERR_STATE, "the number of threads can't change inside a body of wf_parallel: set it outside");
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

static int find_isa(const char *isa)
{
    int i = (int)(sizeof isas / sizeof *isas) - 1;
    while (i >= 0 && strcmp(isas[i].name, isa) != 0)
        i--;
    return i;
}

/* __builtin_cpu_supports also checks that the system saves the registers. has_f16c is separate because clang's version does not know
 * f16c. The root meson.build compiles for the same list of features. */
bool wf_isa_supported(const char *isa)
{
    int i = find_isa(isa);
    if (i < 0 || !isas[i].kernels || strcmp(isa, "base") == 0)
        return i >= 0 && isas[i].kernels;
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

/* Whether a core with this instruction set does fewer than two multiply-adds of 512 bits per cycle. AMD's family 25 (Zen 4) takes two
 * cycles for 512 bits. Intel's processors with one such unit count as having two, because the program cannot detect the difference. */
static bool half_as_wide(const char *isa)
{
#if defined __x86_64__
    return strcmp(isa, "avx512") != 0 || __builtin_cpu_is("amdfam19h");
#else
    (void)isa;
    return true;
#endif
}

/* `from` names the variable or function that chose `isa`, for messages. */
static wf_status use_isa(const char *isa, const char *from, wf_error *error)
{
    int i = find_isa(isa);
    if (i < 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s: unknown instruction set \"%.40s\"; give avx512, avx2 or base", from, isa);
    if (!wf_isa_supported(isa))
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s: this processor, system or build does not support %s; give %s", from, isa,
                            wf_isa_supported("avx2") ? "avx2 or base" : "base");
    wf_kernel = isas[i].kernels;
    wf_core_speed_set(half_as_wide(isa) ? 0.5 : 1);
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
            wf_gemm_chosen = (enum gemm_mode)i;
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
    return modes[wf_gemm_chosen];
}

/* The value of an environment variable, or NULL if it is unset or empty. */
static const char *setting(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* Starts the library. The caller, init, holds the lock. After a failure the library counts as not started, so that another wf_init can try
 * again. */
static wf_status start(int threads, wf_error *error)
{
    wf_status status;
    const char *isa = setting("WEFT_ISA"), *mode = setting("WEFT_GEMM"), *amx = setting("WEFT_AMX");
    if (amx && strcmp(amx, "0") != 0 && strcmp(amx, "1") != 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "WEFT_AMX: unknown value \"%.40s\"; give 0 to keep AMX out, or 1", amx);
    for (size_t i = 0; !isa; i++)
        if (wf_isa_supported(isas[i].name))
            isa = isas[i].name;
    if ((status = use_isa(isa, "WEFT_ISA", error)) != WF_OK || (status = use_mode(mode ? mode : "auto", "WEFT_GEMM", error)) != WF_OK ||
        (status = wf_set_threads(threads, error)) != WF_OK || (status = wf_blis_start(wf_kernel->isa, error)) != WF_OK)
        return status;
    wf_gemm_own_start();
    wf_amx_use(!amx || strcmp(amx, "0") != 0);
    wf_bf16_rounding_use(true);
    atomic_store(&up, true);
    return WF_OK;
}

static wf_status init(int threads, bool again, wf_error *error)
{
    if (threads == 0)
        threads = WF_MIN(wf_processors(), WF_MAX_THREADS);
    if (again && wf_parallel_running()) /* refuse before taking the lock, whose holder may wait for this body to end */
        return wf_set_threads(threads, error);
    pthread_mutex_lock(&lock);
    wf_status status = !atomic_load(&up) ? start(threads, error) : again ? wf_set_threads(threads, error) : WF_OK;
    pthread_mutex_unlock(&lock);
    return status;
}

wf_status wf_init_with(const struct wf_init_options *options, wf_error *error)
{
    return init(options ? options->threads : 0, true, error);
}

wf_status wf_init_default(wf_error *error)
{
    return atomic_load_explicit(&up, memory_order_acquire) ? WF_OK : init(0, false, error);
}
