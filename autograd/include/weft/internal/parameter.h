/* SPDX-License-Identifier: MIT */
/* Making parameters, for the room nn. */
#ifndef WEFT_INTERNAL_PARAMETER_H
#define WEFT_INTERNAL_PARAMETER_H

#include <weft/op.h>

/* State of a registry's values, shared by all its parameters. */
struct wf_values_use {
    _Atomic uint64_t
        updates;          /* how often values were replaced, by a load or wf_parameter_set: as wf_grads.updates, which optimisers count */
    _Atomic int64_t refs; /* the registry, and tapes in a pass that read them */
    _Atomic bool freed;   /* the registry was freed */
    bool replaced;        /* they are being replaced; under the lock of threads.c */
    /* Waits until the value of this parameter, or of all (below 0), has come from another process; NULL: all are here. Called before an op
     * reads the value, and before values are replaced. */
    void (*arrives)(void *ctx, int parameter);
    void *arrives_ctx;
};
struct wf_values_use *wf_values_use_new(void); /* NULL: no memory */
void wf_values_use_release(struct wf_values_use *use);
/* To be called around code that replaces values. WF_ERR_BUSY, with the name of the call: a pass of another thread's tape has read them, or
 * another thread replaces them now. Passes of this thread go on. */
wf_status wf_values_write_begin(struct wf_values_use *use, const char *call, wf_error *error) WF_CHECKED;
void wf_values_write_end(struct wf_values_use *use);

size_t wf_parameter_size(void); /* bytes of a parameter's tensor */
wf_tensor *wf_parameter_init(void *memory, const struct wf_parameter_info *info);
/* A parameter that ops refuse by name after wf_parameter_free, until thousands of others were freed; NULL: no memory. */
wf_tensor *wf_parameter_new(const struct wf_parameter_info *info);
void wf_parameter_free(wf_tensor *parameter);
/* Replaces its value, grads and frozen by those of info. */
void wf_parameter_update(wf_tensor *parameter, const struct wf_parameter_info *info);
wf_tensor *wf_parameter_of_none(void); /* the parameter that a NULL registry declares: without a value */

#endif
