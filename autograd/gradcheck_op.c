/* SPDX-License-Identifier: MIT */
/* The gradient check of an op: checks every case of the op's descriptor. */
#include <stdio.h>

#include <weft/internal/needs.h>
#include <weft/internal/ops_all.h>
#include <weft/memory.h>
#include <weft/ops.h>

#include "gradcheck.h"

static wf_tensor *apply_op(void *ctx, wf_tape *tape, wf_tensor *const in[])
{
    (void)tape;
    const struct applied *a = ctx;
    wf_tensor *y = wf_apply(a->op, a->attr, a->inputs, in);
    return wf_dtype_of(y) == WF_REAL ? y : wf_to_real(y);
}

bool wf_case_operand(const struct wf_case *c, int i, wf_shape *shape)
{
    const int64_t *dims = c->in[i];
    *shape = (wf_shape){0};
    if (c->fill[i] == WF_FILL_ABSENT || dims[0] == 0)
        return false;
    while (dims[0] != -2 && shape->ndim < WF_MAX_DIMS && dims[shape->ndim] != 0) {
        shape->dim[shape->ndim] = dims[shape->ndim] == -1 ? 0 : dims[shape->ndim];
        shape->ndim++;
    }
    return true;
}

int wf_case_operands(const struct wf_case *c)
{
    wf_shape shape;
    int n = 0;
    while (c->inputs == 0 && n < WF_MAX_INPUTS && wf_case_operand(c, n, &shape))
        n++;
    return c->inputs > 0 ? c->inputs : n;
}

static void set_up(struct check *k, const struct wf_case *c)
{
    k->mode = c->train ? WF_TRAIN : WF_GRADIENTS;
    k->inputs = wf_case_operands(c);
    for (int i = 0; i < k->inputs; i++) {
        struct check_input *in = &k->in[i];
        *in = (struct check_input){.fill = c->fill[i], .limit = c->limit[i], .constant = c->constant[i]};
        if (!wf_case_operand(c, i, &in->shape))
            in->fill = WF_FILL_ABSENT;
    }
}

/* --- cases ---------------------------------------------------------------------------------------------------------- */

struct case_check {
    struct check k;
    struct applied applied;
    char what[160];
};

/* Sets up the check of a case, and does the plain run. The caller must call check_end, also after an error. */
static wf_status begin_case(struct case_check *s, const wf_op *op, const struct wf_case *c, const struct wf_gradcheck_options *options,
                            wf_error *error)
{
    long index = op->cases.count > 0 && c >= op->cases.list && c < op->cases.list + op->cases.count ? (long)(c - op->cases.list) : -1;
    snprintf(s->what, sizeof s->what, "%s, case %ld%s%s", op->name, index, c->what ? " " : "", c->what ? c->what : "");
    s->k = (struct check){.fn = apply_op, .ctx = &s->applied, .what = s->what, .constant = op->constant, .error = error};
    set_up(&s->k, c);
    s->applied = (struct applied){.op = op, .attr = c->attr, .inputs = s->k.inputs};
    bool constants = false, any = false;
    for (int i = 0; i < s->k.inputs; i++) {
        constants |= s->k.in[i].constant;
        any |= check_has_gradient(&s->k.in[i]);
    }
    if (constants && !any && !op->constant)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s: all real inputs are .constant, so there is no gradient to check", s->what);
    wf_status status = check_begin(&s->k, options);
    return status == WF_OK ? check_plain_run(&s->k) : status;
}

/* Refuses an op without a backward unless it is .constant, because its author may have forgotten the backward. */
static wf_status check_descriptor(const wf_op *op, wf_error *error)
{
    if (!op->backward && !op->constant)
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "%s has no backward: give its descriptor one, or .constant = true if its result has no gradient", op->name);
    if (op->backward && op->constant)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s has a backward, but its descriptor says .constant: leave one of them out",
                            op->name);
    return WF_OK;
}

wf_status wf_check_case(const wf_op *op, const struct wf_case *c, const struct wf_gradcheck_options *options, wf_error *error)
{
    if (wf_needs(error, "op, c", op, c))
        return WF_ERR_ARGUMENT;
    struct case_check s;
    wf_status status = check_descriptor(op, error);
    if (status != WF_OK)
        return status;
    status = begin_case(&s, op, c, options, error);
    if (status == WF_OK && !op->constant)
        status = check_numeric(&s.k);
    if (status == WF_OK)
        status = check_all_situations(&s.k);
    if (status == WF_OK && op->gradient)
        status = check_gradient(&s.k, options);
    check_end(&s.k);
    return status;
}

wf_status wf_check_op(const wf_op *op, const struct wf_gradcheck_options *options, wf_error *error)
{
    if (wf_needs(error, "op", op))
        return WF_ERR_ARGUMENT;
    if (op->cases.count == 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s has no cases to check: add some to its descriptor", op->name);
    wf_status status = check_descriptor(op, error);
    for (int i = 0; i < op->cases.count && status == WF_OK; i++)
        status = wf_check_case(op, &op->cases.list[i], options, error);
    return status;
}

wf_status wf_case_numbers(const wf_op *op, const struct wf_case *c, double **out, int64_t *count, wf_error *error)
{
    struct case_check s;
    const struct check *k = &s.k;
    wf_status status = begin_case(&s, op, c, NULL, error);
    int64_t n = k->results;
    for (int i = 0; i < k->inputs; i++)
        n += check_has_gradient(&k->in[i]) && !k->constant ? k->in[i].count : 0;
    *count = 0;
    *out = status == WF_OK ? wf_alloc_zero((size_t)n + 1, sizeof **out) : NULL;
    if (status == WF_OK && !*out)
        status = wf_error_set(error, WF_ERR_MEMORY, "no memory for the results of a case");
    if (status == WF_OK) {
        for (int64_t j = 0; j < k->results; j++)
            (*out)[(*count)++] = k->result[j];
        for (int i = 0; i < k->inputs; i++)
            for (int64_t j = 0; check_has_gradient(&k->in[i]) && !k->constant && j < k->in[i].count; j++)
                (*out)[(*count)++] = k->in[i].grad[j];
    }
    check_end(&s.k);
    return status;
}
