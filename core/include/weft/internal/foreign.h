/* SPDX-License-Identifier: MIT */
/* Recognises files of another format than a reader expects, by their first bytes. */
#ifndef WEFT_INTERNAL_FOREIGN_H
#define WEFT_INTERNAL_FOREIGN_H

#include <weft/base.h>

enum { WF_FOREIGN_HEAD = 512 }; /* number of leading bytes of a file that suffice to recognise its format */

/* The end of a message about a file of another format, such as "is a Git LFS pointer, not the file itself: run git lfs pull"; NULL if
 * the format is not known. Call it only after a reader has failed, since a safetensors file may begin with any bytes. */
const char *wf_foreign(const char *head, int64_t bytes);
/* wf_foreign for a file that should be text. It may be called before the file is read. It does not report HTML, because a page of HTML
 * is text. */
const char *wf_foreign_text(const char *head, int64_t bytes);

#endif
