/* SPDX-License-Identifier: MIT */
/* Files mapped into memory, to be read only. */
#ifndef WEFT_INTERNAL_MAP_H
#define WEFT_INTERNAL_MAP_H

#include <weft/error.h>

/* Who shortens the file while it is mapped takes its last pages away, and reading those ends the process (SIGBUS): the system offers no
 * other answer. What can be done is to look first: wf_map_changed notices any write, and a reader that asks it before each piece of work
 * runs a risk only of a file that is cut during that piece. A file that is replaced (written beside it and renamed, as editors and
 * wf_file_save do) stays as it was for those who have it open. */
struct wf_map {
    const char *data; /* "" when the file is empty */
    int64_t bytes;
    int fd;
    int64_t seconds, nanoseconds; /* when it was last written to */
};

/* Maps a regular file. WF_ERR_IO: it can't be opened, is a folder, a device or a pipe; WF_ERR_MEMORY: no address space. On an error *map
 * is closed. */
wf_status wf_map_open(const char *path, struct wf_map *map, wf_error *error) WF_CHECKED;
/* Also of {0}. */
void wf_map_close(struct wf_map *map);
/* Whether the file was written to, or its size changed, since it was mapped (or since the last call that said so); *bytes is its
 * size now. Above map->bytes, it grew and the map shows the old part. */
bool wf_map_changed(struct wf_map *map, int64_t *bytes);

#endif
