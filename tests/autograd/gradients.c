/* SPDX-License-Identifier: MIT */
/* Every op of the registry passes the gradient check, on each instruction set that the processor has. */
#include <weft/gradcheck.h>
#include <weft/internal/ops_all.h>

#include "check_weft.h"

START_TEST(every_op_has_cases)
{
    for (int i = 0; i < wf_op_count(); i++)
        ck_assert_msg(wf_op_at(i)->cases.count > 0, "%s has no cases", wf_op_at(i)->name);
}
END_TEST

static void check_all(const char *isa)
{
    if (!wf_isa_supported(isa))
        return;
    ck_ok(wf_init(error));
    ck_ok(wf_isa_use(isa, error));
    for (int i = 0; i < wf_op_count(); i++)
        ck_ok(wf_check_op(wf_op_at(i), NULL, error));
}

START_TEST(avx512)
{
    check_all("avx512");
}
END_TEST

START_TEST(avx2)
{
    check_all("avx2");
}
END_TEST

START_TEST(base)
{
    check_all("base");
}
END_TEST

WF_TEST_MAIN("gradients", every_op_has_cases, avx512, avx2, base)
