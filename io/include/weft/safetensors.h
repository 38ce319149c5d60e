/* SPDX-License-Identifier: MIT */
/* The file format of weights and checkpoints, https://huggingface.co/docs/safetensors: eight bytes that give the length of
 * a JSON header, the header (dtype, shape and byte range of each named tensor, and a map of strings), the tensors row-major and
 * little-endian one after another. Compatible with the Python package `safetensors` in both directions. */
#ifndef WEFT_SAFETENSORS_H
#define WEFT_SAFETENSORS_H

#include <weft/array.h>
#include <weft/error.h>

WF_BEGIN_DECLS

/* ---- Reading ---- */

typedef struct wf_safetensors wf_safetensors;

struct wf_safetensors_entry {
    const char *name; /* UTF-8; belongs to the file */
    wf_dtype dtype;
    wf_shape shape;
    int64_t count;  /* elements */
    int64_t offset; /* of the first byte, from the start of the file */
    int64_t bytes;
};

struct wf_safetensors_options {
    bool map; /* map the tensors into memory for wf_safetensors_data. If another process truncates the file, access to
                 it ends this process: use it only for files that are not written to. (wf_safetensors_commit replaces a file
                 safely: the old one stays until it is closed.) */
};

/* Opens a file and checks its whole header first: lengths, JSON (strict, no duplicate names), UTF-8,
 * dtypes, at most WF_MAX_DIMS dimensions, products that overflow, byte ranges that match the shapes and cover the file without gap
 * or overlap. A header that is not a multiple of 8 bytes long is accepted. WF_ERR_FORMAT names the file and the tensor or the
 * byte; WF_ERR_IO if the file cannot be read. NULL on failure. The caller closes the file. */
WF_API wf_safetensors *wf_safetensors_open_with(const char *path, const struct wf_safetensors_options *options, wf_error *error) WF_CHECKED;
#ifndef __cplusplus
/* wf_safetensors_open(path, &error), wf_safetensors_open(path, &error, .map = true) */
#define wf_safetensors_open(path, error, ...) wf_safetensors_open_with(path, &(struct wf_safetensors_options){__VA_ARGS__}, error)
#endif
/* The same for a file in memory, which must outlive the handle; `label` is used as the path in messages. */
WF_API wf_safetensors *wf_safetensors_view(const void *data, int64_t bytes, const char *label, wf_error *error) WF_CHECKED;
WF_API void wf_safetensors_close(wf_safetensors *file); /* NULL is allowed */

/* The entries, in the header's order, 0 .. count-1. They live as long as the handle. */
WF_API int64_t wf_safetensors_count(const wf_safetensors *file);
WF_API const struct wf_safetensors_entry *wf_safetensors_at(const wf_safetensors *file, int64_t index);
/* NULL when no tensor has that name. */
WF_API const struct wf_safetensors_entry *wf_safetensors_find(const wf_safetensors *file, const char *name);

/* Reads a tensor as `count` contiguous elements of `dtype` into dst, row-major. Converts between F16, BF16, F32 and F64 (to nearest;
 * values out of range become infinite); any other change of dtype is WF_ERR_FORMAT. A missing name is
 * WF_ERR_FORMAT, another number of elements WF_ERR_SHAPE, a byte of a BOOL other than 0 and 1 WF_ERR_FORMAT. On failure dst
 * may be partly written. Several threads may read from one handle. */
WF_API wf_status wf_safetensors_read(const wf_safetensors *file, const char *name, wf_dtype dtype, void *dst, int64_t count,
                                     wf_error *error) WF_CHECKED;

/* The same for the elements at .. at + count - 1 of a tensor; WF_ERR_SHAPE where it has fewer. */
WF_API wf_status wf_safetensors_read_range(const wf_safetensors *file, const char *name, wf_dtype dtype, int64_t at, void *dst,
                                           int64_t count, wf_error *error) WF_CHECKED;

/* The tensor's bytes in memory (.map or wf_safetensors_view); NULL if the file is not in memory or the bytes are not aligned for
 * their dtype (the format does not guarantee it): then use wf_safetensors_read. */
WF_API const void *wf_safetensors_data(const wf_safetensors *file, const struct wf_safetensors_entry *entry);

/* The value of a key in the header's map of strings, or NULL. It lives as long as the handle. */
WF_API const char *wf_safetensors_metadata(const wf_safetensors *file, const char *key);
/* Key and value number `index` in the file's order; false past the last. */
WF_API bool wf_safetensors_metadata_at(const wf_safetensors *file, int64_t index, const char **key, const char **value);

/* ---- Writing ---- */

/* A writer collects tensors and metadata and keeps its first error until the commit, so that no call in between needs a check:
 *
 *   wf_safetensors_writer *w = wf_safetensors_writer_new();
 *   wf_safetensors_put_metadata(w, "format", "pt");
 *   wf_safetensors_put(w, "embed.weight", &weight);
 *   return wf_safetensors_commit(w, path, error);
 *
 * The same calls give the same bytes: tensors and metadata lie in the order of the calls. The tensors follow each other
 * without gaps, so for a file that is to be mapped give those of the widest dtype first. */
typedef struct wf_safetensors_writer wf_safetensors_writer;

/* NULL if out of memory; the other functions take NULL, and the commit then reports WF_ERR_MEMORY. */
WF_API wf_safetensors_writer *wf_safetensors_writer_new(void);
/* A key and a value, both UTF-8; copied. Each key once. */
WF_API void wf_safetensors_put_metadata(wf_safetensors_writer *writer, const char *key, const char *value);
/* A tensor with any strides; name and description are copied, the elements are read at the commit and must live until then.
 * Each name once, UTF-8, not "__metadata__". */
WF_API void wf_safetensors_put(wf_safetensors_writer *writer, const char *name, const wf_array *array);
/* Writes the file atomically (wf_file_save, <weft/file.h>) and frees the writer, also on failure. Tensors are streamed: memory besides the
 * header is constant. On failure (also of an invalid put, WF_ERR_ARGUMENT) `path` is unchanged. */
WF_API wf_status wf_safetensors_commit(wf_safetensors_writer *writer, const char *path, wf_error *error) WF_CHECKED;
/* Frees the writer without writing. */
WF_API void wf_safetensors_discard(wf_safetensors_writer *writer);

WF_END_DECLS

#endif
