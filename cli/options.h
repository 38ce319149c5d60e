/* SPDX-License-Identifier: MIT */
/* A command: its arguments and a row for each option, which says where the value goes. --help, ranges and messages follow from them. In
 * texts $0 stands for the name of the program. */
#ifndef WEFT_CLI_OPTIONS_H
#define WEFT_CLI_OPTIONS_H

#include <weft/error.h>

/* One of text, flag, number, real, choice and take is set. */
struct option_row {
    const char *name, *arg, *help; /* arg: NULL for a flag; an option with "TEXT" or "LIST" may be empty */
    const char **text;
    bool *flag; /* set to true */
    int64_t *number, low, high;
    double *real, least, most;
    int *choice;                                                   /* the place of the value in `arg`, "first|second|third" */
    bool (*take)(const char *option, const char *value, void *to); /* prints what is wrong and returns false */
    void *to;
    const char **given; /* may be NULL: set to the option's name where it is given */
    const char *needed; /* of an option that must be given: what it is for */
    bool repeatable;    /* `take` adds to what was given before */
};

struct command_line {
    const char *usage, *help;         /* "RUN --data FILE", and what the command does */
    const struct option_row *options; /* ends with {0}; NULL: none */
    const char **argument;            /* where arguments go that are not options; NULL: there are none */
    int64_t most, *count;             /* their number: most (0: 1); with `count` up to most, counted in *count */
    const char *too_few, *too_many;   /* what to do about it; too_few NULL: none are needed */
    void (*more_help)(void);          /* may be NULL: prints the end of --help */
    bool several;                     /* runs on several processes: `work` begins with open_world and then wf_dist_agree */
};

/* Reads the options and does the work; returns the exit code. Wrong usage is one line, with the nearest name. */
int run_command(const struct command_line *line, wf_status (*work)(void *arguments, wf_error *error), void *arguments, int argc,
                char **argv);
/* The option of the current command that has this name, or is called so by other programs; - and _ are the same. NULL: none. */
const struct option_row *option_meant(const char *name);
/* Whether other programs call an option so. (names.c) */
bool option_is_called(const char *option, const char *name);
/* Prints "  NAME   TEXT", broken at blanks, with the lines of the text below each other from column `indent` on. */
void print_entry(const char *name, int indent, const char *text);

#define THREADS_ROW(to)                                                                                                                    \
    {                                                                                                                                      \
        "threads", "N",                                                                                                                    \
            "number of threads (default: the processors that this process may use; OMP_NUM_THREADS is ignored); does not change the "      \
            "result",                                                                                                                      \
            .number = to, .low = 1, .high = 256                                                                                            \
    }

#endif
