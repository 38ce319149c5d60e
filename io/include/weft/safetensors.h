/* SPDX-License-Identifier: MIT */
/* Reads and writes files in the format of weights and checkpoints, https://huggingface.co/docs/safetensors. A file consists of three parts:
 * eight bytes with the length of the header, the header in JSON, and the tensors one after another, row-major and little-endian. The header
 * has the name, dtype, shape and byte range of each tensor, and the metadata, which map strings to strings. Compatible with the Python
 * package `safetensors` in both directions. */
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
    int64_t count;  /* number of elements */
    int64_t offset; /* first byte of the tensor, counted from the start of the file */
    int64_t bytes;
};

struct wf_safetensors_options {
    /* Maps the tensors into memory, for wf_safetensors_data and for wf_load_options.map (weft/registry.h). The memory of a tensor takes no
     * memory that the kernel cannot take back: it reads the pages of the file when they are used, and can drop them. Nobody may modify the
     * file in place meanwhile. If another process truncates it, this process ends as soon as it reads one of the lost bytes (SIGBUS),
     * unless it has called wf_safetensors_guard. wf_safetensors_commit may replace the file: the handle keeps the old content until it is
     * closed. WF_ERR_MEMORY: there is no address space (under a strict vm.overcommit_memory or ulimit -d a mapping counts as memory), or
     * 1024 files are mapped already. */
    bool map;
};

/* Opens a file and checks its whole header: lengths, JSON (strict, no duplicate names), UTF-8, dtypes, the number of dimensions (at most
 * WF_MAX_DIMS), sizes (none may overflow), and byte ranges, which must match the shapes and cover the file without gap or overlap. The
 * header may have any length, not only a multiple of 8 bytes.
 *
 * A path that ends in .json is that of an index, such as model.safetensors.index.json: a JSON file whose "weight_map" has for each tensor
 * the name of the file beside the index that holds it. The handle then has the tensors of all these files and the metadata of the first;
 * the index and the files must list the same tensors. The `offset` of an entry is counted in its own file. Returns NULL and sets *error on
 * failure. WF_ERR_FORMAT: the header is invalid; the message names the file and the tensor or the byte. WF_ERR_IO: the file can't be read.
 * The caller closes the file. */
WF_API wf_safetensors *wf_safetensors_open_with(const char *path, const struct wf_safetensors_options *options, wf_error *error) WF_CHECKED;
#ifndef __cplusplus
/* The same with options as arguments: wf_safetensors_open(path, &error) or wf_safetensors_open(path, &error, .map = true). */
#define wf_safetensors_open(path, error, ...) wf_safetensors_open_with(path, &(struct wf_safetensors_options){__VA_ARGS__}, error)
#endif
/* Does the same as wf_safetensors_open_with for a file in memory, which must outlive the handle. Messages show `label` instead of a
 * path. */
WF_API wf_safetensors *wf_safetensors_view(const void *data, int64_t bytes, const char *label, wf_error *error) WF_CHECKED;
WF_API void wf_safetensors_close(wf_safetensors *file); /* `file` may be NULL */

/* Installs a handler of SIGBUS for the whole process. If another process then truncates a mapped file, its lost pages read as zeros, and
 * the models and registries that use the file give an error (wf_registry_intact, weft/registry.h). A SIGBUS from anything but a mapped file
 * is left to the handler that was there before. A program calls this once, at its beginning; the command does. */
WF_API void wf_safetensors_guard(void);

/* Return the number of entries, one for each tensor, and the entry with the number `index`, 0 <= index < count, in the order of the header.
 * Entries live as long as the handle. */
WF_API int64_t wf_safetensors_count(const wf_safetensors *file);
WF_API const struct wf_safetensors_entry *wf_safetensors_at(const wf_safetensors *file, int64_t index);
/* Returns the entry of a name, or NULL if no tensor has that name. */
WF_API const struct wf_safetensors_entry *wf_safetensors_find(const wf_safetensors *file, const char *name);

/* Reads a tensor into `dst` as `count` contiguous elements of `dtype`, row-major. Elements are converted between F16, BF16, F32 and F64:
 * values are rounded to nearest, and values out of range become infinite. WF_ERR_FORMAT: no tensor has that name, the dtypes differ in any
 * other way, or a byte of a BOOL is neither 0 nor 1. WF_ERR_SHAPE: the tensor has another number of elements. After an error `dst` may be
 * partly written. Several threads may read from one handle. */
WF_API wf_status wf_safetensors_read(const wf_safetensors *file, const char *name, wf_dtype dtype, void *dst, int64_t count,
                                     wf_error *error) WF_CHECKED;

/* Does the same as wf_safetensors_read for the elements `at` .. `at` + `count` - 1 of a tensor. WF_ERR_SHAPE: the tensor does not have all
 * of these elements. */
WF_API wf_status wf_safetensors_read_range(const wf_safetensors *file, const char *name, wf_dtype dtype, int64_t at, void *dst,
                                           int64_t count, wf_error *error) WF_CHECKED;

/* Returns the bytes of a tensor in memory, if the file was opened with .map or wf_safetensors_view. Returns NULL if the file is not in
 * memory, or if the bytes are not aligned for their dtype, which the format does not guarantee. In these cases use wf_safetensors_read. A
 * registry that maps parameters from the file may change the bytes in memory (wf_parameter_set). */
WF_API const void *wf_safetensors_data(const wf_safetensors *file, const struct wf_safetensors_entry *entry);

/* Returns the value of a key in the metadata, or NULL if they have no such key. The string lives as long as the handle. */
WF_API const char *wf_safetensors_metadata(const wf_safetensors *file, const char *key);
/* Sets *key and *value to the key and the value of entry `index` of the metadata, counted from 0 in the order of the file. Returns false if
 * there is no such entry. */
WF_API bool wf_safetensors_metadata_at(const wf_safetensors *file, int64_t index, const char **key, const char **value);

/* ---- Writing ---- */

/* A writer collects tensors and metadata. It keeps its first error until the commit, so that no call before the commit needs a check:
 *
 *   wf_safetensors_writer *w = wf_safetensors_writer_new();
 *   wf_safetensors_put_metadata(w, "format", "pt");
 *   wf_safetensors_put(w, "embed.weight", &weight);
 *   return wf_safetensors_commit(w, path, error);
 *
 * The same calls give the same bytes: tensors and metadata lie in the order of the calls. The tensors follow each other without gaps. If
 * the file is to be mapped, put tensors of the widest dtype first, so that all tensors are aligned. */
typedef struct wf_safetensors_writer wf_safetensors_writer;

/* Returns NULL if there is no memory. The other functions accept NULL, and the commit then returns WF_ERR_MEMORY. */
WF_API wf_safetensors_writer *wf_safetensors_writer_new(void);
/* Adds a key and its value to the metadata. Both are UTF-8 and are copied. Each key may be put once. */
WF_API void wf_safetensors_put_metadata(wf_safetensors_writer *writer, const char *key, const char *value);
/* Adds a tensor with any strides. Name, dtype and shape are copied. The elements are read at the commit and must live until then. Each name
 * may be put once; it must be UTF-8 and not "__metadata__". */
WF_API void wf_safetensors_put(wf_safetensors_writer *writer, const char *name, const wf_array *array);
/* Writes the file atomically (wf_file_save, <weft/file.h>) and frees the writer, also on failure. Tensors are written piece by piece, so
 * that apart from the header this takes a constant amount of memory. On failure `path` is unchanged. WF_ERR_ARGUMENT: an earlier put was
 * invalid. */
WF_API wf_status wf_safetensors_commit(wf_safetensors_writer *writer, const char *path, wf_error *error) WF_CHECKED;
/* Frees the writer without writing. */
WF_API void wf_safetensors_discard(wf_safetensors_writer *writer);

WF_END_DECLS

#endif
