/* SPDX-License-Identifier: MIT */
/* The tables of kernels: core/kernels/ holds the functions, compiled once per instruction set. */
#include <string.h>

#include <weft/internal/kernel_names.h>
#include <weft/internal/kernels.h>
#include <weft/internal/runtime.h>

#if defined __x86_64__ && !defined WF_NO_AVX512
#define KERNEL(type, name, arguments) type WF_KERNEL_PASTE(name, avx512) arguments;
#include <weft/internal/kernels.def>
#undef KERNEL
#define KERNEL(type, name, arguments) .name = WF_KERNEL_PASTE(name, avx512),
static const struct wf_kernels avx512 = {
    .isa = "avx512",
#include <weft/internal/kernels.def>
};
#undef KERNEL
#endif

#if defined __x86_64__ && !defined WF_NO_AVX2
#define KERNEL(type, name, arguments) type WF_KERNEL_PASTE(name, avx2) arguments;
#include <weft/internal/kernels.def>
#undef KERNEL
#define KERNEL(type, name, arguments) .name = WF_KERNEL_PASTE(name, avx2),
static const struct wf_kernels avx2 = {
    .isa = "avx2",
#include <weft/internal/kernels.def>
};
#undef KERNEL
#endif

#define KERNEL(type, name, arguments) type WF_KERNEL_PASTE(name, base) arguments;
#include <weft/internal/kernels.def>
#undef KERNEL
#define KERNEL(type, name, arguments) .name = WF_KERNEL_PASTE(name, base),
static const struct wf_kernels base = {
    .isa = "base",
#include <weft/internal/kernels.def>
};
#undef KERNEL

static const struct wf_kernels *const tables[] = {
#if defined __x86_64__ && !defined WF_NO_AVX512
    &avx512,
#endif
#if defined __x86_64__ && !defined WF_NO_AVX2
    &avx2,
#endif
    &base,
};

const struct wf_kernels *wf_kernel = &base;

static const struct wf_kernels *find(const char *isa)
{
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (strcmp(tables[i]->isa, isa) == 0)
            return tables[i];
    return NULL;
}

bool wf_kernels_built(const char *isa)
{
    return find(isa) != NULL;
}

bool wf_kernels_select(const char *isa)
{
    if (!find(isa))
        return false;
    wf_kernel = find(isa);
    return true;
}
