/* SPDX-License-Identifier: MIT */
/* One case of stopwatch.h in a process of its own, for ./bench/compare and for profilers.
 *
 *   case [-t threads] [-s seconds] [-n steps] [-p dropout] CASE...        a line of JSON each
 *   case -l                                                      the cases                                              */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <weft/runtime.h>

#include "stopwatch.h"

static int fail(const wf_error *error)
{
    fprintf(stderr, "case: %s\n", error->message);
    return 1;
}

int main(int argc, char **argv)
{
    struct wf_bench_options options = {.seed = 1};
    wf_error error = {0};
    int threads = 0, letter;
    while ((letter = getopt(argc, argv, "t:s:n:p:l")) != -1)
        switch (letter) {
        case 't':
            threads = atoi(optarg);
            break;
        case 's':
            options.seconds = atof(optarg);
            break;
        case 'n':
            options.steps = atoll(optarg);
            break;
        case 'p':
            options.dropout = atof(optarg);
            break;
        case 'l':
            for (int i = 0; i < wf_bench_count(); i++)
                printf("%-28s %s\n", wf_bench_at(i)->name, wf_bench_at(i)->purpose);
            return 0;
        default:
            return 2;
        }
    if (wf_init(&error, .threads = threads) != WF_OK)
        return fail(&error);
    for (int i = optind; i < argc; i++) {
        struct wf_bench_result result;
        char text[512];
        if (wf_bench_run(argv[i], &options, &result, &error) != WF_OK)
            return fail(&error);
        puts(wf_bench_json(&result, text, sizeof text));
        fflush(stdout);
    }
    return 0;
}
