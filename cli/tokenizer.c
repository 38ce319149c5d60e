/* SPDX-License-Identifier: MIT */
/* weft tokenizer SUB-COMMAND ... */
#include "tokenizer.h"

#include <stdio.h>
#include <string.h>

static const struct command commands[] = {
    {"train", "make a tokenizer from text", run_tokenizer_train},
    {"encode", "text on standard input to ids", run_tokenizer_encode},
    {"decode", "ids on standard input to text", run_tokenizer_decode},
    {"info", "what a tokenizer.json holds", run_tokenizer_info},
    {"survey", "lengths of a text, or of two aligned by line, in ids", run_tokenizer_survey},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static int help(FILE *to)
{
    fputs("Usage: weft tokenizer COMMAND [OPTION...]\n\n", to);
    for (int i = 0; i < COMMANDS; i++)
        fprintf(to, "  weft tokenizer %-8s %s\n", commands[i].name, commands[i].summary);
    fputs("\nweft tokenizer COMMAND --help lists the options of one.\n", to);
    return to == stdout ? EXIT_DONE : EXIT_USAGE;
}

int run_tokenizer(int argc, char **argv)
{
    const char *names[COMMANDS], *name = argc > 1 ? argv[1] : NULL;
    if (!name)
        return help(stderr);
    if (strcmp(name, "--help") == 0 || strcmp(name, "-?") == 0 || strcmp(name, "help") == 0)
        return help(stdout);
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        argp_program_version_hook(stdout, NULL);
        return EXIT_DONE;
    }
    for (int i = 0; i < COMMANDS; i++) {
        names[i] = commands[i].name;
        if (strcmp(name, names[i]) != 0)
            continue;
        static char full[64];
        snprintf(full, sizeof full, "weft tokenizer %s", names[i]);
        argv[1] = full;
        return commands[i].run(argc - 1, argv + 1);
    }
    const char *near = wf_nearest(name, names, COMMANDS);
    return near ? fail_usage("there is no command 'weft tokenizer %s'; did you mean %s?", name, near)
                : fail_usage("there is no command 'weft tokenizer %s'; weft tokenizer --help lists them", name);
}
