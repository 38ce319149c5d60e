/* SPDX-License-Identifier: MIT */
/* The instruction sets, one after the other: wf_isa names the one in use. */
#ifndef TESTS_ISAS_H
#define TESTS_ISAS_H

#include <weft/compute.h>

#include "check_weft.h"

enum { ISAS = 3 };

/* Computes with instruction set i, or returns false where the processor or the build has none. */
static inline bool isa_used(int i)
{
    static const char *const isas[ISAS] = {"avx512", "avx2", "base"};
    if (!wf_isa_supported(isas[i]))
        return false;
    ck_ok(wf_isa_use(isas[i], error));
    return true;
}

#endif
