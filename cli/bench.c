/* SPDX-License-Identifier: MIT */
/* weft bench [CASE...]: times training steps and generation. */
#include <stdio.h>
#include <string.h>

#include "cli.h"

#include <weft/internal/stopwatch.h>

enum { MOST_CASES = 64 };

static const char *const small_cases[] = {"char-rms", "nanogpt-char-small", "generate-nanogpt-char-small"};

struct arguments {
    const char *name[MOST_CASES];
    int64_t names, threads;
    struct wf_bench_options o;
    int precision; /* enum wf_precision */
    bool json;
    const char *dropout; /* not NULL if --dropout is given */
    struct settings set;
};

static void print_cases(void)
{
    printf("\nA case is one of these, or a model (`%s models`), or generate- and a language\nmodel:\n", program());
    for (int i = 0; i < wf_bench_count(); i++)
        print_entry(wf_bench_at(i)->name, 31, wf_bench_at(i)->purpose);
}

static wf_status bench(void *arguments, wf_error *error)
{
    struct arguments *a = arguments;
    int64_t count = a->names > 0 ? a->names : 3;
    for (int i = 0; i < a->set.count; i++)
        if (a->dropout && strncmp(a->set.item[i], "dropout=", 8) == 0)
            return wf_error_set(error, WF_ERR_ARGUMENT, "--set %s and --dropout both set the dropout: leave one of the two out",
                                a->set.item[i]);
    a->o.precision = (enum wf_precision)a->precision;
    watch_interrupts(WATCH_BRIEF);
    wf_status status = start(a->threads, error);
    if (status == WF_OK)
        tell_precision(a->o.precision);
    for (int64_t i = 0; i < count && status == WF_OK; i++) {
        struct wf_bench_result r;
        char text[512];
        if ((status = wf_bench_run(a->names > 0 ? a->name[i] : small_cases[i], &a->o, &r, error)) != WF_OK)
            break;
        if (a->json)
            printf("%s\n", wf_bench_json(&r, text, sizeof text));
        else
            printf("%s: %lld parameters, %lld tokens, %.3f ms (min %.3f, max %.3f), %.0f tokens/s, %.0f GFLOP/s, %.0f MiB\n", r.name,
                   (long long)r.parameters, (long long)r.tokens, r.ms, r.ms_min, r.ms_max, (double)r.tokens / r.ms * 1000, r.gflops,
                   r.peak_rss_mib);
        fflush(stdout);
    }
    return status;
}

int run_bench(int argc, char **argv)
{
    struct arguments a = {.o.cancelled = interrupted};
    a.o.settings = a.set.item;
    const struct option_row options[] = {
        {"seconds", "S", "seconds to measure each case for (default 4)", .real = &a.o.seconds, .least = 0.01, .most = 86400},
        {"steps", "N", "at most N steps of each case (default: as many as fit into --seconds, at least three)", .number = &a.o.steps,
         .low = 1, .high = INT32_MAX},
        {"dropout", "P", "dropout rate (default 0)", .real = &a.o.dropout, .least = 0, .most = 0.99, .given = &a.dropout},
        {"precision", "f32|bf16", "arithmetic of matrix products (default f32)", .choice = &a.precision},
        {"set", "KEY=VALUE",
         "time other sizes: a key of the model's family ($0 models MODEL), batch, rows of a step, or optimizer and its keys; context is "
         "also "
         "the tokens of a row; can be repeated",
         .take = take_setting, .to = &a.set, .repeatable = true},
        {"json", NULL, "print one JSON object per case", .flag = &a.json},
        THREADS_ROW(&a.threads),
        {0},
    };
    return run_command(&(struct command_line){"[CASE...]", "Times training steps and generation; without a case, all small ones.", options,
                                              a.name, .most = MOST_CASES, .count = &a.names, .more_help = print_cases},
                       bench, &a, argc, argv);
}
