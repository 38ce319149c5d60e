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

/* Reads up to two numbers from the beginning of a small file. Returns how many it read, or -1 if it cannot open the file. */
static int numbers(const char *folder, const char *file, long long *one, long long *two)
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *f = fopen(path, "re");
    if (!f)
        return -1;
    int count = fscanf(f, "%lld %lld", one, two);
    fclose(f);
    return count;
}

/* The quota of a cgroup's folder, in processors; 0 if there is none. In v2 the file cpu.max contains "200000 100000" or "max 100000"; in
 * v1 two files contain the numbers. */
static double folder_quota(const char *folder)
{
    long long quota = 0, period = 0, none;
    if (numbers(folder, "cpu.max", &quota, &period) < 0 && numbers(folder, "cpu.cfs_quota_us", &quota, &none) == 1)
        numbers(folder, "cpu.cfs_period_us", &period, &none);
    return quota > 0 && period > 0 ? (double)quota / (double)period : 0;
}

/* The least quota of a cgroup and of all its ancestors, because a limit applies to all groups below. The last folder to be read is the
 * mount itself, because in a container the group's own path may not be visible, and the mount is then the group. */
static double least_quota(const char *mount, const char *group)
{
    char folder[PATH_MAX];
    if ((size_t)snprintf(folder, sizeof folder, "%s%s", mount, group) >= sizeof folder)
        return 0;
    double least = 0;
    for (size_t base = strlen(mount);;) {
        double quota = folder_quota(folder);
        if (quota > 0 && (least == 0 || quota < least))
            least = quota;
        if (strlen(folder) <= base)
            return least;
        char *slash = strrchr(folder + base, '/');
        *(slash ? slash : folder + base) = 0;
    }
}

/* Whether a comma-separated list contains "cpu". */
static bool has_cpu(const char *list)
{
    for (const char *p = list; *p;) {
        size_t n = strcspn(p, ",");
        if (n == 3 && strncmp(p, "cpu", 3) == 0)
            return true;
        p += n + (p[n] == ',');
    }
    return false;
}

int wf_cgroup_processors(const char *root)
{
    char path[PATH_MAX], line[PATH_MAX], mount[PATH_MAX];
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *f = fopen(path, "re");
    if (!f)
        return 0;
    double least = 0;
    while (fgets(line, sizeof line, f)) {
        /* the format of a line: hierarchy:controllers:path */
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *controllers++ = 0;
        *group++ = 0;
        double quota = 0;
        if (!*controllers) {
            snprintf(mount, sizeof mount, "%s/sys/fs/cgroup", root);
            quota = least_quota(mount, group);
        } else if (has_cpu(controllers)) {
            snprintf(mount, sizeof mount, "%.1024s/sys/fs/cgroup/%.256s", root, controllers);
            quota = least_quota(mount, group);
            if (quota == 0) {
                snprintf(mount, sizeof mount, "%s/sys/fs/cgroup/cpu", root);
                quota = least_quota(mount, group);
            }
        }
        if (quota > 0 && (least == 0 || quota < least))
            least = quota;
    }
    fclose(f);
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
