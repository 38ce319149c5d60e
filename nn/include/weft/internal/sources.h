/* SPDX-License-Identifier: MIT */
/* Which tensors of a file make up the parameters of a registry, for programs that convert files without loading a model. */
#ifndef WEFT_INTERNAL_SOURCES_H
#define WEFT_INTERNAL_SOURCES_H

#include <weft/registry.h>

enum {
    WF_SOURCES = (int)(sizeof((struct wf_load_rule *)0)->source / sizeof(char *)),
    WF_SOURCE_NAME = 1024 /* bytes of a tensor's name */
};

/* The names of the tensors that make up one parameter, stacked along dimension 0. */
struct wf_sources {
    int count;
    bool uneven, transposed; /* as in struct wf_load_rule */
    int part, parts;         /* as in struct wf_load_rule, but `parts` is at least 1 */
    char name[WF_SOURCES][WF_SOURCE_NAME];
};

/* Receives the sources of the parameter `name`, which has this shape. */
typedef wf_status wf_sources_of(void *ctx, const char *name, const wf_shape *shape, const struct wf_sources *sources, wf_error *error);

/* Calls `each` for each parameter of the registry, in the order of declaration. With a file, it is first checked as by
 * wf_registry_load_with, and each parameter has the sources that a load would read. Without a file (NULL), each parameter has the sources
 * of its first rule: the tensors into which it is written for the other library. The registry needs no values. Stops at the first failure
 * of `each`, and returns it. */
wf_status wf_registry_sources(const wf_registry *registry, const wf_safetensors *file, const struct wf_load_options *options,
                              wf_sources_of *each, void *ctx, wf_error *error) WF_CHECKED;

#endif
