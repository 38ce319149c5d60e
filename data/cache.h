/* SPDX-License-Identifier: MIT */
/* Inside the room: cached results in files, which are named by a hash of what the result depends on. They may be removed at any time. */
#ifndef WEFT_DATA_CACHE_H
#define WEFT_DATA_CACHE_H

#include <weft/corpus.h>
#include <weft/internal/map.h>

enum cache_kind { CACHE_IDS, CACHE_SURVEY, CACHE_TOKENIZER };
/* "FOLDER/ids-0123456789abcdef.bin"; NULL without memory, with *error. */
char *cache_path(const char *folder, enum cache_kind kind, uint64_t key, wf_error *error);
/* A hash of the versions of what encodes: another Unicode can give other ids. */
uint64_t cache_encoder(void);
/* Maps a file, marks it as used now, and keeps it from being deleted until it is closed. False if it does not exist or is unusable. */
bool cache_map(const char *path, struct wf_map *map);
/* Whether a cached file is there. Removes a pipe, an empty folder or a link to one that has its name, so that the cache can be written. */
bool cache_there(const char *path);
/* Marks a file as used now. */
void cache_touch(const char *path);
/* Creates the folder, for the user alone, removes temporary files of killed processes, and deletes the files that have not been used for
 * the longest time until the rest and `bytes` more are within the limit; mapped files stay. False if the folder cannot be created. */
bool cache_make_room(const char *folder, int64_t bytes);

#endif
