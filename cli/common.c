/* SPDX-License-Identifier: MIT */
/* Messages, options and start-up of all commands. */
#include "cli.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int fail(const wf_error *error)
{
    fprintf(stderr, "weft: %s\n", error->message);
    return error->code == WF_ERR_ARGUMENT ? EXIT_USAGE : EXIT_FAILED;
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

enum { MOST_OPTIONS = 64 };

static int option_names(const struct argp *argp, const char *names[MOST_OPTIONS])
{
    int n = 0;
    for (const struct argp_option *o = argp->options; o && (o->name || o->key || o->doc); o++)
        if (o->name && n < MOST_OPTIONS - 3)
            names[n++] = o->name;
    names[n++] = "help";
    names[n++] = "usage";
    names[n++] = "version";
    return n;
}

/* Looks for a long option that is neither one of ours nor the beginning of one; getopt would say so without help. */
static int unknown_option(const struct argp *argp, int argc, char **argv)
{
    const char *names[MOST_OPTIONS];
    int count = option_names(argp, names);
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        char text[128];
        bool known = false;
        if (strncmp(argv[i], "--", 2) != 0)
            continue;
        snprintf(text, sizeof text, "%s", argv[i] + 2);
        text[strcspn(text, "=")] = 0;
        for (int j = 0; j < count; j++)
            known |= strncmp(names[j], text, strlen(text)) == 0;
        if (known)
            continue;
        const char *near = wf_nearest(text, names, count);
        return near ? fail_usage("there is no option --%s for '%s'; did you mean --%s?", text, argv[0], near)
                    : fail_usage("there is no option --%s for '%s'; %s --help lists them", text, argv[0], argv[0]);
    }
    return -1;
}

int parse(const struct argp *argp, int argc, char **argv, void *input)
{
    int code = unknown_option(argp, argc, argv);
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
    for (const char *c = text; list->path && c; ) {
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

static volatile sig_atomic_t interrupts;

static void note(int signal)
{
    (void)signal;
    interrupts = 1;
}

void watch_interrupts(void)
{
    struct sigaction action = {.sa_handler = note, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool interrupted(void *unused)
{
    (void)unused;
    return interrupts != 0;
}
