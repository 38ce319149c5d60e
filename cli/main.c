/* SPDX-License-Identifier: MIT */
/* Runs the command that the command line names, such as `train` or `tokenizer encode`. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "several.h"

#include <weft/internal/launcher.h>
#include <weft/main.h>

struct command {
    const char *name, *summary;
    int (*run)(int argc, char **argv); /* NULL: the name is followed by one of the commands in of_tokenizers */
};
enum { MOST_COMMANDS = 32 };

/* Only these commands run under mpirun, because each process would do the whole work of any other command. */
static const char *const on_several[] = {"train", "evaluate", "translate", "--version", "-V", "help", "--help", "-h", "-?"};

static const struct command all[] = {
    {"models", "list the models of the zoo; with a name, its settings", run_models},
    {"train", "train a model", run_train},
    {"generate", "continue a text", run_generate},
    {"chat", "talk to a model that was trained on conversations", run_chat},
    {"translate", "translate standard input line by line", run_translate},
    {"embed", "sentence vectors of lines on standard input, or their cosines", run_embed},
    {"evaluate", "loss and perplexity on a text; of translations BLEU and chrF", run_evaluate},
    {"average", "average the last checkpoints of a run", run_average},
    {"convert", "convert a run to a Hugging Face folder, or back; other dtypes", run_convert},
    {"bleu", "BLEU and chrF of translations", run_bleu},
    {"tokenizer", "train, apply and inspect tokenizers", NULL},
    {"attention", "attention maps as pictures, JSON or an HTML page", run_attention},
    {"plot", "plot losses and learning rates of runs", run_plot},
    {"inspect", "list the settings and tensors of a run or a safetensors file", run_inspect},
    {"bench", "time training steps and generation", run_bench},
    {0},
};
static const struct command of_tokenizers[] = {
    {"train", "train a tokenizer on text", run_tokenizer_train},
    {"encode", "convert text on standard input to ids", run_tokenizer_encode},
    {"decode", "convert ids on standard input to text", run_tokenizer_decode},
    {"info", "show what is in a tokenizer.json", run_tokenizer_info},
    {"survey", "lengths of lines in tokens, of one text or two", run_tokenizer_survey},
    {0},
};

void print_version(void)
{
    printf("weft %s\n", wf_version());
}

/* Returns `code`, or EXIT_FAILED if standard output could not be written, for example because the disk is full or a pipe was closed. */
static int checked(int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    fprintf(stderr, "%s: standard output can't be written\n", program());
    return EXIT_FAILED;
}

static int help(const char *group, const struct command *commands, FILE *to)
{
    fprintf(to, "Usage: %s COMMAND [OPTION...]\n\n", group);
    for (const struct command *c = commands; c->name; c++)
        fprintf(to, "  %s %-9s  %s\n", group, c->name, c->summary);
    fprintf(to, "\n%s COMMAND --help lists its options.\n", group);
    return to == stdout ? EXIT_DONE : EXIT_USAGE;
}

/* Runs the command that argv[1] names, or prints help or the version; returns the exit code. */
static int dispatch(const char *group, const struct command *commands, int argc, char **argv)
{
    static char option[] = "--help";
    char name[PROGRAM_SIZE + 32]; /* such as "weft tokenizer train" */
    const char *names[MOST_COMMANDS];
    int count = 0;
    if (argc < 2)
        return help(group, commands, stderr);
    if (strcmp(argv[1], "help") == 0 && argc > 2) {
        memmove(argv + 1, argv + 2, (size_t)(argc - 2) * sizeof *argv); /* "weft help train" becomes "weft train --help" */
        argv[argc - 1] = option;
    }
    const char *first = argv[1];
    if (strcmp(first, "help") == 0 || strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0 || strcmp(first, "-?") == 0)
        return help(group, commands, stdout);
    if (strcmp(first, "--version") == 0 || strcmp(first, "-V") == 0) {
        print_version();
        return EXIT_DONE;
    }
    for (const struct command *c = commands; c->name; c++) {
        names[count++] = c->name;
        if (strcmp(argv[1], c->name) != 0)
            continue;
        snprintf(name, sizeof name, "%s %s", group, c->name);
        argv[1] = name;
        return c->run ? c->run(argc - 1, argv + 1) : dispatch(name, of_tokenizers, argc - 1, argv + 1);
    }
    const char *near = wf_nearest(argv[1], names, count);
    return near ? fail_usage("unknown command '%s %s'; did you mean %s?", group, argv[1], near)
                : fail_usage("unknown command '%s %s'; %s --help lists them", group, argv[1], group);
}

static int check_launcher(int argc, char **argv)
{
    const struct wf_launcher launcher = wf_launcher();
    bool fine = argc < 2 || launcher.size == 1;
    for (size_t i = 0; !fine && i < sizeof on_several / sizeof *on_several; i++)
        fine = strcmp(argv[1], on_several[i]) == 0;
    if (fine)
        return EXIT_DONE;
    wf_error error = {0}, usage = {0};
    wf_error_set(&usage, WF_ERR_ARGUMENT,
                 "%s %s runs as one process, and mpirun started %d: leave mpirun out; %s train, evaluate and translate run on several",
                 program(), argv[1], launcher.size, program());
    wf_dist *dist = open_world(argv[1], &error); /* other ranks may run an allowed command and wait for this one: join them */
    if (dist && error.code == WF_OK) {
        error = usage;
        (void)!wf_dist_agree(dist, error.code, &error);
    }
    return fail(dist ? &error : &usage);
}

int wf_main(int argc, char **argv)
{
    if (argc < 1)
        return EXIT_USAGE;
    set_program(argv[0]);
    catch_signals();
    const int code = check_launcher(argc, argv);
    if (code != EXIT_DONE)
        return code;
    wf_safetensors_guard();
    signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit of a file's size fails with a message, instead of ending the process */
    return checked(dispatch(program(), all, argc, argv));
}
