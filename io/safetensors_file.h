/* SPDX-License-Identifier: MIT */
/* An open safetensors file, as safetensors_read.c and safetensors_header.c fill it, or several of them (safetensors_shards.c). */
#ifndef WEFT_IO_SAFETENSORS_FILE_H
#define WEFT_IO_SAFETENSORS_FILE_H

#include <stdatomic.h>

#include <jansson.h>

#include <weft/internal/map.h>
#include <weft/safetensors.h>

/* The greatest length of a header in the reference implementation. */
#define SAFETENSORS_MAX_HEADER INT64_C(100000000)

struct wf_safetensors {
    char *path;
    struct wf_map map;        /* {0} if the file is in memory and was not opened */
    const char *memory;       /* the first byte of the file in memory, or NULL */
    atomic_bool memory_taken; /* wf_safetensors_take_memory */
    _Atomic int64_t holders;  /* calls of wf_safetensors_close that must come before the file is closed */
    int64_t bytes;            /* size of the file */
    int64_t start;            /* where the tensors begin: 8 + length of the header */
    json_t *header;           /* the parsed header, which owns the names */
    json_t *metadata;         /* an object in `header`, or NULL */
    struct wf_safetensors_entry *entry;
    const struct wf_safetensors_entry **by_name; /* the entries, sorted by name */
    int64_t count;
    /* For an index: the files with the tensors, whose entries `entry` repeats, and the number of the file of each entry. `map` and `header`
     * are unused. */
    wf_safetensors **shard;
    int shards;
    int *shard_of;
};

/* Parses the text of the header and checks everything. Fills header, metadata, entry, by_name and count; start and bytes must be set.
 * Messages do not contain the path. */
wf_status wf_safetensors_header(wf_safetensors *file, const char *text, wf_error *error);
void safetensors_sort(wf_safetensors *file); /* sorts by_name by name */

/* safetensors_shards.c: whether a path is that of an index, and the opening of one, whose path is set. */
bool safetensors_is_index(const char *path);
wf_status safetensors_open_index(wf_safetensors *file, const struct wf_safetensors_options *options, wf_error *error);

#endif
