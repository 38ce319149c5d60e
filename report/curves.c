/* SPDX-License-Identifier: MIT */
/* Reads curves from a run's metrics.jsonl, and smooths, thins and clips them. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <weft/file.h>
#include <weft/internal/grow.h>
#include <weft/internal/json.h>
#include <weft/internal/lines.h>
#include <weft/internal/minmax.h>
#include <weft/memory.h>

#include "plot_runs.h"

static const double MOST = 1e100; /* larger values are capped, because sums must stay finite and gnuplot crashes on values such as 1e308 */
const char *const curve_usual[CURVE_KINDS] = {"loss/train", "loss/valid", "lr"};

void curve_free(struct curve *curve)
{
    wf_free(curve->point);
    *curve = (struct curve){0};
}

void curves_free(struct curves *curves)
{
    for (int k = 0; k < WF_PLOT_METRICS; k++)
        curve_free(&curves->of[k]);
    for (int i = 0; i < curves->names; i++)
        wf_free(curves->name[i]);
    curves->names = 0;
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

/* The state of reading a file. */
struct reader {
    const char *path;
    int64_t line;
    const char *const *key; /* names of the metrics to read */
    int keys;
    enum wf_plot_x x;
    double before;  /* sum of the seconds of the processes that have ended */
    double seconds; /* seconds of the last line, since the start of its process */
    bool started;   /* the process of the last line has logged its event "start" */
    struct curves *out;
};

/* Notices that another process continues the run: the seconds begin again at 0, or the file has a further event "start". The first lines of
 * a process may come before its "start", so a "start" after the seconds began again does not count as one more process. */
static void follow_clock(struct reader *r, const char *event, double seconds)
{
    bool start = strcmp(event, "start") == 0;
    if (seconds < r->seconds || (start && r->started)) {
        r->before += r->seconds;
        r->started = false;
    }
    r->started |= start;
    r->seconds = seconds;
}

static const char RATE_OF[] = "_per_second";

/* Finds what the run counts in its batches: for a key such as "tokens_per_second" it is the part before "_per_second". */
static void find_unit(const char *key, struct curves *out)
{
    size_t length = strlen(key), end = sizeof RATE_OF - 1;
    if (out->unit[0] == 0 && length > end && length - end < sizeof out->unit && strcmp(key + length - end, RATE_OF) == 0)
        memcpy(out->unit, key, length - end);
}

static wf_status note_name(const char *key, struct curves *out, wf_error *error)
{
    for (int i = 0; i < out->names; i++)
        if (strcmp(out->name[i], key) == 0)
            return WF_OK;
    if (out->names == NAMES)
        return WF_OK;
    out->name[out->names] = wf_strdup(key);
    if (!out->name[out->names])
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for a metric's name");
    out->names++;
    return WF_OK;
}

/* Computes the position on the horizontal axis of the values that a line of metrics.jsonl holds. */
static wf_status place(const struct reader *r, const json_t *event, double step, double *x, wf_error *error)
{
    const char *unit = r->out->unit[0] ? r->out->unit : "tokens", *key = r->x == WF_PLOT_SECONDS ? "seconds" : unit;
    const json_t *value = json_object_get(event, key);
    *x = step;
    if (r->x == WF_PLOT_STEPS)
        return WF_OK;
    if (!json_is_number(value) || json_number_value(value) < 0)
        return wf_error_set(error, WF_ERR_FORMAT, "%s:%" PRId64 ": the line has no \"%s\"%s: plot over the steps instead", r->path, r->line,
                            key, r->x == WF_PLOT_TOKENS ? ", which older versions of Weft did not log" : "");
    *x = fmin(json_number_value(value), MOST) + (r->x == WF_PLOT_SECONDS ? r->before : 0);
    return WF_OK;
}

static wf_status read_value(struct reader *r, const json_t *event, int k, wf_error *error)
{
    const json_t *value = json_object_get(event, r->key[k]), *step = json_object_get(event, "step");
    const char *kind = json_string_value(json_object_get(event, "event"));
    struct point p;
    if (!value)
        return WF_OK;
    if (!json_is_number(value))
        return wf_error_set(error, WF_ERR_FORMAT, "%s:%" PRId64 ": \"%s\" is not a number", r->path, r->line, r->key[k]);
    if (!json_is_integer(step) || json_integer_value(step) < 0)
        return wf_error_set(error, WF_ERR_FORMAT, "%s:%" PRId64 ": \"%s\" without a \"step\" of 0 or more", r->path, r->line, r->key[k]);
    p.step = (double)json_integer_value(step);
    p.value = fmax(-MOST, fmin(json_number_value(value), MOST));
    if (place(r, event, p.step, &p.x, error) != WF_OK)
        return error->code;
    bool valid = kind ? strcmp(kind, "valid") == 0 : strstr(r->key[k], "/valid") != NULL;
    r->out->valid[k] |= valid;
    r->out->stepped[k] |= !valid;
    return add(&r->out->of[k], p, error);
}

/* False for events whose numbers are logged once, such as the number of parameters, and therefore make no curve. */
static bool is_measured(const char *event)
{
    return strcmp(event, "start") != 0 && strcmp(event, "data") != 0 && strcmp(event, "change") != 0 && strcmp(event, "end") != 0;
}

static wf_status read_event(struct reader *r, const json_t *event, wf_error *error)
{
    if (!json_is_object(event))
        return wf_error_set(error, WF_ERR_FORMAT, "%s:%" PRId64 ": the line is not a JSON object", r->path, r->line);
    const char *kind = json_string_value(json_object_get(event, "event")), *key;
    const json_t *seconds = json_object_get(event, "seconds"), *value;
    kind = kind ? kind : "";
    if (json_is_number(seconds) && json_number_value(seconds) >= 0)
        follow_clock(r, kind, fmin(json_number_value(seconds), MOST));
    if (!is_measured(kind))
        return WF_OK;
    wf_status status = WF_OK;
    for (void *at = json_object_iter((json_t *)event); at && status == WF_OK; at = json_object_iter_next((json_t *)event, at)) {
        key = json_object_iter_key(at);
        value = json_object_iter_value(at);
        if (!json_is_number(value) || strcmp(key, "step") == 0 || strcmp(key, "seconds") == 0)
            continue;
        find_unit(key, r->out);
        status = note_name(key, r->out, error);
    }
    for (int k = 0; k < r->keys && status == WF_OK; k++)
        status = read_value(r, event, k, error);
    return status;
}

/* Checks that the file has values of at least one metric. If the user chose no metrics, a learning rate alone is not enough. */
static wf_status check_found(const struct reader *r, bool asked, const char *folder, wf_error *error)
{
    struct wf_string names = {0}, keys = {0};
    for (int k = 0; k < r->keys; k++)
        if (r->out->of[k].count > 0 && (asked || k != CURVE_LR))
            return WF_OK;
    if (r->out->names == 0)
        return wf_error_set(error, WF_ERR_STATE, "%s holds no loss yet: a training logs the first after one step", r->path);
    curves_add_names(r->out, 1, &names);
    for (int k = 0; k < r->keys && (asked || k != CURVE_LR); k++)
        wf_string_format(&keys, "%s'%s'", k ? " or " : "", r->key[k]);
    wf_status status = names.failed || keys.failed ? wf_error_set(error, WF_ERR_MEMORY, "no memory for names of metrics")
                                                   : wf_error_set(error, asked ? WF_ERR_ARGUMENT : WF_ERR_STATE,
                                                                  "%s has no metric %s: there are %s", folder, keys.data, names.data);
    wf_string_free(&names);
    wf_string_free(&keys);
    return status;
}

static wf_status read_file(const char *folder, const char *path, struct reader *r, wf_error *error)
{
    struct stat info;
    struct wf_lines in = {.fd = -1};
    if (stat(path, &info) != 0)
        return wf_error_set(error, WF_ERR_IO, "%s has no metrics.jsonl, which a training writes: the model was not trained in it", folder);
    if (!S_ISREG(info.st_mode)) /* to open a FIFO would wait for a process that writes to it */
        return wf_error_set(error, WF_ERR_IO, "%s: is not a regular file", path);
    wf_status status = wf_lines_open(&in, path, error);
    while (status == WF_OK && (status = wf_lines_next(&in, error)) == WF_OK && in.text) {
        if (in.data[in.begin - 1] != '\n')
            break; /* the last line is incomplete */
        json_t *event = wf_json_parse_line(in.text, in.length, path, in.line, error);
        r->line = in.line;
        status = event ? read_event(r, event, error) : error->code;
        json_decref(event);
    }
    wf_lines_close(&in);
    return status;
}

wf_status curves_read(const char *folder, const struct wf_plot_options *options, struct curves *out, wf_error *error)
{
    wf_error unwanted = {0};
    error = error ? error : &unwanted;
    *out = (struct curves){0};
    if (!wf_folder_exists(folder))
        return wf_error_set(error, WF_ERR_IO, "%s is not a run folder: give the --out of a training", *folder ? folder : "\"\"");
    bool asked = options && options->metrics > 0;
    char *path = wf_format("%s/metrics.jsonl", folder);
    struct reader r = {.path = path,
                       .key = asked ? options->metric : curve_usual,
                       .keys = asked ? (int)options->metrics : CURVE_KINDS,
                       .x = options ? options->x : WF_PLOT_STEPS,
                       .out = out};
    wf_status status = path ? read_file(folder, path, &r, error) : wf_error_set(error, WF_ERR_MEMORY, "no memory for a path");
    if (status == WF_OK)
        status = check_found(&r, asked, folder, error);
    wf_free(path);
    if (status != WF_OK)
        curves_free(out);
    return status;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void curves_add_names(const struct curves *runs, int64_t count, struct wf_string *s)
{
    const char *name[4 * NAMES];
    int names = 0;
    for (int64_t i = 0; i < count; i++)
        for (int k = 0; k < runs[i].names && names < 4 * NAMES; k++) {
            int at = 0;
            while (at < names && strcmp(name[at], runs[i].name[k]) != 0)
                at++;
            name[at] = runs[i].name[k];
            names += at == names;
        }
    qsort(name, (size_t)names, sizeof *name, by_name);
    for (int i = 0; i < names; i++)
        wf_string_format(s, "%s%s", i ? ", " : "", name[i]);
}

/* --- shaping ------------------------------------------------------------------------------------------------------- */

static wf_status make(struct curve *out, int64_t capacity, wf_error *error)
{
    *out = (struct curve){.point = wf_alloc((size_t)capacity * sizeof *out->point), .capacity = capacity};
    return out->point ? WF_OK : wf_error_set(error, WF_ERR_MEMORY, "no memory for a curve of %" PRId64 " points", capacity);
}

/* Adds a value to *sum and the rounding error to *rest (Knuth's TwoSum). So after a huge loss has been added and later subtracted, almost
 * no error of it remains. */
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
    double sum = 0, rest = 0; /* sum + rest is the sum of the values of points low to high - 1; low and high never fall */
    for (int64_t i = 0, low = 0, high = 0; i < in->count; i++) {
        int64_t reach = WF_MIN(half, i), end = i + reach < in->count ? i + reach + 1 : in->count;
        while (high < end)
            add_exactly(in->point[high++].value, &sum, &rest);
        while (low < i - reach)
            add_exactly(-in->point[low++].value, &sum, &rest);
        out->point[i] = (struct point){in->point[i].step, reach ? (sum + rest) / (double)(high - low) : in->point[i].value, in->point[i].x};
    }
    out->count = in->count;
    return WF_OK;
}

wf_status curve_thin(const struct curve *in, int64_t buckets, struct curve *out, wf_error *error)
{
    buckets = in->count <= 2 * buckets ? in->count : buckets; /* a short curve keeps all points: a bucket for each */
    wf_status status = make(out, 2 * buckets, error);
    if (status != WF_OK)
        return status;
    for (int64_t b = 0; b < buckets; b++) {
        int64_t begin = b * in->count / buckets, end = (b + 1) * in->count / buckets, low = begin, high = begin;
        for (int64_t i = begin; i < end; i++) {
            low = in->point[i].value < in->point[low].value ? i : low;
            high = in->point[i].value > in->point[high].value ? i : high;
        }
        out->point[out->count++] = in->point[WF_MIN(low, high)];
        if (low != high)
            out->point[out->count++] = in->point[WF_MAX(high, low)];
    }
    return WF_OK;
}

void curve_clip(struct curve *curve, double from, double to)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < curve->count; i++)
        if (curve->point[i].x >= from && (to <= 0 || curve->point[i].x <= to))
            curve->point[kept++] = curve->point[i];
    curve->count = kept;
}
