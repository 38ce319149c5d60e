/* SPDX-License-Identifier: MIT */
/* Writes tensors to a folder as model.safetensors, or if they are larger than a shard, as model-00001-of-00003.safetensors and so on, with
 * model.safetensors.index.json. Names and limits are those of the Python package huggingface_hub, which transformers uses. */
#ifndef WEFT_INTERNAL_SAFETENSORS_SET_H
#define WEFT_INTERNAL_SAFETENSORS_SET_H

#include <weft/internal/safetensors_from.h>

/* A tensor of the set. `array` has its dtype and shape; `read` of the set supplies its elements, and gets a pointer to this struct as its
 * key. */
struct wf_set_tensor {
    const char *name;
    wf_array array;
};

struct wf_safetensors_set {
    const struct wf_set_tensor *tensor;
    int64_t count;
    /* Supplies elements of a tensor, as for wf_safetensors_put_from, but `key` points to the tensor itself, not to a copy of it. */
    wf_safetensors_from *read;
    void *ctx;
    /* Adds the metadata of each file; NULL: there are none. */
    void (*describe)(void *ctx, wf_safetensors_writer *writer);
    int64_t shard; /* maximum bytes of the tensors in a file; a larger tensor gets a file of its own. 0: no maximum */
};

struct wf_set_size {
    int files;     /* files with tensors */
    int64_t bytes; /* of all tensors */
};

/* Writes the set. Tensors fill the files in their order. Inside a file those of the widest dtype come first, so that all are aligned. Each
 * file is written atomically, and the index last; after an error files that were written before it remain. *size may be NULL. */
wf_status wf_safetensors_save_set(const char *folder, const struct wf_safetensors_set *set, struct wf_set_size *size,
                                  wf_error *error) WF_CHECKED;

/* Reads a size in bytes: "500MB", "5GB" or "2TB" with powers of 1000, "1GiB" with powers of 1024, or a plain number. A fraction such as
 * "1.5GB" is allowed. False: the text is no such size, or it is 0 or above 2^62. */
bool wf_bytes_parse(const char *text, int64_t *bytes);

#endif
