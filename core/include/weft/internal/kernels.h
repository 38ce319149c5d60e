/* SPDX-License-Identifier: MIT */
/* The numeric kernels: serial functions over dense rows, compiled once per instruction set into a table. The ops cut
 * their work with wf_parallel and call these in the bodies.
 *
 * The rule of bits: what a kernel gives for an element (or a row, for row kernels) never depends on where in the call it
 * stands or on how much else the call holds. Tails run through the same vector code on padded registers. */
#ifndef WEFT_INTERNAL_KERNELS_H
#define WEFT_INTERNAL_KERNELS_H

#include <weft/base.h>

struct wf_attention; /* attention.h */

/* One line a kernel: KERNEL(return type, name, (arguments)). A kernel file defines WF_KERNEL(name) for each kernel that it defines. */
struct wf_kernels {
    const char *isa;
#define KERNEL(type, name, arguments) type(*name) arguments;
#include <weft/internal/kernels.def>
#undef KERNEL
};

/* The table of the instruction set in use. */
extern const struct wf_kernels *wf_kernel;

#endif
