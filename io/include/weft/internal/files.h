/* SPDX-License-Identifier: MIT */
/* Files and folders: atomic writing in several calls, removal of temporary files, lists of files, renaming of files that would be replaced,
 * and locks. */
#ifndef WEFT_INTERNAL_FILES_H
#define WEFT_INTERNAL_FILES_H

#include <weft/file.h>
#include <weft/safetensors.h>

/* --- file_read.c --- */
/* Like wf_file_load, but reads from an open descriptor, up to the end of the file; `path` is for messages. The descriptor stays open. This
 * serves pipes, which can be opened only once: a second open would wait for another writer. */
char *wf_file_load_open(int fd, const char *path, int64_t limit, int64_t *bytes, wf_error *error) WF_CHECKED;

/* Recognises files of other programs by their first bytes. Returns the kind of a regular file, such as "is a GGUF file, ..." (wf_foreign),
 * or NULL if it is not recognised. */
const char *wf_file_foreign(const char *path);

/* --- file_writer.c --- */
/* wf_file_save in several calls, for files that are too large to hold in memory. Until wf_file_commit `path` is unchanged.
 *
 *   wf_file_writer *w = wf_file_begin(path, error);
 *   wf_file_append(w, head, head_bytes);
 *   wf_file_append(w, body, body_bytes);
 *   return wf_file_commit(w, error);                                                                                    */
typedef struct wf_file_writer wf_file_writer;

/* Returns NULL and sets *error on failure. The other three functions accept NULL. */
wf_file_writer *wf_file_begin(const char *path, wf_error *error) WF_CHECKED;
/* After a failure, returns the same status again. The result may be ignored, because wf_file_commit reports the first failure. Returns
 * WF_ERR_STATE if `writer` is NULL. */
wf_status wf_file_append(wf_file_writer *writer, const void *data, int64_t bytes);
/* Replaces the file and frees the writer, also on failure. If `writer` is NULL, returns error->code, which is the failure of wf_file_begin,
 * or WF_ERR_STATE. */
wf_status wf_file_commit(wf_file_writer *writer, wf_error *error) WF_CHECKED;
/* Removes the temporary file and frees the writer; `path` is unchanged. */
void wf_file_abort(wf_file_writer *writer);

/* --- folder.c, folder_move.c --- */
/* Removes temporary files that killed processes left in the folder. A file that a process on this machine still writes is kept, because its
 * writer holds a kernel lock on it until the process ends. *removed (`removed` may be NULL) becomes the number of removed files. */
wf_status wf_file_sweep(const char *folder, int *removed, wf_error *error) WF_CHECKED;

/* Removes a regular file unless a process holds a lock on it (flock). Returns true if the file was removed. */
bool wf_file_remove_unlocked(const char *path);

/* Removes a file; a missing file is no failure. A folder is not removed. */
wf_status wf_file_remove(const char *path, wf_error *error) WF_CHECKED;

/* Removes a folder with its files, and with the folders in it, which may contain files only. A missing folder is no failure. */
wf_status wf_folder_remove(const char *path, wf_error *error) WF_CHECKED;

/* Renames the folder `from` to `to`, which must be missing or an empty folder, and syncs the folder that contains `to`. Both must be on one
 * file system. */
wf_status wf_folder_rename(const char *from, const char *to, wf_error *error) WF_CHECKED;

/* Returns true if the path is a folder without any entry. */
bool wf_folder_empty(const char *path);

/* Lists the names, without the folder, of the regular files whose name begins with `prefix`, sorted by bytes. Hidden files are listed only
 * if the prefix begins with a dot. The caller frees the list with wf_names_free; on failure it is empty. */
struct wf_names {
    char **name;
    int64_t count;
};
wf_status wf_folder_list(const char *folder, const char *prefix, struct wf_names *names, wf_error *error) WF_CHECKED;
void wf_names_free(struct wf_names *names);

/* --- aside.c --- */
/* Returns true if `a` and `b` are regular files with the same bytes. */
bool wf_file_same(const char *a, const char *b);

/* Whether both paths lead to the same file or folder. (folder.c) */
bool wf_path_same(const char *a, const char *b);

/* Renames a file or a folder `name` in `folder`, if there is one: config.json becomes config.previous-1.json, with the first number that is
 * free. If `as` is not NULL, the new name is made from `as` instead of `name`. *moved becomes the new path, which the caller frees with
 * wf_free, or NULL if there was nothing to rename. */
wf_status wf_file_set_aside(const char *folder, const char *name, const char *as, char **moved, wf_error *error) WF_CHECKED;

/* --- lock.c --- */
/* A lock file lets only one process use a folder. The kernel holds the lock (flock) and releases it when the process ends in any way, so
 * that a leftover file does not lock. */
typedef struct wf_lock wf_lock;

/* Creates the file if necessary, locks it and writes the process id into it. Does not wait. Returns NULL if this process or another one
 * holds the lock (WF_ERR_BUSY, with the holder's process id in the message), or if the file can't be created (WF_ERR_IO). A child made by
 * fork holds the lock too, until it ends or calls exec. */
wf_lock *wf_lock_take(const char *path, wf_error *error) WF_CHECKED;

/* Removes the file and releases the lock. `lock` may be NULL. */
void wf_lock_release(wf_lock *lock);

/* --- safetensors_read.c --- */
/* Returns the path by which a file was opened, or the label of a view (wf_safetensors_view). */
const char *wf_safetensors_path(const wf_safetensors *file);
/* Gives the caller the memory of a file that is open with .map, which it may write to; it must call wf_safetensors_close once more. Returns
 * false if the file is not mapped, or if another caller has its memory already. */
bool wf_safetensors_take_memory(const wf_safetensors *file);
/* Undoes wf_safetensors_take_memory before the memory was used. */
void wf_safetensors_return_memory(const wf_safetensors *file);
/* What has happened to the memory of a file, or of one of its shards (wf_map_harm), and its path; NULL if nothing has. */
const char *wf_safetensors_harm(const wf_safetensors *file, const char **path);

#endif
