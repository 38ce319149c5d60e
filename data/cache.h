/* SPDX-License-Identifier: MIT */
/* Internal to data/: cached results in files. A file's name contains a hash of everything that its content depends on. A user may delete
 * the files at any time. */
#ifndef WEFT_DATA_CACHE_H
#define WEFT_DATA_CACHE_H

#include <weft/corpus.h>
#include <weft/internal/map.h>

enum cache_kind { CACHE_IDS, CACHE_SURVEY, CACHE_TOKENIZER };
/* The path of a cached file: "FOLDER/ids-0123456789abcdef.bin". The caller frees it. NULL, with *error set, if there is no memory. */
char *cache_path(const char *folder, enum cache_kind kind, uint64_t key, wf_error *error);
/* A hash of the versions of Weft, utf8proc and PCRE2, since another version, for example with a newer Unicode, can give other ids. */
uint64_t cache_encoder(void);
/* Maps a file, sets its time of last use, and locks it, so that no process deletes it before the map is closed. False if it does not exist
 * or is unusable. */
bool cache_map(const char *path, struct wf_map *map);
/* Whether `path` is a regular file or a link to one. Anything else of that name is removed if possible (a pipe, an empty folder, a broken
 * link), so that the cache can be written there. */
bool cache_there(const char *path);
/* Sets the file's time of last use to now. */
void cache_touch(const char *path);
/* Creates the folder for the user alone, and removes temporary files of killed processes. Then deletes the least recently used files until
 * the remaining ones and `bytes` more fit into the limit of a cache folder (see wf_cache_folder); mapped files stay. False if the folder
 * cannot be created. */
bool cache_make_room(const char *folder, int64_t bytes);

#endif
