/* SPDX-License-Identifier: MIT */
/* Removes folders with their files, and gives a finished folder its name. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weft/internal/files.h>
#include <weft/internal/reason.h>
#include <weft/memory.h>

static bool is_entry(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

bool wf_folder_empty(const char *path)
{
    DIR *dir = opendir(path);
    bool empty = dir != NULL;
    for (struct dirent *entry; empty && (entry = readdir(dir));)
        empty = !is_entry(entry);
    if (dir)
        closedir(dir);
    return empty;
}

/* Removes what the folder contains; below `depth` 0 a folder must be empty. Returns 0 or an errno. */
static int clear(const char *path, int depth)
{
    DIR *dir = opendir(path);
    int number = dir ? 0 : errno;
    for (struct dirent *entry; dir && number == 0 && (entry = readdir(dir));) {
        char *inner = is_entry(entry) ? wf_format("%s/%s", path, entry->d_name) : NULL;
        struct stat info;
        if (is_entry(entry) && !inner)
            number = ENOMEM;
        else if (inner && lstat(inner, &info) == 0 && S_ISDIR(info.st_mode)) {
            number = depth > 0 ? clear(inner, depth - 1) : 0;
            if (number == 0 && rmdir(inner) != 0)
                number = errno;
        } else if (inner && unlink(inner) != 0 && errno != ENOENT)
            number = errno;
        wf_free(inner);
    }
    if (dir)
        closedir(dir);
    return number;
}

wf_status wf_folder_remove(const char *path, wf_error *error)
{
    int number = clear(path, 1);
    if (number == 0 && rmdir(path) != 0)
        number = errno;
    return number == 0 || number == ENOENT ? WF_OK : wf_error_set(error, WF_ERR_IO, "%s: cannot be removed: %s", path, wf_reason(number));
}

wf_status wf_folder_rename(const char *from, const char *to, wf_error *error)
{
    char *parent = wf_strdup(to), *slash = parent ? strrchr(parent, '/') : NULL;
    if (!parent)
        return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory to rename a folder", to);
    if (slash)
        slash[slash == parent] = 0; /* for "/folder", the parent is "/" */
    wf_status status = WF_OK;
    if (rename(from, to) != 0)
        status = wf_error_set(error, WF_ERR_IO, "%s: cannot be renamed to %s: %s", from, to, wf_reason(errno));
    int fd = status == WF_OK ? open(slash ? parent : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        (void)!fsync(fd); /* some file systems can't sync folders; a power failure may then bring the old name back */
        close(fd);
    }
    wf_free(parent);
    return status;
}
