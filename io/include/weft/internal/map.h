/* SPDX-License-Identifier: MIT */
/* Opens regular files for reading only. A file is either mapped into memory or read through its descriptor. */
#ifndef WEFT_INTERNAL_MAP_H
#define WEFT_INTERNAL_MAP_H

#include <weft/error.h>

/* If another process truncates a mapped file, reading the lost pages ends this process (SIGBUS). So only files that Weft itself writes are
 * mapped by default: Weft replaces its files and never modifies them. */
struct wf_map {
    const char *data; /* the mapped file; "" if the file is empty or not mapped */
    int64_t bytes;
    int fd;
};

/* Opens a regular file. With `pages`, maps it; otherwise `data` is "", and wf_map_read reads the file. On an error *map is closed.
 * WF_ERR_IO: the file can't be opened, or is a folder, a device or a pipe. WF_ERR_MEMORY: there is no address space. */
wf_status wf_map_open(const char *path, bool pages, struct wf_map *map, wf_error *error) WF_CHECKED;
/* Reads `bytes` bytes from `offset` on. Returns the number of bytes, which is smaller if the file has been truncated, or -1 with errno. */
int64_t wf_map_read(int fd, int64_t offset, char *out, int64_t bytes);
/* Closes the file. *map may be {0}. */
void wf_map_close(struct wf_map *map);

#endif
