/* SPDX-License-Identifier: MIT */
/* Messages, options and start-up of all commands. */
#include "cli.h"

#include <errno.h>
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

static const struct argp_option common_options[] = {
    {"help", '?', NULL, 0, NULL, 0}, {"usage", '?', NULL, 0, NULL, 0}, {"version", 'V', NULL, 0, NULL, 0}, {0}};

/* The next of the command's options, then of those that all have; NULL at the end. */
static const struct argp_option *next_option(const struct argp *argp, const struct argp_option *o)
{
    if (!o)
        o = argp->options ? argp->options : common_options;
    else
        o++;
    if (!o->name && (o < common_options || o > common_options + 3))
        o = common_options;
    return o->name ? o : NULL;
}

/* The option that `text` names or is the beginning of; NULL with *count of those that it may mean. */
static const struct argp_option *find_option(const struct argp *argp, const char *text, int *count)
{
    const struct argp_option *found = NULL;
    *count = 0;
    for (const struct argp_option *o = next_option(argp, NULL); o; o = next_option(argp, o)) {
        if (strcmp(o->name, text) == 0) {
            *count = 1;
            return o;
        }
        if (strncmp(o->name, text, strlen(text)) == 0) {
            found = o;
            ++*count;
        }
    }
    return *count == 1 ? found : NULL;
}

/* getopt would find what is wrong here too, but say it in two lines, and without the nearest name. */
static int check_options(const struct argp *argp, int argc, char **argv)
{
    enum { MOST = 64 };
    const char *names[MOST];
    int count = 0;
    for (const struct argp_option *o = next_option(argp, NULL); o && count < MOST; o = next_option(argp, o))
        names[count++] = o->name;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        char text[128];
        int matches;
        if (!argv[i][0])
            return fail_usage("an argument of '%s' is empty: give a name there, or leave it out", argv[0]);
        if (argv[i][0] != '-' || !argv[i][1] || strcmp(argv[i], "-?") == 0 || strcmp(argv[i], "-V") == 0)
            continue;
        if (argv[i][1] != '-')
            return fail_usage("there is no option %s for '%s'; %s --help lists them", argv[i], argv[0], argv[0]);
        snprintf(text, sizeof text, "%s", argv[i] + 2);
        const char *value = strchr(argv[i], '=');
        text[strcspn(text, "=")] = 0;
        const struct argp_option *o = find_option(argp, text, &matches);
        const char *near = wf_nearest(text, names, count);
        if (matches > 1)
            return fail_usage("--%s may mean several options of '%s'; write it out", text, argv[0]);
        if (!o && near)
            return fail_usage("there is no option --%s for '%s'; did you mean --%s?", text, argv[0], near);
        if (!o)
            return fail_usage("there is no option --%s for '%s'; %s --help lists them", text, argv[0], argv[0]);
        /* an empty text is a text, an empty name none */
        bool none = o->arg && !value && ++i == argc;
        bool empty = o->arg && !none && !(value ? value[1] : argv[i][0]) && strcmp(o->arg, "TEXT") != 0 && strcmp(o->arg, "LIST") != 0;
        if (none || empty)
            return fail_usage("--%s needs a value: --%s %s", o->name, o->name, o->arg);
        if (!o->arg && value)
            return fail_usage("--%s takes no value", o->name);
    }
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
