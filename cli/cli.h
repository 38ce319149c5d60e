/* SPDX-License-Identifier: MIT */
/* What the commands share: one function a command, messages, options that many have. Results go to standard output,
 * everything else to standard error. */
#ifndef WEFT_CLI_H
#define WEFT_CLI_H

#include <argp.h>
#include <signal.h>

#include <weft/internal/text.h>
#include <weft/weft.h>

#include "options.h"

/* Exit codes: a contract. EXIT_SIGNAL and the signal's number: 130 Ctrl-C, 143 SIGTERM. */
enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_SIGNAL = 128 };

struct command {
    const char *name, *summary;
    int (*run)(int argc, char **argv); /* argv[0] is "weft NAME"; returns the exit code */
};
struct commands {
    const char *name; /* what stands before theirs: "weft", "weft tokenizer" */
    const struct command *list;
    int count; /* 32 at most */
};
/* Runs the command that argv[1] names, or prints help or the version; returns the exit code. */
int dispatch(const struct commands *commands, int argc, char **argv);
int run_models(int argc, char **argv);
int run_train(int argc, char **argv);
int run_generate(int argc, char **argv);
int run_translate(int argc, char **argv);
int run_evaluate(int argc, char **argv);
int run_embed(int argc, char **argv);
int run_average(int argc, char **argv);
int run_bleu(int argc, char **argv);
int run_tokenizer(int argc, char **argv);
int run_attention(int argc, char **argv);
int run_inspect(int argc, char **argv);
int run_plot(int argc, char **argv);
int run_bench(int argc, char **argv);

/* Prints "weft: message" and returns the exit code that fits: wrong arguments are wrong usage. */
int fail(const wf_error *error);
int fail_usage(const char *format, ...) WF_PRINTF(1, 2);

/* models.c: the keys of configurations with what they mean, for --help: the text is the caller's to free(), NULL without memory. */
char *settings_help(void);
/* "  NAME   TEXT", broken at blanks as argp does, with the lines of the text below each other from column `indent` on. */
void print_entry(FILE *to, const char *name, int indent, const char *text);

/* One line where a model's translations are pieces of words, for its tokenizer can't join them. */
void warn_of_pieces(const wf_tokenizer *target, const char *run);

/* Starts the library and says on standard error what is in use. threads 0: the default. */
wf_status start(int64_t threads, wf_error *error);

/* "a,b,c" -> paths. A file whose own name holds the comma is taken as it is. Freed with file_list_free. */
struct file_list {
    char **path;
    int64_t count;
};
wf_status file_list_parse(const char *text, struct file_list *list, wf_error *error);
void file_list_free(struct file_list *list);

/* Ctrl-C, SIGTERM and SIGHUP end a command at once, with a line and the exit code. One that has something to finish says so with
 * watch_interrupts, and then asks interrupted() often: WATCH_BRIEF gives it 0.7 s, WATCH_SAVE (training) what saving takes. A second signal
 * ends it. fail() knows the exit code of WF_ERR_CANCELLED. */
void catch_signals(void);
enum watch { WATCH_NOT, WATCH_BRIEF, WATCH_SAVE };
void watch_interrupts(enum watch how);
bool interrupted(void *unused);
int exit_code(void); /* EXIT_DONE, or that of the signal which was caught */

#endif
