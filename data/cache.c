/* SPDX-License-Identifier: MIT */
/* The files of a cache folder: where the folder is, how its files are named, and which of them are deleted when the folder exceeds
 * its limit. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <utf8proc.h>

#include <weft/internal/files.h>
#include <weft/internal/hash.h>
#include <weft/internal/needs.h>
#include <weft/memory.h>

#include "cache.h"

static const int64_t default_limit = INT64_C(10) << 30;

/* The value of WEFT_CACHE_LIMIT in bytes. A suffix K, M, G or T multiplies the number by 1024, 1024^2, 1024^3 or 1024^4. Returns -1 if the
 * variable is unset or empty, and -2 if its value is invalid. */
static int64_t limit_given(void)
{
    const char *text = getenv("WEFT_CACHE_LIMIT"), *units = "KMGT", *unit;
    if (!text || !*text)
        return -1;
    if (*text < '0' || *text > '9')
        return -2;
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    int shift = *end && (unit = strchr(units, *end)) ? 10 * (int)(unit - units + 1) : 0;
    bool valid = errno == 0 && (!*end || (shift && !end[1])) && number <= (unsigned long long)INT64_MAX >> shift;
    return valid ? (int64_t)number << shift : -2;
}

wf_status wf_cache_folder(char **folder, wf_error *error)
{
    if (wf_needs(error, "folder", folder))
        return WF_ERR_ARGUMENT;
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    bool standard = cache && cache[0] == '/'; /* the XDG standard says that a relative path is ignored */
    int64_t limit = limit_given();
    *folder = NULL;
    if (limit < -1)
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "WEFT_CACHE_LIMIT: \"%.40s\" is not a number of bytes; give one such as 500M or 2G, or 0 for no cache",
                            getenv("WEFT_CACHE_LIMIT"));
    if (limit == 0 || (!standard && !(home && home[0] == '/')))
        return WF_OK;
    *folder = standard ? wf_format("%s/weft", cache) : wf_format("%s/.cache/weft", home);
    return *folder ? WF_OK : wf_error_set(error, WF_ERR_MEMORY, "no memory for the name of the cache");
}

/* what the names of cached files of each kind begin with */
static const char *const prefixes[] = {[CACHE_IDS] = "ids-", [CACHE_SURVEY] = "survey-", [CACHE_TOKENIZER] = "tokenizer-"};

char *cache_path(const char *folder, enum cache_kind kind, uint64_t key, wf_error *error)
{
    char *path = wf_format("%s/%s%016" PRIx64 ".bin", folder, prefixes[kind], key);
    if (!path)
        wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for a name", folder);
    return path;
}

uint64_t cache_encoder(void)
{
    char pcre2[64] = "", versions[192];
    pcre2_config(PCRE2_CONFIG_VERSION, pcre2); /* PCRE2's manual says that 24 bytes suffice */
    int length = snprintf(versions, sizeof versions, "weft %s, utf8proc %s, PCRE2 %s", wf_version(), utf8proc_version(), pcre2);
    return wf_hash(versions, length, 0);
}

void cache_touch(const char *path)
{
    if (utimensat(AT_FDCWD, path, NULL, 0) != 0)
        errno = 0; /* ignored: on a read-only disk no cached file is deleted, so its time of use does not matter */
}

bool cache_there(const char *path)
{
    struct stat info;
    if (stat(path, &info) == 0 && S_ISREG(info.st_mode))
        return true;
    if (unlink(path) != 0)
        (void)!rmdir(path);
    errno = 0;
    return false;
}

bool cache_map(const char *path, struct wf_map *map)
{
    if (!cache_there(path) || wf_map_open(path, WF_MAP_SHARED, map, NULL) != WF_OK)
        return false;
    /* If the lock fails, another process may delete the file; this process keeps its mapping all the same. */
    if (flock(map->fd, LOCK_SH | LOCK_NB) != 0)
        errno = 0;
    cache_touch(path);
    return true;
}

static int64_t limit_of(const char *folder)
{
    int64_t given = limit_given();
    if (given >= 0)
        return given;
    struct statvfs disk;
    if (statvfs(folder, &disk) != 0)
        return default_limit;
    double tenth = (double)disk.f_blocks * (double)disk.f_frsize / 10;
    return tenth < (double)default_limit ? (int64_t)tenth : default_limit;
}

struct entry {
    char *path;
    int64_t bytes;
    struct timespec used;
};

static int by_use(const void *a, const void *b)
{
    const struct timespec *x = &((const struct entry *)a)->used, *y = &((const struct entry *)b)->used;
    if (x->tv_sec != y->tv_sec)
        return x->tv_sec < y->tv_sec ? -1 : 1;
    return x->tv_nsec < y->tv_nsec ? -1 : x->tv_nsec > y->tv_nsec;
}

static bool is_cached(const char *name)
{
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

/* Deletes the least recently used files until the total is at most `limit` bytes. A mapped file is locked and stays. A process that has
 * opened a file but not locked it yet can still read it after it is deleted. */
static void drop_oldest(const char *folder, int64_t limit)
{
    struct wf_names names;
    int64_t count = 0, total = 0;
    if (wf_folder_list(folder, "", &names, NULL) != WF_OK)
        return;
    struct entry *entry = wf_alloc((size_t)names.count * sizeof *entry);
    for (int64_t i = 0; entry && i < names.count; i++) {
        struct stat info;
        char *path = is_cached(names.name[i]) ? wf_format("%s/%s", folder, names.name[i]) : NULL;
        if (path && lstat(path, &info) == 0) {
            entry[count++] = (struct entry){path, info.st_size, info.st_mtim};
            total += info.st_size;
        } else {
            wf_free(path);
        }
    }
    if (count > 0)
        qsort(entry, (size_t)count, sizeof *entry, by_use);
    for (int64_t i = 0; i < count; i++) {
        if (total > limit && wf_file_remove_unlocked(entry[i].path))
            total -= entry[i].bytes;
        wf_free(entry[i].path);
    }
    wf_free(entry);
    wf_names_free(&names);
}

/* The cache has mode 0700, because its files reveal the user's training data. The folders above it get the usual mode. */
static bool make_folder(const char *folder)
{
    char *above = wf_strdup(folder), *slash = above ? strrchr(above, '/') : NULL;
    if (slash)
        *slash = 0;
    bool made =
        (!slash || slash == above || wf_folder_make(above, NULL) == WF_OK) && (mkdir(folder, 0700) == 0 || wf_folder_exists(folder));
    wf_free(above);
    return made || wf_folder_make(folder, NULL) == WF_OK;
}

bool cache_make_room(const char *folder, int64_t bytes)
{
    if (!make_folder(folder))
        return false;
    if (wf_file_sweep(folder, NULL, NULL) != WF_OK)
        errno = 0; /* temporary files that cannot be removed do no harm */
    int64_t limit = limit_of(folder);
    drop_oldest(folder, bytes < limit ? limit - bytes : 0);
    return true;
}
