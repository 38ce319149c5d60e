/* SPDX-License-Identifier: MIT */
/* weft train on a pseudo terminal and in a pipe; weft embed on one. */
#include <math.h>

#include "../../cli/display.h"
#include "terminal_test.h"

/* Copies the row that ends at `end` as a terminal shows it: from the last erasure on. Returns where the row begins. */
static const char *row_before(const char *end, char text[512])
{
    static const char erase[] = "\r\033[J";
    const char *begin = end;
    while (begin > seen && begin[-1] != '\n')
        begin--;
    const char *from = begin;
    for (const char *next; (next = memmem(from, (size_t)(end - from), erase, strlen(erase)));)
        from = next + strlen(erase);
    if (end > from && end[-1] == '\r') /* the terminal's */
        end--;
    snprintf(text, 512, "%.*s", (int)(end - from), from);
    return begin;
}

START_TEST(on_a_terminal)
{
    int terminal;
    pid_t child = train_on_terminal("valid_every=400", 90, &terminal);
    watch(terminal, 5);
    while (!shows("validation loss")) /* a slow machine */
        watch(terminal, 1);
    /* at most ten a second: the first may come at once */
    ck_assert_msg(draws - 1 <= 10 * (last_draw - start), "%d drawings in %g s", draws, last_draw - start);
    interrupt(terminal, child);

    /* what stays are lines: the one of the start, sizes, validations, how it ended; nothing is left of the bar */
    char text[512];
    int step, n, rows = 0, validations = 0;
    row_before(seen + length, text);
    ck_assert_str_eq(text, "");
    for (const char *at = (char *)memrchr(seen, '\n', (size_t)length) + 1; at > seen; rows++) {
        double loss, best;
        at = row_before(at - 1, text);
        n = 0;
        ck_assert_msg(!strchr(text, 033) && !strstr(text, "tok/s"), "a row is '%s'", text);
        if (rows == 0)
            ck_assert_msg(sscanf(text, "step %d of 87654: %n", &step, &n) == 1 && step > 0, "it ends with '%s'", text);
        else if (sscanf(text, "step %d validation loss %lf best %lf%n", &step, &loss, &best, &n) == 3 && !text[n])
            validations++;
        else
            ck_assert_msg(strstr(text, "weft") || strstr(text, "parameters, "), "a row is '%s'", text);
    }
    ck_assert_int_ge(validations, 1);
    ck_assert(shows("\033[?7l[")); /* the terminal cuts a row that is too long */
    ck_assert(shows("] 1/87654  loss "));
    end();
}
END_TEST

START_TEST(on_a_terminal_that_can_do_nothing)
{
    begin();
    char *arguments[] = {"weft", "train", "char-rms", "--train", story, "--out", run_folder, "--steps", "3", "--threads", "1", NULL};
    int terminal;
    pid_t child = run_on_terminal("dumb", arguments, 90, &terminal);
    runs_to_its_end(terminal, child, 0);
    ck_assert(!shows("\033") && shows("step 3/3  loss "));
    end();
}
END_TEST

START_TEST(numbers_that_are_no_text)
{
    begin();
    char *arguments[] = {"weft", "embed", folder, "--format", "npy", NULL};
    int terminal;
    pid_t child = run_on_terminal("xterm", arguments, 90, &terminal);
    runs_to_its_end(terminal, child, 2);
    ck_assert_msg(shows("redirect it to a file"), "%.*s", (int)length, seen);
    end();
}
END_TEST

START_TEST(times)
{
    static const struct {
        double seconds;
        const char *text;
    } cases[] = {{0, "0 s"},       {-1, "0 s"},      {0.2, "1 s"},       {59.5, "1:00 min"},
                 {65, "1:05 min"}, {9000, "2:30 h"}, {1e9, "over 99 h"}, {NAN, "over 99 h"}};
    char text[DISPLAY_TIME];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_str_eq(display_time(cases[i].seconds, text), cases[i].text);
}
END_TEST

START_TEST(in_a_pipe)
{
    begin();
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        execl(weft, "weft", "train", "char-rms", "--train", story, "--out", run_folder, "--steps", "47", "--threads", "1", "--set",
              "batch=2", "--set", "context=16", NULL);
        _exit(127);
    }
    close(ends[1]);
    runs_to_its_end(ends[0], child, 0);
    ck_assert_msg(!shows("\r") && !shows("\033"), "%.*s", (int)length, seen);
    ck_assert_int_gt(length, 0);
    ck_assert_int_eq(seen[length - 1], '\n');
    int steps = 0;
    for (const char *at = seen; (at = strstr(at, " tok/s  ")); at++)
        steps++;
    ck_assert_int_ge(steps, 20);
    ck_assert_int_le(steps, 25);
    ck_assert(shows("step 47/47  loss ")); /* the last one, though no round number */
    end();
}
END_TEST

int main(void)
{
    const TTest *const anywhere[] = {in_a_pipe, times}, *const on_terminals[] = {on_a_terminal, on_a_terminal_that_can_do_nothing,
                                                                                 numbers_that_are_no_text};
    if (run_tests("progress", anywhere, sizeof anywhere / sizeof *anywhere) != EXIT_SUCCESS)
        return EXIT_FAILURE;
    return terminal_available() ? run_tests("progress on a terminal", on_terminals, sizeof on_terminals / sizeof *on_terminals)
                                : 77; /* Meson: skipped */
}
