/* SPDX-License-Identifier: MIT */
/* Persistent buffers, for the rooms that make updates. */
#ifndef WEFT_INTERNAL_BUFFERS_H
#define WEFT_INTERNAL_BUFFERS_H

#include <weft/registry.h>

/* wf_registry_update_buffers as a part of an update, which nothing protects from passes of other threads. A registry without gradients is
 * allowed. The caller counts the update (wf_grads.updates). */
void wf_registry_change_buffers(wf_registry *registry);
/* The numbers of wf_averages that gradients of the registry have, or will have; 0 if there are no persistent buffers. */
int64_t wf_registry_averages(const wf_registry *registry);

#endif
