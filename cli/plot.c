/* SPDX-License-Identifier: MIT */
/* weft plot RUN... */
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli.h"

struct arguments {
    const char **run;
    int64_t count;
    const char *out;
    struct wf_plot_options plot;
};

/* Of the terminal, less the line of the prompt; elsewhere 80 by 24. */
static void window(struct wf_plot_options *plot)
{
    struct winsize w;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) != 0 || w.ws_col == 0 || w.ws_row == 0)
        return;
    plot->columns = w.ws_col < 10000 ? w.ws_col : 10000;
    plot->rows = w.ws_row < 10000 ? w.ws_row : 10000;
    plot->rows -= plot->rows > 1;
}

static wf_status plot(void *arguments, wf_error *error)
{
    struct arguments *a = arguments;
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
        {"log", NULL, "logarithmic axis for the losses", .flag = &a.plot.log},
        {"out", "FILE", "write a picture, FILE.svg or FILE.png (default: a text plot on standard output)", .text = &a.out},
        {0},
    };
    return run_command(
        &(struct command_line){
            "RUN...",
            "Plots the losses of one or more runs over the steps, and below them the learning rate: in the terminal, or with --out as "
            "a picture. Needs the program gnuplot (on Debian the package gnuplot-nox).",
            options, a.run, .most = argc, .count = &a.count, .too_few = "RUN is missing: weft plot RUN... takes the --out of weft train"},
        plot, &a, argc, argv);
}
