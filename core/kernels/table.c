/* SPDX-License-Identifier: MIT */
/* The table of the kernels for one instruction set. */
#include <weft/internal/kernels.h>

extern const struct gemm_isa WF_GEMM(isa);
extern const struct bf16_isa WF_GEMM(bf16);

#define NAME_(isa) #isa
#define NAME(isa) NAME_(isa)
#define PUBLIC_KERNEL(name)
#define KERNEL(type, name, arguments) .name = WF_KERNEL(name),
static const struct wf_internal_kernels internal = {
    .gemm = &WF_GEMM(isa),
#ifndef WF_DOUBLE
    .bf16 = &WF_GEMM(bf16),
#endif
#include <weft/internal/kernels.def>
};
#undef KERNEL
#undef PUBLIC_KERNEL

#define PUBLIC_KERNEL(name) .name = WF_KERNEL(name),
#define KERNEL(type, name, arguments)
const struct wf_kernels WF_KERNEL(table) = {
    .isa = NAME(WF_ISA),
    .internal = &internal,
#include <weft/internal/kernels.def>
};
