/* SPDX-License-Identifier: MIT */
/* Measures the time of an update on several processes. A case (stopwatch.h) is a model and the size of its batches. Each batch is cut into
 * micro-batches, which the processes share.
 *
 *   mpirun -n 2 several [-t threads] [-a accumulate] [-n updates] [-b rows] [-o] CASE FOLDER
 *
 * -a: number of micro-batches of an update; -n: number of measured updates; -b: rows or pairs of an update, instead of those of the case;
 * -o: computation and messages do not overlap.
 *
 * Prints one line of JSON: the median and the minimum of the milliseconds of an update, and the resident memory of rank 0 in MiB.
 * ./bench/several.py compares such lines. The run that remains in FOLDER can be removed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/internal/stopwatch.h>
#include <weft/weft.h>

#include "measure.h"

struct several {
    struct wf_bench_case c;
    wf_model *model;
    int32_t *x, *y, *offsets;
    int64_t updates;
    double *ms;
    double last;
    int64_t done;
    double resident; /* resident memory after the last update, MiB */
};

static wf_status next(void *ctx, int64_t step, double *weight, wf_error *error)
{
    const struct several *s = ctx;
    (void)step, (void)error;
    *weight = (double)(s->c.batch * s->c.length);
    return WF_OK;
}

static wf_tensor *loss(void *ctx, struct wf_micro_batch *p)
{
    struct several *s = ctx;
    const int64_t begin = s->c.batch * p->index / p->count, rows = s->c.batch * (p->index + 1) / p->count - begin, length = s->c.length;
    const int32_t *x = s->x + begin * length, *y = s->y + begin * length;
    if (rows == 0)
        return NULL;
    if (s->c.pairs) {
        const struct wf_pairs pairs = {
            .count = rows, .source = x, .source_offsets = s->offsets, .input = y, .target = x, .target_offsets = s->offsets};
        return wf_pairs_loss(s->model, p->tape, &pairs, .label_smoothing = s->c.label_smoothing, .normalizer = p->weight);
    }
    return wf_model_loss(s->model, wf_ids(p->tape, x, rows, length), wf_ids(p->tape, y, rows, length), .normalizer = p->weight);
}

static void event(void *ctx, const struct wf_fit_event *e)
{
    struct several *s = ctx;
    if (e->kind != WF_EVENT_STEP)
        return;
    const double now = seconds();
    if (s->done > 1) /* the first two updates are not counted */
        s->ms[s->done - 2] = 1e3 * (now - s->last);
    s->last = now;
    s->done++;
    FILE *file = fopen("/proc/self/statm", "r");
    long long pages;
    if (file && fscanf(file, "%*d %lld", &pages) == 1)
        s->resident = (double)pages * (double)sysconf(_SC_PAGESIZE) / 1048576;
    if (file)
        fclose(file);
}

static wf_status run(struct several *s, const char *folder, int64_t accumulate, bool no_overlap, wf_error *error)
{
    struct wf_config config;
    struct wf_optimizer adam = {0};
    const struct wf_task task = {WF_TASK_ABI, .name = "several", .next = next, .loss = loss};
    if (wf_bench_config(&s->c, 0, &config, error) != WF_OK || !(s->model = wf_model_new(&config, error)))
        return error->code;
    wf_registry *registry = wf_model_registry(s->model);
    wf_status status = wf_registry_build(registry, 1, error);
    if (status == WF_OK)
        status = wf_adamw_init(&adam, registry, error, .lr = 1e-4, .weight_decay = s->c.decoupled ? 0.01 : 0);
    if (status == WF_OK)
        status = wf_fit_one(&task, registry, &adam, NULL, NULL, error, .out = folder, .steps = s->updates + 2, .accumulate = accumulate,
                            .event = event, .ctx = s, .no_overlap = no_overlap, .values_by_ops = true);
    wf_optimizer_free(&adam);
    wf_model_free(s->model);
    return status;
}

int main(int argc, char **argv)
{
    struct several s = {0};
    wf_error error = {0};
    const char *given[128] = {NULL};
    if (!read_options(argc, argv, "t:a:n:b:o", given))
        return 2;
    s.updates = (int64_t)number_or(given['n'], 10);
    if (argc - optind != 2 || s.updates < 1)
        return fail("usage: several [-t threads] [-a accumulate] [-n updates] [-b rows] [-o] CASE FOLDER"), 2;
    if (wf_bench_find(argv[optind], &s.c, &error) != WF_OK || s.c.generate)
        return fail("no such training case");
    if (wf_init(&error, .threads = (int)number_or(given['t'], 1)) != WF_OK)
        return fail(error.message);
    s.c.batch = (int64_t)number_or(given['b'], (double)s.c.batch);
    const int64_t count = s.c.batch * s.c.length;
    wf_rng rng = wf_rng_new(5, wf_stream_of("several"));
    s.x = room(count, sizeof *s.x);
    s.y = room(count, sizeof *s.y);
    s.offsets = room(s.c.batch, sizeof *s.offsets);
    s.ms = room(s.updates, sizeof *s.ms);
    for (int64_t i = 0; i < count; i++) {
        s.x[i] = 1 + (int32_t)wf_rng_below(&rng, (uint64_t)s.c.vocab_size - 1);
        s.y[i] = 1 + (int32_t)wf_rng_below(&rng, (uint64_t)s.c.vocab_size - 1);
    }
    for (int64_t i = 0; i <= s.c.batch; i++)
        s.offsets[i] = (int32_t)(i * s.c.length);
    const wf_status status = run(&s, argv[optind + 1], (int64_t)number_or(given['a'], 2), given['o'], &error);
    if (status == WF_OK && wf_dist_rank(wf_dist_world(&error)) == 0) {
        const double middle = median(s.ms, s.updates);
        printf("{\"case\": \"%s\", \"processes\": %d, \"ms\": %.3f, \"least\": %.3f, \"rss\": %.1f}\n", s.c.name,
               wf_dist_size(wf_dist_world(&error)), middle, s.ms[0], s.resident);
    }
    free(s.x);
    free(s.y);
    free(s.offsets);
    free(s.ms);
    return status == WF_OK ? 0 : fail(error.message);
}
