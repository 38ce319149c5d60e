/* SPDX-License-Identifier: MIT */
#ifndef WEFT_NN_REGISTRY_INTERNAL_H
#define WEFT_NN_REGISTRY_INTERNAL_H

#include <weft/internal/arena.h>
#include <weft/memory.h>
#include <weft/registry.h>

struct entry {
    const char *name;
    wf_shape shape;
    int64_t count, offset;
    struct wf_initializer init;
    bool buffer, frozen;
    wf_tensor *tensor;
};

struct wf_registry {
    wf_arena *arena; /* names, tensors, slabs */
    struct entry *entry;
    int count, capacity;
    int64_t slab;
    wf_real *values;
    wf_grads *grads;
    void *spare; /* a tensor for a parameter that memory was lacking for */
    wf_error error;
};

wf_status registry_allocate(wf_registry *registry, wf_error *error); /* values and tables */
/* Fills one parameter's value from its initialiser; depends on (seed, name, index) alone. */
void initialise(const struct entry *e, wf_real *value, uint64_t seed);

#endif
