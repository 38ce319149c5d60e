/* SPDX-License-Identifier: MIT */
/* Whole files: reading with a limit, and atomic writing: a reader sees either the old or the new file.
 *
 * Paths are UTF-8 or whatever bytes the system takes, relative to the working folder. Failures of the system come as
 * WF_ERR_IO with the path and the system's reason in English whatever the locale is; no memory is WF_ERR_MEMORY. All functions
 * may be called from several threads at once, on different handles. */
#ifndef WEFT_FILE_H
#define WEFT_FILE_H

#include <weft/error.h>

WF_BEGIN_DECLS

/* Reads a whole file, or a pipe to its end. *bytes (may be NULL) is its length; followed by a zero byte that is not
 * counted. NULL on failure; an empty file is no failure. A file of more than `limit` bytes is WF_ERR_FORMAT, and no more than
 * `limit` bytes are read. The caller frees the result with wf_free. */
WF_API char *wf_file_load(const char *path, int64_t limit, int64_t *bytes, wf_error *error) WF_CHECKED;

/* Replaces the file by these bytes, atomically: wf_file_begin, wf_file_append, wf_file_commit. */
WF_API wf_status wf_file_save(const char *path, const void *data, int64_t bytes, wf_error *error) WF_CHECKED;

/* The same in pieces, for files too large to hold in memory. The bytes go to a temporary file in the folder of `path`;
 * wf_file_commit syncs it, renames it to `path` and syncs the folder. Until then `path` is unchanged, and on any failure (a
 * full disk, a quota) the temporary file is removed. If only the sync of the folder fails, `path` is already the new file, and
 * only a power failure can bring the old one back.
 *
 * A new file gets the usual mode (0666 less the umask), an existing one keeps its own. A symbolic link is replaced by the
 * file, not followed. A device, a pipe or /dev/stdout is not replaced: the bytes are written to it directly.
 *
 *   wf_file_writer *w = wf_file_begin(path, error);
 *   wf_file_append(w, head, head_bytes);
 *   wf_file_append(w, body, body_bytes);
 *   return wf_file_commit(w, error);                                                                                    */
typedef struct wf_file_writer wf_file_writer;

/* NULL on failure, with *error set. The other three functions take NULL. */
WF_API wf_file_writer *wf_file_begin(const char *path, wf_error *error) WF_CHECKED;
/* After a failure it returns the same status again; the result may be ignored, since wf_file_commit reports the first failure. On
 * NULL it returns WF_ERR_STATE. */
WF_API wf_status wf_file_append(wf_file_writer *writer, const void *data, int64_t bytes);
/* Frees the writer, also on failure. On NULL returns error->code (the failure of wf_file_begin), or WF_ERR_STATE. */
WF_API wf_status wf_file_commit(wf_file_writer *writer, wf_error *error) WF_CHECKED;
/* Removes the temporary file and frees the writer; `path` is unchanged. */
WF_API void wf_file_abort(wf_file_writer *writer);

/* Removes temporary files that killed processes left in the folder. A file that any process on this
 * machine still writes is kept: its writer holds a kernel lock on it until the process ends. *removed (may be NULL) counts. */
WF_API wf_status wf_file_sweep(const char *folder, int *removed, wf_error *error) WF_CHECKED;

/* Whether the path exists and is accessible: wf_file_exists also for a device or a pipe, wf_folder_exists only for a folder. */
WF_API bool wf_file_exists(const char *path);
WF_API bool wf_folder_exists(const char *path);

/* Removes a file; a missing file is no failure. A folder is not removed. */
WF_API wf_status wf_file_remove(const char *path, wf_error *error) WF_CHECKED;

/* Creates a folder and its parents (mkdir -p); an existing folder is no failure. */
WF_API wf_status wf_folder_make(const char *path, wf_error *error) WF_CHECKED;

/* The names (without the folder) of the regular files whose name begins with `prefix`, sorted by bytes. Hidden files come only
 * when the prefix begins with a dot. The caller frees the list with wf_names_free; on failure it is empty. */
struct wf_names {
    char **name;
    int64_t count;
};
WF_API wf_status wf_folder_list(const char *folder, const char *prefix, struct wf_names *names, wf_error *error) WF_CHECKED;
WF_API void wf_names_free(struct wf_names *names);

WF_END_DECLS

#endif
