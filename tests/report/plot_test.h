/* SPDX-License-Identifier: MIT */
/* Runs for the tests of curves. */
#ifndef WEFT_TESTS_PLOT_TEST_H
#define WEFT_TESTS_PLOT_TEST_H

#include <math.h>

#include "../io/io_test.h"

#include "../../report/plot_runs.h"

static inline const char *make_run(const char *name, const char *lines)
{
    char path[256];
    snprintf(path, sizeof path, "%s/metrics.jsonl", name);
    if (mkdir(in_folder(name), 0777) != 0)
        ck_assert(wf_folder_exists(in_folder(name)));
    write_text(in_folder(path), lines);
    return in_folder(name);
}

/* A run of `count` steps, logged every ten: the loss falls from 10 to 1, with noise; validated every `valid` steps. */
static inline const char *make_long(const char *name, int count, int valid)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(f);
    fprintf(f, "{\"event\":\"data\",\"step\":0,\"lines\":3}\n{\"event\":\"start\",\"step\":0,\"parameters\":7}\n");
    for (int step = 10; step <= count; step += 10) {
        double loss = 1 + 9 * exp(-step / 300.0);
        fprintf(f, "{\"event\":\"step\",\"step\":%d,\"loss/train\":%.6f,\"lr\":%g}\n", step, loss * (step % 20 ? 1.2 : 0.8), 1e-3 / step);
        if (valid && step % valid == 0)
            fprintf(f, "{\"event\":\"valid\",\"step\":%d,\"loss/valid\":%.6f}\n", step, loss + 0.5);
        if (step % 500 == 0)
            fprintf(f, "{\"event\":\"sample\",\"step\":%d,\"text\":\"loss/train\"}\n", step);
    }
    fclose(f);
    const char *path = make_run(name, text);
    free(text);
    return path;
}

#define NAMED(...)                                                                                                                         \
    (const char *const[])                                                                                                                  \
    {                                                                                                                                      \
        __VA_ARGS__                                                                                                                        \
    }

/* Two arguments: names and how many. */
#define RUNS(...) NAMED(__VA_ARGS__), sizeof(NAMED(__VA_ARGS__)) / sizeof(char *)
#define OPTIONS(...) ((struct wf_plot_options){__VA_ARGS__})

/* Valid until the next call. */
static inline const char *text_of(const char *const *runs, int64_t count, const struct wf_plot_options *options)
{
    static struct wf_string out;
    wf_string_free(&out);
    ck_ok(wf_plot_text(runs, count, options, &out, error));
    return out.data;
}

static inline char *svg_of(const char *const *runs, int64_t count, const struct wf_plot_options *options)
{
    ck_ok(wf_plot_save(runs, count, options, in_folder("p.svg"), error));
    return load_file(in_folder("p.svg"), NULL);
}

#endif
