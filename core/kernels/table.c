/* SPDX-License-Identifier: MIT */
/* The table of this instruction set's kernels. */
#include <weft/internal/kernels.h>

extern const struct gemm_isa WF_GEMM(isa);

#define NAME_(isa) #isa
#define NAME(isa) NAME_(isa)
#define KERNEL(type, name, arguments) .name = WF_KERNEL(name),
const struct wf_kernels WF_KERNEL(table) = {
    .isa = NAME(WF_ISA),
    .gemm = &WF_GEMM(isa),
#include <weft/internal/kernels.def>
};
