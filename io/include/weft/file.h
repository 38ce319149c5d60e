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

/* Replaces the file by these bytes, atomically: they go to a temporary file in the folder of `path`, which is synced and renamed to `path`;
 * then the folder is synced. On any failure (a full disk, a quota) the temporary file is removed and `path` is unchanged. If only the sync
 * of the folder fails, `path` is already the new file, and only a power failure can bring the old one back.
 *
 * A new file gets the usual mode (0666 less the umask), an existing one keeps its own. A symbolic link is replaced by the
 * file, not followed. A device, a pipe or /dev/stdout is not replaced: the bytes are written to it directly. */
WF_API wf_status wf_file_save(const char *path, const void *data, int64_t bytes, wf_error *error) WF_CHECKED;

/* Whether the path exists and is accessible: wf_file_exists also for a device or a pipe, wf_folder_exists only for a folder. */
WF_API bool wf_file_exists(const char *path);
WF_API bool wf_folder_exists(const char *path);

/* Creates a folder and its parents (mkdir -p); an existing folder is no failure. */
WF_API wf_status wf_folder_make(const char *path, wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
