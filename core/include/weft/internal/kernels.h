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
struct gemm_isa;     /* core/gemm/isa.h */

/* One line a kernel: KERNEL(return type, name, (arguments)). */
struct wf_kernels {
    const char *isa;
    const struct gemm_isa *gemm;
#define KERNEL(type, name, arguments) type(*name) arguments;
#include <weft/internal/kernels.def>
#undef KERNEL
};

/* The table of the instruction set in use. */
extern const struct wf_kernels *wf_kernel;

/* For the files that are compiled once per instruction set, with -DWF_ISA=avx512, avx2 or base: WF_KERNEL(exp) is the name that the kernel
 * exp has in this compilation, wf_kernel_exp_avx512; WF_GEMM does the same for core/gemm. */
#ifdef WF_ISA
#define WF_PASTE(name, isa) name##_##isa
#define WF_PASTE_ISA(name, isa) WF_PASTE(name, isa)
#define WF_KERNEL(name) WF_PASTE_ISA(wf_kernel_##name, WF_ISA)
#define WF_GEMM(name) WF_PASTE_ISA(wf_gemm_##name, WF_ISA)
#define KERNEL(type, name, arguments) type WF_KERNEL(name) arguments;
#include <weft/internal/kernels.def>
#undef KERNEL
#endif

#endif
