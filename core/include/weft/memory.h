/* SPDX-License-Identifier: MIT */
/* The library's allocator. */
#ifndef WEFT_MEMORY_H
#define WEFT_MEMORY_H

#include <weft/base.h>

WF_BEGIN_DECLS

/* All memory of the library is allocated here, aligned to 64 bytes. NULL if out of memory. wf_free(NULL) does nothing. */
WF_API void *wf_alloc(size_t bytes);
WF_API void *wf_alloc_zero(size_t count, size_t size); /* also NULL if count * size overflows */
WF_API void *wf_realloc(void *old, size_t bytes);      /* if it returns NULL, the old block is unchanged */
WF_API void wf_free(void *block);
WF_API char *wf_strdup(const char *text);
/* A formatted string, which the caller frees with wf_free. NULL if out of memory. */
WF_API char *wf_format(const char *format, ...) WF_PRINTF(1, 2);

WF_END_DECLS

#endif
