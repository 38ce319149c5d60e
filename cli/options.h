/* SPDX-License-Identifier: MIT */
/* Describes a command by tables: its arguments, and one row for each option, with the variable that takes the value. --help, the check of
 * ranges, and messages are made from the tables. In texts $0 stands for the name of the program. */
#ifndef WEFT_CLI_OPTIONS_H
#define WEFT_CLI_OPTIONS_H

#include <weft/error.h>

/* An option. Exactly one of `text`, `flag`, `number`, `real`, `choice` and `take` is set, and receives the value; in the rows of --help,
 * --usage and --version none is set. A value may be empty only if `arg` is "TEXT" or "LIST". */
struct option_row {
    const char *name;                                              /* name of the option, without "--" */
    const char *arg;                                               /* name of the value in the help; NULL: the option takes no value */
    const char *help;                                              /* meaning of the option */
    const char **text;                                             /* set to the value */
    bool *flag;                                                    /* set to true */
    int64_t *number;                                               /* set to the value, a whole number */
    int64_t low;                                                   /* smallest number */
    int64_t high;                                                  /* largest number */
    double *real;                                                  /* set to the value, a real number */
    double least;                                                  /* smallest real number */
    double most;                                                   /* largest real number */
    int *choice;                                                   /* set to the index of the value in `arg`, "first|second|third" */
    bool (*take)(const char *option, const char *value, void *to); /* parses the value into `to`; on an error prints it and returns false */
    void *to;                                                      /* argument of `take` */
    const char **given;                                            /* set to the option's name if the option is given; may be NULL */
    const char *needed; /* not NULL: the option must be given, and this is its purpose for the message if it is missing */
    bool repeatable;    /* the option may be given several times, and `take` adds each value to the earlier ones */
};

struct command_line {
    const char *usage;                /* arguments and required options, for the help: such as "RUN --data FILE" */
    const char *help;                 /* description of the command */
    const struct option_row *options; /* ends with {0}; NULL: no options */
    const char **argument;            /* array for the arguments that are not options; NULL: the command takes no arguments */
    int64_t most;                     /* maximum number of arguments; 0 stands for 1 */
    int64_t *count;          /* set to the number of arguments, 1 to `most` (0 too if too_few is NULL); NULL: `most` arguments are needed */
    const char *too_few;     /* message if an argument is missing; NULL: all arguments may be left out */
    const char *too_many;    /* advice if there is an argument too many; may be NULL */
    void (*more_help)(void); /* prints the end of --help; may be NULL */
    bool several;            /* the command runs on several processes: `work` begins with open_world, then wf_dist_agree */
};

/* Reads the options, calls `work` with `arguments`, and returns the exit code. Wrong usage is reported in one line, which
 * suggests the nearest name if an option is unknown. */
int run_command(const struct command_line *line, wf_status (*work)(void *arguments, wf_error *error), void *arguments, int argc,
                char **argv);
/* Finds the option of the current command that has this name, or for which another program uses this name. The characters - and _ count as
 * equal. NULL: there is no such option. */
const struct option_row *option_meant(const char *name);
/* Whether another program uses this name for the option. Defined in names.c. */
bool option_is_called(const char *option, const char *name);
/* Prints "  NAME   TEXT". The text is broken at blanks, and its lines begin at column `indent`. */
void print_entry(const char *name, int indent, const char *text);

#define THREADS_ROW(to)                                                                                                                    \
    {                                                                                                                                      \
        "threads", "N",                                                                                                                    \
            "number of threads (default: the processors that this process may use; OMP_NUM_THREADS is ignored); does not change the "      \
            "result",                                                                                                                      \
            .number = to, .low = 1, .high = 256                                                                                            \
    }

#endif
