/* SPDX-License-Identifier: MIT */
/* Internal to data/: encodes running text in blocks, on all threads, and stores the ids in a cached file or in memory. */
#ifndef WEFT_DATA_TEXT_IDS_H
#define WEFT_DATA_TEXT_IDS_H

#include <weft/internal/files.h>

#include "cache.h"
#include "text_file.h"

/* --- ids_store.c --- */
/* The end of a file of ids. It follows the ids and their padding to a multiple of 8 bytes. */
struct ids_foot {
    char magic[8];  /* "weftids" and the version of this format */
    uint64_t key;   /* hash of everything that the ids depend on */
    uint64_t hash;  /* hash of the ids */
    uint64_t check; /* hash of the hashes of all 64 KiB pieces of the ids, by which a damaged file is found */
    int64_t count;  /* number of ids */
    int64_t width;  /* bytes per id: 2 or 4 */
    int64_t characters;
    int64_t unknown; /* number of unknown tokens among the ids */
    uint64_t own;    /* hash of the fields above */
};
/* Sets *out from the file `path` if that file is intact and has this key. */
bool ids_store_find(const char *path, uint64_t key, int64_t vocab_size, struct wf_text_ids *out);

/* Collects ids, in order, in a file or in memory. */
struct ids_writer {
    struct wf_file_writer *file; /* NULL if the ids are kept in memory */
    const char *path;
    int64_t vocab_size;
    struct ids_foot foot;
    char *memory;     /* without a file all ids so far; with a file the ids that are not yet written to it */
    int64_t capacity; /* bytes that `memory` can hold */
    int64_t held;     /* bytes of `memory` in use */
};
/* path: NULL to keep the ids in memory. If the file cannot be created, writer->file is NULL and the ids are kept in memory too. */
wf_status ids_writer_begin(struct ids_writer *writer, const char *path, uint64_t key, int64_t vocab_size, wf_error *error) WF_CHECKED;
/* WF_ERR_MEMORY. A failure to write the file is not reported here but by ids_writer_end. */
wf_status ids_writer_add(struct ids_writer *writer, const int32_t *ids, int64_t count, wf_error *error) WF_CHECKED;
/* Ends the writing and sets *out. The caller has set out->characters and out->unknown before. *written: false if the file could not be
 * written, in which case the ids are lost. Frees the writer's memory. */
wf_status ids_writer_end(struct ids_writer *writer, struct wf_text_ids *out, bool *written, wf_error *error) WF_CHECKED;
void ids_writer_abort(struct ids_writer *writer);

/* --- text_encode.c --- */
/* Bytes begin .. end-1 of a file, which are whole characters. The ids of the part are those of encoding these bytes in one call. */
struct text_part {
    struct text_file *file;
    uint64_t content; /* hash of the file's content */
    int64_t begin, end;
};

/* Appends the ids of the parts to the writer, with the id `separator` between two parts unless it is -1. Adds the number of unknown tokens
 * to *unknown. */
wf_status text_encode(const wf_tokenizer *tokenizer, const struct text_part *part, int64_t parts, int32_t separator,
                      struct text_progress *progress, struct ids_writer *writer, int64_t *unknown, wf_error *error) WF_CHECKED;

#endif
