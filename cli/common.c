/* SPDX-License-Identifier: MIT */
/* Functions that all commands share: messages, settings, lists, start-up and signals. */
#include "cli.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include <weft/internal/encode.h>
#include <weft/internal/launcher.h>
#include <weft/internal/runtime.h>
#include <weft/internal/setting_names.h>

#include "display.h"

static volatile sig_atomic_t caught;     /* the signal that was caught; 0: no signal */
static volatile sig_atomic_t halt;       /* Ctrl-C asked to halt an answer */
static volatile sig_atomic_t watched;    /* an enum watch: how the command watches for signals */
static volatile sig_atomic_t ended = -1; /* exit code of the command after its error was printed; before that -1 */
static char name[PROGRAM_SIZE] = "weft";

void set_program(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *last = slash ? slash + 1 : path;
    if (*last)
        snprintf(name, sizeof name, "%.*s", PROGRAM_SIZE - 1, last);
}

const char *program(void)
{
    return name;
}

/* Whether mpirun started more than one process. */
static bool several(void)
{
    return wf_launcher().size > 1;
}

/* Whether this process prints errors. Before open_world every process meets the same error, and the first process on each machine prints
 * it. After open_world only rank 0 prints, because the standard error of the other ranks is then /dev/null. */
static bool speaks(void)
{
    return wf_launcher().local_rank == 0;
}

int fail(const wf_error *error)
{
    int code = error->code == WF_ERR_ARGUMENT ? EXIT_USAGE : error->code == WF_ERR_TIME ? EXIT_TIME : EXIT_FAILED;
    if (error->code == WF_ERR_CANCELLED && (caught || several()))
        code = caught ? exit_code() : EXIT_SIGNAL + SIGTERM; /* if nothing was caught, another process got a signal and stopped all */
    if (error->message[0] && speaks())
        fprintf(stderr, "%s: %s\n", name, error->message);
    ended = code;
    return code;
}

static wf_error *usage_to;

void keep_usage(wf_error *error)
{
    usage_to = error;
}

int fail_usage(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    if (usage_to) {
        char text[sizeof usage_to->message];
        vsnprintf(text, sizeof text, format, list);
        wf_error_set(usage_to, WF_ERR_ARGUMENT, "%s", text);
    } else if (speaks()) {
        fprintf(stderr, "%s: ", name);
        vfprintf(stderr, format, list);
        fputc('\n', stderr);
    }
    va_end(list);
    return EXIT_USAGE;
}

void warn_of_pieces(const wf_tokenizer *target, const char *run)
{
    if (!wf_tokenizer_gives_text(target))
        fprintf(stderr,
                "%s: warning: the tokenizer of %s has no decoder: translations are subwords separated by spaces, and their "
                "BLEU is not comparable\n",
                name, run);
}

wf_status start(int64_t threads, wf_error *error)
{
    wf_status status = wf_init(error, .threads = (int)threads);
    const char *blas = wf_gemm_blas();
    if (status == WF_OK)
        fprintf(stderr, "weft %s: %d thread%s, %s%s%s kernels\n", wf_version(), wf_threads(), plural(wf_threads()), blas ? blas : "",
                blas ? ", " : "", wf_isa());
    return status;
}

void tell_precision(enum wf_precision precision)
{
    if (precision == WF_PRECISION_BF16 && !wf_amx() && speaks())
        fprintf(stderr,
                "%s: note: without AMX (this processor, or WEFT_AMX=0) large products are slower in bf16 than in f32; the results are "
                "those with AMX\n",
                name);
}

enum wf_run_map map_of(const struct run_options *on)
{
    static const enum wf_run_map meaning[] = {WF_RUN_MAP_LARGE, WF_RUN_MAP, WF_RUN_READ};
    return meaning[on->map];
}

wf_status open_run(const struct run_options *on, struct wf_run *run, wf_error *error)
{
    wf_status status = start(on->threads, error);
    if (status == WF_OK)
        status = wf_run_open_with(run, on->run,
                                  &(struct wf_run_options){.weights = on->weights,
                                                           .stored = !on->dtype_given ? WF_STORED_AS_FILE
                                                                     : on->dtype      ? WF_STORED_BF16
                                                                                      : WF_STORED_REAL,
                                                           .map = map_of(on)},
                                  error);
    if (status == WF_OK && on->precision_given)
        status = wf_model_set_precision(run->model, (enum wf_precision)on->precision, error);
    if (status == WF_OK)
        tell_precision(wf_model_precision(run->model));
    return status;
}

const char *setting_split(const char *setting, char key[SETTING_KEY_SIZE], wf_error *error)
{
    const char *equals = strchr(setting, '=');
    if (!equals || equals == setting || equals - setting >= SETTING_KEY_SIZE) {
        (void)wf_error_set(error, WF_ERR_ARGUMENT, "--set %s: not of the form KEY=VALUE, such as lr=1e-3", setting);
        return NULL;
    }
    snprintf(key, SETTING_KEY_SIZE, "%.*s", (int)(equals - setting), setting);
    return equals + 1;
}

bool take_setting(const char *option, const char *value, void *settings)
{
    struct settings *to = settings;
    const int most = sizeof to->item / sizeof *to->item - 1;
    if (to->count == most)
        return fail_usage("--%s can be given %d times at most", option, most), false;
    char key[SETTING_KEY_SIZE];
    snprintf(key, sizeof key, "%.*s", (int)strcspn(value, "="), value);
    const char *called = wf_setting_called(key);
    const struct option_row *o = called && strcmp(called, key) == 0 ? NULL : option_meant(key);
    if (o) /* the key is no setting of Weft, but the name of an option, or another program's name for it */
        return fail_usage("--%s %s: no setting %s; use --%s%s%s", option, value, key, o->name, o->arg ? " " : "", o->arg ? o->arg : ""),
               false;
    to->item[to->count++] = value;
    return true;
}

const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

void report_truncated(int64_t truncated, int64_t lines, int64_t most)
{
    char part[WF_NUMBER_SIZE], all[WF_NUMBER_SIZE], ids[WF_NUMBER_SIZE];
    if (truncated > 0)
        fprintf(stderr, "%s: truncated %s of %s line%s to %s tokens\n", name, wf_text_count(truncated, part), wf_text_count(lines, all),
                plural(lines), wf_text_count(most, ids));
}

void warn_of_unknown(const char *text, int64_t unknown, int64_t tokens)
{
    char counts[128];
    if (unknown > 0)
        fprintf(stderr, "%s: warning: %s: %s\n", name, text, wf_unknown_describe(unknown, tokens, counts, sizeof counts));
}

wf_status count_interrupted(wf_status status, int64_t lines, wf_error *error)
{
    if (status != WF_ERR_CANCELLED)
        return status;
    wf_error_clear(error);
    return wf_error_set(error, status, "interrupted after %lld line%s", (long long)lines, plural(lines));
}

wf_status list_parse(const char *text, bool files, struct list *list, wf_error *error)
{
    int64_t most = 1;
    for (const char *c = text; *c; c++)
        most += *c == ',';
    *list = (struct list){.item = wf_alloc((size_t)most * sizeof *list->item), .text = wf_strdup(text)};
    if (!list->item || !list->text)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for the names in '%s'", text);
    char *rest = list->text;
    if (files && wf_file_exists(text)) {
        list->item[list->count++] = rest;
        return WF_OK;
    }
    for (char *item; (item = strsep(&rest, ",")); list->item[list->count++] = item)
        if (!*item)
            return wf_error_set(error, WF_ERR_ARGUMENT, "an empty %s in '%s'", files ? "file name" : "token", text);
    return WF_OK;
}

void list_free(struct list *list)
{
    wf_free(list->item);
    wf_free(list->text);
}

/* --- interrupts ---------------------------------------------------------------------------------------------------- */

/* Prints "PROGRAM: message" with a single write; may be called in a signal handler. */
static void say(const char *message)
{
    char line[PROGRAM_SIZE + 128];
    char *end = stpcpy(stpcpy(stpcpy(line, name), ": "), message);
    display_wipe();
    if (write(STDERR_FILENO, line, (size_t)(end - line)) < 0)
        return; /* an error of this write cannot be reported anywhere */
}

static bool of_several; /* mpirun started more than one process */

static void end_now(int signal)
{
    if (ended >= 0) /* the command has failed, and the launcher now ends all processes: keep the exit code of the failure */
        _exit(ended);
    say("interrupted\n");
    _exit(EXIT_SIGNAL + (caught ? caught : signal));
}

static void note(int signal)
{
    int number = errno;
    if (watched == WATCH_ANSWER && signal == SIGINT && !halt && !caught) {
        halt = 1;
        return;
    }
    if (caught && of_several) /* ignore a second signal: launchers repeat signals, and kill slow processes themselves */
        return;
    if (caught || (watched == WATCH_NOT && !of_several)) /* not under mpirun, where the error of a failed process must be printed first */
        end_now(signal);
    caught = signal;
    if (watched == WATCH_SAVE && !of_several)
        say("stopping; a second Ctrl-C ends at once\n");
    else if (watched != WATCH_SAVE) /* the command has 0.7 s to end; then SIGALRM ends it */
        setitimer(ITIMER_REAL, &(struct itimerval){.it_value.tv_usec = 700000}, NULL);
    errno = number;
}

void catch_signals(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGUSR1 /* job queues send it shortly before a job's time limit */,
                                  SIGHUP /* the terminal was closed */};
    of_several = several();
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction was, action = {.sa_handler = note};
        if (signals[i] == SIGHUP && sigaction(SIGHUP, NULL, &was) == 0 && was.sa_handler == SIG_IGN) /* started by nohup */
            continue;
        sigaction(signals[i], &action, NULL);
    }
    struct sigaction action = {.sa_handler = end_now};
    sigaction(SIGALRM, &action, NULL);
}

void watch_interrupts(enum watch how)
{
    watched = how;
    if (how == WATCH_SAVE) /* stop the timer of an earlier signal, because the training sees that signal and saves */
        setitimer(ITIMER_REAL, &(struct itimerval){.it_value.tv_usec = 0}, NULL);
}

bool halt_asked(void)
{
    return halt != 0;
}

bool halt_take(void)
{
    if (halt == 0) /* not set to 0 here: a signal since the line above would be lost */
        return false;
    halt = 0;
    return true;
}

bool interrupted(void *unused)
{
    (void)unused;
    static bool told;
    /* The handler does not print this line, because launchers also signal all processes when one of them has failed. The others then wait
     * for the failed process in an update that never ends. They do not get here, and the line would be wrong. */
    if (caught && of_several && watched == WATCH_SAVE && !told) {
        told = true;
        say("stopping after this update\n");
    }
    return caught != 0;
}

int exit_code(void)
{
    return caught ? EXIT_SIGNAL + caught : EXIT_DONE;
}
