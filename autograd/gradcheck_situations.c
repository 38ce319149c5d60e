/* SPDX-License-Identifier: MIT */
/* Runs an op in every situation in which the engine can call it, and compares each run with the plain run of the case. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weft/internal/gemm.h>
#include <weft/ops.h>

#include "engine.h"
#include "gradcheck.h"

/* --- comparing runs ------------------------------------------------------------------------------------------------ */

static double at(const wf_array *a, int64_t index)
{
    int64_t offset = 0;
    for (int d = a->ndim - 1; d >= 0; d--) {
        offset += index % a->dim[d] * a->stride[d];
        index /= a->dim[d];
    }
    return ((const wf_real *)a->data)[offset];
}

/* Compares values with expected ones. The largest difference must be small relative to the root mean square of the expected values, or to
 * `terms` if that is larger. `terms` is for expected values that are sums of terms which may cancel: the rounding error of such a sum is
 * proportional to the sum of the absolute values of its terms, and `terms` is the mean of these sums of absolute values. For other expected
 * values `terms` is 0. */
static wf_status same_sum(struct check *k, const char *situation, const char *what, int input, const wf_array *got, const wf_real *expected,
                          double terms)
{
    int64_t count = wf_array_count(got);
    double norm = 0, worst = 0;
    for (int64_t i = 0; i < count; i++)
        norm += (double)expected[i] * expected[i];
    double scale = fmax(sqrt(norm / (count > 0 ? (double)count : 1)), terms) + 1e-3;
    for (int64_t i = 0; i < count; i++) {
        double difference = fabs(at(got, i) - expected[i]);
        if (isnan(difference) || difference > worst)
            worst = difference;
        if (isnan(worst))
            break;
    }
    double bound = sizeof(wf_real) == 8 ? 1e-11 : 1e-4;
    if (!(worst <= bound * scale))
        return wf_error_set(k->error, WF_ERR_NUMERIC, "%s: %s: %s %d differs from the plain run by %.3g (scale %.3g)", k->what, situation,
                            what, input, worst, scale);
    return WF_OK;
}

wf_status check_same(struct check *k, const char *situation, const char *what, int input, const wf_array *got, const wf_real *expected)
{
    return same_sum(k, situation, what, input, got, expected, 0);
}

/* Compares the gradients of the inputs whose bits are set in `need` with those of the plain run. */
static wf_status compare_gradients(struct check *k, const char *situation, unsigned need, enum layout layout, wf_tensor *const leaf[])
{
    wf_status status = WF_OK;
    for (int i = 0; i < k->inputs && status == WF_OK; i++) {
        wf_array grad;
        if (!(need >> i & 1) || !check_has_gradient(&k->in[i]))
            continue;
        status = check_leaf_grad(k, i, layout, leaf[i], &grad);
        if (status == WF_OK)
            status = check_same(k, situation, "gradient of input", i, &grad, k->in[i].grad);
    }
    return status;
}

/* Runs the op with its operands in `layout`; input i needs a gradient if bit i of `need` is set. Compares the result and these gradients
 * with those of the plain run. */
static wf_status compare_run(struct check *k, const char *situation, unsigned need, enum layout layout)
{
    wf_tensor *leaf[WF_MAX_INPUTS], *operand[WF_MAX_INPUTS];
    wf_status status = check_operands(k, k->mode, need, layout, leaf, operand);
    if (status != WF_OK)
        return status;
    wf_tensor *y = k->fn(k->ctx, k->tape, operand);
    wf_array view;
    if (wf_view(y, &view) != WF_OK)
        return check_status(k, situation);
    status = check_same(k, situation, "result", 0, &view, k->result);
    bool any = false;
    for (int i = 0; i < k->inputs; i++)
        any |= (need >> i & 1) && check_has_gradient(&k->in[i]) && !k->constant;
    if (status != WF_OK || !any)
        return status;
    if (wf_backward(check_weighted_sum(k, y)) != WF_OK)
        return check_status(k, situation);
    return compare_gradients(k, situation, need, layout, leaf);
}

/* --- what backward reads ------------------------------------------------------------------------------------------- */

enum { OUTPUT = -1 }; /* stands for the result in place of an input's number */

/* Replaces values that backward must not read: reals by NaN, an id by limit - 1 - id, bools by their opposites. */
static void replace_values(const wf_array *a, int32_t limit)
{
    int64_t count = wf_array_count(a);
    for (int64_t i = 0; i < count; i++) {
        if (a->dtype == WF_REAL)
            ((wf_real *)a->data)[i] = NAN;
        else if (a->dtype == WF_I32)
            ((int32_t *)a->data)[i] = limit > 0 ? limit - 1 - ((int32_t *)a->data)[i] : 0;
        else
            ((bool *)a->data)[i] = !((bool *)a->data)[i];
    }
}

/* Replaces the value of one input, or of the result, between forward and backward. The descriptor says that backward does not read this
 * value, so the gradients must not change. */
static wf_status without_value(struct check *k, int input, unsigned need, enum layout layout)
{
    char situation[200];
    if (input == OUTPUT)
        snprintf(situation, sizeof situation, "backward reads the value of output 0, but .reads of the descriptor lacks it");
    else
        snprintf(situation, sizeof situation, "backward reads the value of input %d, but .reads of the descriptor lacks it", input);
    wf_tensor *leaf[WF_MAX_INPUTS], *operand[WF_MAX_INPUTS];
    wf_array value;
    wf_status status = check_operands(k, k->mode, need, layout, leaf, operand);
    if (status != WF_OK)
        return status;
    wf_tensor *y = wf_keep(k->fn(k->ctx, k->tape, operand));
    wf_tensor *loss = check_weighted_sum(k, wf_scale(y, 1)); /* wf_scale, because its backward does not read y, whose value changes */
    if (wf_view(input == OUTPUT ? y : leaf[input], &value) != WF_OK)
        return check_status(k, situation);
    replace_values(&value, input == OUTPUT ? 0 : k->in[input].limit);
    return wf_backward(loss) == WF_OK ? compare_gradients(k, situation, need, layout, leaf) : check_status(k, situation);
}

static wf_status only_declared_values(struct check *k, unsigned real)
{
    const wf_op *op = ((const struct applied *)k->ctx)->op;
    unsigned reads = values_read(op);
    wf_status status = WF_OK;
    for (unsigned need = real; need; need = (need - 1) & real)
        for (int layout = LAYOUT_CONTIGUOUS; layout <= (need == real ? LAYOUT_SLICED : LAYOUT_CONTIGUOUS); layout++)
            for (int i = OUTPUT; i < k->inputs && status == WF_OK; i++)
                if (i == OUTPUT ? !(reads & WF_READS_OUTPUT(0)) && !op->view /* the result of a view shares its memory with input 0 */
                                : !(reads & WF_READS_INPUT(i)) && k->in[i].count > 0)
                    status = without_value(k, i, need, (enum layout)layout);
    return status;
}

/* --- situations ---------------------------------------------------------------------------------------------------- */

/* Each input is also an operand of another op, which runs before or after the checked op, and another tensor shares the gradient of the
 * result. The other op is wf_scale by 3, and the sum of its result is added to the loss, so each input's gradient must be that of the plain
 * run plus 3. */
static wf_status with_neighbours(struct check *k, bool before)
{
    const char *situation = before ? "inputs used before as well, gradient of the result shared" : "inputs used after as well";
    wf_tensor *leaf[WF_MAX_INPUTS], *operand[WF_MAX_INPUTS];
    wf_status status = check_operands(k, k->mode, ~0u, LAYOUT_CONTIGUOUS, leaf, operand);
    if (status != WF_OK)
        return status;
    wf_tensor *other = NULL, *neighbour = NULL;
    for (int pass = 0; pass < 2; pass++) {
        if ((pass == 0) == before) {
            for (int i = 0; i < k->inputs; i++)
                if (check_has_gradient(&k->in[i])) {
                    wf_tensor *part = wf_sum(wf_scale(leaf[i], 3));
                    other = other ? wf_add(other, part) : part;
                }
            continue;
        }
        wf_tensor *y = k->fn(k->ctx, k->tape, operand);
        wf_shape shape = wf_shape_of(y);
        if (wf_is_poison(y))
            return check_status(k, situation);
        neighbour = wf_input(k->tape, k->weight, &shape, true);
        /* wf_add gives both operands the same gradient buffer. wf_scale keeps the gradient of `neighbour`, which is compared below, out of
         * this buffer. */
        wf_tensor *twin = wf_scale(neighbour, 1);
        wf_tensor *sum = before ? wf_add(twin, y) : wf_add(y, twin);
        wf_tensor *part = check_weighted_sum(k, sum);
        other = other ? wf_add(other, part) : part;
    }
    if (!other || wf_backward(other) != WF_OK)
        return check_status(k, situation);
    wf_array grad;
    if (wf_grad(neighbour, &grad) != WF_OK)
        return check_status(k, situation);
    status = check_same(k, situation, "gradient of the neighbour of result", 0, &grad, k->weight);
    for (int i = 0; i < k->inputs && status == WF_OK; i++) {
        if (!check_has_gradient(&k->in[i]))
            continue;
        wf_real *expected = check_memory(k, k->in[i].count);
        if (!expected)
            return WF_ERR_MEMORY;
        for (int64_t j = 0; j < k->in[i].count; j++)
            expected[j] = k->in[i].grad[j] + 3;
        status = check_leaf_grad(k, i, LAYOUT_CONTIGUOUS, leaf[i], &grad);
        if (status == WF_OK)
            status = check_same(k, situation, "gradient of input", i, &grad, expected);
    }
    return status;
}

/* op(x, x) must give x the sum of the gradients that op(a, b) gives to a and b for a = b = x. */
static wf_status same_operand_twice(struct check *k, int i, int j)
{
    const char *situation = "one tensor as two operands";
    wf_tensor *leaf[WF_MAX_INPUTS], *operand[WF_MAX_INPUTS];
    wf_array a, b;
    wf_status status;
    wf_real *sum = check_memory(k, k->in[i].count);
    if (!sum)
        return WF_ERR_MEMORY;
    if ((status = check_operands(k, k->mode, ~0u, LAYOUT_CONTIGUOUS, leaf, operand)) != WF_OK ||
        (status = check_backward(k, situation, operand)) != WF_OK ||
        (status = check_leaf_grad(k, i, LAYOUT_CONTIGUOUS, leaf[i], &a)) != WF_OK ||
        (status = check_leaf_grad(k, j, LAYOUT_CONTIGUOUS, leaf[j], &b)) != WF_OK)
        return status;
    for (int64_t n = 0; n < k->in[i].count; n++)
        sum[n] = (wf_real)(at(&a, n) + at(&b, n));
    if ((status = check_operands(k, k->mode, ~0u, LAYOUT_CONTIGUOUS, leaf, operand)) != WF_OK)
        return status;
    operand[j] = operand[i];
    if ((status = check_backward(k, situation, operand)) != WF_OK ||
        (status = check_leaf_grad(k, i, LAYOUT_CONTIGUOUS, leaf[i], &a)) != WF_OK)
        return status;
    return check_same(k, situation, "gradient of input", i, &a, sum);
}

/* The rows of input i are all the same. An operand that repeats one row by a stride of 0 must give the same result. No input needs a
 * gradient, because wf_apply_view refuses a view that repeats elements of a tensor that needs a gradient. */
static wf_status broadcast_operand(struct check *k, int i)
{
    wf_tensor *leaf[WF_MAX_INPUTS], *operand[WF_MAX_INPUTS];
    wf_array view;
    wf_real *result = check_memory(k, k->results);
    wf_status status = result ? check_operands(k, k->mode, 0, LAYOUT_CONTIGUOUS, leaf, operand) : WF_ERR_MEMORY;
    if (status == WF_OK && wf_read(k->fn(k->ctx, k->tape, operand), result, k->results) != WF_OK)
        return check_status(k, "repeated rows");
    if (status == WF_OK)
        status = check_operands(k, k->mode, 0, LAYOUT_CONTIGUOUS, leaf, operand);
    if (status != WF_OK || wf_view(leaf[i], &view) != WF_OK)
        return status;
    view.stride[0] = 0;
    operand[i] = wf_apply_view("broadcast", leaf[i], &view);
    if (wf_view(k->fn(k->ctx, k->tape, operand), &view) != WF_OK)
        return check_status(k, "operand with a stride of 0");
    return check_same(k, "operand with a stride of 0", "result", 0, &view, result);
}

/* The rows of input i are all the same. If wf_expand makes the operand from one row, the gradients of the other inputs must not change, and
 * the row's gradient must be the sum of the gradients that the rows of input i have without wf_expand. */
static wf_status expanded_operand(struct check *k, int i)
{
    const char *situation = "operand from wf_expand";
    wf_tensor *leaf[WF_MAX_INPUTS], *operand[WF_MAX_INPUTS];
    wf_real *expected[WF_MAX_INPUTS] = {NULL};
    double terms[WF_MAX_INPUTS] = {0};
    wf_array grad;
    wf_status status = check_operands(k, k->mode, ~0u, LAYOUT_CONTIGUOUS, leaf, operand);
    if (status == WF_OK)
        status = check_backward(k, situation, operand);
    for (int j = 0; j < k->inputs && status == WF_OK; j++) {
        int64_t count = k->in[j].count, row = j == i ? count / k->in[j].shape.dim[0] : count;
        if (!check_has_gradient(&k->in[j]))
            continue;
        if (!(expected[j] = check_memory(k, row)))
            return WF_ERR_MEMORY;
        status = check_leaf_grad(k, j, LAYOUT_CONTIGUOUS, leaf[j], &grad);
        for (int64_t n = 0; n < count && status == WF_OK; n++) {
            expected[j][n % row] = (wf_real)((n < row ? 0 : expected[j][n % row]) + at(&grad, n));
            terms[j] += fabs(at(&grad, n)) / (double)row;
        }
    }
    if (status == WF_OK)
        status = check_operands(k, k->mode, ~0u, LAYOUT_CONTIGUOUS, leaf, operand);
    if (status != WF_OK)
        return status;
    wf_shape row = k->in[i].shape;
    row.dim[0] = 1;
    leaf[i] = wf_input(k->tape, k->in[i].value, &row, true);
    operand[i] = wf_expand_to(leaf[i], &k->in[i].shape);
    status = check_backward(k, situation, operand);
    for (int j = 0; j < k->inputs && status == WF_OK; j++) {
        if (!expected[j])
            continue;
        status = check_leaf_grad(k, j, LAYOUT_CONTIGUOUS, leaf[j], &grad);
        if (status == WF_OK)
            status = same_sum(k, situation, "gradient of input", j, &grad, expected[j], j == i ? terms[j] : 0);
    }
    return status;
}

/* Checks that need other values: input i with equal rows, and input i with the same values as another input of its shape. */
static wf_status with_other_values(struct check *k, int i)
{
    struct check_input *in = &k->in[i];
    wf_status status = WF_OK;
    wf_real *value = in->value;
    if (in->shape.ndim > 0 && in->shape.dim[0] > 1 && in->count > 0) {
        int64_t inner = in->count / in->shape.dim[0];
        in->value = check_memory(k, in->count);
        for (int64_t n = 0; in->value && n < in->count; n++)
            in->value[n] = value[n % inner];
        status = in->value ? broadcast_operand(k, i) : WF_ERR_MEMORY;
        if (status == WF_OK && !k->constant && !in->constant)
            status = expanded_operand(k, i);
        in->value = value;
    }
    for (int j = i + 1; j < k->inputs && status == WF_OK && !k->constant && !in->constant; j++) {
        struct check_input *other = &k->in[j];
        if (!check_has_gradient(other) || !wf_shape_equal(&in->shape, &other->shape))
            continue;
        wf_real *own = other->value;
        other->value = value;
        status = same_operand_twice(k, i, j);
        other->value = own;
    }
    return status;
}

/* The case says that input i has no gradient (.constant). If input i needs one nevertheless, the op must fail, or give a gradient. */
static wf_status refused_or_given(struct check *k, int i)
{
    wf_tensor *leaf[WF_MAX_INPUTS], *operand[WF_MAX_INPUTS];
    wf_array grad;
    k->in[i].constant = false;
    wf_status status = check_operands(k, k->mode, 1u << i, LAYOUT_CONTIGUOUS, leaf, operand);
    k->in[i].constant = true;
    if (status != WF_OK)
        return status;
    wf_tensor *y = k->fn(k->ctx, k->tape, operand);
    if (wf_is_poison(y) || (wf_backward(check_weighted_sum(k, y)) == WF_OK && wf_grad(leaf[i], &grad) == WF_OK))
        return WF_OK;
    return wf_error_set(k->error, WF_ERR_NUMERIC,
                        "%s: input %d is .constant, but the op takes one that needs a gradient and gives it none: fail in .shape if "
                        "c->need[%d]",
                        k->what, i, i);
}

/* --- values that backward reads in bf16 ------------------------------------------------------------------------------- */

/* Runs the op in bf16. With `release`, operands and result are released before the backward, so that it gets the values of the descriptor's
 * .rounds in bf16. Copies the gradients of the inputs in `real` to `grad`. */
static wf_status run_in_bf16(struct check *k, bool release, unsigned real, enum layout layout, wf_real *const grad[])
{
    const char *situation = "in bf16";
    const wf_op *op = ((const struct applied *)k->ctx)->op;
    wf_tensor *leaf[WF_MAX_INPUTS], *operand[WF_MAX_INPUTS];
    wf_status status = check_operands(k, k->mode, ~0u, layout, leaf, operand);
    if (status != WF_OK)
        return status;
    wf_tensor *y = k->fn(k->ctx, k->tape, operand),
              *loss = check_weighted_sum(k, wf_scale(y, 1)); /* wf_scale: its backward reads nothing */
    for (int i = 0; i < k->inputs && release; i++)
        if (operand[i] && check_is_real(&k->in[i]))
            wf_release(value_root(operand[i]));
    if (release && op->rounds & WF_READS_OUTPUT(0))
        wf_release(y);
    if (wf_backward(loss) != WF_OK)
        return check_status(k, situation);
    for (int i = 0; i < k->inputs && status == WF_OK; i++) {
        wf_array g, to = wf_array_contiguous(grad[i], WF_REAL, &k->in[i].shape);
        if (real >> i & 1 && (status = check_leaf_grad(k, i, layout, leaf[i], &g)) == WF_OK)
            wf_array_copy(&to, &g);
    }
    return status;
}

/* If backward gets the values of .rounds in bf16, the gradients must have the same bits. */
static wf_status rounded_values(struct check *k, unsigned real)
{
    const wf_op *op = ((const struct applied *)k->ctx)->op;
    if (!op->rounds || !real || wf_precision_refused(WF_PRECISION_BF16))
        return WF_OK;
    wf_real *grad[2][WF_MAX_INPUTS] = {{NULL}};
    wf_status status = WF_OK;
    for (int i = 0; i < k->inputs; i++)
        for (int release = 0; release < 2; release++)
            if (real >> i & 1 && !(grad[release][i] = check_memory(k, k->in[i].count)))
                return WF_ERR_MEMORY;
    k->routed = true;
    k->precision = WF_PRECISION_BF16;
    for (int layout = LAYOUT_CONTIGUOUS; layout <= LAYOUT_SLICED && status == WF_OK; layout++) {
        for (int release = 0; release < 2 && status == WF_OK; release++)
            status = run_in_bf16(k, release, real, (enum layout)layout, grad[release]);
        for (int i = 0; i < k->inputs && status == WF_OK; i++)
            if (real >> i & 1 && memcmp(grad[0][i], grad[1][i], (size_t)k->in[i].count * sizeof(wf_real)) != 0)
                status = wf_error_set(k->error, WF_ERR_NUMERIC,
                                      "%s: in bf16 the gradient of input %d has other bits if backward gets the values of .rounds in bf16",
                                      k->what, i);
    }
    k->routed = false;
    k->precision = WF_PRECISION_REAL;
    return status;
}

wf_status check_all_situations(struct check *k)
{
    wf_status status;
    unsigned real = 0;
    for (int i = 0; i < k->inputs && !k->constant; i++)
        real |= (unsigned)check_has_gradient(&k->in[i]) << i;
    if ((status = only_declared_values(k, real)) != WF_OK || (status = rounded_values(k, real)) != WF_OK)
        return status;
    static const struct {
        const char *situation;
        enum layout layout;
        bool routed;
    } runs[] = {{"transposed operands", LAYOUT_TRANSPOSED, false},
                {"sliced operands", LAYOUT_SLICED, false},
                {"results of an op as operands", LAYOUT_CONTIGUOUS, true},
                {"transposed results of an op as operands", LAYOUT_TRANSPOSED, true},
                {"sliced results of an op as operands", LAYOUT_SLICED, true}};
    for (size_t i = 0; i < sizeof runs / sizeof *runs && status == WF_OK; i++) {
        k->routed = runs[i].routed;
        status = compare_run(k, runs[i].situation, ~0u, runs[i].layout);
    }
    k->routed = false;
    for (unsigned need = real; need && status == WF_OK; need = (need - 1) & real)
        status = compare_run(k, "a subset of inputs with gradients", need, LAYOUT_CONTIGUOUS);
    if (status == WF_OK && k->mode != WF_TRAIN) { /* WF_INFER has no dropout, so its results differ from those in WF_TRAIN */
        wf_mode mode = k->mode;
        k->mode = WF_INFER;
        status = compare_run(k, "without recording", 0, LAYOUT_CONTIGUOUS);
        if (status == WF_OK)
            status = compare_run(k, "without recording, transposed operands", 0, LAYOUT_TRANSPOSED);
        k->mode = mode;
    }
    if (status == WF_OK && real)
        status = with_neighbours(k, true);
    if (status == WF_OK && real)
        status = with_neighbours(k, false);
    for (int i = 0; i < k->inputs && status == WF_OK; i++)
        if (check_is_real(&k->in[i]))
            status = with_other_values(k, i);
    for (int i = 0; i < k->inputs && status == WF_OK && !k->constant; i++)
        if (check_is_real(&k->in[i]) && k->in[i].constant)
            status = refused_or_given(k, i);
    return status;
}
