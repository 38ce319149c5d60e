/* SPDX-License-Identifier: MIT */
/* Files mapped into memory, to be read only. */
#ifndef WEFT_INTERNAL_MAP_H
#define WEFT_INTERNAL_MAP_H

#include <weft/error.h>

/* If another process truncates the file, reading the pages that it lost ends this process (SIGBUS). So only files that Weft itself writes
 * are mapped by default: they are replaced, never modified. */
struct wf_map {
    const char *data; /* "" if the file is empty or not mapped */
    int64_t bytes;
    int fd;
};

/* Opens a regular file and maps it with `pages`; without, data is "" and wf_map_read reads. WF_ERR_IO: it can't be opened, is a folder, a
 * device or a pipe; WF_ERR_MEMORY: no address space. On an error *map is closed. */
wf_status wf_map_open(const char *path, bool pages, struct wf_map *map, wf_error *error) WF_CHECKED;
/* Reads `bytes` bytes from `offset` on and returns their number: fewer where the file has been cut, -1 (errno) on an error. */
int64_t wf_map_read(int fd, int64_t offset, char *out, int64_t bytes);
/* {0} is allowed. */
void wf_map_close(struct wf_map *map);

#endif
