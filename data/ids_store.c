/* SPDX-License-Identifier: MIT */
/* Files of ids in the cache: checks and maps them, and writes them. Without a file the ids are kept in memory. */
#include <string.h>

#include <weft/internal/files.h>
#include <weft/internal/grow.h>
#include <weft/internal/hash.h>
#include <weft/internal/minmax.h>
#include <weft/memory.h>
#include <weft/runtime.h>

#include "text_ids.h"

enum { CHUNK = 1 << 16 }; /* bytes of a file that are hashed together */

struct store {
    struct wf_map map; /* {0} if the ids are in `memory` */
    char *memory;
};

static int64_t padded(int64_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

static uint64_t chain(uint64_t check, uint64_t chunk)
{
    return wf_hash(&chunk, sizeof chunk, check);
}

/* --- reading --- */

struct verifying {
    int fd;
    int64_t bytes, most;
    bool narrow;
    uint64_t *hash;
};

/* Reads the chunk from the file instead of from the mapping, because every page of the mapping that is touched counts as memory of this
 * process. */
static wf_status verify_chunk(void *ctx, int64_t worker, int64_t chunk, wf_error *error)
{
    struct verifying *v = ctx;
    _Alignas(8) char data[CHUNK];
    int64_t begin = chunk * CHUNK, bytes = WF_MIN(v->bytes - begin, CHUNK);
    (void)worker, (void)error;
    if (wf_map_read(v->fd, begin, data, bytes) != bytes)
        return WF_ERR_IO;
    v->hash[chunk] = wf_hash(data, bytes, 0);
    uint32_t largest = 0;
    if (v->narrow) {
        const uint16_t *id = (const uint16_t *)(void *)data;
        uint16_t most = 0;
        for (int64_t i = 0; i < bytes / 2; i++)
            most = WF_MAX(id[i], most);
        largest = most;
    } else {
        const uint32_t *id = (const uint32_t *)(void *)data;
        for (int64_t i = 0; i < bytes / 4; i++)
            largest = WF_MAX(id[i], largest);
    }
    return largest < v->most ? WF_OK : WF_ERR_FORMAT;
}

static bool sound(const struct wf_map *map, uint64_t key, int64_t vocab_size, struct ids_foot *foot)
{
    int64_t bytes = map->bytes - (int64_t)sizeof *foot;
    if (bytes < 8)
        return false;
    memcpy(foot, map->data + bytes, sizeof *foot);
    if (memcmp(foot->magic, "weftids\1", 8) || foot->key != key || foot->own != wf_hash(foot, offsetof(struct ids_foot, own), 0) ||
        foot->count < 1 || foot->width != (vocab_size > 65536 ? 4 : 2) || foot->count > bytes / foot->width ||
        padded(foot->count * foot->width) != bytes)
        return false;
    int64_t used = foot->count * foot->width, chunks = (used + CHUNK - 1) / CHUNK;
    struct verifying v = {map->fd, used, vocab_size, foot->width == 2, wf_alloc((size_t)chunks * sizeof *v.hash)};
    if (!v.hash)
        return false;
    wf_status status = share_out(wf_threads(), 0, chunks, (double)used / 5, verify_chunk, &v, NULL);
    uint64_t check = 0;
    for (int64_t i = 0; i < chunks; i++)
        check = chain(check, v.hash[i]);
    wf_free(v.hash);
    return check == foot->check && status == WF_OK;
}

bool ids_store_find(const char *path, uint64_t key, int64_t vocab_size, struct wf_text_ids *out)
{
    struct ids_foot foot;
    struct wf_map map;
    if (!path || !cache_map(path, &map))
        return false;
    struct store *store = sound(&map, key, vocab_size, &foot) ? wf_alloc_zero(1, sizeof *store) : NULL;
    if (!store) {
        wf_map_close(&map);
        return false;
    }
    store->map = map;
    *out = (struct wf_text_ids){.ids = {map.data, foot.count, foot.width == 2},
                                .characters = foot.characters,
                                .unknown = foot.unknown,
                                .hash = foot.hash,
                                .cached = true,
                                .store = store};
    return true;
}

void wf_text_ids_close(struct wf_text_ids *ids)
{
    if (!ids)
        return;
    struct store *store = ids->store;
    if (store) {
        wf_map_close(&store->map);
        wf_free(store->memory);
        wf_free(store);
    }
    *ids = (struct wf_text_ids){0};
}

/* --- writing --- */

static wf_status no_memory(struct ids_writer *w, wf_error *error)
{
    long long count = (long long)w->foot.count;
    ids_writer_abort(w);
    return wf_error_set(error, WF_ERR_MEMORY, "no memory for %lld ids", count);
}

wf_status ids_writer_begin(struct ids_writer *w, const char *path, uint64_t key, int64_t vocab_size, wf_error *error)
{
    wf_error failure = {0};
    *w = (struct ids_writer){.path = path, .vocab_size = vocab_size};
    w->foot = (struct ids_foot){.magic = "weftids\1", .key = key, .hash = 0xcbf29ce484222325u, .width = vocab_size > 65536 ? 4 : 2};
    w->file = path ? wf_file_begin(path, &failure) : NULL;
    if (failure.code == WF_ERR_MEMORY || (w->file && !wf_grow(&w->memory, &w->capacity, CHUNK, 1)))
        return no_memory(w, error);
    return WF_OK;
}

static void flush(struct ids_writer *w)
{
    w->foot.check = chain(w->foot.check, wf_hash(w->memory, w->held, 0));
    wf_file_append(w->file, w->memory, w->held);
    w->held = 0;
}

wf_status ids_writer_add(struct ids_writer *w, const int32_t *ids, int64_t count, wf_error *error)
{
    int64_t width = w->foot.width;
    uint64_t hash = w->foot.hash;
    w->foot.count += count;
    for (int64_t i = 0; i < count; i++) /* FNV-1a over the ids */
        hash = (hash ^ (uint32_t)ids[i]) * 0x100000001b3u;
    w->foot.hash = hash;
    if (!w->file && !wf_grow(&w->memory, &w->capacity, w->held + count * width, 1))
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for %lld ids", (long long)w->foot.count);
    for (int64_t at = 0, n; at < count; at += n) {
        int64_t room = ((w->file ? CHUNK : w->capacity) - w->held) / width;
        n = WF_MIN(count - at, room);
        if (width == 2)
            for (int64_t i = 0; i < n; i++)
                ((uint16_t *)(w->memory + w->held))[i] = (uint16_t)ids[at + i];
        else
            memcpy(w->memory + w->held, ids + at, (size_t)(n * width));
        w->held += n * width;
        if (w->file && w->held == CHUNK)
            flush(w);
    }
    return WF_OK;
}

/* Writes the remaining ids and the foot, and then gives the file its final name. */
static bool commit(struct ids_writer *w, const struct wf_text_ids *out)
{
    int64_t bytes = w->foot.count * w->foot.width;
    if (w->held > 0)
        flush(w);
    w->foot.characters = out->characters;
    w->foot.unknown = out->unknown;
    w->foot.own = wf_hash(&w->foot, offsetof(struct ids_foot, own), 0);
    wf_file_append(w->file, "\0\0\0\0\0\0\0", padded(bytes) - bytes);
    wf_file_append(w->file, &w->foot, sizeof w->foot);
    wf_error failure = {0};
    bool done = wf_file_commit(w->file, &failure) == WF_OK;
    w->file = NULL;
    return done;
}

wf_status ids_writer_end(struct ids_writer *w, struct wf_text_ids *out, bool *written, wf_error *error)
{
    *written = true;
    if (w->file) {
        *written = commit(w, out) && ids_store_find(w->path, w->foot.key, w->vocab_size, out);
        out->cached = false;
    } else {
        struct store *store = wf_alloc_zero(1, sizeof *store);
        if (!store)
            return no_memory(w, error);
        store->memory = w->memory;
        out->ids = (struct wf_id_view){w->memory, w->foot.count, w->foot.width == 2};
        out->hash = w->foot.hash;
        out->store = store;
        w->memory = NULL;
    }
    ids_writer_abort(w);
    return WF_OK;
}

void ids_writer_abort(struct ids_writer *w)
{
    wf_file_abort(w->file);
    wf_free(w->memory);
    *w = (struct ids_writer){0};
}
