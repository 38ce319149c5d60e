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

void warn_of_pieces(const wf_tokenizer *target, const char *run)
{
    if (!wf_tokenizer_gives_text(target))
        fprintf(stderr,
                "weft: warning: the tokenizer of %s has no decoder: translations are subwords separated by spaces, and BLEU of "
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
