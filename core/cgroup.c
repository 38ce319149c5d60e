/* SPDX-License-Identifier: MIT */
/* Finds the control groups (v1 or v2) whose limits apply to this process. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <weft/internal/runtime.h>

int wf_cgroup_numbers(const char *folder, const char *file, long long *one, long long *two)
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

/* Visits a group and all its ancestors, because a limit applies to all groups below. The last folder is the mount itself, because in a
 * container the group's own path may not be visible, and the mount is then the group. */
static void visit_ancestors(const char *mount, const char *group, wf_cgroup_visit *visit, void *ctx)
{
    char folder[PATH_MAX];
    if ((size_t)snprintf(folder, sizeof folder, "%s%s", mount, group) >= sizeof folder)
        return;
    for (size_t base = strlen(mount);;) {
        visit(ctx, folder);
        if (strlen(folder) <= base)
            return;
        char *slash = strrchr(folder + base, '/');
        *(slash ? slash : folder + base) = 0;
    }
}

/* Whether a comma-separated list contains the name. */
static bool has(const char *list, const char *name)
{
    for (const char *p = list; *p;) {
        size_t n = strcspn(p, ",");
        if (n == strlen(name) && strncmp(p, name, n) == 0)
            return true;
        p += n + (p[n] == ',');
    }
    return false;
}

void wf_cgroup_walk(const char *root, const char *controller, wf_cgroup_visit *visit, void *ctx)
{
    char path[PATH_MAX], line[PATH_MAX], mount[PATH_MAX];
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) {
        /* the format of a line: hierarchy:controllers:path */
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *controllers++ = 0;
        *group++ = 0;
        if (!*controllers) {
            snprintf(mount, sizeof mount, "%s/sys/fs/cgroup", root);
            visit_ancestors(mount, group, visit, ctx);
        } else if (has(controllers, controller)) {
            snprintf(mount, sizeof mount, "%.1024s/sys/fs/cgroup/%.256s", root, controllers);
            visit_ancestors(mount, group, visit, ctx);
            snprintf(mount, sizeof mount, "%s/sys/fs/cgroup/%s", root, controller);
            if (strcmp(controllers, controller) != 0)
                visit_ancestors(mount, group, visit, ctx);
        }
    }
    if (f)
        fclose(f);
}
