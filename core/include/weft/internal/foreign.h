/* SPDX-License-Identifier: MIT */
/* Files that are something else than was expected: what the first bytes say. */
#ifndef WEFT_INTERNAL_FOREIGN_H
#define WEFT_INTERNAL_FOREIGN_H

#include <weft/base.h>

enum { WF_FOREIGN_HEAD = 512 }; /* bytes of a file's beginning that suffice */

/* The end of a message about a file of another format, such as "is a Git LFS pointer, not the file itself: run git lfs pull"; NULL if the
 * format is not known. To be called after a reader has failed, since a safetensors file may begin with any bytes. */
const char *wf_foreign(const char *head, int64_t bytes);
/* The same for what should be text, before it is read: a page of HTML is text. */
const char *wf_foreign_text(const char *head, int64_t bytes);

#endif
