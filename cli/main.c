/* SPDX-License-Identifier: MIT */
/* The command `weft`: finds the sub-command. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

static const struct command commands[] = {
    {"models", "list the models of the zoo; with a name, its settings", run_models},
    {"train", "train a model", run_train},
    {"generate", "continue a text", run_generate},
    {"translate", "translate standard input line by line", run_translate},
    {"embed", "sentence vectors of the lines of standard input, or their cosines", run_embed},
    {"evaluate", "loss and perplexity on a text; for translation BLEU and chrF too", run_evaluate},
    {"average", "average the last checkpoints of a run", run_average},
    {"bleu", "BLEU and chrF of translations", run_bleu},
    {"tokenizer", "train, apply and inspect tokenizers", run_tokenizer},
    {"attention", "attention maps as pictures, JSON or an HTML page", run_attention},
    {"plot", "plot losses and learning rates of runs", run_plot},
    {"inspect", "list the settings and tensors of a run or a safetensors file", run_inspect},
    {"bench", "time training steps and generation", run_bench},
};
static const struct commands all = {"weft", commands, sizeof commands / sizeof *commands};

static void print_version(FILE *stream, struct argp_state *state)
{
    (void)state;
    fprintf(stream, "weft %s\n", wf_version());
}

/* A full disk or a closed pipe behind standard output must not pass for success, nor where argp ends the process. */
static void check_output(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return;
    fputs("weft: standard output can't be written\n", stderr);
    _exit(EXIT_FAILED);
}

/* At the end of a parallel region libgomp's threads spin for milliseconds before they sleep. Where another program has one of the
 * processors, the thread that is waited for then waits for its turn: measured, a step of 10 ms took 1,200. A thousand turns are
 * enough when there is no other (10.7 ms), and with one it is 43. libgomp reads the number when it is loaded, so the program
 * starts once more. */
static void limit_spinning(char **argv)
{
    if (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT") || setenv("GOMP_SPINCOUNT", "1000", 0) != 0)
        return;
    execv("/proc/self/exe", argv); /* where that fails it goes on as it is */
}

static int help(const struct commands *c, FILE *to)
{
    int width = 0;
    for (int i = 0; i < c->count; i++)
        width = (int)strlen(c->list[i].name) > width ? (int)strlen(c->list[i].name) : width;
    fprintf(to, "Usage: %s COMMAND [OPTION...]\n\n", c->name);
    for (int i = 0; i < c->count; i++)
        fprintf(to, "  %s %-*s  %s\n", c->name, width, c->list[i].name, c->list[i].summary);
    fprintf(to, "\n%s COMMAND --help lists the options of one.\n", c->name);
    return to == stdout ? EXIT_DONE : EXIT_USAGE;
}

static bool is_one_of(const char *text, const char *const *names)
{
    while (*names && strcmp(text, *names) != 0)
        names++;
    return *names != NULL;
}

int dispatch(const struct commands *c, int argc, char **argv)
{
    static const char *const helps[] = {"help", "--help", "-h", "-?", NULL}, *const versions[] = {"--version", "-V", NULL};
    static char name[64], option[] = "--help";
    const char *names[32];
    if (argc < 2)
        return help(c, stderr);
    if (strcmp(argv[1], "help") == 0 && argc > 2) {
        memmove(argv + 1, argv + 2, (size_t)(argc - 2) * sizeof *argv); /* weft help tokenizer train */
        argv[argc - 1] = option;
    }
    if (is_one_of(argv[1], helps))
        return help(c, stdout);
    if (is_one_of(argv[1], versions)) {
        print_version(stdout, NULL);
        return EXIT_DONE;
    }
    for (int i = 0; i < c->count; i++) {
        names[i] = c->list[i].name;
        if (strcmp(argv[1], names[i]) != 0)
            continue;
        snprintf(name, sizeof name, "%s %s", c->name, names[i]);
        argv[1] = name;
        return c->list[i].run(argc - 1, argv + 1);
    }
    const char *near = wf_nearest(argv[1], names, c->count);
    return near ? fail_usage("unknown command '%s %s'; did you mean %s?", c->name, argv[1], near)
                : fail_usage("unknown command '%s %s'; %s --help lists them", c->name, argv[1], c->name);
}

int main(int argc, char **argv)
{
    limit_spinning(argv);
    atexit(check_output);
    catch_signals();
    argp_err_exit_status = EXIT_USAGE;
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error of the write, with a message */
    argp_program_version_hook = print_version;
    return dispatch(&all, argc, argv);
}
