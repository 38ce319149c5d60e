/* SPDX-License-Identifier: MIT */
/* Inside the room: files of what was computed once, found again by what they depend on. They may be removed at any time. */
#ifndef WEFT_DATA_CACHE_H
#define WEFT_DATA_CACHE_H

#include <weft/corpus.h>
#include <weft/internal/map.h>

/* "FOLDER/KIND-0123456789abcdef.bin"; NULL without memory, with *error. */
char *cache_path(const char *folder, const char *kind, uint64_t key, wf_error *error);
/* A hash of the versions of what encodes: another Unicode can give other ids. */
uint64_t cache_encoder(void);
/* Maps a file, marks it as used now, and keeps it from being dropped until it is closed. False where there is none that can be used. */
bool cache_map(const char *path, struct wf_map *map);
/* Marks a file as used now. */
void cache_touch(const char *path);
/* Makes the folder, removes what killed processes left in it, and drops the files that were not used for longest until the others and
 * `bytes` more keep within the limit; files that are mapped stay. False where nothing can be written. */
bool cache_make_room(const char *folder, int64_t bytes);

#endif
