/* SPDX-License-Identifier: MIT */
#ifndef WEFT_INTERNAL_SAFETENSORS_FROM_H
#define WEFT_INTERNAL_SAFETENSORS_FROM_H

#include <weft/safetensors.h>

WF_BEGIN_DECLS

/* Puts `count` elements of a tensor, from element `at` on, into out. `key` says which tensor. */
typedef wf_status wf_safetensors_from(void *ctx, const void *key, int64_t at, int64_t count, void *out, wf_error *error);
/* A tensor of the array's dtype and shape; its data are ignored: `read` gives the elements at the commit, piece by piece, in order.
 * key[bytes], 64 at most, is copied. If `read` fails, the commit fails with its error. */
void wf_safetensors_put_from(wf_safetensors_writer *writer, const char *name, const wf_array *array, wf_safetensors_from *read, void *ctx,
                             const void *key, size_t bytes);
/* The commit will fail with this, unless an earlier put has failed. */
void wf_safetensors_refuse(wf_safetensors_writer *writer, wf_status status, const char *message);

WF_END_DECLS

#endif
