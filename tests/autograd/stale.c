/* SPDX-License-Identifier: MIT */
/* Tensors that were kept over a reset or a rewind: they are recognised as stale for many of them. */
#include <weft/nn.h>
#include <weft/op.h>
#include <weft/ops.h>

#include <weft/internal/stale.h>
#include <weft/internal/testing.h>

#include "new_tape.h"

static wf_tensor *some(wf_tape *tape)
{
    return wf_zeros(tape, WF_SHAPE(2, 3));
}

/* One of each kind. */
enum { KINDS = 8 };
static void make_all(wf_tape *tape, wf_tensor *parameter, wf_tensor *made[KINDS])
{
    static wf_real data[6];
    wf_array borrowed = wf_array_contiguous(data, WF_REAL, WF_SHAPE(2, 3));
    made[0] = some(tape);
    made[1] = wf_input(tape, data, WF_SHAPE(2, 3), true);
    made[2] = wf_borrow(tape, &borrowed);
    made[3] = wf_exp(made[1]);
    made[4] = wf_transpose(made[3], 0, 1);
    made[5] = wf_reshape(parameter, 3, 2);
    made[6] = wf_detach(made[3]);
    made[7] = wf_expand(made[1], 4, 2, 3);
}

/* A use of x fails the tape with this part of a message. */
enum { USES = 7 };
static void must_refuse(wf_tape *tape, int use, wf_tensor *x, const char *part)
{
    double value;
    wf_array view;
    wf_real numbers[24];
    const bool refused = use == 0   ? wf_is_poison(wf_exp(x))
                         : use == 1 ? wf_is_poison(wf_add(some(tape), x))
                         : use == 2 ? wf_is_poison(wf_transpose(x, 0, 1))
                         : use == 3 ? wf_is_poison(wf_detach(x))
                         : use == 4 ? wf_view(x, &view) != WF_OK
                         : use == 5 ? wf_read(x, numbers, 6) != WF_OK
                                    : wf_item(x, &value) != WF_OK;
    const wf_error *e = wf_tape_error(tape);
    ck_assert_msg(refused && e->code == WF_ERR_STATE && strstr(e->message, part), "use %d, not '%s', but %s", use, part, e->message);
}

START_TEST(kept_over_resets)
{
    wf_registry *registry = wf_registry_new(NULL);
    wf_tensor *parameter = wf_parameter(wf_root(registry), "p", WF_SHAPE(2, 3));
    ck_ok(wf_registry_build(registry, 1, error));
    for (int test = 0; test < KINDS * USES; test++) {
        wf_tape *tape = new_tape();
        wf_tensor *made[KINDS], *others[KINDS];
        wf_tape_reset(tape, WF_TRAIN);
        make_all(tape, parameter, made);
        ck_assert_int_ge(wf_stale_resets(), 15);
        for (int pass = 0; pass < 1 + test % wf_stale_resets(); pass++) {
            wf_tape_reset(tape, WF_TRAIN);
            make_all(tape, parameter, others);
        }
        ck_assert_int_eq(wf_tape_error(tape)->code, WF_OK);
        must_refuse(tape, test % USES, made[test / USES], "is older than the last wf_tape_reset");
        wf_tape_free(tape);
    }
    wf_registry_free(registry);
}
END_TEST

START_TEST(kept_over_a_rewind)
{
    for (int test = 0; test < 2 * USES; test++) {
        wf_tape *tape = new_tape();
        wf_tape_reset(tape, WF_INFER);
        wf_tensor *below = some(tape);
        wf_tape_mark mark = wf_tape_here(tape);
        wf_tensor *keep = wf_exp(below), *dropped = wf_exp(keep), *view = wf_transpose(dropped, 0, 1);
        keep = wf_tape_rewind(tape, mark, keep);
        for (int i = 0; i < 1000; i++)
            ck_assert(!wf_is_poison(wf_exp(keep)));
        must_refuse(tape, test % USES, test < USES ? dropped : view, "was dropped by wf_tape_rewind");
        wf_tape_free(tape);
    }
}
END_TEST

/* A generation of many tokens: the memory that rewinds leave alone is bounded. */
START_TEST(many_rewinds)
{
    wf_tape *tape = new_tape();
    wf_tape_reset(tape, WF_INFER);
    wf_tensor *x = some(tape);
    wf_tape_mark outer = wf_tape_here(tape);
    int64_t before = 0;
    for (int round = 0; round < 40; round++) {
        for (int token = 0; token < 100; token++) {
            wf_tape_mark mark = wf_tape_here(tape);
            wf_tensor *y = x;
            for (int i = 0; i < 20; i++)
                y = wf_exp(wf_neg(y));
            ck_assert_ptr_null(wf_tape_rewind(tape, mark, NULL));
        }
        ck_assert_ptr_null(wf_tape_rewind(tape, outer, NULL));
        if (round == 20)
            before = wf_alloc_count();
    }
    ck_assert_int_eq(wf_alloc_count(), before);
    ck_assert(!wf_is_poison(wf_exp(x)));
    ck_assert_int_eq(wf_tape_error(tape)->code, WF_OK);
    wf_tape_free(tape);
}
END_TEST

/* The number of the pass is of 64 bits: nothing changes where 32 end. */
START_TEST(four_billion_resets)
{
    wf_tape *tape = new_tape();
    wf_stale_skip(tape, UINT32_MAX - 2);
    for (int pass = 0; pass < 6; pass++) {
        wf_tensor *made = wf_exp(some(tape));
        ck_assert_msg(!wf_is_poison(wf_add(made, made)), "%s", wf_tape_error(tape)->message);
        wf_tape_reset(tape, WF_TRAIN);
        must_refuse(tape, 0, made, "is older than the last wf_tape_reset");
        wf_tape_reset(tape, WF_TRAIN);
    }
    wf_tape_free(tape);
}
END_TEST

WF_TEST_MAIN("stale", four_billion_resets, kept_over_resets, kept_over_a_rewind, many_rewinds)
