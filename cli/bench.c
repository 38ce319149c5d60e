/* SPDX-License-Identifier: MIT */
/* weft bench [CASE...] */
#include <stdio.h>
#include <stdlib.h>

#include "cli.h"

#include "stopwatch.h"

enum { MOST_CASES = 64 };

/* --help ends with the cases. */
static char *list_cases(void)
{
    size_t size;
    char *list = NULL;
    FILE *to = open_memstream(&list, &size);
    if (!to)
        return NULL;
    fputs("Cases:\n", to);
    for (int i = 0; i < wf_bench_count(); i++)
        print_entry(to, wf_bench_at(i)->name, 31, wf_bench_at(i)->purpose);
    return fclose(to) == 0 ? list : (free(list), NULL);
}

static const char *const small_cases[] = {"char-rms", "nanogpt-char-small", "generate-nanogpt-char-small"};

int run_bench(int argc, char **argv)
{
    const char *name[MOST_CASES];
    int64_t names = 0, steps = 0, threads = 0;
    double seconds = 0, dropout = 0;
    bool json = false;
    const struct option_row options[] = {
        {"seconds", "S", "seconds to measure each case for (default 4)", .real = &seconds, .least = 0.01, .most = 86400},
        {"steps", "N", "at most N steps of each case (default: as many as fit, three at least)", .number = &steps, .low = 1,
         .high = INT32_MAX},
        {"dropout", "P", "dropout rate (default 0)", .real = &dropout, .least = 0, .most = 0.99},
        FLAG_ROW("json", &json, "print one JSON object per case"),
        THREADS_ROW(&threads),
        {0},
    };
    const struct command_line line = {.usage = "[CASE...]",
                                      .help = "Times training steps and generation; without a case, all small ones.",
                                      .options = options,
                                      .argument = name,
                                      .most = MOST_CASES,
                                      .count = &names,
                                      .more_help = list_cases};
    int code = parse(&line, argc, argv);
    if (code >= 0)
        return code;
    for (int i = 0; names == 0 && i < 3; i++)
        name[i] = small_cases[i];
    int count = names > 0 ? (int)names : 3;
    wf_error error = {0};
    watch_interrupts(WATCH_BRIEF);
    if (start(threads, &error) != WF_OK)
        return fail(&error);
    for (int i = 0; i < count; i++) {
        struct wf_bench_options o = {.seconds = seconds, .steps = steps, .dropout = dropout, .cancelled = interrupted};
        struct wf_bench_result r;
        if (wf_bench_run(name[i], &o, &r, &error) != WF_OK)
            return fail(&error);
        char text[512];
        if (json)
            printf("%s\n", wf_bench_json(&r, text, sizeof text));
        else
            printf("%s: %lld parameters, %lld tokens, %.3f ms (min %.3f, max %.3f), %.0f tokens/s, %.0f GFLOP/s, %.0f MiB\n", r.name,
                   (long long)r.parameters, (long long)r.tokens, r.ms, r.ms_min, r.ms_max, (double)r.tokens / r.ms * 1000, r.gflops,
                   r.peak_rss_mib);
        fflush(stdout);
    }
    return EXIT_DONE;
}
