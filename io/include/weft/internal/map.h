/* SPDX-License-Identifier: MIT */
/* Opens regular files for reading only. A file is either mapped into memory or read through its descriptor. */
#ifndef WEFT_INTERNAL_MAP_H
#define WEFT_INTERNAL_MAP_H

#include <time.h>

#include <weft/error.h>

enum wf_map_pages {
    WF_MAP_NONE,   /* not mapped: wf_map_read reads the file */
    WF_MAP_SHARED, /* If another process truncates the file, reading the lost pages ends this process (SIGBUS). So only files that Weft
                      itself writes are mapped so: Weft replaces its files and never modifies them. */
    WF_MAP_PRIVATE /* Writing to the memory is allowed and does not change the file. The pages are guarded: see wf_safetensors_guard. */
};
enum { WF_MAPS_GUARDED = 1024 }; /* files that can be mapped WF_MAP_PRIVATE at a time */

struct wf_map {
    const char *data; /* the mapped file; "" if the file is empty or not mapped */
    int64_t bytes;
    int fd;
    int guard;                /* the place of a file mapped WF_MAP_PRIVATE among the guarded ones, or 0 */
    struct timespec modified; /* when the file was modified last before it was opened */
};

/* Opens a regular file and maps it as `pages` says. On an error *map is closed. WF_ERR_IO: the file can't be opened, or is a folder, a
 * device or a pipe. WF_ERR_MEMORY: there is no address space, or too many files are guarded. */
wf_status wf_map_open(const char *path, enum wf_map_pages pages, struct wf_map *map, wf_error *error) WF_CHECKED;
/* Reads `bytes` bytes from `offset` on. Returns the number of bytes, which is smaller if the file has been truncated, or -1 with errno. */
int64_t wf_map_read(int fd, int64_t offset, char *out, int64_t bytes);
/* What has happened to a file that is mapped WF_MAP_PRIVATE since it was opened, as the end of "the file ...", or NULL if nothing has.
 * Before an in-place change the memory may have shown the old bytes, and after it the new ones. */
const char *wf_map_harm(const struct wf_map *map);
/* Closes the file. *map may be {0}. */
void wf_map_close(struct wf_map *map);

/* --- map_guard.c --- */
/* Adds mapped memory to what wf_safetensors_guard watches. Returns the place, above 0; 0: there is none left. */
int wf_map_guard_add(const void *memory, int64_t bytes);
void wf_map_guard_remove(int guard);
/* Whether pages were lost since wf_map_guard_add, so that the memory does not have the file's content. */
bool wf_map_guard_lost(int guard);

#endif
