/* SPDX-License-Identifier: MIT */
/* A lock file, to keep two processes out of one folder. The kernel holds the lock (flock) and drops it when the process ends in
 * whatever way, so that a leftover file means nothing. */
#ifndef WEFT_LOCK_H
#define WEFT_LOCK_H

#include <weft/error.h>

WF_BEGIN_DECLS

typedef struct wf_lock wf_lock;

/* Makes the file where it is missing, locks it and writes the process's id into it. Does not wait: NULL when somebody
 * holds the lock, in this process or another one (WF_ERR_BUSY, the message names the holder's process id), and when the file can't
 * be made (WF_ERR_IO). A child made by fork holds the lock too, until it ends or calls exec. */
WF_API wf_lock *wf_lock_take(const char *path, wf_error *error) WF_CHECKED;

/* Removes the file and drops the lock. NULL is allowed. */
WF_API void wf_lock_release(wf_lock *lock);

WF_END_DECLS

#endif
