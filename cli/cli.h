/* SPDX-License-Identifier: MIT */
/* Shared by the commands: one function a command, messages, options that many have. Results go to standard output,
 * everything else to standard error. */
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

/* Exit codes: a contract. EXIT_SIGNAL and the signal's number: 130 Ctrl-C, 143 SIGTERM. EXIT_TIME: that of timeout(1). */
enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_TIME = 124, EXIT_SIGNAL = 128 };

/* The commands: argv[0] is "weft NAME"; they return the exit code. */
int run_models(int argc, char **argv);
int run_train(int argc, char **argv);
int run_generate(int argc, char **argv);
int run_translate(int argc, char **argv);
int run_evaluate(int argc, char **argv);
int run_embed(int argc, char **argv);
int run_average(int argc, char **argv);
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

/* The name of the program, "weft" or one that registers families, from argv[0]; messages begin with it. */
enum { PROGRAM_SIZE = 64 };
void set_program(const char *path);
const char *program(void);

void print_version(void);
/* Prints "PROGRAM: message" and returns its exit code: wrong arguments are wrong usage. An empty message has been printed before. */
int fail(const wf_error *error);
int fail_usage(const char *format, ...) WF_PRINTF(1, 2);
/* From now on fail_usage prints nothing and sets this error; NULL: it prints again. */
void keep_usage(wf_error *error);

void print_settings(void); /* the end of `weft train --help`: the keys of configurations with what they mean */
enum { SETTING_KEY_SIZE = 64 };
/* --set KEY=VALUE, for options.h's `take`. NULL follows the last. */
struct settings {
    const char *item[65];
    int count;
};
bool take_setting(const char *option, const char *value, void *settings);
/* The key of "KEY=VALUE"; returns the value, or NULL with the error set. */
const char *setting_split(const char *setting, char key[SETTING_KEY_SIZE], wf_error *error);
/* The number of merges in the tokenizer's file, which the library does not report. */
wf_status tokenizer_merges(const wf_tokenizer *tokenizer, int64_t *merges, wf_error *error);
/* Warns in one line if a model's translations are pieces of words because its tokenizer cannot join them. */
void warn_of_pieces(const wf_tokenizer *target, const char *run);

/* Starts the library and says on standard error what is in use. threads 0: the default. */
wf_status start(int64_t threads, wf_error *error);

/* "a,b,c" -> items, none of them empty; with `files`, an existing file with a comma in its name is one item. Free it with list_free, also
 * after an error. */
struct list {
    char **item;
    int64_t count;
    char *text; /* what the items point into */
};
wf_status list_parse(const char *text, bool files, struct list *list, wf_error *error);
void list_free(struct list *list);

/* Shared by the commands on a trained model. */
struct run_options {
    const char *run, *weights;
    int64_t threads; /* 0: the default */
};
#define RUN_ROWS(on) {"weights", "best|ema|FILE", "weights to use instead of the latest", .text = &(on).weights}, THREADS_ROW(&(on).threads)
/* Starts the library and opens the run. */
wf_status open_run(const struct run_options *on, struct wf_run *run, wf_error *error);

/* "s", or "" for one. */
const char *plural(int64_t count);
/* Reports the number of truncated lines in one line, if there are any. */
void report_truncated(int64_t truncated, int64_t lines, int64_t most);
/* Warns in one line if tokens of the named text are unknown. */
void warn_of_unknown(const char *text, int64_t unknown, int64_t tokens);
/* After `status`: an interruption says how many lines were done. Returns the status. */
wf_status count_interrupted(wf_status status, int64_t lines, wf_error *error);

/* Ctrl-C, SIGTERM and SIGHUP end a command at once, with a line and the exit code; under mpirun 0.7 s later, because the launcher may be
 * ending a failed job whose error is still to be printed. A command that must finish something calls watch_interrupts, and then
 * interrupted() often: WATCH_BRIEF leaves it 0.7 s, WATCH_SAVE (training) the time to save. A second signal ends it. fail() knows the exit
 * code of WF_ERR_CANCELLED. */
void catch_signals(void);
enum watch { WATCH_NOT, WATCH_BRIEF, WATCH_SAVE };
void watch_interrupts(enum watch how);
bool interrupted(void *unused);
int exit_code(void); /* EXIT_DONE, or that of the signal which was caught */

#endif
