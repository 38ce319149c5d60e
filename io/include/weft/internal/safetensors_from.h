/* SPDX-License-Identifier: MIT */
/* Safetensors files with tensors that are not in memory as arrays: a function supplies their elements while the file is written. */
#ifndef WEFT_INTERNAL_SAFETENSORS_FROM_H
#define WEFT_INTERNAL_SAFETENSORS_FROM_H

#include <weft/safetensors.h>

WF_BEGIN_DECLS

/* Stores `count` elements of a tensor, from element `at` on, in `out`. `key` identifies the tensor. */
typedef wf_status wf_safetensors_from(void *ctx, const void *key, int64_t at, int64_t count, void *out, wf_error *error);
/* Adds a tensor with the dtype and shape of `array`, whose data are ignored. At the commit, `read` supplies the elements in order, in
 * several calls. key[bytes] is copied and has at most 64 bytes. If `read` fails, the commit fails with its error. */
void wf_safetensors_put_from(wf_safetensors_writer *writer, const char *name, const wf_array *array, wf_safetensors_from *read, void *ctx,
                             const void *key, size_t bytes);
/* Makes the commit fail with this status and message, unless an earlier put has failed. */
void wf_safetensors_refuse(wf_safetensors_writer *writer, wf_status status, const char *message);

WF_END_DECLS

#endif
