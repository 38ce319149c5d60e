/* SPDX-License-Identifier: MIT */
/* Counts the processors that this process may use: those of the affinity mask (or of OMP_PROC_BIND with OMP_PLACES), limited by the
 * quota of the cgroup (v1 or v2) and by the process's share of the node. */
#include <errno.h>
#include <limits.h>
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weft/internal/launcher.h>
#include <weft/internal/minmax.h>
#include <weft/internal/runtime.h>

/* Lowers *least, the least quota in processors so far or 0, to the quota of a control group. In v2 the file cpu.max contains "200000
 * 100000" or "max 100000"; in v1 two files contain the numbers. */
static void take_quota(void *least, const char *folder)
{
    long long quota = 0, period = 0, none;
    double *min = least;
    if (wf_cgroup_numbers(folder, "cpu.max", &quota, &period) < 0 && wf_cgroup_numbers(folder, "cpu.cfs_quota_us", &quota, &none) == 1)
        wf_cgroup_numbers(folder, "cpu.cfs_period_us", &period, &none);
    const double processors = quota > 0 && period > 0 ? (double)quota / (double)period : 0;
    if (processors > 0 && (*min == 0 || processors < *min))
        *min = processors;
}

int wf_cgroup_processors(const char *root)
{
    double least = 0;
    wf_cgroup_walk(root, "cpu", take_quota, &least);
    if (least == 0)
        return 0;
    return least < 1 ? 1 : least > 1e6 ? 1000000 : (int)(least + 0.5);
}

static int affinity_processors(void)
{
    if (omp_get_proc_bind() != omp_proc_bind_false) /* the thread's own mask may then be only one of OpenMP's places */
        return omp_get_num_procs();
    /* The system's mask may be larger than cpu_set_t, so larger sizes are tried. */
    for (int size = 1024; size <= 1 << 20; size *= 2) {
        cpu_set_t *set = CPU_ALLOC(size);
        if (!set)
            return 1;
        int failed = sched_getaffinity(0, CPU_ALLOC_SIZE(size), set) != 0 ? errno : 0;
        int count = failed ? 1 : CPU_COUNT_S(CPU_ALLOC_SIZE(size), set);
        CPU_FREE(set);
        if (failed != EINVAL)
            return count > 0 ? count : 1;
    }
    return 1;
}

int wf_count_processors(void)
{
    int count = affinity_processors(), quota = wf_cgroup_processors("");
    const int here = wf_launcher().local_size, online = (int)sysconf(_SC_NPROCESSORS_ONLN);
    /* With several processes on the node, use an even share of the processors. The affinity mask does not show the share reliably: a
     * launcher may bind a process to fewer processors than its share, or bind several processes to one socket. */
    const int share = here > 1 && online > here ? online / here : here > 1 ? 1 : count;
    count = quota > 0 && quota < count ? quota : count;
    return WF_MIN(share, count);
}
