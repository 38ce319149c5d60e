/* SPDX-License-Identifier: MIT */
/* What lies under wf_json_parse, for readers that place their errors otherwise. */
#ifndef WEFT_IO_JSON_DECODE_H
#define WEFT_IO_JSON_DECODE_H

#include <jansson.h>

#include <weft/base.h>

struct json_failure {
    bool no_memory;
    int64_t offset, line, column; /* line and column from 1 */
    char reason[JSON_ERROR_TEXT_LENGTH + 32];
};

/* Any strict JSON value without a key twice in an object and nested at most `depth` deep, or NULL with *failure filled. */
json_t *wf_json_decode(const char *text, int64_t bytes, int depth, struct json_failure *failure);

#endif
