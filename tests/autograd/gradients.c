/* SPDX-License-Identifier: MIT */
/* Every op of the registry passes the gradient check: on each instruction set that the processor has, or in a sample on the best one. All
 * have the values and gradients of the others (precision.c). */
#include <weft/gradcheck.h>
#include <weft/internal/ops_all.h>

#include "isas.h"

START_TEST(every_op_has_cases)
{
    for (int i = 0; i < wf_op_count(); i++)
        ck_assert_msg(wf_op_at(i)->cases.count > 0, "%s has no cases", wf_op_at(i)->name);
}
END_TEST

static void check_all(int isa)
{
    const bool best = isa == 0 || (isa == 1 && !wf_isa_supported("avx512")) || !wf_isa_supported("avx2");
    if ((!best && !thorough()) || !isa_used(isa))
        return;
    for (int i = 0; i < wf_op_count(); i++)
        ck_ok(wf_check_op(wf_op_at(i), NULL, error));
}

START_TEST(avx512)
{
    check_all(0);
}
END_TEST

START_TEST(avx2)
{
    check_all(1);
}
END_TEST

START_TEST(base)
{
    check_all(2);
}
END_TEST

WF_TEST_MAIN("gradients", every_op_has_cases, avx512, avx2, base)
