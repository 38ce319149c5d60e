/* SPDX-License-Identifier: MIT */
/* Temporary files of the atomic writer: ".weft-", 16 hexadecimal digits, ".tmp". Whoever writes one holds a flock on it. */
#ifndef WEFT_IO_TEMPORARY_H
#define WEFT_IO_TEMPORARY_H

#include <weft/base.h>

enum { TEMPORARY_NAME = 6 + 16 + 4 };

/* Whether a name in a folder is that of a temporary file. */
bool wf_temporary_is(const char *name);

#endif
