/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weft/internal/map.h>
#include <weft/internal/reason.h>

static wf_status refuse(struct wf_map *map, const char *path, wf_error *error, wf_status code, const char *what)
{
    int number = errno;
    wf_map_close(map);
    return wf_error_set(error, code, "%s: %s: %s", path, what, wf_reason(number));
}

wf_status wf_map_open(const char *path, struct wf_map *map, wf_error *error)
{
    *map = (struct wf_map){0};
    /* Without O_NONBLOCK a pipe without a writer would keep us for ever. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return refuse(map, path, error, WF_ERR_IO, "cannot be opened");
    *map = (struct wf_map){.data = "", .fd = fd};
    struct stat info;
    if (fstat(fd, &info) != 0)
        return refuse(map, path, error, WF_ERR_IO, "cannot be examined");
    if (!S_ISREG(info.st_mode)) {
        wf_map_close(map);
        return wf_error_set(error, WF_ERR_IO, "%s: is %s, not a regular file; it is read more than once, so write it to a file first", path,
                            S_ISDIR(info.st_mode) ? "a folder" : "a device or a pipe");
    }
    if (info.st_size > 0) {
        void *memory = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_SHARED, fd, 0);
        if (memory == MAP_FAILED)
            return refuse(map, path, error, errno == ENOMEM ? WF_ERR_MEMORY : WF_ERR_IO, "cannot be mapped");
        map->data = memory;
        map->bytes = info.st_size;
    }
    return WF_OK;
}

void wf_map_close(struct wf_map *map)
{
    if (map->bytes > 0)
        munmap((void *)map->data, (size_t)map->bytes);
    if (map->data)
        close(map->fd);
    *map = (struct wf_map){0};
}
