/* SPDX-License-Identifier: MIT */
/* Curves out of metrics.jsonl. */
#include <inttypes.h>
#include <math.h>
#include <sys/stat.h>

#include <weft/file.h>
#include <weft/internal/grow.h>
#include <weft/internal/json.h>
#include <weft/internal/lines.h>
#include <weft/memory.h>

#include "plot_runs.h"

static const double MOST = 1e100; /* so that no sum is infinite; and gnuplot dies of 1e308 in a narrow range */
static const char *const keys[CURVE_KINDS] = {"loss/train", "loss/valid", "lr"};

void curve_free(struct curve *curve)
{
    wf_free(curve->point);
    *curve = (struct curve){0};
}

void curves_free(struct curves *curves)
{
    for (int k = 0; k < CURVE_KINDS; k++)
        curve_free(&curves->of[k]);
}

static wf_status add(struct curve *curve, struct point p, wf_error *error)
{
    while (curve->count > 0 && curve->point[curve->count - 1].step >= p.step)
        curve->count--;
    if (!wf_grow(&curve->point, &curve->capacity, curve->count + 1, sizeof *curve->point))
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for a curve of %" PRId64 " points", curve->count + 1);
    curve->point[curve->count++] = p;
    return WF_OK;
}

/* --- reading ------------------------------------------------------------------------------------------------------- */

/* Events and keys that are not known hold nothing to draw. */
static wf_status read_event(const json_t *event, const char *path, int64_t number, struct curves *out, wf_error *error)
{
    if (!json_is_object(event))
        return wf_error_set(error, WF_ERR_FORMAT, "%s:%" PRId64 ": the line is not a JSON object", path, number);
    const json_t *step = json_object_get(event, "step");
    for (int k = 0; k < CURVE_KINDS; k++) {
        const json_t *value = json_object_get(event, keys[k]);
        if (!value)
            continue;
        if (!json_is_number(value))
            return wf_error_set(error, WF_ERR_FORMAT, "%s:%" PRId64 ": \"%s\" is not a number", path, number, keys[k]);
        if (!json_is_integer(step) || json_integer_value(step) < 0)
            return wf_error_set(error, WF_ERR_FORMAT, "%s:%" PRId64 ": \"%s\" without a \"step\" of 0 or more", path, number, keys[k]);
        struct point p = {(double)json_integer_value(step), fmax(-MOST, fmin(json_number_value(value), MOST))};
        wf_status status = add(&out->of[k], p, error);
        if (status != WF_OK)
            return status;
    }
    return WF_OK;
}

static wf_status read_file(const char *folder, const char *path, struct curves *out, wf_error *error)
{
    struct stat info;
    struct wf_lines in = {.fd = -1};
    if (stat(path, &info) != 0)
        return wf_error_set(error, WF_ERR_IO, "%s has no metrics.jsonl, which weft train writes: the model was not trained in it", folder);
    if (!S_ISREG(info.st_mode)) /* reading a FIFO would wait for somebody to write */
        return wf_error_set(error, WF_ERR_IO, "%s: is not a regular file", path);
    wf_status status = wf_lines_open(&in, path, error);
    while (status == WF_OK && (status = wf_lines_next(&in, error)) == WF_OK && in.text) {
        if (in.data[in.begin - 1] != '\n')
            break; /* not whole */
        json_t *event = wf_json_parse_line(in.text, in.length, path, in.line, error);
        status = event ? read_event(event, path, in.line, out, error) : error->code;
        json_decref(event);
    }
    wf_lines_close(&in);
    if (status == WF_OK && out->of[CURVE_TRAIN].count + out->of[CURVE_VALID].count == 0)
        status = wf_error_set(error, WF_ERR_STATE, "%s holds no loss yet: weft train logs the first after one step", path);
    return status;
}

wf_status curves_read(const char *folder, struct curves *out, wf_error *error)
{
    wf_error unwanted = {0};
    error = error ? error : &unwanted;
    *out = (struct curves){0};
    if (!wf_folder_exists(folder))
        return wf_error_set(error, WF_ERR_IO, "%s is not a run folder: give the --out of weft train", *folder ? folder : "\"\"");
    char *path = wf_format("%s/metrics.jsonl", folder);
    wf_status status = path ? read_file(folder, path, out, error) : wf_error_set(error, WF_ERR_MEMORY, "no memory for a path");
    wf_free(path);
    if (status != WF_OK)
        curves_free(out);
    return status;
}

/* --- shaping ------------------------------------------------------------------------------------------------------- */

static wf_status make(struct curve *out, int64_t capacity, wf_error *error)
{
    *out = (struct curve){.point = wf_alloc((size_t)capacity * sizeof *out->point), .capacity = capacity};
    return out->point ? WF_OK : wf_error_set(error, WF_ERR_MEMORY, "no memory for a curve of %" PRId64 " points", capacity);
}

/* With what rounding loses kept in *rest, so that little is left of a huge loss when it leaves the sum (Knuth's sum of two). */
static void add_exactly(double value, double *sum, double *rest)
{
    double total = *sum + value, part = total - *sum;
    *rest += (*sum - (total - part)) + (value - part);
    *sum = total;
}

wf_status curve_smooth(const struct curve *in, int64_t half, struct curve *out, wf_error *error)
{
    wf_status status = make(out, in->count, error);
    if (status != WF_OK)
        return status;
    double sum = 0, rest = 0; /* of the points low to high - 1; both only grow */
    for (int64_t i = 0, low = 0, high = 0; i < in->count; i++) {
        int64_t reach = half < i ? half : i, end = i + reach < in->count ? i + reach + 1 : in->count;
        while (high < end)
            add_exactly(in->point[high++].value, &sum, &rest);
        while (low < i - reach)
            add_exactly(-in->point[low++].value, &sum, &rest);
        out->point[i] = (struct point){in->point[i].step, reach ? (sum + rest) / (double)(high - low) : in->point[i].value};
    }
    out->count = in->count;
    return WF_OK;
}

wf_status curve_thin(const struct curve *in, int64_t buckets, struct curve *out, wf_error *error)
{
    buckets = in->count <= 2 * buckets ? in->count : buckets; /* all of them where they are not too many */
    wf_status status = make(out, 2 * buckets, error);
    if (status != WF_OK)
        return status;
    for (int64_t b = 0; b < buckets; b++) {
        int64_t begin = b * in->count / buckets, end = (b + 1) * in->count / buckets, low = begin, high = begin;
        for (int64_t i = begin; i < end; i++) {
            low = in->point[i].value < in->point[low].value ? i : low;
            high = in->point[i].value > in->point[high].value ? i : high;
        }
        out->point[out->count++] = in->point[low < high ? low : high];
        if (low != high)
            out->point[out->count++] = in->point[low < high ? high : low];
    }
    return WF_OK;
}
