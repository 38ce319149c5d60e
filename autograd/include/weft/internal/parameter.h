/* SPDX-License-Identifier: MIT */
/* How nn/ creates parameters and changes their values. */
#ifndef WEFT_INTERNAL_PARAMETER_H
#define WEFT_INTERNAL_PARAMETER_H

#include <weft/op.h>

/* Says who uses the values of a registry. All parameters of a registry share one of these structs. */
struct wf_values_use {
    /* How often a call such as wf_registry_load replaced values. (wf_grads.updates counts the updates of optimisers.) */
    _Atomic uint64_t updates;
    _Atomic int64_t refs; /* one for the registry, and one for each tape whose pass reads the values */
    _Atomic bool freed;   /* the registry was freed */
    bool replaced;        /* the values are being replaced; guarded by the lock in threads.c */
    /* Waits until the value of the parameter with this number in the registry has arrived from another process; with a negative number,
     * until all values have. Called before an op reads a value and before values are replaced. NULL if all values are present. */
    void (*arrives)(void *ctx, int parameter);
    void *arrives_ctx;
};
struct wf_values_use *wf_values_use_new(void); /* NULL without memory */
void wf_values_use_release(struct wf_values_use *use);
/* Reserves a registry's values for a caller that is about to replace them: until wf_values_write_end no other call can replace them, and no
 * further pass can begin to read them. Waits first until all values have arrived. WF_ERR_BUSY, with the name `call` in the message, if a
 * pass on another thread's tape has read the values, or if another call is replacing them. Passes of this thread that have read them do not
 * matter. */
wf_status wf_values_write_begin(struct wf_values_use *use, const char *call, wf_error *error) WF_CHECKED;
void wf_values_write_end(struct wf_values_use *use); /* ends the reservation, and counts an update of the values */

size_t wf_parameter_size(void);                                                   /* the size of a parameter's struct in bytes */
wf_tensor *wf_parameter_init(void *memory, const struct wf_parameter_info *info); /* makes a parameter in memory of this size */
/* A new parameter, or NULL without memory. After wf_parameter_free, ops refuse the parameter by name until thousands of others were
 * freed. */
wf_tensor *wf_parameter_new(const struct wf_parameter_info *info);
void wf_parameter_free(wf_tensor *parameter);
/* Replaces the value, `grads` and `frozen` of the parameter by those of info. */
void wf_parameter_update(wf_tensor *parameter, const struct wf_parameter_info *info);
wf_tensor *wf_parameter_of_none(void); /* what declaring a parameter in a NULL registry returns; it has no value */

#endif
