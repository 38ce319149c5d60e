/* SPDX-License-Identifier: MIT */
/* Inside the room: running text to ids, in blocks and on all threads, into a file of the cache or memory. */
#ifndef WEFT_DATA_TEXT_IDS_H
#define WEFT_DATA_TEXT_IDS_H

#include <weft/internal/files.h>

#include "cache.h"
#include "text_file.h"

/* --- ids_store.c --- */
/* A file of ids: the ids, padded to 8 bytes, then this. */
struct ids_foot {
    char magic[8];             /* "weftids" and the version of this format */
    uint64_t key, hash, check; /* hashes: of what the ids depend on; of the ids; of the chunks of the file */
    int64_t count, width, characters, unknown;
    uint64_t own; /* a hash of the fields before it */
};
/* Sets *out from the file if it is intact and has this key. */
bool ids_store_find(const char *path, uint64_t key, int64_t vocab_size, struct wf_text_ids *out);

/* Writes ids in order. */
struct ids_writer {
    struct wf_file_writer *file; /* NULL: they are kept in memory */
    const char *path;
    int64_t vocab_size;
    struct ids_foot foot;
    char *memory;           /* all of them, or those that are not yet in the file */
    int64_t capacity, held; /* bytes */
};
/* path: NULL for memory; if it cannot be written, writer->file is NULL. */
wf_status ids_writer_begin(struct ids_writer *writer, const char *path, uint64_t key, int64_t vocab_size, wf_error *error) WF_CHECKED;
/* A failure to write is seen by ids_writer_end alone. */
wf_status ids_writer_add(struct ids_writer *writer, const int32_t *ids, int64_t count, wf_error *error) WF_CHECKED;
/* *out has the counts of characters and unknown tokens; sets the rest. *written: false where the file could not be written, and the ids are
 * lost. Frees the writer's memory. */
wf_status ids_writer_end(struct ids_writer *writer, struct wf_text_ids *out, bool *written, wf_error *error) WF_CHECKED;
void ids_writer_abort(struct ids_writer *writer);

/* --- text_encode.c --- */
/* A stretch of a file, of whole characters, whose ids are those of encoding it at once. */
struct text_part {
    struct text_file *file;
    uint64_t content; /* of the file */
    int64_t begin, end;
};

/* Adds the ids of the parts, with `separator` between each two where it is not -1, and the number of unknown tokens. */
wf_status text_encode(const wf_tokenizer *tokenizer, const struct text_part *part, int64_t parts, int32_t separator,
                      struct text_progress *progress, struct ids_writer *writer, int64_t *unknown, wf_error *error) WF_CHECKED;

#endif
