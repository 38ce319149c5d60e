/* SPDX-License-Identifier: MIT */
/* For the files under core/kernels/, which are compiled once per instruction set with -DWF_ISA=avx512, avx2 or base:
 * WF_KERNEL(exp) is the name that the kernel exp has in this compilation, wf_kernel_exp_avx512. */
#ifndef WEFT_INTERNAL_KERNEL_NAMES_H
#define WEFT_INTERNAL_KERNEL_NAMES_H

#include <weft/base.h>

struct wf_attention; /* attention.h */

#define WF_KERNEL_PASTE(name, isa) wf_kernel_##name##_##isa
#define WF_KERNEL_EXPAND(name, isa) WF_KERNEL_PASTE(name, isa)

#ifdef WF_ISA
#define WF_KERNEL(name) WF_KERNEL_EXPAND(name, WF_ISA)
#define KERNEL(type, name, arguments) type WF_KERNEL(name) arguments;
#include <weft/internal/kernels.def>
#undef KERNEL
#endif

#endif
