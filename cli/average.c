/* SPDX-License-Identifier: MIT */
/* weft average RUN --last N --out RUN2: averages the weights of a run's last N checkpoints. */
#include <stdio.h>

#include "cli.h"

struct arguments {
    const char *run, *out;
    int64_t last;
};

static wf_status average(void *arguments, wf_error *error)
{
    const struct arguments *a = arguments;
    int64_t step;
    wf_status status = wf_init(error);
    if (status == WF_OK && (status = wf_average(a->run, a->last, a->out, &step, error)) == WF_OK)
        fprintf(stderr, "%s: the mean of %lld checkpoint%s up to step %lld\n", a->out, (long long)a->last, plural(a->last),
                (long long)step);
    return status;
}

int run_average(int argc, char **argv)
{
    struct arguments a = {0};
    const struct option_row options[] = {
        {"last", "N", "number of checkpoints to average", .number = &a.last, .low = 1, .high = 1000000,
         .needed = "the number of checkpoints to average"},
        {"out", "RUN2", "folder for the averaged model", .text = &a.out, .needed = "the folder for the averaged model"},
        {0},
    };
    return run_command(
        &(struct command_line){
            "RUN --last N --out RUN2",
            "Averages the weights of a run's last N checkpoints (checkpoints/step-*.safetensors; the setting keep is the number of "
            "checkpoints that training keeps).",
            options, &a.run, .too_few = "RUN is missing: $0 average RUN --last N --out RUN2; RUN is the --out of $0 train",
            .too_many = "$0 average takes one run"},
        average, &a, argc, argv);
}
