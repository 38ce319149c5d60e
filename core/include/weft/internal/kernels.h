/* SPDX-License-Identifier: MIT */
/* The tables of kernels. weft/compute.h describes the public ones; this header declares the internal ones, and macros for the files that
 * are compiled once per instruction set.
 *
 * The rule of bits: the result of a kernel for an element (for a row, in row kernels) never depends on the position of this element or row
 * in the call, or on the number of elements or rows. The last elements of a row, too few to fill a register, go through the same vector
 * code in a padded register. */
#ifndef WEFT_INTERNAL_KERNELS_H
#define WEFT_INTERNAL_KERNELS_H

#include <weft/compute.h>

struct wf_attention; /* defined in attention.h */
struct wf_attention_part;
struct conv_patches;  /* defined in core/conv/patches.h */
struct conv_outputs;  /* defined in core/conv/patches.h */
struct conv_lanes;    /* defined there too */
struct wf_cell;       /* defined in recurrent.h */
struct wf_scan_chunk; /* defined in selective_scan.h */
struct gemm_isa;      /* defined in core/gemm/private.h */
struct bf16_isa;      /* defined in core/gemm/bf16.h */

enum { WF_TOP_ROWS = 8 }; /* the most elements that top_rows finds in a row */
enum wf_noise { WF_NOISE_UNIFORM, WF_NOISE_NORMAL };

/* The table wf_kernel->internal. */
struct wf_internal_kernels {
    const struct gemm_isa *gemm;
    const struct bf16_isa *bf16; /* NULL in double */
#define PUBLIC_KERNEL(name)
#define KERNEL(type, name, arguments) type(*name) arguments;
#include <weft/internal/kernels.def>
#undef KERNEL
#undef PUBLIC_KERNEL
};

/* For files that are compiled once per instruction set, with -DWF_ISA=avx512, avx2 or base. WF_KERNEL(exp) is the name of the kernel exp
 * in this compilation, for example wf_kernel_exp_avx512. WF_GEMM does the same for core/gemm. */
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
