/* SPDX-License-Identifier: MIT */
#include "check_weft.h"

#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weft/internal/kernels.h>
#include <weft/internal/minmax.h>
#include <weft/internal/runtime.h>

/* First, while the library is down also when all tests share one process. */
START_TEST(bad_settings)
{
    static const struct {
        const char *name, *value, *message;
    } cases[] = {
        {"WEFT_ISA", "sse9", "WEFT_ISA: unknown instruction set \"sse9\"; give avx512, avx2 or base"},
        {"WEFT_ISA", "AVX2", "WEFT_ISA: unknown instruction set \"AVX2\"; give avx512, avx2 or base"},
        {"WEFT_GEMM", "mkl", "WEFT_GEMM: unknown value \"mkl\"; give auto, blis or own"},
        {"WEFT_AMX", "no", "WEFT_AMX: unknown value \"no\"; give 0 to keep AMX out, or 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setenv(cases[i].name, cases[i].value, 1);
        ck_fails(wf_init(error), WF_ERR_ARGUMENT, cases[i].message);
        unsetenv(cases[i].name);
    }
    if (!wf_isa_supported("avx512")) {
        setenv("WEFT_ISA", "avx512", 1);
        ck_fails(wf_init(error), WF_ERR_ARGUMENT, "does not support avx512");
        unsetenv("WEFT_ISA");
    }
    ck_fails(wf_init(error, .threads = -1), WF_ERR_ARGUMENT, "");
    ck_fails(wf_init(error, .threads = 100000), WF_ERR_ARGUMENT, "");
}
END_TEST

START_TEST(settings)
{
    setenv("WEFT_ISA", "base", 1);
    setenv("WEFT_GEMM", "own", 1);
    setenv("WEFT_AMX", "0", 1);
    ck_ok(wf_init(error, .threads = 1));
    ck_assert(!wf_amx());
    unsetenv("WEFT_AMX");
    unsetenv("WEFT_ISA");
    unsetenv("WEFT_GEMM");
    ck_assert_str_eq(wf_isa(), "base");
    ck_assert_str_eq(wf_gemm_mode(), "own");
    ck_ok(wf_gemm_use("blis", error));
    ck_assert_str_eq(wf_gemm_mode(), "blis");
    ck_ok(wf_gemm_use("auto", error));
    ck_assert_int_eq(wf_threads(), 1);
    ck_ok(wf_init(error, .threads = 3));
    ck_assert_int_eq(wf_threads(), 3);
    ck_ok(wf_init_default(error));
    ck_assert_int_eq(wf_threads(), 3);
    ck_ok(wf_init(error));
    ck_assert_int_eq(wf_threads(), wf_processors());
    ck_assert_str_eq(wf_version(), WF_VERSION);
    ck_assert_uint_gt(strlen(wf_blas()), 0);
    static const char *const isas[] = {"base", "avx2", "avx512"};
    for (int i = 0; i < 3; i++) {
        if (wf_isa_supported(isas[i])) {
            ck_ok(wf_isa_use(isas[i], error));
            ck_assert_str_eq(wf_isa(), isas[i]);
            ck_assert_str_eq(wf_kernel->isa, isas[i]);
        } else {
            ck_fails(wf_isa_use(isas[i], error), WF_ERR_ARGUMENT, isas[i]);
        }
    }
    ck_assert(wf_isa_supported("base") && !wf_isa_supported("neon512"));
    ck_fails(wf_gemm_use("", error), WF_ERR_ARGUMENT, "");
}
END_TEST

START_TEST(thread_bounds)
{
    ck_ok(wf_init(error));
    const int most = WF_MIN(4 * wf_processors(), 256);
    const int outside[] = {0, -5, 257, 1 << 30, most + 1};
    for (int i = 0; i < 5; i++) {
        ck_fails(wf_set_threads(outside[i], error), WF_ERR_ARGUMENT, "");
        ck_assert_int_eq(wf_threads(), wf_processors());
    }
    ck_ok(wf_set_threads(most, error));
    ck_assert_int_eq(wf_threads(), most);
    ck_ok(wf_set_threads(1, error));
}
END_TEST

static void write_file(const char *root, const char *path, const char *text)
{
    char full[512];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')); p++) {
        *p = 0;
        mkdir(full, 0755);
        *p = '/';
    }
    FILE *f = fopen(full, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

START_TEST(cgroups)
{
    static const struct {
        const char *files[8];
        int processors;
    } cases[] = {
        {{NULL}, 0},
        {{"/proc/self/cgroup", "0::/a/b\n", "/sys/fs/cgroup/a/b/cpu.max", "max 100000\n", NULL}, 0},
        {{"/proc/self/cgroup", "0::/a/b\n", "/sys/fs/cgroup/a/b/cpu.max", "300000 100000\n", NULL}, 3},
        {{"/proc/self/cgroup", "0::/a/b\n", "/sys/fs/cgroup/a/b/cpu.max", "800000 100000\n", "/sys/fs/cgroup/a/cpu.max", "150000 100000",
          NULL},
         2},
        {{"/proc/self/cgroup", "0::/a/b\n", "/sys/fs/cgroup/a/b/cpu.max", "max 100000\n", "/sys/fs/cgroup/cpu.max", "20000 100000", NULL},
         1},
        {{"/proc/self/cgroup", "0::/../hidden\n", "/sys/fs/cgroup/cpu.max", "400000 100000\n", NULL}, 4},
        {{"/proc/self/cgroup", "0::/\n", "/sys/fs/cgroup/cpu.max", "nonsense\n", NULL}, 0},
        {{"/proc/self/cgroup", "5:memory:/x\n4:cpu,cpuacct:/d\n", "/sys/fs/cgroup/cpu,cpuacct/d/cpu.cfs_quota_us", "200000\n",
          "/sys/fs/cgroup/cpu,cpuacct/d/cpu.cfs_period_us", "100000\n", NULL},
         2},
        {{"/proc/self/cgroup", "4:cpuacct,cpu:/d\n", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "500000\n",
          "/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n", NULL},
         5},
        {{"/proc/self/cgroup", "4:cpu:/d\n3:cpuset:/d\n", "/sys/fs/cgroup/cpu/d/cpu.cfs_quota_us", "-1\n",
          "/sys/fs/cgroup/cpu/d/cpu.cfs_period_us", "100000\n", NULL},
         0},
        {{"/proc/self/cgroup", "3:cpuset:/d\n", "/sys/fs/cgroup/cpuset/d/cpu.cfs_quota_us", "100000\n",
          "/sys/fs/cgroup/cpuset/d/cpu.cfs_period_us", "100000\n", NULL},
         0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char root[] = "/tmp/weft-cgroup-XXXXXX", command[64];
        ck_assert_ptr_nonnull(mkdtemp(root));
        for (int f = 0; cases[i].files[f]; f += 2)
            write_file(root, cases[i].files[f], cases[i].files[f + 1]);
        int got = wf_cgroup_processors(root);
        snprintf(command, sizeof command, "rm -r %s", root);
        ck_assert_int_eq(system(command), 0);
        ck_assert_msg(got == cases[i].processors, "case %zu: %d processors, not %d", i, got, cases[i].processors);
    }
}
END_TEST

START_TEST(memory_that_is_free)
{
    static const struct {
        const char *files[15];
        int64_t free;
    } cases[] = {
        {{NULL}, INT64_MAX},
        {{"/proc/meminfo", "MemTotal: 100 kB\nMemFree: 5 kB\nMemAvailable:   30 kB\n", NULL}, 30 * 1024},
        {{"/proc/meminfo", "MemAvailable: 300 kB\n", "/proc/self/cgroup", "0::/\n", "/sys/fs/cgroup/memory.max", "max\n",
          "/sys/fs/cgroup/memory.current", "5\n", NULL},
         300 * 1024},
        {{"/proc/meminfo", "MemAvailable: 300 kB\n", "/proc/self/cgroup", "0::/\n", "/sys/fs/cgroup/memory.max", "102400\n",
          "/sys/fs/cgroup/memory.current", "90000\n", "/sys/fs/cgroup/memory.stat", "anon 1\ninactive_file 7000\nactive_file 600\n", NULL},
         20000},
        {{"/proc/self/cgroup", "9:memory:/\n", "/sys/fs/cgroup/memory/memory.limit_in_bytes", "1000\n",
          "/sys/fs/cgroup/memory/memory.usage_in_bytes", "2000\n", NULL},
         0},
        {{"/proc/self/cgroup", "9:memory:/\n", "/sys/fs/cgroup/memory/memory.limit_in_bytes", "5000\n",
          "/sys/fs/cgroup/memory/memory.usage_in_bytes", "4000\n", "/sys/fs/cgroup/memory/memory.stat",
          "inactive_file 1\ntotal_inactive_file 500\ntotal_active_file 200\n", NULL},
         1700},
        /* the groups above count, too; a group of another controller does not */
        {{"/proc/self/cgroup", "4:cpu:/x\n9:memory:/a/b\n", "/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "5000\n",
          "/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "4000\n", "/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "900\n",
          "/sys/fs/cgroup/memory/a/b/memory.usage_in_bytes", "300\n", "/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "5\n", NULL},
         600},
        {{"/proc/self/cgroup", "0::/a/b\n", "/sys/fs/cgroup/a/b/memory.max", "max\n", "/sys/fs/cgroup/a/b/memory.current", "1\n",
          "/sys/fs/cgroup/a/memory.max", "5000\n", "/sys/fs/cgroup/a/memory.current", "4000\n", NULL},
         1000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char root[] = "/tmp/weft-memory-XXXXXX", command[64];
        ck_assert_ptr_nonnull(mkdtemp(root));
        for (int f = 0; cases[i].files[f]; f += 2)
            write_file(root, cases[i].files[f], cases[i].files[f + 1]);
        const int64_t got = wf_memory_free(root);
        snprintf(command, sizeof command, "rm -r %s", root);
        ck_assert_int_eq(system(command), 0);
        ck_assert_msg(got == cases[i].free, "case %zu: %lld bytes, not %lld", i, (long long)got, (long long)cases[i].free);
    }
    ck_assert_int_gt(wf_memory_free(""), 1 << 20);
}
END_TEST

static void *count_bound(void *result)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof set, &set);
    int first = 0;
    while (!CPU_ISSET(first, &set))
        first++;
    CPU_ZERO(&set);
    CPU_SET(first, &set);
    sched_setaffinity(0, sizeof set, &set);
    *(int *)result = wf_count_processors();
    return NULL;
}

START_TEST(affinity)
{
    int bound = 0;
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, count_bound, &bound), 0);
    pthread_join(thread, NULL);
    ck_assert_int_eq(bound, 1);
    ck_assert_int_ge(wf_count_processors(), 1);
}
END_TEST

static void *first_use(void *result)
{
    *(int *)result = wf_init_default(&(wf_error){0}) == WF_OK && wf_threads() > 0;
    return NULL;
}

START_TEST(start_from_threads)
{
    int good[4] = {0};
    pthread_t thread[4];
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, first_use, &good[i]), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(thread[i], NULL);
        ck_assert_int_eq(good[i], 1);
    }
}
END_TEST

WF_TEST_MAIN("runtime", bad_settings, settings, thread_bounds, cgroups, memory_that_is_free, affinity, start_from_threads)
