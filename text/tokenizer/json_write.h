/* SPDX-License-Identifier: MIT */
/* JSON as serde_json's pretty printer lays it out, into a string or into a hash. */
#ifndef WEFT_DATA_TOKENIZER_JSON_WRITE_H
#define WEFT_DATA_TOKENIZER_JSON_WRITE_H

#include <weft/tokenizer.h>

struct json_writer {
    struct wf_string *out; /* NULL: hash only */
    uint64_t hash;
    int depth;
    bool failed;  /* no memory */
    bool started; /* the present object or array has a member */
};
/* `key` NULL stands for a member of an array, or the root. */
void json_open(struct json_writer *w, const char *key, char bracket);
void json_close(struct json_writer *w, char bracket);
void json_put_string(struct json_writer *w, const char *key, const char *text); /* NULL text: null */
void json_put_bytes(struct json_writer *w, const char *key, const char *text, int64_t length);
void json_put_int(struct json_writer *w, const char *key, int64_t value);
void json_put_bool(struct json_writer *w, const char *key, bool value);
void json_put_null(struct json_writer *w, const char *key);
/* A member whose key is `length` bytes. */
void json_put_entry(struct json_writer *w, const char *key, int64_t length, int64_t value);

#endif
