/* SPDX-License-Identifier: MIT */
/* The command `weft`: finds the sub-command. */
#include <stdio.h>
#include <string.h>

#include "cli.h"

static const struct command commands[] = {
    {"models", "the zoo: name, family, parameters, what it is for", run_models},
    {"train", "train a model", run_train},
    {"generate", "continue a text", run_generate},
    {"evaluate", "loss of a model on a text", run_evaluate},
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

int main(int argc, char **argv)
{
    argp_err_exit_status = EXIT_USAGE;
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error of the write, with a message */
    argp_program_version_hook = print_version;
    if (argc < 2) {
        help(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-?") == 0 || strcmp(argv[1], "help") == 0)
        return help(stdout);
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        print_version(stdout, NULL);
        return EXIT_DONE;
    }
    const char *names[COMMANDS];
    for (int i = 0; i < COMMANDS; i++) {
        names[i] = commands[i].name;
        if (strcmp(argv[1], commands[i].name) != 0)
            continue;
        static char name[64];
        snprintf(name, sizeof name, "weft %s", commands[i].name);
        argv[1] = name;
        int code = commands[i].run(argc - 1, argv + 1);
        /* A full disk or a closed pipe behind standard output must not pass for success. */
        if (fflush(stdout) != 0 || ferror(stdout)) {
            fputs("weft: standard output can't be written\n", stderr);
            return code == EXIT_DONE ? EXIT_FAILED : code;
        }
        return code;
    }
    const char *near = wf_nearest(argv[1], names, COMMANDS);
    return near ? fail_usage("there is no command '%s'; did you mean %s?", argv[1], near)
                : fail_usage("there is no command '%s'; weft --help lists them", argv[1]);
}
