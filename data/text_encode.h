/* SPDX-License-Identifier: MIT */
/* Inside the room: running text to ids, in blocks and on all threads. */
#ifndef WEFT_DATA_TEXT_ENCODE_H
#define WEFT_DATA_TEXT_ENCODE_H

#include "ids_store.h"
#include "text_file.h"

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
