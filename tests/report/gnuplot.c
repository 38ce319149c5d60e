/* SPDX-License-Identifier: MIT */
/* gnuplot as a program: what it draws, what it complains of, and what is left behind. A script of that name on PATH shows failures that the
 * real one does not. */
#include <dirent.h>
#include <errno.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "../io/io_test.h"

#include "../../report/gnuplot.h"

static char path_before[8192];

/* A program of that name that is this shell script. */
static void pretend_to_be(const char *program, const char *script)
{
    char text[8192], path[9000];
    if (!path_before[0])
        snprintf(path_before, sizeof path_before, "%s", getenv("PATH"));
    snprintf(text, sizeof text, "#!/bin/sh\n%s\n", script);
    write_text(in_folder(program), text);
    ck_assert_int_eq(chmod(in_folder(program), 0755), 0);
    snprintf(path, sizeof path, "%s:%s", folder_of_test, path_before);
    ck_assert_int_eq(setenv("PATH", path, 1), 0);
}

static void pretend(const char *script)
{
    pretend_to_be("gnuplot", script);
}

static void real(void)
{
    if (path_before[0])
        ck_assert_int_eq(setenv("PATH", path_before, 1), 0);
}

static int count_open(void)
{
    return count_names("/proc/self/fd");
}

/* Runs the script, and looks whether a process or a descriptor is left. */
static wf_status run(const char *text, struct wf_string *out, wf_error *error)
{
    struct wf_string s = {0};
    wf_string_format(&s, "%s", text);
    int before = count_open();
    wf_status status = gnuplot_run(&s, out, error);
    ck_assert_int_eq(count_open(), before);
    ck_assert_msg(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "a process is left");
    wf_string_free(&s);
    return status;
}

static void fails(const char *script, const char *part)
{
    struct wf_string out = {0};
    ck_fails(run(script, &out, error), WF_ERR_STATE, part);
    ck_assert_int_eq(out.length, 0);
    wf_string_free(&out);
}

static void draws(const char *script, const char *part)
{
    struct wf_string out = {0};
    ck_ok(run(script, &out, error));
    ck_assert_msg(memmem(out.data, (size_t)out.length, part, strlen(part)) != NULL, "%.300s", out.data);
    wf_string_free(&out);
}

START_TEST(formats)
{
    enum picture_format format;
    ck_ok(picture_format_of("a.png/b.svg", &format, error));
    ck_assert_int_eq(format, PICTURE_SVG);
    ck_ok(picture_format_of(".png", &format, error));
    ck_assert_int_eq(format, PICTURE_PNG);
    ck_fails(picture_format_of("a.jpeg", &format, error), WF_ERR_ARGUMENT,
             "a.jpeg: no format of pictures; the name must end in .svg or .png");
    ck_assert_int_eq(picture_format_of("svg", &format, NULL), WF_ERR_ARGUMENT);
}
END_TEST

START_TEST(terminals)
{
    static const struct {
        enum picture_format format;
        const char *begins;
    } cases[] = {{PICTURE_SVG, "<?xml"}, {PICTURE_PNG, "\x89PNG\r\n"}, {PICTURE_TEXT, ""}};
    for (int i = 0; i < 3; i++) {
        struct wf_string s = {0};
        struct wf_string out = {0};
        script_terminal(&s, cases[i].format, i == 2 ? 60 : 600, i == 2 ? 20 : 400, 12);
        wf_string_format(&s, "plot x with lines\n");
        ck_ok(gnuplot_run(&s, &out, error));
        ck_assert_int_gt(out.length, 600);
        ck_assert_msg(strncmp(out.data, cases[i].begins, strlen(cases[i].begins)) == 0, "%.20s", out.data);
        wf_string_free(&out);
        wf_string_free(&s);
    }
}
END_TEST

/* Sets the title to a text, and gives back what the drawing shows of it. */
static void shows(enum picture_format format, bool tic, const char *text, const char *shown)
{
    struct wf_string s = {0};
    struct wf_string out = {0};
    script_terminal(&s, format, format == PICTURE_TEXT ? 150 : 1500, format == PICTURE_TEXT ? 20 : 400, 12);
    wf_string_format(&s, tic ? "set xtics (" : "set title ");
    script_quote(&s, text, tic);
    wf_string_format(&s, tic ? " 5)\nplot [0:10] x\n" : "\nplot x\n");
    ck_ok(gnuplot_run(&s, &out, error));
    ck_assert_msg(strstr(out.data, shown) != NULL, "\"%s\" does not show in\n%.3000s", shown,
                  strstr(out.data, "<text") ? strstr(out.data, "<text") : out.data);
    wf_string_free(&out);
    wf_string_free(&s);
}

START_TEST(quotes)
{
    static const char signs[] = "a_b^{c} \"q\" \\n \\101 'x' $HOME `echo bad` @y 5%d %% #z /*|<&>";
    shows(PICTURE_TEXT, false, signs, signs);
    shows(PICTURE_TEXT, true, signs + 20, signs + 20); /* gnuplot cuts it at 50 bytes */
    shows(PICTURE_TEXT, true, "a_b^{c} \"q\" \\n \\101%", "a_b^{c} \"q\" \\n \\101%");
    /* a digit behind a sign: gnuplot reads up to four of them as one number */
    shows(PICTURE_TEXT, false, "0.002, 12,000 -7", "0.002, 12,000 -7");
    shows(PICTURE_SVG, false, "<&>\"x\"", "&lt;&amp;>\"x\"");
    shows(PICTURE_SVG, false, "a]]>b]]]>", "a]]&gt;b]]]&gt;<");
    shows(PICTURE_SVG, true, "]]>]]>", "]]&gt;]]&gt;<");
    shows(PICTURE_SVG, false, "\xc3\xa4 \xe4\xb8\xad \xf0\x9f\x98\x80", "\xc3\xa4 \xe4\xb8\xad \xf0\x9f\x98\x80");
    /* not UTF-8, controls, and what XML has not */
    shows(PICTURE_SVG, false,
          "1\n2\xff"
          "3\xe4\xb8"
          "4\xc2\x80"
          "5\xef\xbf\xbe"
          "6\x7f"
          "7\xc3",
          "1\xef\xbf\xbd"
          "2\xef\xbf\xbd"
          "3\xef\xbf\xbd\xef\xbf\xbd"
          "4\xef\xbf\xbd"
          "5\xef\xbf\xbd"
          "6\xef\xbf\xbd"
          "7\xef\xbf\xbd<");
}
END_TEST

START_TEST(no_font)
{
    /* U+10FFFD is in no font: pngcairo covers the picture with its number. The title is all that is drawn, at the top. */
    struct wf_string s[2] = {{0}, {0}};
    struct wf_string out[2] = {{0}, {0}};
    static const char *const title[] = {"a\xf4\x8f\xbf\xbd", "a\xef\xbf\xbd"};
    for (int i = 0; i < 2; i++) {
        script_terminal(&s[i], PICTURE_PNG, 300, 200, 12);
        wf_string_format(&s[i], "set title ");
        script_quote(&s[i], title[i], false);
        wf_string_format(&s[i], "\nunset border\nunset tics\nunset key\nplot [0:1][0:1] 2\n");
        ck_ok(gnuplot_run(&s[i], &out[i], error));
    }
    if (system("command -v fc-list >/dev/null") == 0)
        ck_assert(out[0].length == out[1].length && memcmp(out[0].data, out[1].data, (size_t)out[0].length) == 0);
    for (int i = 0; i < 2; i++) {
        wf_string_free(&out[i]);
        wf_string_free(&s[i]);
    }
}
END_TEST

/* The output of fc-list, and the text that it leaves of ä, 中, U+200B (which is invisible) and a bad byte; NULL: it stays as it is. */
START_TEST(fonts)
{
    static const char text[] = "a\xc3\xa4 \xe4\xb8\xad\xe2\x80\x8b\xff";
    static const struct {
        const char *program, *left;
    } cases[] = {{"echo TrueType 20-7e e4 fffd", "a\xc3\xa4 \xef\xbf\xbd\xe2\x80\x8b\xff"},
                 {"echo TrueType 20-7e; echo CFF e0-e5", "a\xc3\xa4 ?\xe2\x80\x8b\xff"},
                 {"echo CFF 20-7e; echo Type 1 e4; echo TrueType 4e2d", "a? \xe4\xb8\xad\xe2\x80\x8b\xff"},
                 {"echo TrueType 20-7e e4 4e00-9fff", text},
                 {"echo 'TrueType 20-7e e4 10fff0-ffffffffffffffffff 7-3 4e2d'", text},
                 {"echo TrueType e4", NULL}, /* no list of fonts has no letter */
                 {"echo an error >&2; exit 1", NULL},
                 {"echo 20-7e", NULL},
                 {"exit 127", NULL}};
    pretend("cat"); /* the script that it was given */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pretend_to_be("fc-list", cases[i].program);
        struct wf_string script = {0}, out = {0};
        wf_string_format(&script, "set terminal pngcairo %s", text);
        ck_ok(gnuplot_run(&script, &out, error));
        ck_assert_str_eq(out.data + strlen("set terminal pngcairo "), cases[i].left ? cases[i].left : text);
        wf_string_free(&script);
        wf_string_free(&out);
    }
    real();
}
END_TEST

START_TEST(complaints)
{
    fails("set terminal svg\nplot sin(x\n", "gnuplot failed: \"')' expected\"");
    fails("set terminal svg\nplot '/nowhere/at all'\n", "gnuplot");
    fails("set terminal nosuch\nplot x\n", "package gnuplot-nox");
    fails("", "drew nothing");
    struct wf_string before = {0}; /* what is there already is no drawing, and stays */
    ck_ok(run("set terminal dumb\nplot x\n", &before, error));
    int64_t length = before.length;
    ck_fails(run("", &before, error), WF_ERR_STATE, "");
    ck_fails(run("set terminal dumb\nplot x\nplot y z\n", &before, error), WF_ERR_STATE, "");
    ck_assert(before.length == length && strlen(before.data) == (size_t)length);
    wf_string_free(&before);
    pretend("echo 'first line' >&2; echo second >&2; exit 3");
    fails("plot x\n", "gnuplot failed: \"first line\"");
    pretend("echo picture; exit 3");
    fails("plot x\n", "exit code 3");
    pretend("echo '\"/dev/stdin\" line 0: warning: nothing' >&2; echo '  \"/dev/stdin\" line 12: bad \"thing\"' >&2; exit 1");
    fails("plot x\n", "gnuplot failed: \"bad \\x22thing\\x22\"");
    pretend("kill -9 $$");
    fails("plot x\n", "signal 9");
    pretend("echo picture; echo 'line 0: warning: empty y range' >&2");
    draws("plot x\n", "picture\n");
    real();
}
END_TEST

START_TEST(missing)
{
    pretend("true");
    setenv("PATH", "/nowhere", 1);
    fails("plot x\n", "gnuplot, which draws the pictures, is not installed: install the package gnuplot-nox");
    real();
}
END_TEST

/* The order and the length of writes must not matter, nor that nobody reads. */
START_TEST(pipes)
{
    char *script = malloc(4 << 20);
    ck_assert_ptr_nonnull(script);
    memset(script, '#', (4 << 20) - 1);
    script[(4 << 20) - 1] = 0;
    pretend("head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2; cat >/dev/null; echo end");
    draws(script, "end");
    struct wf_string out = {0};
    ck_ok(run(script, &out, error));
    ck_assert_int_eq(out.length, 3000004);
    wf_string_free(&out);
    pretend("cat; echo end");
    ck_ok(run(script, &out, error));
    ck_assert_int_eq(out.length, (4 << 20) - 1 + 4);
    wf_string_free(&out);
    pretend("exec <&-; echo end; sleep 0.2"); /* a script to nobody raises no SIGPIPE */
    draws(script, "end");
    pretend("exec >&- <&-; head -c 100000 /dev/zero >&2; exit 1");
    fails(script, "exit code 1");
    real();
    free(script);
}
END_TEST

static volatile sig_atomic_t alarms;
static void count_alarm(int signal)
{
    (void)signal;
    alarms++;
}

START_TEST(signals)
{
    pretend("i=0; while [ $i -lt 200 ]; do echo $i; i=$((i+1)); done; sleep 0.3; cat");
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = count_alarm}, NULL);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 5000}, {0, 5000}}, NULL);
    draws("the script\n", "199\nthe script\n");
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
    ck_assert_int_gt(alarms, 5);
    /* With SIGCHLD ignored the exit status is unknown: then the output counts. */
    signal(SIGCHLD, SIG_IGN);
    draws("the script\n", "199\nthe script\n");
    signal(SIGCHLD, SIG_DFL);
    real();
}
END_TEST

START_TEST(surroundings)
{
    setenv("GNUTERM", "nosuch", 1);
    setenv("LC_ALL", "C", 1);
    setenv("OTHER", "kept", 1);
    pretend("echo \"$*|$GNUTERM|$LC_ALL|$OTHER\"");
    draws("", "--default-settings /dev/stdin||C.UTF-8|kept\n");
    pretend("tr '\\0' '\\n' </proc/$$/environ | grep -c LC_ALL="); /* the first of two would be the one that counts */
    draws("", "1\n");
    real();
    write_text(in_folder(".gnuplot"), "set title 'from the home folder'\n");
    setenv("HOME", folder_of_test, 1);
    struct wf_string out = {0};
    ck_ok(run("set terminal dumb\nplot x\n", &out, error));
    ck_assert_ptr_null(strstr(out.data, "from the home"));
    wf_string_free(&out);
    /* with standard input, output and error closed the pipes get the numbers 0, 1 and 2 */
    pid_t child = fork();
    if (child == 0) {
        close(0);
        close(1);
        close(2);
        struct wf_string drawn = {0}, text = {.data = (char[]){"set terminal dumb\nplot x\n"}, .length = 25};
        _exit(gnuplot_run(&text, &drawn, NULL) == WF_OK && drawn.length > 1000 ? 0 : 1);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}
END_TEST

static wf_status sweep_run(wf_error *error)
{
    struct wf_string s = {0};
    struct wf_string out = {0};
    script_terminal(&s, PICTURE_PNG, 200, 100, 12);
    wf_string_format(&s, "set title ");
    script_quote(&s, "\xc3\xa4", false);
    wf_string_format(&s, "\nplot x\n");
    wf_status status = gnuplot_run(&s, &out, error);
    ck_assert(status == WF_OK || out.length == 0);
    wf_string_free(&out);
    wf_string_free(&s);
    return status;
}

START_TEST(memory)
{
    ck_assert_int_ge(sweep_allocations(sweep_run), 6);
    ck_assert_msg(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD, "a process is left");
}
END_TEST

WF_TEST_MAIN("gnuplot", formats, terminals, quotes, no_font, fonts, complaints, missing, pipes, signals, surroundings, memory)
