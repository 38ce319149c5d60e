/* SPDX-License-Identifier: MIT */
/* Computes the loss of a language model on a text in windows that overlap, so that a token is predicted from more than the tokens of its
 * own window's beginning. The sum is one of windows, whose losses do not depend on the batch, in the order of the text. */
#include <math.h>

#include <weft/internal/family.h>
#include <weft/internal/minmax.h>
#include <weft/internal/needs.h>
#include <weft/internal/several.h>
#include <weft/memory.h>

#include "evaluate.h"

struct overlapping {
    const wf_model *model;
    wf_tape *tape;
    struct wf_id_view ids;
    int64_t context, stride;
    int64_t windows;      /* number of windows of the text */
    const int32_t *begin; /* [begins]: ids before those of the text in each window, which are not among the `context` */
    int64_t begins;
    int64_t rows; /* windows in a batch */
    int32_t *x;   /* [rows, begins + context] */
    int32_t *y;   /* [rows, begins + context] */
    double *loss; /* [rows]: sum of the losses of a window */
    struct wf_share share;
};

/* The scored tokens of a window, as indices in the text. If a window's first token has nothing before it, it is not scored. */
struct scored {
    int64_t begin, end;
};

static struct scored scored_of(const struct overlapping *o, int64_t window)
{
    const int64_t first = window * o->stride, before = window > 0 ? first - o->stride + o->context : 0;
    return (struct scored){WF_MAX(before, first + (o->begins == 0)), WF_MIN(first + o->context, o->ids.count)};
}

/* Fills x with `rows` windows and y with the targets of their last `*targets` positions. The last window of a text may be shorter: zeros
 * follow, which no earlier position sees. Returns the columns of x. */
static int64_t fill(const struct overlapping *o, int64_t window, int64_t rows, int64_t *targets)
{
    const int64_t cols = o->begins + WF_MIN(o->context, o->ids.count - window * o->stride) - 1; /* the last token is a target only */
    int64_t from = cols;
    for (int64_t r = 0; r < rows; r++)
        from = WF_MIN(from, o->begins + scored_of(o, window + r).begin - (window + r) * o->stride - 1);
    *targets = cols - from;
    for (int64_t r = 0; r < rows; r++) {
        const int64_t first = (window + r) * o->stride, count = WF_MIN(cols - o->begins, o->ids.count - first);
        const struct scored s = scored_of(o, window + r);
        int32_t *x = o->x + r * cols, *y = o->y + r * *targets;
        for (int64_t i = 0; i < o->begins; i++)
            x[i] = o->begin[i];
        wf_id_view_copy(o->ids, first, count, x + o->begins);
        for (int64_t i = o->begins + count; i < cols; i++)
            x[i] = 0;
        for (int64_t i = 0; i < *targets; i++)
            y[i] = WF_NO_TARGET;
        wf_id_view_copy(o->ids, s.begin, s.end - s.begin, y + (o->begins + s.begin - first - 1 - from));
    }
    return cols;
}

static wf_status one_batch(struct overlapping *o, int64_t window, int64_t rows, wf_error *error)
{
    int64_t targets;
    const int64_t cols = fill(o, window, rows, &targets);
    wf_tape_reset(o->tape, WF_INFER, .precision = wf_model_precision(o->model));
    wf_tensor *x = wf_ids(o->tape, o->x, rows, cols), *y = wf_ids(o->tape, o->y, rows, targets);
    wf_tensor *losses = wf_model_token_losses(o->model, x, y, NULL); /* [rows,targets] */
    wf_array values;
    if (wf_view(wf_contiguous(losses), &values) != WF_OK)
        return wf_tape_status(o->tape, error);
    for (int64_t r = 0; r < rows; r++) {
        o->loss[r] = 0;
        for (int64_t i = 0; i < targets; i++)
            o->loss[r] += (double)((const wf_real *)values.data)[r * targets + i];
    }
    wf_share_add(&o->share, o->loss, rows * (int64_t)sizeof *o->loss);
    return WF_OK;
}

/* Gathers the losses of all windows from all processes, and adds them up. */
static wf_status sum_windows(struct overlapping *o, wf_status status, struct wf_evaluation *out, wf_error *error)
{
    double sum = 0, loss;
    status = wf_share_gather(&o->share, status, error);
    for (int64_t w = 0; status == WF_OK && w < o->windows; w++)
        if ((status = wf_share_take(&o->share, w / o->rows, &loss, sizeof loss, error)) == WF_OK) {
            const struct scored s = scored_of(o, w);
            sum += loss;
            out->tokens += s.end - s.begin;
        }
    wf_share_free(&o->share);
    if (status == WF_OK)
        out->loss = sum / (double)out->tokens;
    return status;
}

static wf_status check(const wf_model *model, struct wf_id_view ids, const struct wf_window_options *o, int64_t context, wf_error *error)
{
    const int64_t most = wf_model_shape_of(model)->context;
    if (wf_model_kind_of(model) != WF_MODEL_LANGUAGE)
        return wf_error_set(error, WF_ERR_STATE, "%s is not a language model: only those are evaluated in windows",
                            wf_model_config(model)->model);
    if (o->context < 0 || o->context > most)
        return wf_error_set(error, WF_ERR_ARGUMENT, "context: %lld is out of range: 1 to %lld, the model's context", (long long)o->context,
                            (long long)most);
    if (o->begins < 0 || (o->begins > 0 && !o->begin) || o->begins >= context)
        return wf_error_set(error, WF_ERR_ARGUMENT, "begins: %lld is out of range, 0 to %lld for windows of %lld tokens, or begin is NULL",
                            (long long)o->begins, (long long)context - 1, (long long)context);
    if (o->stride < 0 || o->stride > context - o->begins)
        return wf_error_set(error, WF_ERR_ARGUMENT, "stride: %lld is out of range: 1 to %lld, the tokens of a window%s",
                            (long long)o->stride, (long long)(context - o->begins), o->begins > 0 ? " less those of .begin" : "");
    if (o->rows < 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "rows: %lld is out of range: at least 0", (long long)o->rows);
    if (o->stride > 0 && context < 2 && o->begins == 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "windows of one token predict nothing: the context must be at least 2 with a stride");
    if ((o->stride > 0 || o->begins > 0) && ids.count < 2 - (o->begins > 0))
        return wf_error_set(error, WF_ERR_ARGUMENT, "a text of %lld tokens has nothing to predict: an evaluation needs at least %s",
                            (long long)ids.count, o->begins > 0 ? "one token" : "two tokens");
    return WF_OK;
}

static int64_t count_windows(const struct overlapping *o)
{
    const int64_t more = WF_MAX(0, o->ids.count - o->context), last = (more + o->stride - 1) / o->stride;
    const struct scored s = scored_of(o, last);
    return last + (s.begin < s.end); /* without overlap, a last window of one token predicts nothing */
}

static wf_status evaluate(struct overlapping *o, const struct wf_progress *progress, struct wf_evaluation *out, wf_error *error)
{
    const size_t cells = (size_t)(o->rows * (o->begins + o->context));
    wf_status status = WF_OK;
    o->x = wf_alloc(cells * sizeof *o->x);
    o->y = wf_alloc(cells * sizeof *o->y);
    o->loss = wf_alloc((size_t)o->rows * sizeof *o->loss);
    if (!o->x || !o->y || !o->loss)
        status = wf_error_set(error, WF_ERR_MEMORY, "no memory for windows of %lld tokens", (long long)o->context);
    for (int64_t w = 0; status == WF_OK && w < o->windows; w += o->rows) {
        const int64_t rows = WF_MIN(o->rows, o->windows - w);
        if (wf_share_mine(&o->share, w / o->rows))
            status = one_batch(o, w, rows, error);
        if (progress)
            progress->tell(progress->ctx, w + rows, o->windows);
    }
    wf_free(o->x);
    wf_free(o->y);
    wf_free(o->loss);
    return sum_windows(o, status, out, error);
}

wf_status wf_evaluate_windows_on(wf_dist *dist, const wf_model *model, wf_tape *tape, struct wf_id_view ids,
                                 const struct wf_window_options *options, const struct wf_progress *progress, struct wf_evaluation *out,
                                 wf_error *error)
{
    static const struct wf_window_options none = {0};
    const struct wf_window_options *w = options ? options : &none;
    const int64_t context = w->context > 0 ? w->context : wf_model_shape_of(model)->context;
    *out = (struct wf_evaluation){.loss = NAN, .smoothed = NAN};
    if (check(model, ids, w, context, error) != WF_OK)
        return error->code;
    const int64_t rows = w->rows > 0 ? w->rows : evaluation_rows(context);
    if (w->stride == 0 && w->begins == 0)
        return evaluate_adjacent(dist, model, tape, ids, context, rows, 0, progress, out, error);
    struct overlapping o = {.model = model, .tape = tape, .ids = ids, .begin = w->begin, .begins = w->begins, .share.dist = dist};
    o.context = context - w->begins;
    o.stride = w->stride > 0 ? w->stride : o.context;
    o.windows = count_windows(&o);
    o.rows = WF_MIN(rows, o.windows);
    return evaluate(&o, progress, out, error);
}

wf_status wf_evaluate_windows(const wf_model *model, wf_tape *tape, struct wf_id_view ids, const struct wf_window_options *options,
                              struct wf_evaluation *out, wf_error *error)
{
    if (wf_needs(error, "out, model, tape", out, model, tape))
        return WF_ERR_ARGUMENT;
    return wf_evaluate_windows_on(NULL, model, tape, ids, options, NULL, out, error);
}
