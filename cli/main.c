/* SPDX-License-Identifier: MIT */
/* The command `weft`: finds the sub-command. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

static const struct command commands[] = {
    {"models", "the zoo: name, family, parameters, what it is for; of one, its settings", run_models},
    {"train", "train a model", run_train},
    {"generate", "continue a text", run_generate},
    {"translate", "translate standard input, line for line", run_translate},
    {"embed", "vectors of the lines of standard input, or their cosines", run_embed},
    {"evaluate", "loss of a model on a text; of translations BLEU and chrF too", run_evaluate},
    {"average", "mean of a run's last checkpoints", run_average},
    {"bleu", "BLEU and chrF of translations", run_bleu},
    {"tokenizer", "make tokenizers, text to ids and back", run_tokenizer},
    {"attention", "what tokens look at: attention maps as pictures, JSON or a page", run_attention},
    {"plot", "draw the losses and the learning rate of runs", run_plot},
    {"inspect", "what is in a run or a safetensors file", run_inspect},
    {"bench", "time of a training step", run_bench},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static void print_version(FILE *stream, struct argp_state *state)
{
    (void)state;
    fprintf(stream, "weft %s\n", wf_version());
}

static int help(FILE *to)
{
    fputs("Usage: weft COMMAND [OPTION...]\n\n", to);
    for (int i = 0; i < COMMANDS; i++)
        fprintf(to, "  weft %-10s %s\n", commands[i].name, commands[i].summary);
    fputs("\nweft COMMAND --help lists the options of one.\n", to);
    return EXIT_DONE;
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

static int run_command(const char *wanted, int argc, char **argv)
{
    const char *names[COMMANDS];
    for (int i = 0; i < COMMANDS; i++) {
        names[i] = commands[i].name;
        if (strcmp(wanted, commands[i].name) != 0)
            continue;
        static char name[64];
        snprintf(name, sizeof name, "weft %s", commands[i].name);
        argv[0] = name;
        return commands[i].run(argc, argv);
    }
    const char *near = wf_nearest(wanted, names, COMMANDS);
    return near ? fail_usage("there is no command '%s'; did you mean %s?", wanted, near)
                : fail_usage("there is no command '%s'; weft --help lists them", wanted);
}

int main(int argc, char **argv)
{
    limit_spinning(argv);
    atexit(check_output);
    catch_signals();
    argp_err_exit_status = EXIT_USAGE;
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error of the write, with a message */
    argp_program_version_hook = print_version;
    if (argc < 2) {
        help(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "help") == 0 && argc > 2) {
        static char option[] = "--help";
        memmove(argv + 1, argv + 2, (size_t)(argc - 2) * sizeof *argv); /* weft help tokenizer train */
        argv[argc - 1] = option;
        return run_command(argv[1], argc - 1, argv + 1);
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "-?") == 0 || strcmp(argv[1], "help") == 0)
        return help(stdout);
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        print_version(stdout, NULL);
        return EXIT_DONE;
    }
    return run_command(argv[1], argc - 1, argv + 1);
}
