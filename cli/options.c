/* SPDX-License-Identifier: MIT */
/* Reads a command line by the tables of options.h, prints --help, and refuses wrong usage. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/internal/setting_names.h>
#include <weft/internal/string.h>

#include <weft/internal/launcher.h>

#include "cli.h"
#include "several.h"

enum { MOST_OPTIONS = 32, FIRST = 1000, WIDTH = 78 };

/* --- help ---------------------------------------------------------------------------------------------------------- */

/* Returns a copy of the text with the program's name in place of each $0. The copy is stored in `to`, which the caller frees with
 * wf_string_free. If there is no memory, returns `text` itself. */
static const char *named(const char *text, struct wf_string *to)
{
    const char *rest = text;
    for (const char *at; (at = strstr(rest, "$0")); rest = at + 2) {
        wf_string_add(to, rest, at - rest);
        wf_string_text(to, program());
    }
    return wf_string_text(to, rest) ? to->data : text;
}

/* Prints a text in lines of at most WIDTH columns. All lines but the first are indented by `indent` columns. */
static void print_text(int indent, const char *text)
{
    int room = WIDTH - indent;
    struct wf_string whole = {0};
    for (const char *rest = named(text, &whole); *rest;) {
        int n = (int)strlen(rest);
        if (n > room)
            for (n = room; n > 1 && rest[n] != ' ';)
                n--;
        printf("%.*s\n", n, rest);
        rest += n + (rest[n] == ' ');
        if (*rest)
            printf("%*s", indent, "");
    }
    wf_string_free(&whole);
}

void print_entry(const char *name, int indent, const char *text)
{
    bool fits = (int)strlen(name) <= indent - 3;
    if (fits)
        printf("  %-*s ", indent - 3, name);
    else
        printf("  %s\n%*s", name, indent, "");
    print_text(indent, text);
}

/* Options that every command has. */
static const struct option_row own[] = {{"help", NULL, "print this list; also -?"},
                                        {"usage", NULL, "print the names of the options"},
                                        {"version", NULL, "print the version; also -V"}};
enum { HELP, USAGE, VERSION, OWN };

/* Writes "--name=ARG" to `text` and returns it. */
static char *name_of(const struct option_row *o, char text[64])
{
    snprintf(text, 64, "--%s%s%s", o->name, o->arg ? "=" : "", o->arg ? o->arg : "");
    return text;
}

static void print_help(const struct command_line *line, const char *command, const struct option_row *const *rows, int count)
{
    char name[64];
    char usage[256];
    snprintf(usage, sizeof usage, "%s [OPTION...] %s", command, line->usage);
    fputs("Usage: ", stdout);
    print_text(7, usage);
    print_text(0, line->help);
    putchar('\n');
    for (int i = 0; i < count; i++)
        print_entry(name_of(rows[i], name), 29, rows[i]->help);
    if (line->more_help)
        line->more_help();
}

static void print_usage(const struct command_line *line, const char *command, const struct option_row *const *rows, int count)
{
    char name[64];
    printf("Usage: %s", command);
    for (int i = 0; i < count; i++)
        printf(" [%s]", name_of(rows[i], name));
    printf(" %s\n", line->usage);
}

/* --- values -------------------------------------------------------------------------------------------------------- */

static bool take_number(const struct option_row *o, const char *text)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end || value < o->low || value > o->high)
        return fail_usage("--%s: '%s' is not a whole number from %lld to %lld", o->name, text, (long long)o->low, (long long)o->high),
               false;
    *o->number = value;
    return true;
}

static bool take_real(const struct option_row *o, const char *text)
{
    double value;
    if (!wf_text_to_double(text, &value) || value < o->least || value > o->most)
        return fail_usage("--%s: '%s' is not a number from %g to %g", o->name, text, o->least, o->most), false;
    *o->real = value;
    return true;
}

static bool take_choice(const struct option_row *o, const char *text)
{
    char all[128] = "";
    const char *word = o->arg;
    for (int i = 0; *word; i++) {
        int length = (int)strcspn(word, "|");
        if ((int)strlen(text) == length && strncmp(text, word, (size_t)length) == 0) {
            *o->choice = i;
            return true;
        }
        const char *next = word + length + (word[length] == '|');
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%.*s", i == 0 ? "" : *next ? ", " : " or ", length, word);
        word = next;
    }
    return fail_usage("--%s: '%s' is not %s", o->name, text, all), false;
}

static bool take(const struct option_row *o, const char *value)
{
    if (o->given)
        *o->given = o->name;
    if (o->text)
        *o->text = value;
    if (o->flag)
        *o->flag = true;
    return (!o->number || take_number(o, value)) && (!o->real || take_real(o, value)) && (!o->choice || take_choice(o, value)) &&
           (!o->take || o->take(o->name, value, o->to));
}

/* --- the command line ---------------------------------------------------------------------------------------------- */

static const struct option_row *being_read; /* options of the current command */

const struct option_row *option_meant(const char *name)
{
    for (const struct option_row *o = being_read; o && o->name; o++)
        if (wf_name_in(o->name, name) || option_is_called(o->name, name))
            return o;
    return NULL;
}

/* If another program uses `name` for one of the command's options or settings, prints the right name and returns EXIT_USAGE; otherwise
 * returns EXIT_DONE. */
static int refuse_foreign(const char *command, const char *name)
{
    const struct option_row *o = option_meant(name);
    const char *key = option_meant("set") ? wf_setting_called(name) : NULL;
    if (o)
        return fail_usage("unknown option --%s of '%s'; use --%s%s%s", name, command, o->name, o->arg ? " " : "", o->arg ? o->arg : "");
    return key ? fail_usage("unknown option --%s of '%s'; it is a setting: --set %s=...", name, command, key) : EXIT_DONE;
}

/* Prints why getopt_long refused the option `given`: its name is ambiguous or unknown. */
static int refuse_name(const char *command, const char *given, const struct option *list, int count)
{
    const char *names[MOST_OPTIONS];
    char name[128];
    int begun = 0;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(given + 2, "="), given + 2);
    for (int i = 0; i < count; i++) {
        names[i] = list[i].name;
        begun += strncmp(names[i], name, strlen(name)) == 0;
    }
    if (begun > 1)
        return fail_usage("--%s is ambiguous for '%s': write the option out", name, command);
    if (refuse_foreign(command, name) != EXIT_DONE)
        return EXIT_USAGE;
    const char *near = wf_nearest(name, names, count);
    return near ? fail_usage("unknown option --%s of '%s'; did you mean --%s?", name, command, near)
                : fail_usage("unknown option --%s of '%s'; %s --help lists them", name, command, command);
}

/* Refuses missing or additional arguments: prints the message `before` and the advice `what`, which may be NULL. */
static int refuse_arguments(const char *before, const char *what)
{
    struct wf_string text = {0};
    const int code = fail_usage("%s%s%s", before, before[0] && what ? ": " : "", what ? named(what, &text) : "");
    wf_string_free(&text);
    return code;
}

static int take_arguments(const struct command_line *line, const char *command, char *const *argv, int64_t count)
{
    int64_t most = line->most > 0 ? line->most : line->argument != NULL;
    for (int64_t i = 0; i < count; i++) {
        if (!argv[i][0])
            return fail_usage("an argument of '%s' is empty: give a name, or leave it out", command);
        if (i >= most) {
            struct wf_string text = {0};
            wf_string_format(&text, "'%s' is one argument too many", argv[i]);
            const int code = refuse_arguments(text.failed ? argv[i] : text.data, line->too_many);
            wf_string_free(&text);
            return code;
        }
        line->argument[i] = argv[i];
    }
    if (line->count)
        *line->count = count;
    return line->too_few && count < (line->count ? 1 : most) ? refuse_arguments("", line->too_few) : -1;
}

static int refuse_twice(const struct option_row *o)
{
    if (strcmp(o->arg, "FILE[,FILE]") == 0)
        return fail_usage("--%s is given twice; name several files as --%s a.txt,b.txt", o->name, o->name);
    bool list = strchr(o->arg, ',') || strcmp(o->arg, "LIST") == 0;
    return fail_usage("--%s is given twice%s", o->name, list ? "; separate several values by commas" : "");
}

/* Reads options and arguments. Returns -1 if the command can run, otherwise the exit code. */
static int parse(const struct command_line *line, int argc, char **argv)
{
    struct option list[MOST_OPTIONS + 1] = {{0}};
    const struct option_row *rows[MOST_OPTIONS];
    bool given[MOST_OPTIONS] = {0};
    int count = 0, first_own = 0;
    being_read = line->options;
    for (const struct option_row *o = line->options; o && o->name && count < MOST_OPTIONS - OWN; o++)
        rows[count++] = o;
    first_own = count;
    for (int i = 0; i < OWN; i++)
        rows[count++] = &own[i];
    for (int i = 0; i < count; i++)
        list[i] = (struct option){rows[i]->name, rows[i]->arg ? required_argument : no_argument, NULL, FIRST + i};
    opterr = optind = 0;
    for (int c; (c = getopt_long(argc, argv, ":V", list, NULL)) != -1;) {
        if (c == 'V' || (c == '?' && optopt == '?')) /* -V; or -?, which getopt_long does not know */
            c = FIRST + first_own + (c == 'V' ? VERSION : HELP);
        int at = (c == '?' || c == ':' ? optopt : c) - FIRST; /* index of the option in rows; below 0: it is unknown */
        const struct option_row *o = at >= 0 ? rows[at] : NULL;
        /* only a TEXT or a LIST may be empty; a file name, for example, may not */
        if (c == ':' || (o && o->arg && optarg && !*optarg && strcmp(o->arg, "TEXT") != 0 && strcmp(o->arg, "LIST") != 0))
            return fail_usage("--%s needs a value: --%s %s", o->name, o->name, o->arg);
        if (c == '?' && o)
            return fail_usage("--%s takes no value", o->name);
        if (c == '?' && optopt)
            return fail_usage("unknown option -%c of '%s'; %s --help lists them", optopt, argv[0], argv[0]);
        if (c == '?')
            return refuse_name(argv[0], argv[optind - 1], list, count);
        if (at == first_own + HELP)
            print_help(line, argv[0], rows, count);
        if (at == first_own + USAGE)
            print_usage(line, argv[0], rows, count);
        if (at == first_own + VERSION)
            print_version();
        if (at >= first_own)
            return EXIT_DONE;
        /* If a number or choice is given twice, the last value counts, as in most programs. A second file or text is refused, because the
         * first one would be ignored. */
        if (given[at] && o->arg && !o->number && !o->real && !o->choice && !o->repeatable)
            return refuse_twice(o);
        given[at] = true;
        if (!take(o, optarg))
            return EXIT_USAGE;
    }
    int code = take_arguments(line, argv[0], argv + optind, argc - optind);
    for (int i = 0; code < 0 && i < count; i++)
        if (rows[i]->needed && !given[i])
            code = fail_usage("%s needs --%s %s: %s", argv[0], rows[i]->name, rows[i]->arg, rows[i]->needed);
    return code;
}

/* Reports this process's wrong usage under mpirun. Other ranks may have correct arguments and wait in the first wf_dist_agree of their
 * `work`. This rank joins that call, so all ranks fail and rank 0 prints the message. */
static int fail_together(const char *command, wf_error *usage)
{
    wf_error why = {0};
    wf_dist *dist = open_world(strrchr(command, ' ') + 1, &why);
    if (why.code)
        return fail(&why);
    (void)!wf_dist_agree(dist, usage->code, usage);
    return fail(usage);
}

int run_command(const struct command_line *line, wf_status (*work)(void *arguments, wf_error *error), void *arguments, int argc,
                char **argv)
{
    wf_error error = {0};
    const bool together = line->several && wf_launcher().size > 1;
    keep_usage(together ? &error : NULL);
    int code = parse(line, argc, argv);
    keep_usage(NULL);
    if (code >= 0)
        return together && error.code ? fail_together(argv[0], &error) : code;
    if (work(arguments, &error) == WF_OK)
        return EXIT_DONE;
    return ferror(stdout) ? EXIT_FAILED : fail(&error); /* main.c reports an error of standard output */
}
