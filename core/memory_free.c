/* SPDX-License-Identifier: MIT */
/* Estimates how much memory can be allocated before the kernel must swap or end processes. Linux gives out addresses for more memory than
 * there is, so a large allocation that succeeds says nothing. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <weft/internal/minmax.h>
#include <weft/internal/runtime.h>

/* Reads the number behind `key` at the beginning of a line, or if `key` is NULL the number that the file begins with. -1: there is none. */
static int64_t number_in(const char *root, const char *path, const char *key)
{
    char name[PATH_MAX], line[256];
    int64_t value = -1;
    snprintf(name, sizeof name, "%.1024s%s", root, path);
    FILE *f = fopen(name, "re");
    if (!f)
        return -1;
    const size_t skip = key ? strlen(key) : 0;
    while (value < 0 && fgets(line, sizeof line, f)) {
        long long n;
        if ((!key || strncmp(line, key, skip) == 0) && sscanf(line + skip, "%lld", &n) == 1)
            value = n;
        else if (!key)
            break;
    }
    fclose(f);
    return value;
}

/* Returns the bytes that a control group may still use. Pages of files that nobody has used lately count as used there, but can be dropped.
 */
static int64_t room_of_group(const char *root, const char *limit, const char *usage, const char *stat)
{
    const int64_t most = number_in(root, limit, NULL), used = number_in(root, usage, NULL);
    if (most < 0 || used < 0)
        return INT64_MAX;
    return WF_MAX(0, most - used + WF_MAX(0, number_in(root, stat, "inactive_file ")));
}

int64_t wf_memory_free(const char *root)
{
    const int64_t kib = number_in(root, "/proc/meminfo", "MemAvailable:");
    int64_t room = kib < 0 ? INT64_MAX : kib * 1024;
    room = WF_MIN(room, room_of_group(root, "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory.stat"));
    return WF_MIN(room, room_of_group(root, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes",
                                      "/sys/fs/cgroup/memory/memory.stat"));
}
