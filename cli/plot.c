/* SPDX-License-Identifier: MIT */
/* weft plot RUN...: plots the losses and learning rates of runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <weft/internal/minmax.h>

#include "cli.h"

static const double MOST = 1e15; /* largest value of --from and --to */

struct arguments {
    const char **run;
    int64_t count;
    const char *out, *smooth_given;
    int x; /* value of --x, an enum wf_plot_x */
    int64_t smooth;
    const char *metric[WF_PLOT_METRICS];
    struct wf_plot_options plot;
};

/* Parses a list of names, "loss/train,lr". The option may be given several times. */
static bool take_metrics(const char *option, const char *value, void *to)
{
    struct arguments *a = to;
    for (const char *at = value, *end; at; at = *end ? end + 1 : NULL) {
        end = strchrnul(at, ',');
        if (end == at)
            return fail_usage("--%s: '%s' is not a list of names, such as loss/train,lr", option, value), false;
        if (a->plot.metrics == WF_PLOT_METRICS)
            return fail_usage("--%s: a picture shows at most %d metrics", option, WF_PLOT_METRICS), false;
        char *name = strndup(at, (size_t)(end - at));
        if (!name)
            return fail_usage("--%s: no memory", option), false;
        a->metric[a->plot.metrics++] = name;
    }
    return true;
}

/* Sets the plot's size to the size of the terminal, less one row for the prompt of the shell. If standard output is no terminal, the size
 * stays 0, which stands for 80 by 24. */
static void window(struct wf_plot_options *plot)
{
    struct winsize w;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) != 0 || w.ws_col == 0 || w.ws_row == 0)
        return;
    plot->columns = WF_MIN(w.ws_col, 10000);
    plot->rows = WF_MIN(w.ws_row, 10000);
    plot->rows -= plot->rows > 1;
}

static wf_status plot(void *arguments, wf_error *error)
{
    struct arguments *a = arguments;
    a->plot.x = (enum wf_plot_x)a->x;
    a->plot.metric = a->metric;
    a->plot.smooth = a->smooth_given && a->smooth == 0 ? -1 : a->smooth;
    if (a->out)
        return wf_plot_save(a->run, a->count, &a->plot, a->out, error);
    struct wf_string text = {0};
    window(&a->plot);
    wf_status status = wf_plot_text(a->run, a->count, &a->plot, &text, error);
    if (status == WF_OK)
        fwrite(text.data, 1, (size_t)text.length, stdout);
    wf_string_free(&text);
    return status;
}

int run_plot(int argc, char **argv)
{
    const char *runs[argc];
    struct arguments a = {.run = runs};
    const struct option_row options[] = {
        {"x", "steps|tokens|seconds", "horizontal axis (default: steps); seconds of training, over all resumes", .choice = &a.x},
        {"from", "N", "begin at N on that axis", .real = &a.plot.from, .least = 0, .most = MOST},
        {"to", "N", "end at N on that axis", .real = &a.plot.to, .least = 1e-9, .most = MOST},
        {"metric", "NAME,...",
         "plot these numbers of metrics.jsonl, such as grad_norm (default: loss/train,loss/valid,lr); can be repeated",
         .take = take_metrics, .to = &a, .repeatable = true},
        {"smooth", "N", "running mean over N logged values; 0: none (default: a thirtieth of those shown; none below 40)",
         .number = &a.smooth, .low = 0, .high = INT64_C(1000000000), .given = &a.smooth_given},
        {"log", NULL, "logarithmic axes, except of learning rates", .flag = &a.plot.log},
        {"out", "FILE", "write a picture, FILE.svg or FILE.png (default: a text plot on standard output)", .text = &a.out},
        {0},
    };
    const int code = run_command(
        &(struct command_line){
            "RUN...",
            "Plots the losses of one or more runs over the steps, and below them the learning rate, or other metrics: in the terminal, "
            "or with --out as a picture. Needs the program gnuplot (on Debian the package gnuplot-nox).",
            options, a.run, .most = argc, .count = &a.count, .too_few = "RUN is missing: $0 plot RUN... takes the --out of $0 train"},
        plot, &a, argc, argv);
    for (int64_t i = 0; i < a.plot.metrics; i++)
        free((char *)a.metric[i]);
    return code;
}
