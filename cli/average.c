/* SPDX-License-Identifier: MIT */
/* weft average RUN --last N --out RUN2 */
#include <stdio.h>

#include "cli.h"

struct arguments {
    const char *run, *out;
    int64_t last;
};

int run_average(int argc, char **argv)
{
    struct arguments a = {0};
    const struct option_row options[] = {
        {"last", "N", "number of checkpoints to average", .number = &a.last, .low = 1, .high = 1000000},
        {"out", "RUN2", "folder for the averaged model", .text = &a.out},
        {0},
    };
    const struct command_line line = {.usage = "RUN --last N --out RUN2",
                                      .help =
                                          "Averages the weights of a run's last N checkpoints (checkpoints/step-*.safetensors; the setting "
                                          "keep is the number of checkpoints that training keeps).",
                                      .options = options,
                                      .argument = &a.run,
                                      .most = 1,
                                      .too_many = "weft average takes one run"};
    int code = parse(&line, argc, argv);
    if (code >= 0)
        return code;
    if (!a.run)
        return fail_usage("which run? weft average RUN --last N --out RUN2; RUN is the --out of weft train");
    if (!a.last)
        return fail_usage("weft average needs --last N: the number of checkpoints to average");
    if (!a.out)
        return fail_usage("weft average needs --out RUN2: the folder for the averaged model");
    wf_error error = {0};
    int64_t step;
    if (wf_init(&error) != WF_OK || wf_average(a.run, a.last, a.out, &step, &error) != WF_OK)
        return fail(&error);
    fprintf(stderr, "%s: the mean of %lld checkpoint%s up to step %lld\n", a.out, (long long)a.last, a.last == 1 ? "" : "s",
            (long long)step);
    return EXIT_DONE;
}
