/* SPDX-License-Identifier: MIT */
/* Files and folders: writing in pieces, temporary files of killed processes, lists, files that would be replaced, locks. */
#ifndef WEFT_INTERNAL_FILES_H
#define WEFT_INTERNAL_FILES_H

#include <weft/file.h>
#include <weft/safetensors.h>

/* --- file_read.c --- */
/* wf_file_load from a descriptor, up to its end; `path` is for messages. A pipe can be opened only once: a second open would wait for
 * another writer. The descriptor stays open. */
char *wf_file_load_open(int fd, const char *path, int64_t limit, int64_t *bytes, wf_error *error) WF_CHECKED;

/* The kind of a regular file that is not one of Weft's, by its first bytes ("is a GGUF file, ..."): wf_foreign; else NULL. */
const char *wf_file_foreign(const char *path);

/* --- file_writer.c --- */
/* wf_file_save in pieces, for files too large to hold in memory; until wf_file_commit `path` is unchanged.
 *
 *   wf_file_writer *w = wf_file_begin(path, error);
 *   wf_file_append(w, head, head_bytes);
 *   wf_file_append(w, body, body_bytes);
 *   return wf_file_commit(w, error);                                                                                    */
typedef struct wf_file_writer wf_file_writer;

/* NULL on failure, with *error set. The other three functions take NULL. */
wf_file_writer *wf_file_begin(const char *path, wf_error *error) WF_CHECKED;
/* After a failure it returns the same status again; the result may be ignored, since wf_file_commit reports the first failure. On
 * NULL it returns WF_ERR_STATE. */
wf_status wf_file_append(wf_file_writer *writer, const void *data, int64_t bytes);
/* Frees the writer, also on failure. On NULL returns error->code (the failure of wf_file_begin), or WF_ERR_STATE. */
wf_status wf_file_commit(wf_file_writer *writer, wf_error *error) WF_CHECKED;
/* Removes the temporary file and frees the writer; `path` is unchanged. */
void wf_file_abort(wf_file_writer *writer);

/* --- folder.c --- */
/* Removes temporary files that killed processes left in the folder. A file that any process on this
 * machine still writes is kept: its writer holds a kernel lock on it until the process ends. *removed (may be NULL) counts. */
wf_status wf_file_sweep(const char *folder, int *removed, wf_error *error) WF_CHECKED;

/* Removes a regular file unless a process holds a lock on it (flock); returns whether it did. */
bool wf_file_remove_unlocked(const char *path);

/* Removes a file; a missing file is no failure. A folder is not removed. */
wf_status wf_file_remove(const char *path, wf_error *error) WF_CHECKED;

/* The names (without the folder) of the regular files whose name begins with `prefix`, sorted by bytes. Hidden files come only
 * when the prefix begins with a dot. The caller frees the list with wf_names_free; on failure it is empty. */
struct wf_names {
    char **name;
    int64_t count;
};
wf_status wf_folder_list(const char *folder, const char *prefix, struct wf_names *names, wf_error *error) WF_CHECKED;
void wf_names_free(struct wf_names *names);

/* --- aside.c --- */
/* Whether both are regular files with the same bytes. */
bool wf_file_same(const char *a, const char *b);

/* Renames a file or a folder `name` of `folder`, if there is one: config.json becomes config.previous-1.json, with the first number that is
 * free. `as`: another name to start from; NULL: its own. *moved is the new path (wf_free), NULL where there was nothing. */
wf_status wf_file_set_aside(const char *folder, const char *name, const char *as, char **moved, wf_error *error) WF_CHECKED;

/* --- lock.c --- */
/* A lock file, so that only one process uses a folder. The kernel holds the lock (flock) and releases it when the process ends in any
 * way: a leftover file does not lock. */
typedef struct wf_lock wf_lock;

/* Creates the file if necessary, locks it and writes the process id into it. Does not wait: NULL if the lock is held, by this process or
 * another one (WF_ERR_BUSY, with the holder's process id in the message), and if the file can't be created (WF_ERR_IO). A child made by
 * fork holds the lock too, until it ends or calls exec. */
wf_lock *wf_lock_take(const char *path, wf_error *error) WF_CHECKED;

/* Removes the file and releases the lock. NULL is allowed. */
void wf_lock_release(wf_lock *lock);

/* The path that a file was opened by, or a view's label. */
const char *wf_safetensors_path(const wf_safetensors *file);

#endif
