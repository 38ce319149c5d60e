/* SPDX-License-Identifier: MIT */
/* weft average RUN --last N --out RUN2 */
#include <stdio.h>

#include "cli.h"

enum { KEY_LAST = 1000, KEY_OUT };

static const struct argp_option options[] = {
    {"last", KEY_LAST, "N", 0, "number of checkpoints to average", 0},
    {"out", KEY_OUT, "RUN2", 0, "folder for the averaged model", 0},
    {0},
};

struct arguments {
    const char *run, *out;
    int64_t last;
};

static error_t parse_option(int key, char *value, struct argp_state *state)
{
    struct arguments *a = state->input;
    bool fine = true;
    switch (key) {
    case KEY_LAST:
        fine = parse_int("last", value, 1, INT64_C(1000000), &a->last);
        break;
    case KEY_OUT:
        a->out = value;
        break;
    case ARGP_KEY_ARG:
        if (a->run)
            return fail_usage("'%s' is one argument too many: weft average takes one run", value), EINVAL;
        a->run = value;
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return fine ? 0 : EINVAL;
}

static const struct argp argp = {options,
                                 parse_option,
                                 "RUN --last N --out RUN2",
                                 "Averages the weights of a run's last N checkpoints (checkpoints/step-*.safetensors; the setting keep is "
                                 "the number of checkpoints that training keeps).",
                                 NULL,
                                 NULL,
                                 NULL};

int run_average(int argc, char **argv)
{
    struct arguments a = {0};
    int code = parse(&argp, argc, argv, &a);
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
