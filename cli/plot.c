/* SPDX-License-Identifier: MIT */
/* weft plot RUN... */
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli.h"

struct arguments {
    const char **run;
    int64_t count;
    const char *out;
    bool log;
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

static wf_status draw(const struct arguments *a, struct wf_plot_options *plot, wf_error *error)
{
    if (a->out)
        return wf_plot_save(a->run, a->count, plot, a->out, error);
    struct wf_string text = {0};
    window(plot);
    wf_status status = wf_plot_text(a->run, a->count, plot, &text, error);
    if (status == WF_OK)
        fwrite(text.data, 1, (size_t)text.length, stdout);
    wf_string_free(&text);
    return status;
}

int run_plot(int argc, char **argv)
{
    struct arguments a = {.run = wf_alloc_zero((size_t)argc, sizeof *a.run)};
    if (!a.run)
        return fail(&(wf_error){WF_ERR_MEMORY, "no memory for the names of runs"});
    wf_error error = {0};
    const struct option_row options[] = {
        FLAG_ROW("log", &a.log, "logarithmic axis for the losses"),
        {"out", "FILE", "write a picture, FILE.svg or FILE.png (default: a text plot on standard output)", .text = &a.out},
        {0},
    };
    const struct command_line line = {.usage = "RUN...",
                                      .help =
                                          "Plots the losses of one or more runs over the steps, and below them the learning rate: in the "
                                          "terminal, or with --out as a picture.\v"
                                          "Needs the program gnuplot (on Debian the package gnuplot-nox).",
                                      .options = options,
                                      .argument = a.run,
                                      .most = argc,
                                      .count = &a.count};
    int code = parse(&line, argc, argv);
    if (code < 0 && a.count == 0)
        code = fail_usage("which run? weft plot RUN... takes the --out of weft train");
    if (code < 0)
        code = draw(&a, &(struct wf_plot_options){.log = a.log}, &error) == WF_OK ? EXIT_DONE : fail(&error);
    wf_free(a.run);
    return code;
}
