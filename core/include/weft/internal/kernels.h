/* SPDX-License-Identifier: MIT */
/* The tables of kernels. Those for every op are described in weft/compute.h; here stand the others, and what the files need that are
 * compiled once per instruction set.
 *
 * The rule of bits: what a kernel gives for an element (or a row, for row kernels) never depends on where in the call it
 * stands or on how much else the call holds. Tails run through the same vector code on padded registers. */
#ifndef WEFT_INTERNAL_KERNELS_H
#define WEFT_INTERNAL_KERNELS_H

#include <weft/compute.h>

struct wf_attention; /* attention.h */
struct wf_attention_part;
struct gemm_isa; /* core/gemm/private.h */

enum { WF_TOP_ROWS = 8 }; /* elements that top_rows finds in a row, at most */
enum wf_noise { WF_NOISE_UNIFORM, WF_NOISE_NORMAL };

/* wf_kernel->internal */
struct wf_internal_kernels {
    const struct gemm_isa *gemm;
#define PUBLIC_KERNEL(name)
#define KERNEL(type, name, arguments) type(*name) arguments;
#include <weft/internal/kernels.def>
#undef KERNEL
#undef PUBLIC_KERNEL
};

/* For the files that are compiled once per instruction set, with -DWF_ISA=avx512, avx2 or base: WF_KERNEL(exp) is the name that the kernel
 * exp has in this compilation, wf_kernel_exp_avx512; WF_GEMM does the same for core/gemm. */
#ifdef WF_ISA
#define WF_PASTE(name, isa) name##_##isa
#define WF_PASTE_ISA(name, isa) WF_PASTE(name, isa)
#define WF_KERNEL(name) WF_PASTE_ISA(wf_kernel_##name, WF_ISA)
#define WF_GEMM(name) WF_PASTE_ISA(wf_gemm_##name, WF_ISA)
#define PUBLIC_KERNEL(name) extern __typeof__(*((struct wf_kernels *)0)->name) WF_KERNEL(name);
#define KERNEL(type, name, arguments) type WF_KERNEL(name) arguments;
#include <weft/internal/kernels.def>
#undef KERNEL
#undef PUBLIC_KERNEL
#endif

#endif
