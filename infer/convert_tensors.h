/* SPDX-License-Identifier: MIT */
/* The tensors of a conversion: from which tensors of the old file each new one is made. */
#ifndef WEFT_INFER_CONVERT_TENSORS_H
#define WEFT_INFER_CONVERT_TENSORS_H

#include <weft/convert.h>
#include <weft/internal/counterpart.h>
#include <weft/internal/name_table.h>
#include <weft/internal/safetensors_set.h>

/* A parameter: the tensors of the old file that are stacked to it. */
struct source {
    char *name;
    wf_shape shape;
    int count;
    bool transposed; /* each tensor is the transpose of what is stacked */
    int part, parts; /* the parameter is this one of `parts` equal parts of its only tensor; parts is at least 1 */
    wf_dtype dtype;  /* of its tensors, or if they differ one that holds their values */
    const struct wf_safetensors_entry *entry[WF_SOURCES];
};

/* Rows of a parameter, or their transpose. */
struct part {
    int64_t source; /* -1: zeros */
    int64_t row, rows, elements;
    bool transposed;
};

/* A new tensor: parts that are stacked. */
struct joined {
    int count;
    struct part part[WF_SOURCES];
};

struct tensors {
    const wf_safetensors *file;
    const struct wf_convert_options *options;
    struct source *source;
    int64_t sources, source_room;
    struct wf_name_table by_name; /* of `source` */
    struct joined *joined;
    struct wf_set_tensor *tensor; /* [count]: name, dtype and shape of each new tensor */
    int64_t count, joined_room, tensor_room;
    int64_t used; /* tensors of the old file from which the new ones are made */
    void *buffer; /* a tensor that was transposed in memory */
    const char *ready;
};

/* Lists the parameters that the file has for this model, after a check of the file's names and shapes. */
wf_status tensors_from(struct tensors *t, const wf_model *model, wf_error *error) WF_CHECKED;
/* Lists the new tensors: those of the model in the other library or in Weft, or those of the file as they are. */
wf_status tensors_to(struct tensors *t, const wf_model *model, bool foreign, wf_error *error) WF_CHECKED;
wf_status tensors_as_they_are(struct tensors *t, wf_error *error) WF_CHECKED;
/* A wf_safetensors_from: supplies elements of a new tensor. `ctx` is the struct tensors, `key` a struct wf_set_tensor in it. */
wf_status tensors_read(void *ctx, const void *key, int64_t at, int64_t count, void *out, wf_error *error);
void tensors_free(struct tensors *t);

#endif
