/* SPDX-License-Identifier: MIT */
/* Reads whole files, up to a given size, and writes files atomically, so that a reader sees either the old or the new file.
 *
 * A path is a string of bytes, usually UTF-8; a relative path begins at the working folder. WF_ERR_IO reports failures of the system; its
 * message has the path and the system's reason, which is in English in every locale. WF_ERR_MEMORY reports a lack of memory. Several
 * threads may call these functions at once. */
#ifndef WEFT_FILE_H
#define WEFT_FILE_H

#include <weft/error.h>

WF_BEGIN_DECLS

/* Reads a whole file, or a pipe to its end. Returns the bytes of the file with a zero byte behind them; the caller frees the result with
 * wf_free. *bytes is set to the length without the zero byte; `bytes` may be NULL. Returns NULL on failure; an empty file is no failure.
 * WF_ERR_FORMAT: the file has more than `limit` bytes. Reading stops at the limit. */
WF_API char *wf_file_load(const char *path, int64_t limit, int64_t *bytes, wf_error *error) WF_CHECKED;

/* Replaces the content of a file by data[bytes], atomically. The bytes go to a temporary file in the folder of `path`. This file is synced
 * and renamed to `path`; then the folder is synced. On any failure, such as a full disk or a quota, the temporary file is removed and
 * `path` is unchanged. There is one exception: if only the sync of the folder fails, `path` is already the new file, and only a power
 * failure can bring the old one back.
 *
 * A new file gets the usual mode (0666 less the umask); an existing file keeps its mode. A symbolic link is replaced by the file, not
 * followed. A device, a pipe or /dev/stdout is not replaced: the bytes are written to it directly. */
WF_API wf_status wf_file_save(const char *path, const void *data, int64_t bytes, wf_error *error) WF_CHECKED;

/* Return true if the path exists and is accessible. wf_file_exists accepts all but folders, for example devices and pipes; wf_folder_exists
 * accepts only folders. */
WF_API bool wf_file_exists(const char *path);
WF_API bool wf_folder_exists(const char *path);

/* Creates a folder and its parents (mkdir -p); an existing folder is no failure. */
WF_API wf_status wf_folder_make(const char *path, wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
