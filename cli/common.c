/* SPDX-License-Identifier: MIT */
/* Messages, options and start-up of all commands. */
#include "cli.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "display.h"

static volatile sig_atomic_t caught, watched;

int fail(const wf_error *error)
{
    fprintf(stderr, "weft: %s\n", error->message);
    return caught && error->code == WF_ERR_CANCELLED ? exit_code() : error->code == WF_ERR_ARGUMENT ? EXIT_USAGE : EXIT_FAILED;
}

int fail_usage(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fputs("weft: ", stderr);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    va_end(list);
    return EXIT_USAGE;
}

/* --- options ------------------------------------------------------------------------------------------------------- */

/* --help, --usage and --version are argp's. */
enum { MOST_OPTIONS = 64, OWN = 3, FIRST = 1000 };

/* Adds the options of a command and its children; returns their number. */
static int list_options(const struct argp *argp, struct option *list, const char **arg, int count)
{
    for (const struct argp_option *o = argp->options; o && o->name && count < MOST_OPTIONS; o++, count++) {
        list[count] = (struct option){o->name, o->arg ? required_argument : no_argument, NULL, FIRST + count};
        arg[count] = o->arg;
    }
    for (const struct argp_child *c = argp->children; c && c->argp; c++)
        count = list_options(c->argp, list, arg, count);
    return count;
}

/* argp would find what is wrong here too, but say it in two lines, and without the nearest name. */
static int check_options(const struct argp *argp, int argc, char **argv)
{
    struct option list[MOST_OPTIONS + 1] = {{"help", 0, NULL, FIRST}, {"usage", 0, NULL, FIRST + 1}, {"version", 0, NULL, FIRST + 2}};
    const char *arg[MOST_OPTIONS], *names[MOST_OPTIONS];
    int count = list_options(argp, list, arg, OWN);
    for (int i = 0; i < count; i++)
        names[i] = list[i].name;
    opterr = optind = 0;
    for (int c; (c = getopt_long(argc, argv, ":V", list, NULL)) != -1;) {
        int at = (c == '?' || c == ':' ? optopt : c) - FIRST, begun = 0; /* at: the option that it is about, below 0: none */
        /* an empty text is a text, an empty name none */
        if (c == ':' || (at >= OWN && optarg && !*optarg && strcmp(arg[at], "TEXT") != 0 && strcmp(arg[at], "LIST") != 0))
            return fail_usage("--%s needs a value: --%s %s", names[at], names[at], arg[at]);
        if (c != '?' || optopt == '?')
            continue;
        if (at >= 0)
            return fail_usage("--%s takes no value", names[at]);
        const char *given = argv[optind - 1], *near = NULL;
        char name[128];
        if (optopt)
            return fail_usage("unknown option -%c of '%s'; %s --help lists them", optopt, argv[0], argv[0]);
        snprintf(name, sizeof name, "%.*s", (int)strcspn(given + 2, "="), given + 2);
        for (int i = 0; i < count; i++)
            begun += strncmp(names[i], name, strlen(name)) == 0;
        if (begun > 1)
            return fail_usage("--%s may mean several options of '%s'; write it out", name, argv[0]);
        if ((near = wf_nearest(name, names, count)))
            return fail_usage("unknown option --%s of '%s'; did you mean --%s?", name, argv[0], near);
        return fail_usage("unknown option --%s of '%s'; %s --help lists them", name, argv[0], argv[0]);
    }
    for (int i = optind; i < argc; i++)
        if (!argv[i][0])
            return fail_usage("an argument of '%s' is empty: give a name there, or leave it out", argv[0]);
    return -1;
}

int parse(const struct argp *argp, int argc, char **argv, void *input)
{
    int code = check_options(argp, argc, argv);
    if (code >= 0)
        return code;
    error_t result = argp_parse(argp, argc, argv, 0, NULL, input);
    return result == 0 ? -1 : EXIT_USAGE;
}

/* --- RUN, --weights, --threads ------------------------------------------------------------------------------------- */

enum { KEY_WEIGHTS = 2000, KEY_THREADS };

static error_t parse_run(int key, char *value, struct argp_state *state)
{
    struct run_options *o = state->input;
    switch (key) {
    case KEY_WEIGHTS:
        o->weights = value;
        return 0;
    case KEY_THREADS:
        return parse_int("threads", value, 1, 256, &o->threads) ? 0 : EINVAL;
    case ARGP_KEY_ARG:
        if (o->run)
            return fail_usage("'%s' is one argument too many: %s", value, o->one), EINVAL;
        o->run = value;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp run_argp = {
    (const struct argp_option[]){{"weights", KEY_WEIGHTS, "best|FILE", 0, "other weights than the run's latest", 0},
                                 {"threads", KEY_THREADS, "N", 0, THREADS_HELP, 0},
                                 {0}},
    parse_run,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL};
const struct argp_child run_children[] = {{&run_argp, 0, NULL, 0}, {0}};

/* --- numbers and messages ------------------------------------------------------------------------------------------ */

bool parse_int(const char *option, const char *text, int64_t low, int64_t high, int64_t *out)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno == 0 && end != text && !*end && value >= low && value <= high) {
        *out = value;
        return true;
    }
    fail_usage("--%s: '%s' is not a whole number from %lld to %lld", option, text, (long long)low, (long long)high);
    return false;
}

bool parse_real(const char *option, const char *text, double low, double high, double *out)
{
    char *end;
    double value = strtod(text, &end);
    if (end != text && !*end && isfinite(value) && value >= low && value <= high) {
        *out = value;
        return true;
    }
    fail_usage("--%s: '%s' is not a number from %g to %g", option, text, low, high);
    return false;
}

void warn_of_pieces(const wf_tokenizer *target, const char *run)
{
    if (!wf_tokenizer_gives_text(target))
        fprintf(stderr,
                "weft: warning: the tokenizer of %s has no decoder: translations are pieces of words with blanks between, and BLEU of "
                "such is not comparable\n",
                run);
}

wf_status start(int64_t threads, wf_error *error)
{
    wf_status status = wf_init(error, .threads = (int)threads);
    if (status == WF_OK)
        fprintf(stderr, "weft %s: %d thread%s, %s, %s kernels\n", wf_version(), wf_threads(), wf_threads() == 1 ? "" : "s", wf_blas(),
                wf_isa());
    return status;
}

/* --- lists of files ------------------------------------------------------------------------------------------------ */

wf_status file_list_parse(const char *text, struct file_list *list, wf_error *error)
{
    int64_t most = 1;
    for (const char *c = text; *c; c++)
        most += *c == ',';
    *list = (struct file_list){.path = wf_alloc_zero((size_t)most, sizeof *list->path)};
    bool one = most > 1 && wf_file_exists(text);
    for (const char *c = text; list->path && c;) {
        const char *comma = one ? NULL : strchr(c, ',');
        char *path = comma ? wf_format("%.*s", (int)(comma - c), c) : wf_strdup(c);
        if (!path)
            break;
        list->path[list->count++] = path;
        c = comma ? comma + 1 : NULL;
        if (!path[0]) {
            file_list_free(list);
            return wf_error_set(error, WF_ERR_ARGUMENT, "an empty file name in '%s'", text);
        }
    }
    if (list->path && list->count == (one ? 1 : most))
        return WF_OK;
    file_list_free(list);
    return wf_error_set(error, WF_ERR_MEMORY, "no memory for file names");
}

void file_list_free(struct file_list *list)
{
    for (int64_t i = 0; i < list->count; i++)
        wf_free(list->path[i]);
    wf_free(list->path);
    *list = (struct file_list){0};
}

/* --- interrupts ---------------------------------------------------------------------------------------------------- */

static void say(const char *line)
{
    display_wipe();
    if (write(STDERR_FILENO, line, strlen(line)) < 0)
        return; /* nothing can be done about it */
}

static void end_now(int signal)
{
    say("weft: interrupted\n");
    _exit(EXIT_SIGNAL + (caught ? caught : signal));
}

static void note(int signal)
{
    int number = errno;
    if (caught || watched == WATCH_NOT)
        end_now(signal);
    caught = signal;
    if (watched == WATCH_SAVE)
        say("weft: stopping; a second Ctrl-C ends at once\n");
    else /* whoever asks interrupted() has this long to come to an end */
        setitimer(ITIMER_REAL, &(struct itimerval){.it_value.tv_usec = 700000}, NULL);
    errno = number;
}

void catch_signals(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP /* a terminal that was closed */};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction was, action = {.sa_handler = note};
        if (signals[i] == SIGHUP && sigaction(SIGHUP, NULL, &was) == 0 && was.sa_handler == SIG_IGN) /* nohup */
            continue;
        sigaction(signals[i], &action, NULL);
    }
    struct sigaction action = {.sa_handler = end_now};
    sigaction(SIGALRM, &action, NULL);
}

void watch_interrupts(enum watch how)
{
    watched = how;
}

bool interrupted(void *unused)
{
    (void)unused;
    return caught != 0;
}

int exit_code(void)
{
    return caught ? EXIT_SIGNAL + caught : EXIT_DONE;
}
