/* SPDX-License-Identifier: MIT */
/* A file of ids: the ids, padded to 8 bytes, then the foot. */
#include <string.h>

#include <weft/internal/files.h>
#include <weft/internal/grow.h>
#include <weft/internal/hash.h>
#include <weft/memory.h>
#include <weft/runtime.h>

#include "text_ids.h"

enum { CHUNK = 1 << 16 }; /* bytes that are hashed together */

struct foot {
    char magic[8]; /* "weftids" and the version of this format */
    uint64_t key, hash, check;
    int64_t count, width, characters, unknown;
    uint64_t own; /* of the fields before it */
};

struct store {
    struct wf_map map; /* {0}: memory */
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

/* Read, not looked at in the mapping, whose pages would all count as the process's memory then. */
static wf_status verify_chunk(void *ctx, int64_t worker, int64_t chunk, wf_error *error)
{
    struct verifying *v = ctx;
    _Alignas(8) char data[CHUNK];
    int64_t begin = chunk * CHUNK, bytes = v->bytes - begin < CHUNK ? v->bytes - begin : CHUNK;
    (void)worker, (void)error;
    if (wf_map_read(v->fd, begin, data, bytes) != bytes)
        return WF_ERR_IO;
    v->hash[chunk] = wf_hash(data, bytes, 0);
    uint32_t largest = 0;
    if (v->narrow) {
        const uint16_t *id = (const uint16_t *)(void *)data;
        uint16_t most = 0;
        for (int64_t i = 0; i < bytes / 2; i++)
            most = id[i] > most ? id[i] : most;
        largest = most;
    } else {
        const uint32_t *id = (const uint32_t *)(void *)data;
        for (int64_t i = 0; i < bytes / 4; i++)
            largest = id[i] > largest ? id[i] : largest;
    }
    return largest < v->most ? WF_OK : WF_ERR_FORMAT;
}

static bool sound(const struct wf_map *map, uint64_t key, int64_t most, struct foot *foot)
{
    int64_t bytes = map->bytes - (int64_t)sizeof *foot;
    if (bytes < 8)
        return false;
    memcpy(foot, map->data + bytes, sizeof *foot);
    if (memcmp(foot->magic, "weftids\1", 8) || foot->key != key || foot->own != wf_hash(foot, offsetof(struct foot, own), 0) ||
        foot->count < 1 || foot->width != (most > 65536 ? 4 : 2) || foot->count > bytes / foot->width ||
        padded(foot->count * foot->width) != bytes)
        return false;
    int64_t used = foot->count * foot->width, chunks = (used + CHUNK - 1) / CHUNK;
    struct verifying v = {map->fd, used, most, foot->width == 2, wf_alloc((size_t)chunks * sizeof *v.hash)};
    if (!v.hash)
        return false;
    wf_status status = share_out(wf_threads(), 0, chunks, (double)used / 5, verify_chunk, &v, NULL);
    uint64_t check = 0;
    for (int64_t i = 0; i < chunks; i++)
        check = chain(check, v.hash[i]);
    wf_free(v.hash);
    return check == foot->check && status == WF_OK;
}

bool ids_store_find(const char *path, uint64_t key, int64_t most, struct wf_text_ids *out)
{
    struct foot foot;
    struct wf_map map;
    if (!path || !cache_map(path, &map))
        return false;
    struct store *store = sound(&map, key, most, &foot) ? wf_alloc_zero(1, sizeof *store) : NULL;
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
    struct store *store = ids->store;
    if (store) {
        wf_map_close(&store->map);
        wf_free(store->memory);
        wf_free(store);
    }
    *ids = (struct wf_text_ids){0};
}

/* --- writing --- */

static wf_status no_memory(const struct ids_writer *w, wf_error *error)
{
    return wf_error_set(error, WF_ERR_MEMORY, "no memory for %lld ids", (long long)w->count);
}

wf_status ids_writer_begin(struct ids_writer *w, const char *path, bool narrow, wf_error *error)
{
    wf_error failure = {0};
    *w = (struct ids_writer){.narrow = narrow, .hash = 0xcbf29ce484222325u};
    if (path && !(w->file = wf_file_begin(path, &failure)) && failure.code == WF_ERR_MEMORY)
        return no_memory(w, error);
    if (w->file && !wf_grow(&w->memory, &w->capacity, CHUNK, 1)) {
        ids_writer_abort(w);
        return no_memory(w, error);
    }
    return WF_OK;
}

static void flush(struct ids_writer *w)
{
    w->check = chain(w->check, wf_hash(w->memory, w->held, 0));
    wf_file_append(w->file, w->memory, w->held);
    w->held = 0;
}

wf_status ids_writer_add(struct ids_writer *w, const int32_t *ids, int64_t count, wf_error *error)
{
    int64_t width = w->narrow ? 2 : 4;
    uint64_t hash = w->hash;
    w->count += count;
    for (int64_t i = 0; i < count; i++)
        hash = (hash ^ (uint32_t)ids[i]) * 0x100000001b3u;
    w->hash = hash;
    if (!w->file && !wf_grow(&w->memory, &w->capacity, w->held + count * width, 1))
        return no_memory(w, error);
    for (int64_t at = 0, n; at < count; at += n) {
        int64_t room = ((w->file ? CHUNK : w->capacity) - w->held) / width;
        n = count - at < room ? count - at : room;
        if (w->narrow)
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

/* Into the file's foot, and the file from its temporary name to its own. */
static bool commit(struct ids_writer *w, uint64_t key, const struct wf_text_ids *out)
{
    static const char zeros[8] = {0};
    int64_t bytes = w->count * (w->narrow ? 2 : 4);
    if (w->held > 0)
        flush(w);
    struct foot foot = {.magic = "weftids\1",
                        .key = key,
                        .hash = w->hash,
                        .check = w->check,
                        .count = w->count,
                        .width = w->narrow ? 2 : 4,
                        .characters = out->characters,
                        .unknown = out->unknown};
    foot.own = wf_hash(&foot, offsetof(struct foot, own), 0);
    wf_file_append(w->file, zeros, padded(bytes) - bytes);
    wf_file_append(w->file, &foot, sizeof foot);
    wf_error failure = {0};
    bool done = wf_file_commit(w->file, &failure) == WF_OK;
    w->file = NULL;
    return done;
}

wf_status ids_writer_end(struct ids_writer *w, const char *path, uint64_t key, int64_t most, struct wf_text_ids *out, bool *written,
                         wf_error *error)
{
    *written = true;
    if (w->file) {
        *written = commit(w, key, out) && ids_store_find(path, key, most, out);
        out->cached = false;
        ids_writer_abort(w);
        return WF_OK;
    }
    struct store *store = wf_alloc_zero(1, sizeof *store);
    if (!store) {
        ids_writer_abort(w);
        return no_memory(w, error);
    }
    store->memory = w->memory;
    out->ids = (struct wf_id_view){w->memory, w->count, w->narrow};
    out->hash = w->hash;
    out->store = store;
    *w = (struct ids_writer){0};
    return WF_OK;
}

void ids_writer_abort(struct ids_writer *w)
{
    wf_file_abort(w->file);
    wf_free(w->memory);
    *w = (struct ids_writer){0};
}
