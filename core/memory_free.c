/* SPDX-License-Identifier: MIT */
/* Estimates how much memory can be allocated before the kernel must swap or end processes. Linux gives out addresses for more memory than
 * there is, so a large allocation that succeeds says nothing. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <weft/internal/minmax.h>
#include <weft/internal/runtime.h>

/* Returns the number behind `key` at the beginning of a line of the file. -1: there is none. */
static int64_t number_behind(const char *folder, const char *file, const char *key)
{
    char name[PATH_MAX], line[256];
    long long value = -1;
    snprintf(name, sizeof name, "%.2048s/%s", folder, file);
    FILE *f = fopen(name, "re");
    while (f && value < 0 && fgets(line, sizeof line, f))
        if (strncmp(line, key, strlen(key)) == 0)
            (void)sscanf(line + strlen(key), "%lld", &value);
    if (f)
        fclose(f);
    return value;
}

/* Lowers *least to the bytes that a control group may still use. Pages of files count as used there, but can be dropped; mapped weights are
 * such pages. */
static void take_room(void *least, const char *folder)
{
    static const struct {
        const char *limit, *usage, *pages[2];
    } versions[] = {{"memory.max", "memory.current", {"inactive_file ", "active_file "}},
                    {"memory.limit_in_bytes", "memory.usage_in_bytes", {"total_inactive_file ", "total_active_file "}}};
    int64_t *room = least;
    for (int v = 0; v < 2; v++) {
        long long most = -1, used = -1, none;
        if (wf_cgroup_numbers(folder, versions[v].limit, &most, &none) < 1 ||
            wf_cgroup_numbers(folder, versions[v].usage, &used, &none) < 1)
            continue;
        for (int i = 0; i < 2; i++)
            used -= WF_MAX(0, number_behind(folder, "memory.stat", versions[v].pages[i]));
        *room = WF_MIN(*room, WF_MAX(0, most - used));
    }
}

int64_t wf_memory_free(const char *root)
{
    const int64_t kib = number_behind(root, "proc/meminfo", "MemAvailable:");
    int64_t room = kib < 0 ? INT64_MAX : kib * 1024;
    wf_cgroup_walk(root, "memory", take_room, &room);
    return room;
}
