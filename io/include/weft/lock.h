/* SPDX-License-Identifier: MIT */
/* A lock file, so that only one process uses a folder. The kernel holds the lock (flock) and releases it when the process ends in any
 * way: a leftover file does not lock. */
#ifndef WEFT_LOCK_H
#define WEFT_LOCK_H

#include <weft/error.h>

WF_BEGIN_DECLS

typedef struct wf_lock wf_lock;

/* Creates the file if necessary, locks it and writes the process id into it. Does not wait: NULL if the lock is held, by this process or
 * another one (WF_ERR_BUSY, with the holder's process id in the message), and if the file can't be created (WF_ERR_IO). A child made by
 * fork holds the lock too, until it ends or calls exec. */
WF_API wf_lock *wf_lock_take(const char *path, wf_error *error) WF_CHECKED;

/* Removes the file and releases the lock. NULL is allowed. */
WF_API void wf_lock_release(wf_lock *lock);

WF_END_DECLS

#endif
