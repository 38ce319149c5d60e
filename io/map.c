/* SPDX-License-Identifier: MIT */
/* Opens regular files for reading: maps a file into memory, or reads it through its descriptor (map.h). */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weft/internal/map.h>
#include <weft/internal/reason.h>

static const char nothing[] = "";

static void *map_pages(const struct wf_map *map, enum wf_map_pages pages)
{
    /* Without MAP_NORESERVE, a writable file larger than the memory would be refused. */
    return pages == WF_MAP_SHARED ? mmap(NULL, (size_t)map->bytes, PROT_READ, MAP_SHARED, map->fd, 0)
                                  : mmap(NULL, (size_t)map->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, map->fd, 0);
}

wf_status wf_map_open(const char *path, enum wf_map_pages pages, struct wf_map *map, wf_error *error)
{
    struct stat info;
    wf_error failure = {0};
    /* Without O_NONBLOCK, opening a pipe that has no writer would wait forever. */
    *map = (struct wf_map){.data = nothing, .fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (map->fd < 0 || fstat(map->fd, &info) != 0) {
        wf_error_set(&failure, WF_ERR_IO, "%s: cannot be opened: %s", path, wf_reason(errno));
    } else if (!S_ISREG(info.st_mode)) {
        const char *what = S_ISDIR(info.st_mode) ? "a folder" : "a device or a pipe";
        wf_error_set(&failure, WF_ERR_IO, "%s: is %s, not a regular file", path, what);
    } else {
        map->bytes = info.st_size;
        map->modified = info.st_mtim;
        void *memory = pages && map->bytes > 0 ? map_pages(map, pages) : (void *)nothing;
        if (memory == MAP_FAILED)
            wf_error_set(&failure, errno == ENOMEM ? WF_ERR_MEMORY : WF_ERR_IO, "%s: cannot be mapped: %s", path, wf_reason(errno));
        else
            map->data = memory;
        if (!failure.code && memory != nothing && pages == WF_MAP_PRIVATE && !(map->guard = wf_map_guard_add(memory, map->bytes)))
            wf_error_set(&failure, WF_ERR_MEMORY, "%s: cannot be mapped: %d files are mapped already", path, WF_MAPS_GUARDED);
    }
    if (!failure.code)
        return WF_OK;
    wf_map_close(map);
    return wf_error_set(error, failure.code, "%s", failure.message);
}

int64_t wf_map_read(int fd, int64_t offset, char *out, int64_t bytes)
{
    int64_t done = 0;
    while (done < bytes) { /* one read may return less */
        ssize_t got = pread(fd, out + done, (size_t)(bytes - done), offset + done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -1 : done;
        done += got;
    }
    return done;
}

const char *wf_map_harm(const struct wf_map *map)
{
    struct stat now;
    if (map->guard == 0)
        return NULL;
    if (fstat(map->fd, &now) != 0)
        return "cannot be read any more";
    if (now.st_size < map->bytes)
        return "was truncated";
    if (now.st_size != map->bytes || now.st_mtim.tv_sec != map->modified.tv_sec || now.st_mtim.tv_nsec != map->modified.tv_nsec)
        return "was changed";
    return wf_map_guard_lost(map->guard) ? "cannot be read any more" : NULL;
}

void wf_map_close(struct wf_map *map)
{
    wf_map_guard_remove(map->guard);
    if (map->data && map->data != nothing)
        munmap((void *)map->data, (size_t)map->bytes);
    if (map->data && map->fd >= 0)
        close(map->fd);
    *map = (struct wf_map){0};
}
