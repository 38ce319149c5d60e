/* SPDX-License-Identifier: MIT */
/* Text that grows. A failed allocation is remembered, and everything after it is dropped: check `failed` once, at the end. */
#ifndef WEFT_IO_BUFFER_H
#define WEFT_IO_BUFFER_H

#include <weft/base.h>

struct buffer {
    char *data; /* freed by the owner with wf_free; not zero-terminated */
    int64_t bytes, room;
    bool failed;
};

void wf_buffer_put(struct buffer *b, const void *data, int64_t bytes);
void wf_buffer_text(struct buffer *b, const char *text);
void wf_buffer_int(struct buffer *b, int64_t value);
/* A JSON string with its quotes; the text must be UTF-8. */
void wf_buffer_json_string(struct buffer *b, const char *text, int64_t bytes);

#endif
