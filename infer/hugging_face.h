/* SPDX-License-Identifier: MIT */
/* The JSON files of a Hugging Face folder, for the files that read one. */
#ifndef WEFT_INFER_HUGGING_FACE_H
#define WEFT_INFER_HUGGING_FACE_H

#include <weft/internal/json.h>

/* A JSON file. If it is missing, it is read as an empty object: all optional keys are absent. */
struct hf_file {
    struct wf_json_reader r;
    json_t *json;
    char *path;
};
struct hf_file hf_open(const char *folder, const char *name, wf_error *error);
/* Frees the file and returns the status of what was read. */
wf_status hf_close(struct hf_file *f);
/* Refuses a key whose value would change ids, texts or vectors and is not supported. */
void hf_refuse(struct wf_json_reader *r, const char *key, const char *what);

#endif
