/* SPDX-License-Identifier: MIT */
#ifndef WEFT_IO_SAFETENSORS_FILE_H
#define WEFT_IO_SAFETENSORS_FILE_H

#include <jansson.h>

#include <weft/internal/map.h>
#include <weft/safetensors.h>

/* The reference implementation's limit. */
#define SAFETENSORS_MAX_HEADER INT64_C(100000000)

struct wf_safetensors {
    char *path;
    struct wf_map map;  /* {0}: the file lies in memory and was not opened */
    const char *memory; /* the file's first byte, or NULL: read through map.fd */
    int64_t bytes;      /* of the file */
    int64_t start;      /* of the tensors: 8 + length of the header */
    json_t *header;     /* owns the names */
    json_t *metadata;   /* an object in it, or NULL */
    struct wf_safetensors_entry *entry;
    const struct wf_safetensors_entry **by_name; /* sorted */
    int64_t count;
};

/* Fills header, metadata, entry, by_name and count from the text of the header, and checks everything. start and bytes are set. Messages
 * come without the path. */
wf_status wf_safetensors_header(wf_safetensors *file, const char *text, wf_error *error);

#endif
