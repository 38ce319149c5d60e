/* SPDX-License-Identifier: MIT */
/* wf_array_matmul: makes one product, or a batch of products, from strided arrays whose batch dimensions broadcast. */
#include <weft/compute.h>
#include <weft/internal/gemm.h>

static wf_status check(const wf_array *a, const wf_array *b, const wf_array *out, wf_error *error)
{
    const int p = a->ndim - 2, q = b->ndim - 2, r = out->ndim - 2;
    bool fits =
        p >= 0 && q >= 0 && p <= r && q <= r && a->dim[p] == out->dim[r] && b->dim[q + 1] == out->dim[r + 1] && a->dim[p + 1] == b->dim[q];
    for (int d = 0; fits && d < p; d++)
        fits = a->dim[d] == out->dim[r - p + d] || a->dim[d] == 1;
    for (int d = 0; fits && d < q; d++)
        fits = b->dim[d] == out->dim[r - q + d] || b->dim[d] == 1;
    if (!fits) {
        wf_shape sa = wf_array_shape(a), sb = wf_array_shape(b), sout = wf_array_shape(out);
        char ta[160], tb[160], tout[160];
        return wf_error_set(error, WF_ERR_SHAPE, "the product of %s and %s does not fit into %s", wf_shape_text(&sa, ta, sizeof ta),
                            wf_shape_text(&sb, tb, sizeof tb), wf_shape_text(&sout, tout, sizeof tout));
    }
    if (a->dtype != WF_REAL || (b->dtype != WF_REAL && !(b->dtype == WF_BF16 && WF_REAL == WF_F32)) || out->dtype != WF_REAL)
        return wf_error_set(error, WF_ERR_ARGUMENT, "the product of %s and %s into %s: all three must be %s%s", wf_dtype_name(a->dtype),
                            wf_dtype_name(b->dtype), wf_dtype_name(out->dtype), wf_dtype_name(WF_REAL),
                            WF_REAL == WF_F32 ? ", but the second may be BF16" : "");
    if ((!a->data && wf_array_count(a) > 0) || (!b->data && wf_array_count(b) > 0) || (!out->data && wf_array_count(out) > 0))
        return wf_error_set(error, WF_ERR_MEMORY, "a product's operand or result is NULL, as of a temporary for which there was no memory");
    return WF_OK;
}

/* Views a [..., m, k] as [rows, k] if the strides allow it. */
static bool fold(const wf_array *a, wf_array *folded)
{
    int64_t rows = 1;
    for (int d = 0; d < a->ndim - 1; d++)
        rows *= a->dim[d];
    return wf_array_reshape(a, &(wf_shape){2, {rows, a->dim[a->ndim - 1]}}, folded);
}

/* One product computes all rows if the whole batch uses the same b, and if the rows of a have one stride and the rows of out have one
 * stride. Otherwise the batch dimensions are merged to as few as possible. */
wf_status wf_array_matmul_with(const wf_array *a, const wf_array *b, const wf_array *out, const struct wf_matmul_options *options,
                               wf_error *error)
{
    options = options ? options : &(struct wf_matmul_options){0};
    wf_status status = check(a, b, out, error);
    if (status == WF_OK)
        status = wf_precision_check(options->precision, "a product", error);
    if (status != WF_OK || wf_array_count(out) == 0)
        return status;
    int batch_dims = out->ndim - 2;
    wf_shape sa = wf_array_shape(out), sb = sa;
    sa.dim[batch_dims + 1] = a->dim[a->ndim - 1];
    sb.dim[batch_dims] = b->dim[b->ndim - 2];
    wf_array fa = wf_array_expand(a, &sa), fb = wf_array_expand(b, &sb), fout = *out, ra, rout;
    bool same_b = batch_dims > 0;
    for (int d = 0; d < batch_dims; d++)
        same_b &= out->dim[d] == 1 || fb.stride[d] == 0;
    if (same_b && fold(&fa, &ra) && fold(out, &rout)) {
        fa = ra;
        fout = rout;
        batch_dims = 0;
    }
    struct wf_gemm_batch batch = {0};
    for (int d = batch_dims - 1; d >= 0; d--) { /* from the innermost dimension outwards */
        if (out->dim[d] == 1)
            continue;
        int last = batch.dims - 1;
        if (last >= 0 && fa.stride[d] == batch.a_step[last] * batch.size[last] && fb.stride[d] == batch.b_step[last] * batch.size[last] &&
            out->stride[d] == batch.c_step[last] * batch.size[last]) {
            batch.size[last] *= out->dim[d];
            continue;
        }
        batch.size[batch.dims] = out->dim[d];
        batch.a_step[batch.dims] = fa.stride[d];
        batch.b_step[batch.dims] = fb.stride[d];
        batch.c_step[batch.dims++] = out->stride[d];
    }
    const int p = fa.ndim - 2, q = fb.ndim - 2, r = fout.ndim - 2;
    struct wf_gemm g = {.m = fout.dim[r],
                        .n = fout.dim[r + 1],
                        .k = fa.dim[p + 1],
                        .alpha = options->scale != 0 ? (wf_real)options->scale : 1,
                        .beta = options->add,
                        .a = fa.data,
                        .a_rs = fa.stride[p],
                        .a_cs = fa.stride[p + 1],
                        .b = fb.data,
                        .b_rs = fb.stride[q],
                        .b_cs = fb.stride[q + 1],
                        .c = fout.data,
                        .c_rs = fout.stride[r],
                        .c_cs = fout.stride[r + 1],
                        .bias = options->bias,
                        .rows_alone = options->rows_alone,
                        .precision = options->precision,
                        .b_stored = b->dtype};
    status = wf_gemm_batched(&g, &batch);
    return status == WF_OK ? status : wf_error_set(error, status, "no memory for packing: use fewer threads or a smaller batch");
}
