/* SPDX-License-Identifier: MIT */
/* Files of somebody else that stand where one is about to be written. */
#ifndef WEFT_INTERNAL_ASIDE_H
#define WEFT_INTERNAL_ASIDE_H

#include <weft/error.h>

/* Whether both are regular files with the same bytes. */
bool wf_file_same(const char *a, const char *b);

/* Renames a file or a folder `name` of `folder`, if there is one: config.json becomes config.previous-1.json, with the first number that is
 * free. `as`: another name to start from; NULL: its own. *moved is the new path (wf_free), NULL where there was nothing. */
wf_status wf_file_set_aside(const char *folder, const char *name, const char *as, char **moved, wf_error *error) WF_CHECKED;

/* Removes a regular file unless somebody holds a lock on it (flock); whether it did. */
bool wf_file_remove_unlocked(const char *path);

#endif
