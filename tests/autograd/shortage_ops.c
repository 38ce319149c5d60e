/* SPDX-License-Identifier: MIT */
/* Memory shortage in each op of ops.def: whichever allocation of a pass with one of its cases fails, the pass fails or has the bits that it
 * has otherwise. */
#include <weft/ops.h>

#include "cases.h"
#include "check_weft.h"

enum { MOST = 2000 }; /* elements of an operand */

struct pass {
    const wf_op *op;
    const struct wf_case *c;
    wf_mode mode;
    bool backward;
};

static bool is_small(const struct wf_case *c)
{
    wf_shape shape;
    for (int i = 0; i < wf_case_operands(c); i++)
        if (wf_case_operand(c, i, &shape) && wf_shape_count(&shape) > MOST)
            return false;
    return true;
}

static wf_tensor *operand(wf_tape *tape, const struct wf_case *c, int i)
{
    static wf_real values[MOST];
    wf_shape shape;
    wf_rng rng = wf_rng_new(1, (uint64_t)i);
    if (!wf_case_operand(c, i, &shape))
        return NULL;
    wf_case_fill(c->fill[i], c->limit[i], wf_shape_count(&shape), &rng, values);
    return case_tensor(tape, c->fill[i], values, &shape, case_has_gradient(c, i));
}

/* Copies an array to out + at, where out is not NULL. Returns the place behind it. */
static int64_t append(wf_real *out, int64_t at, const wf_array *from)
{
    const wf_shape shape = wf_array_shape(from);
    const wf_array to = wf_array_contiguous(out ? out + at : NULL, WF_REAL, &shape);
    if (out)
        wf_array_copy(&to, from);
    return at + wf_shape_count(&shape);
}

/* The result and the gradients end to end in out, where that is not NULL, and their number. */
static wf_status run(const struct pass *p, wf_real *out, int64_t *count)
{
    wf_error error = {0};
    wf_tape *tape = wf_tape_new(&error);
    wf_tensor *in[WF_MAX_INPUTS] = {NULL};
    wf_array a;
    const int n = wf_case_operands(p->c);
    *count = 0;
    if (!tape)
        return error.code;
    wf_tape_reset(tape, p->mode, .seed = 3);
    wf_tape_use(tape);
    for (int i = 0; i < n; i++)
        in[i] = operand(tape, p->c, i);
    wf_tensor *y = wf_keep(wf_to_real(wf_apply(p->op, p->c->attr, n, in)));
    wf_scratch_drop(); /* backward may need it again, as in another thread */
    const wf_status status = p->backward ? wf_backward(wf_sum(wf_mul(y, y))) : wf_tape_error(tape)->code;
    if (status == WF_OK) {
        ck_assert_int_eq(wf_view(y, &a), WF_OK);
        *count = append(out, 0, &a);
        for (int i = 0; i < n && p->backward; i++)
            if (case_has_gradient(p->c, i)) {
                ck_assert_int_eq(wf_grad(in[i], &a), WF_OK);
                *count = append(out, *count, &a);
            }
    } else {
        const char *message = wf_tape_error(tape)->message;
        ck_assert_msg(wf_tape_error(tape)->code == status && (strstr(message, ": no memory") || strstr(message, "iB beside the ")), "%s",
                      message);
    }
    wf_tape_free(tape);
    return status;
}

/* The number of allocations that failed. */
static int64_t fail_each_allocation(const struct pass *p)
{
    int64_t count, other, before, allocations;
    ck_assert_int_eq(run(p, NULL, &count), WF_OK);
    const size_t bytes = (size_t)count * sizeof(wf_real);
    wf_real *want = malloc(bytes + 1), *got = malloc(bytes + 1);
    wf_scratch_drop();
    before = wf_alloc_count();
    ck_assert_int_eq(run(p, want, &other), WF_OK);
    allocations = wf_alloc_count() - before;
    for (int64_t n = 0; n < allocations; n++) {
        wf_scratch_drop();
        wf_alloc_fail_after(n);
        const wf_status status = run(p, got, &other);
        wf_alloc_fail_after(-1);
        if (status != WF_OK ? status != WF_ERR_MEMORY : other != count || memcmp(got, want, bytes) != 0)
            ck_abort_msg("%s, case %d (%s): allocation %d of %d failed: status %d%s", p->op->name, (int)(p->c - p->op->cases.list),
                         p->backward ? "training" : "inference", (int)n, (int)allocations, (int)status,
                         status == WF_OK ? " with other bits" : "");
    }
    free(want), free(got);
    return allocations;
}

START_TEST(each_op)
{
    int64_t failed = 0;
    ck_ok(wf_init(error, .threads = 1));
    /* Each pass maps its tape's memory, which takes the sanitizers long. */
    const int ops = sanitized() ? 5 : 1, cases = sanitized() ? 5 : thorough() ? 1 : 4;
    for (int k = 0; k < wf_op_count(); k += ops)
        for (int i = 0; i < wf_op_at(k)->cases.count; i += cases) {
            const wf_op *op = wf_op_at(k);
            const struct wf_case *c = &op->cases.list[i];
            if (!is_small(c))
                continue;
            failed += fail_each_allocation(&(struct pass){op, c, WF_INFER, false});
            if (!op->constant)
                failed += fail_each_allocation(&(struct pass){op, c, c->train ? WF_TRAIN : WF_GRADIENTS, true});
        }
    ck_assert_int_gt(failed, 1000);
    if (getenv("VERBOSE"))
        printf("%lld failed allocations\n", (long long)failed);
}
END_TEST

WF_TEST_MAIN("shortage in ops", each_op)
