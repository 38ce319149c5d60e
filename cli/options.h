/* SPDX-License-Identifier: MIT */
/* The options of a command: a row each, which says where its value goes. argp makes --help of them and parses. */
#ifndef WEFT_CLI_OPTIONS_H
#define WEFT_CLI_OPTIONS_H

#include <weft/base.h>

/* One of text, flag, number, real and take is set. */
struct option_row {
    const char *name, *arg, *help; /* arg: NULL for a flag; an option with "TEXT" or "LIST" may be empty */
    const char **text;
    bool *flag; /* set to true */
    int64_t *number, low, high;
    double *real, least, most;
    bool (*take)(const char *option, const char *value, void *to); /* prints what is wrong and returns false */
    void *to;
    const char **given; /* may be NULL: set to the option's name where it is given */
};

struct command_line {
    const char *usage, *help;         /* "RUN --data FILE", and what the command does */
    const struct option_row *options; /* ends with {0}; NULL: none */
    const char **argument;            /* where arguments go that are not options: */
    int64_t most, *count;             /* at most so many, counted where count is not NULL; 0: none */
    const char *too_many;             /* what to do about more */
    char *(*more_help)(void);         /* may be NULL: text for the end of --help, the caller's to free() */
};

/* Parses argv. Wrong usage is one line, with the nearest name. Returns -1 to go on, else the exit code. */
int parse(const struct command_line *line, int argc, char **argv);

/* What the commands on a trained model share. */
struct run_options {
    const char *run, *weights;
    int64_t threads; /* 0: the default */
};
#define RUN_ROWS(on) {"weights", "best|FILE", "weights to use instead of the latest", .text = &(on).weights}, THREADS_ROW(&(on).threads)
#define THREADS_ROW(to)                                                                                                                    \
    {                                                                                                                                      \
        "threads", "N",                                                                                                                    \
            "number of threads (default: the processors that this process may use; OMP_NUM_THREADS is ignored); does not change the "      \
            "result",                                                                                                                      \
            .number = to, .low = 1, .high = 256                                                                                            \
    }
#define FLAG_ROW(name, to, help)                                                                                                           \
    {                                                                                                                                      \
        name, NULL, help, .flag = to                                                                                                       \
    }

/* For `take`: one of the words of *to. */
struct word_option {
    const char *const *words;
    int count, *out;
};
bool take_word(const char *option, const char *value, void *word_option);

#endif
