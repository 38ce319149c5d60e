/* SPDX-License-Identifier: MIT */
#include "options.h"

#include <argp.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum { MOST_OPTIONS = 32, FIRST = 1000 };

static bool parse_number(const struct option_row *o, const char *text)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    bool fine = errno == 0 && end != text && !*end && value >= o->low && value <= o->high;
    if (fine)
        *o->number = value;
    else
        fail_usage("--%s: '%s' is not a whole number from %lld to %lld", o->name, text, (long long)o->low, (long long)o->high);
    return fine;
}

static bool parse_real(const struct option_row *o, const char *text)
{
    char *end;
    double value = strtod(text, &end);
    bool fine = end != text && !*end && isfinite(value) && value >= o->least && value <= o->most;
    if (fine)
        *o->real = value;
    else
        fail_usage("--%s: '%s' is not a number from %g to %g", o->name, text, o->least, o->most);
    return fine;
}

bool take_word(const char *option, const char *value, void *word_option)
{
    const struct word_option *w = word_option;
    char all[128] = "";
    for (int i = 0; i < w->count; i++) {
        if (strcmp(value, w->words[i]) == 0) {
            *w->out = i;
            return true;
        }
        strcat(strcat(all, i == 0 ? "" : i + 1 < w->count ? ", " : " or "), w->words[i]);
    }
    fail_usage("--%s: '%s' is not %s", option, value, all);
    return false;
}

static error_t take(int key, char *value, struct argp_state *state)
{
    const struct command_line *line = state->input;
    if (key == ARGP_KEY_ARG) {
        int64_t at = line->count ? *line->count : line->most > 0 && line->argument[0];
        if (at >= line->most)
            return fail_usage("'%s' is one argument too many%s%s", value, line->too_many ? ": " : "", line->too_many ? line->too_many : ""),
                   EINVAL;
        line->argument[at] = value;
        if (line->count)
            ++*line->count;
        return 0;
    }
    if (key < FIRST || key >= FIRST + MOST_OPTIONS)
        return ARGP_ERR_UNKNOWN;
    const struct option_row *o = &line->options[key - FIRST];
    if (o->given)
        *o->given = o->name;
    if (o->text)
        *o->text = value;
    if (o->flag)
        *o->flag = true;
    return (o->number && !parse_number(o, value)) || (o->real && !parse_real(o, value)) || (o->take && !o->take(o->name, value, o->to))
               ? EINVAL
               : 0;
}

/* argp would find what is wrong here too, but say it in two lines, and without the nearest name. */
static int check_options(const struct command_line *line, int count, int argc, char **argv)
{
    static const char *const own[] = {"help", "usage", "version"};
    struct option list[MOST_OPTIONS + 4] = {{0}};
    const char *names[MOST_OPTIONS + 4];
    int all = count + 3;
    for (int i = 0; i < all; i++) {
        names[i] = i < count ? line->options[i].name : own[i - count];
        list[i] = (struct option){names[i], i < count && line->options[i].arg ? required_argument : no_argument, NULL, FIRST + i};
    }
    opterr = optind = 0;
    for (int c; (c = getopt_long(argc, argv, ":V", list, NULL)) != -1;) {
        int at = (c == '?' || c == ':' ? optopt : c) - FIRST, begun = 0; /* at: the option that it is about, below 0: none */
        const char *arg = at >= 0 && at < count ? line->options[at].arg : NULL;
        /* an empty text is a text, an empty name none */
        if (c == ':' || (arg && optarg && !*optarg && strcmp(arg, "TEXT") != 0 && strcmp(arg, "LIST") != 0))
            return fail_usage("--%s needs a value: --%s %s", names[at], names[at], arg);
        if (c != '?' || optopt == '?')
            continue;
        if (at >= 0)
            return fail_usage("--%s takes no value", names[at]);
        const char *given = argv[optind - 1], *near = NULL;
        char name[128];
        if (optopt)
            return fail_usage("unknown option -%c of '%s'; %s --help lists them", optopt, argv[0], argv[0]);
        snprintf(name, sizeof name, "%.*s", (int)strcspn(given + 2, "="), given + 2);
        for (int i = 0; i < all; i++)
            begun += strncmp(names[i], name, strlen(name)) == 0;
        if (begun > 1)
            return fail_usage("--%s may mean several options of '%s'; write it out", name, argv[0]);
        if ((near = wf_nearest(name, names, all)))
            return fail_usage("unknown option --%s of '%s'; did you mean --%s?", name, argv[0], near);
        return fail_usage("unknown option --%s of '%s'; %s --help lists them", name, argv[0], argv[0]);
    }
    for (int i = optind; i < argc; i++)
        if (!argv[i][0])
            return fail_usage("an argument of '%s' is empty: give a name there, or leave it out", argv[0]);
    return -1;
}

static char *help_filter(int key, const char *text, void *input)
{
    const struct command_line *line = input;
    char *more = key == ARGP_KEY_HELP_POST_DOC && line && line->more_help ? line->more_help() : NULL;
    return more ? more : (char *)text;
}

int parse(const struct command_line *line, int argc, char **argv)
{
    struct argp_option options[MOST_OPTIONS + 1] = {{0}};
    int count = 0;
    for (const struct option_row *o = line->options; o && o->name && count < MOST_OPTIONS; o++, count++)
        options[count] = (struct argp_option){o->name, FIRST + count, o->arg, 0, o->help, 0};
    int code = check_options(line, count, argc, argv);
    if (code >= 0)
        return code;
    /* none rather than an empty list, for which glibc's help leaks */
    const struct argp argp = {count ? options : NULL, take, line->usage, line->help, NULL, help_filter, NULL};
    return argp_parse(&argp, argc, argv, 0, NULL, (void *)line) == 0 ? -1 : EXIT_USAGE;
}
