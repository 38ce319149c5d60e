/* SPDX-License-Identifier: MIT */
/* Declarations that the commands share: the function of each command, messages, and options that several commands have. Commands print
 * results to standard output and everything else to standard error. */
#ifndef WEFT_CLI_H
#define WEFT_CLI_H

#include <weft/attention_map.h>
#include <weft/average.h>
#include <weft/config.h>
#include <weft/core.h>
#include <weft/data.h>
#include <weft/detokenize.h>
#include <weft/embed.h>
#include <weft/encoder.h>
#include <weft/generate.h>
#include <weft/internal/text.h>
#include <weft/io.h>
#include <weft/models.h>
#include <weft/plot.h>
#include <weft/registry.h>
#include <weft/run.h>
#include <weft/score.h>
#include <weft/tape.h>
#include <weft/tokenizer.h>
#include <weft/train.h>
#include <weft/translate.h>

#include "options.h"

/* Exit codes; users rely on these numbers. */
enum {
    EXIT_DONE = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,   /* wrong usage */
    EXIT_TIME = 124,  /* --max-time ended the training; timeout(1) uses the same code */
    EXIT_SIGNAL = 128 /* plus the number of the signal that ended the command: 130 for Ctrl-C, 143 for SIGTERM */
};

/* One function for each command. argv[0] is "weft NAME", and the other elements are its arguments. Each returns the exit code. */
int run_models(int argc, char **argv);
int run_train(int argc, char **argv);
int run_generate(int argc, char **argv);
int run_chat(int argc, char **argv);
int run_translate(int argc, char **argv);
int run_evaluate(int argc, char **argv);
int run_embed(int argc, char **argv);
int run_average(int argc, char **argv);
int run_convert(int argc, char **argv);
int run_bleu(int argc, char **argv);
int run_tokenizer_train(int argc, char **argv);
int run_tokenizer_encode(int argc, char **argv);
int run_tokenizer_decode(int argc, char **argv);
int run_tokenizer_info(int argc, char **argv);
int run_tokenizer_survey(int argc, char **argv);
int run_attention(int argc, char **argv);
int run_inspect(int argc, char **argv);
int run_plot(int argc, char **argv);
int run_bench(int argc, char **argv);

/* The name with which messages begin: the file name in argv[0] of main. It is "weft", or the name of another program that calls wf_main. */
enum { PROGRAM_SIZE = 64 };
void set_program(const char *path);
const char *program(void);

void print_version(void);
/* Prints "PROGRAM: message" and returns the exit code for the error; WF_ERR_ARGUMENT counts as wrong usage. If the message is empty, fail
 * prints nothing, because the message was printed before. */
int fail(const wf_error *error);
/* Prints "PROGRAM: message" and returns EXIT_USAGE. */
int fail_usage(const char *format, ...) WF_PRINTF(1, 2);
/* Makes later calls of fail_usage set *error instead of printing; NULL makes them print again. */
void keep_usage(wf_error *error);

/* Prints the end of `weft train --help`: the keys of all configurations with their meanings. */
void print_settings(void);
enum { SETTING_KEY_SIZE = 64 };
/* The values of all --set KEY=VALUE, in order. */
struct settings {
    const char *item[65]; /* NULL follows the last value */
    int count;
};
/* Appends a value of --set to the struct settings; to be used as `take` of struct option_row. */
bool take_setting(const char *option, const char *value, void *settings);
/* Copies the key of "KEY=VALUE" to `key` and returns the value, or NULL with the error set. */
const char *setting_split(const char *setting, char key[SETTING_KEY_SIZE], wf_error *error);
/* Counts the merges in the tokenizer's JSON, because no function of the library returns their number. */
wf_status tokenizer_merges(const wf_tokenizer *tokenizer, int64_t *merges, wf_error *error);
/* Warns in one line if a model's translations are subwords, because its target tokenizer has no decoder that joins them. */
void warn_of_pieces(const wf_tokenizer *target, const char *run);

/* Initialises the library and prints on standard error the number of threads, the BLAS and the kernels. threads 0: the default number. */
wf_status start(int64_t threads, wf_error *error);
/* Prints a note if products are computed in bf16 and this processor has no AMX, so that nobody expects more speed. Call it after start. */
void tell_precision(enum wf_precision precision);

/* Splits "a,b,c" at commas into items; an empty item is an error. With `files` the whole text is one item if it names an existing file,
 * which may have a comma in its name. Free the list with list_free, also after an error. */
struct list {
    char **item; /* pointers into `text` */
    int64_t count;
    char *text; /* a copy of the text, with NUL in place of the commas */
};
wf_status list_parse(const char *text, bool files, struct list *list, wf_error *error);
void list_free(struct list *list);

/* Options of all commands that use a trained model. */
struct run_options {
    const char *run;     /* the run folder */
    const char *weights; /* value of --weights; NULL: model.safetensors */
    int precision;       /* value of --precision, an enum wf_precision; used if precision_given is not NULL */
    const char *precision_given;
    int dtype; /* value of --dtype: 0 for f32, 1 for bf16; used if dtype_given is not NULL */
    const char *dtype_given;
    int map;         /* value of --map: 0 for auto, 1 for always, 2 for never */
    int64_t threads; /* 0: the default */
};
#define RUN_ROWS(on)                                                                                                                       \
    {"weights", "best|ema|FILE", "weights to use instead of the latest", .text = &(on).weights},                                           \
        {"precision", "f32|bf16", "arithmetic of matrix products (default: that of the training)", .choice = &(on).precision,              \
         .given = &(on).precision_given},                                                                                                  \
        {"dtype", "f32|bf16", "how to store weights of linear maps and embeddings in memory (default: as the file)",                       \
         .choice = &(on).dtype, .given = &(on).dtype_given},                                                                               \
        {"map", "auto|always|never",                                                                                                       \
         "leave the weights in the file, so that RUN opens at once, even if it is larger than the memory, but computes up to 10 % slower " \
         "(default: auto, if the file is larger than a quarter of the free memory)",                                                       \
         .choice = &(on).map},                                                                                                             \
        THREADS_ROW(&(on).threads)
/* The meaning of --map. */
enum wf_run_map map_of(const struct run_options *on);
/* Initialises the library and opens the run. */
wf_status open_run(const struct run_options *on, struct wf_run *run, wf_error *error);

/* Returns the ending of a plural: "" for a count of 1, else "s". */
const char *plural(int64_t count);
/* Prints in one line how many of `lines` lines were truncated to `most` tokens; prints nothing if `truncated` is 0. */
void report_truncated(int64_t truncated, int64_t lines, int64_t most);
/* Warns in one line if `unknown` of the `tokens` tokens in the named text are unknown tokens. */
void warn_of_unknown(const char *text, int64_t unknown, int64_t tokens);
/* If `status` is WF_ERR_CANCELLED, makes the message say how many lines were done. Returns the status. */
wf_status count_interrupted(wf_status status, int64_t lines, wf_error *error);

/* Ctrl-C, SIGTERM, SIGUSR1 and SIGHUP end a command at once, with a line and an exit code. Under mpirun the command ends 0.7 s after the
 * signal: if one process fails, the launcher sends SIGTERM to the others, and the delay lets the error of the failure be printed first.
 *
 * A command that must finish something calls watch_interrupts, and from then on often calls interrupted(), which is true after a signal.
 * With WATCH_BRIEF the command has 0.7 s to end. With WATCH_SAVE, which training and convert use, it has the time that it needs to save or
 * to clean up. A second signal ends the command at once, except under mpirun. For WF_ERR_CANCELLED fail() returns the exit code of the
 * signal.
 *
 * With WATCH_ANSWER, Ctrl-C only asks to halt what runs, such as an answer; if nothing reacts, a second one is as with WATCH_BRIEF. Other
 * signals are as with WATCH_BRIEF. */
void catch_signals(void);
enum watch { WATCH_NOT, WATCH_BRIEF, WATCH_SAVE, WATCH_ANSWER };
void watch_interrupts(enum watch how);
bool halt_asked(void); /* whether Ctrl-C asked to halt */
bool halt_take(void);  /* the same, and forgets it */
bool interrupted(void *unused);
/* Returns the exit code of the signal that was caught, or EXIT_DONE. */
int exit_code(void);

#endif
