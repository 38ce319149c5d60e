/* SPDX-License-Identifier: MIT */
/* Makes, lists and removes files and folders, and removes temporary files that killed processes left. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weft/internal/files.h>
#include <weft/internal/grow.h>
#include <weft/internal/needs.h>
#include <weft/internal/reason.h>
#include <weft/memory.h>

bool wf_file_exists(const char *path)
{
    if (!path)
        return false;
    struct stat info;
    return stat(path, &info) == 0 && !S_ISDIR(info.st_mode);
}

bool wf_path_same(const char *a, const char *b)
{
    struct stat one, other;
    return a && b && stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

bool wf_folder_exists(const char *path)
{
    if (!path)
        return false;
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

wf_status wf_file_remove(const char *path, wf_error *error)
{
    if (unlink(path) == 0 || errno == ENOENT)
        return WF_OK;
    int number = errno;
    return wf_error_set(error, WF_ERR_IO, "%s: cannot be removed: %s", path, wf_folder_exists(path) ? "it is a folder" : wf_reason(number));
}

wf_status wf_folder_make(const char *path, wf_error *error)
{
    if (wf_needs(error, "path", path))
        return WF_ERR_ARGUMENT;
    if (!*path)
        return wf_error_set(error, WF_ERR_ARGUMENT, "the name of a folder is empty");
    char *part = wf_strdup(path);
    if (!part)
        return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory to create the folder", path);
    wf_status status = WF_OK;
    for (char *end = part; *end && status == WF_OK;) {
        end += strspn(end, "/");
        end += strcspn(end, "/");
        char kept = *end;
        *end = 0;
        /* A folder that exists, or that another process has just made, is no failure. On a read-only system, mkdir may return EROFS or
         * EACCES for a folder that exists. So check whether the folder exists, whatever the errno. */
        int number = mkdir(part, 0777) == 0 ? 0 : errno;
        if (number != 0 && !wf_folder_exists(part)) {
            const char *reason = number == EEXIST || number == ENOTDIR ? "not a folder" : wf_reason(number);
            status = strcmp(part, path) == 0 ? wf_error_set(error, WF_ERR_IO, "%s: cannot be created: %s", path, reason)
                                             : wf_error_set(error, WF_ERR_IO, "%s: cannot be created: %s: %s", path, part, reason);
        }
        *end = kept;
    }
    wf_free(part);
    return status;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool add_name(struct wf_names *names, int64_t *room, const char *name)
{
    if (!wf_grow(&names->name, room, names->count + 1, sizeof *names->name) || !(names->name[names->count] = wf_strdup(name)))
        return false;
    names->count++;
    return true;
}

wf_status wf_folder_list(const char *folder, const char *prefix, struct wf_names *names, wf_error *error)
{
    *names = (struct wf_names){0};
    folder = *folder ? folder : ".";
    DIR *dir = opendir(folder);
    if (!dir)
        return wf_error_set(error, errno == ENOMEM ? WF_ERR_MEMORY : WF_ERR_IO, "%s: cannot be opened as a folder: %s", folder,
                            wf_reason(errno));
    wf_status status = WF_OK;
    int64_t room = 0;
    struct dirent *entry;
    while (status == WF_OK && (errno = 0, entry = readdir(dir))) {
        struct stat info;
        if (strncmp(entry->d_name, prefix, strlen(prefix)) || (entry->d_name[0] == '.' && *prefix != '.') ||
            fstatat(dirfd(dir), entry->d_name, &info, 0) != 0 || !S_ISREG(info.st_mode)) /* skips a file that was removed meanwhile */
            continue;
        if (!add_name(names, &room, entry->d_name))
            status = wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for the list of its files", folder);
    }
    if (status == WF_OK && errno)
        status = wf_error_set(error, WF_ERR_IO, "%s: cannot be listed: %s", folder, wf_reason(errno));
    closedir(dir);
    if (status != WF_OK)
        wf_names_free(names);
    else if (names->count)
        qsort(names->name, (size_t)names->count, sizeof *names->name, by_bytes);
    return status;
}

void wf_names_free(struct wf_names *names)
{
    for (int64_t i = 0; i < names->count; i++)
        wf_free(names->name[i]);
    wf_free(names->name);
    *names = (struct wf_names){0};
}

/* Removes the file if nobody holds its lock, and holds the lock until the file is removed. A writer that has created its file but not
 * locked it yet finds the file locked or removed, and creates another one. */
bool wf_file_remove_unlocked(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat info;
    bool removed = fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && flock(fd, LOCK_EX | LOCK_NB) == 0 && unlink(path) == 0;
    if (fd >= 0)
        close(fd);
    return removed;
}

/* Returns true if `name` has the form of a temporary file of wf_file_writer: ".weft-", 16 hexadecimal digits, ".tmp". */
static bool is_temporary(const char *name)
{
    return strlen(name) == 26 && !strncmp(name, ".weft-", 6) && strspn(name + 6, "0123456789abcdef") == 16 && !strcmp(name + 22, ".tmp");
}

wf_status wf_file_sweep(const char *folder, int *removed, wf_error *error)
{
    struct wf_names names;
    int count = 0;
    wf_status status = wf_folder_list(folder, ".weft-", &names, error);
    for (int64_t i = 0; i < names.count; i++) {
        char *path = is_temporary(names.name[i]) ? wf_format("%s/%s", *folder ? folder : ".", names.name[i]) : NULL;
        count += path && wf_file_remove_unlocked(path);
        wf_free(path);
    }
    if (removed)
        *removed = count;
    wf_names_free(&names);
    return status;
}
