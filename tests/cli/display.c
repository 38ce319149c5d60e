/* SPDX-License-Identifier: MIT */
/* The display of progress, on terminals of both kinds: those that wrap their lines anew when the window changes, and those that cut them.
 */
#include <math.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "display_test.h"

/* --- what fits ----------------------------------------------------------------------------------------------------- */

START_TEST(the_text_is_cut_to_the_window)
{
    static const struct {
        const char *text;
        int columns;
        const char *want; /* in a window of so many columns, of which the last stays free */
    } cases[] = {
        {"BAR 12/100  loss 2.3456", 24, "BAR 12/100  loss 2.3456"},
        {"BAR 12/100  loss 2.3456", 23, "BAR 12/100  loss 2.345"},
        {"BAR 12/100", 2, "B"},
        {"BAR 12/100", 1, "B"},
        {"grün", 5, "grün"},
        {"grün", 4, "grü"},
        {"日本語", 7, "日本語"},
        {"日本語", 6, "日本"},
        {"日本語", 2, ""},
        {"a\xCC\x81", 3, "a"}, /* with a mark, of which this terminal shows nothing */
        {"a\033[31mb\nc\rd", 20, "a?[31mb?c?d"},
        {"\xFF(\xC3(", 9, "?(?("},
        {"a\xE2\x80\xAE"
         "b",
         9, "a?b"}, /* a direction's override */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct display d;
        begin(cases[i].columns);
        display_open(&d);
        display_show(&d, -1, true, "%s", cases[i].text);
        look();
        both_rows_are(0, cases[i].want);
        ck_assert_int_eq(cutting.row + cutting.column, 0);
        ck_assert(cutting.wrap);
        display_clear(&d);
        look();
        ck_assert_int_eq(terminal_last_row(&cutting), -1);
        end();
    }
}
END_TEST

START_TEST(bars_of_any_width)
{
    for (int columns = 1; columns <= 120; columns++) {
        struct display d;
        char text[TERMINAL_TEXT];
        begin(columns);
        display_open(&d);
        for (int i = 0; i <= 100; i += 10) {
            display_show(&d, i / 100.0, true, "BAR %d/100", i);
            look();
            ck_assert_int_eq(terminal_last_row(&cutting), 0);
            ck_assert_int_eq(cutting.row + cutting.column, 0);
            int full = 0, cells = 0;
            for (char *c = terminal_row(&cutting, 0, text); *c; c++) {
                full += *c == '#';
                cells += *c == '#' || *c == '.';
            }
            ck_assert_int_eq(full, cells * i / 100);
            ck_assert_int_le(cells, 40);
            ck_assert_msg(columns < 80 || cells == 40, "%d cells in %d columns", cells, columns);
        }
        display_clear(&d);
        look();
        ck_assert_int_eq(terminal_last_row(&cutting), -1);
        end();
    }
}
END_TEST

/* --- another size -------------------------------------------------------------------------------------------------- */

/* stale: the size that the system gives is the old one for one more drawing, as over ssh. */
static void resized(int before, int after, bool stale)
{
    struct display d;
    begin(before);
    display_open(&d);
    display_line(&d, "first");
    display_show(&d, 0.3, true, "BAR 1/9  some more text 日本語");
    display_line(&d, "second");
    display_show(&d, 0.3, true, "BAR 2/9  some more text 日本語");
    look();
    resize(after);
    if (!stale)
        set_window(after);
    display_show(&d, 0.4, true, "BAR 3/9");
    look();
    if (after >= 5 && !stale)
        ck_assert_int_eq(terminal_count(&cutting, "BAR") + terminal_count(&reflowing, "BAR"), 2);
    set_window(after);
    display_show(&d, 0.4, true, "BAR 4/9");
    look();
    ck_assert_int_eq(terminal_last_row(&cutting), cutting.row);
    ck_assert_int_eq(terminal_last_row(&reflowing), reflowing.row);
    display_line(&d, "third");
    display_clear(&d);
    look();
    char want[8];
    int rows = 0;
    for (int i = 0; i < 3; i++) {
        static const char *const lines[] = {"first", "second", "third"};
        snprintf(want, sizeof want, "%.*s", i < 2 && after < 6 ? after : 6, lines[i]);
        if (after >= 6) /* narrower ones wrap the messages, which is as it should be */
            both_rows_are(i, lines[i]);
        else if (i < 2)
            row_is(&cutting, i, want);
        rows += after >= 6 ? 1 : ((int)strlen(lines[i]) + after - 1) / after;
    }
    ck_assert_int_eq(terminal_last_row(&reflowing), rows - 1);
    ck_assert_int_eq(reflowing.row, rows);
    ck_assert_int_eq(reflowing.column, 0);
    end();
}

START_TEST(nothing_stays_after_a_resize)
{
    static const int width[] = {200, 120, 80, 60, 41, 33, 20, 11, 6, 3, 1};
    for (size_t i = 0; i < sizeof width / sizeof *width; i++)
        for (size_t k = 0; k < sizeof width / sizeof *width; k++)
            for (int stale = 0; stale < 2; stale++)
                if (width[i] >= 6) /* there the messages fit at first */
                    resized(width[i], width[k], stale);
}
END_TEST

/* --- when ---------------------------------------------------------------------------------------------------------- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

START_TEST(ten_times_a_second)
{
    struct display d;
    begin(80);
    double start = now();
    display_open(&d);
    int calls = 0;
    while (now() - start < 0.7 || calls <= 20) { /* a machine that is busy may stand still for long */
        display_show(&d, 0.5, false, "BAR %d/9", calls++);
        if (calls % 500 == 0 && calls < 50000) /* the screen has 600 rows */
            display_line(&d, "message");       /* does not make them more */
        look();
    }
    display_show(&d, 1, true, "BAR last 9/9");
    look();
    double seconds = now() - start;
    ck_assert_msg(draws <= (int)(9 * seconds) + 2 && draws <= (int)ceil(10 * seconds), "%d drawings in %g s", draws, seconds);
    ck_assert_int_ge(draws, 2);
    ck_assert_int_gt(calls, 20);
    ck_assert_int_eq(terminal_count(&cutting, "BAR last 9/9"), 1);
    /* a long pause is over: what comes next is drawn */
    d.drawn_at -= 1;
    display_show(&d, 1, false, "BAR late 9/9");
    look();
    ck_assert_int_eq(terminal_count(&cutting, "BAR late 9/9"), 1);
    display_clear(&d);
    end();
}
END_TEST

START_TEST(lines_and_the_time_left)
{
    struct display d;
    char text[TERMINAL_TEXT], time[8];
    int left;
    begin(60);
    display_open(&d);
    d.begin -= 10000; /* in which what the test takes is nothing */
    display_show_lines(&d, 0.5, 1000000);
    look();
    terminal_row(&cutting, 0, text);
    char *at = strchr(text, ']');
    ck_assert_msg(at && sscanf(at, "] 1,000,000 lines %d.%*d lines/s 2:%d h %7s", &left, &left, time) == 3 && strcmp(time, "left") == 0,
                  "'%s'", text);
    d.drawn_at -= 1;
    display_show_lines(&d, -1, 7);
    look();
    terminal_row(&cutting, 0, text);
    ck_assert_msg(strncmp(text, "7 lines  0.0 lines/s", 21) == 0, "'%s'", text);
    display_clear(&d);
    end();
}
END_TEST

START_TEST(messages_stand_above)
{
    struct display d;
    begin(60);
    display_open(&d);
    display_show(&d, 0.5, false, "BAR 1/9");
    d.drawn_at -= 1;
    display_line(&d, "a message %d", 1);
    look();
    both_rows_are(0, "a message 1");
    ck_assert_int_eq(terminal_count(&cutting, "BAR 1/9"), 1); /* the bar goes on below */
    ck_assert_int_eq(cutting.row, 1);
    display_line(&d, "a message %d", 2);
    display_clear(&d);
    fprintf(stderr, "weft: an error\n");
    look();
    both_rows_are(1, "a message 2");
    both_rows_are(2, "weft: an error");
    ck_assert_int_eq(terminal_last_row(&cutting), 2);
    /* and a bar that was cleared does not come back by itself */
    d.drawn_at -= 1;
    display_line(&d, "a message %d", 3);
    look();
    ck_assert_int_eq(terminal_last_row(&cutting), 3);
    /* nor does the echo of Ctrl-C stand before a message, with a bar or without */
    fprintf(stderr, "^C");
    display_line(&d, "a message %d", 4);
    display_show(&d, 0.5, true, "BAR 2/9");
    fprintf(stderr, "^C");
    display_clear(&d);
    fprintf(stderr, "^C");
    display_clear(&d);
    fprintf(stderr, "weft: an error\n");
    look();
    both_rows_are(4, "a message 4");
    both_rows_are(5, "weft: an error");
    ck_assert_int_eq(terminal_last_row(&cutting), 5);
    end();
}
END_TEST

START_TEST(results_in_a_pipe_are_made_way_for)
{
    struct display d;
    int ends[2], input = dup(STDIN_FILENO), output = dup(STDOUT_FILENO), null = open("/dev/null", O_RDWR | O_CLOEXEC);
    ck_assert_int_eq(pipe(ends), 0);
    begin(60);
    fflush(stdout);
    dup2(null, STDIN_FILENO);
    for (int piped = 0; piped < 2; piped++) {
        dup2(piped ? ends[1] : null, STDOUT_FILENO);
        display_open_beside_output(&d);
        display_show(&d, 0.5, false, "BAR 1/9");
        display_make_way(&d);
        look();
        ck_assert_int_eq(terminal_count(&cutting, "BAR"), !piped);
        display_clear(&d);
    }
    dup2(STDERR_FILENO, STDOUT_FILENO); /* results on the terminal itself: no bar */
    display_open_beside_output(&d);
    display_show(&d, 0.5, true, "BAR 2/9");
    look();
    ck_assert_int_eq(terminal_last_row(&cutting), -1);
    dup2(input, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    const int opened[] = {input, output, null, ends[0], ends[1]};
    for (size_t i = 0; i < sizeof opened / sizeof *opened; i++)
        close(opened[i]);
    end();
}
END_TEST

/* --- no terminal --------------------------------------------------------------------------------------------------- */

static void lines_alone(void)
{
    struct display d;
    display_open(&d);
    display_show(&d, 0.1, false, "BAR 1/9");
    display_show(&d, 0.2, true, "BAR 2/9");
    d.said_at -= DISPLAY_LINE_EVERY;
    display_show(&d, 0.3, false, "BAR 3/9");
    display_show(&d, 0.4, false, "BAR 4/9");
    display_line(&d, "message");
    display_clear(&d);
}

START_TEST(a_pipe_gets_lines)
{
    int ends[2];
    char bytes[256] = "";
    ck_assert_int_eq(pipe(ends), 0);
    fflush(stderr);
    int error = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    lines_alone();
    dup2(error, STDERR_FILENO);
    close(error);
    ck_assert_int_gt((int)read(ends[0], bytes, sizeof bytes - 1), 0);
    close(ends[0]);
    ck_assert_str_eq(bytes, "BAR 3/9\nmessage\n");
}
END_TEST

START_TEST(a_terminal_that_can_do_nothing_gets_lines)
{
    static const char *const names[] = {"dumb", "", NULL};
    for (int i = 0; i < 3; i++) {
        begin(80);
        if (names[i])
            setenv("TERM", names[i], 1);
        else
            unsetenv("TERM");
        lines_alone();
        look();
        ck_assert_int_eq(draws, 0);
        both_rows_are(0, "BAR 3/9");
        both_rows_are(1, "message");
        ck_assert_int_eq(terminal_last_row(&cutting), 1);
        end();
    }
}
END_TEST

/* As in a shell: a session with the terminal, whose foreground is another job. */
START_TEST(a_job_in_the_background_leaves_the_prompt_alone)
{
    begin(80);
    fprintf(stderr, "$ typed ");
    pid_t shell = fork();
    ck_assert_int_ge(shell, 0);
    if (shell == 0) {
        int status = 1;
        if (setsid() < 0 || ioctl(STDERR_FILENO, TIOCSCTTY, 0) != 0)
            _exit(2);
        pid_t job = fork();
        if (job == 0) {
            struct display d;
            setpgid(0, 0);
            display_open(&d);
            display_show(&d, 0.5, true, "BAR 1/9");
            display_line(&d, "message");
            display_show(&d, 0.6, true, "BAR 2/9");
            display_clear(&d);
            _exit(0);
        }
        _exit(job < 0 || waitpid(job, &status, 0) != job || status != 0);
    }
    int status;
    ck_assert_int_eq(waitpid(shell, &status, 0), shell);
    ck_assert_int_eq(status, 0);
    look();
    ck_assert_int_eq(draws, 0);
    both_rows_are(0, "$ typed message");
    ck_assert_int_eq(terminal_last_row(&cutting), 0);
    end();
}
END_TEST

/* --- the end ------------------------------------------------------------------------------------------------------- */

START_TEST(a_signal_that_ends_the_process_leaves_no_bar)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        begin(80);
        pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0) {
            struct display d;
            signal(numbers[i], SIG_DFL);
            display_open(&d);
            display_line(&d, "message");
            display_show(&d, 0.5, true, "BAR 1/9");
            raise(numbers[i]);
            _exit(0);
        }
        int status;
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        look();
        ck_assert_int_eq(draws, 1);
        ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == numbers[i]);
        both_rows_are(0, "message");
        ck_assert_int_eq(terminal_last_row(&cutting), 0);
        ck_assert(cutting.wrap);
        end();
    }
}
END_TEST

START_TEST(handlers_that_are_there_stay)
{
    begin(80);
    signal(SIGINT, SIG_IGN);
    struct display d;
    display_open(&d);
    raise(SIGINT); /* is still ignored */
    signal(SIGINT, SIG_DFL);
    end();
}
END_TEST

START_TEST(times)
{
    char text[DISPLAY_TIME];
    ck_assert_str_eq(display_time(0, text), "0 s");
    ck_assert_str_eq(display_time(-1, text), "0 s");
    ck_assert_str_eq(display_time(0.2, text), "1 s");
    ck_assert_str_eq(display_time(59, text), "59 s");
    ck_assert_str_eq(display_time(59.5, text), "1:00 min");
    ck_assert_str_eq(display_time(65, text), "1:05 min");
    ck_assert_str_eq(display_time(3599.9, text), "1:00 h");
    ck_assert_str_eq(display_time(9000, text), "2:30 h");
    ck_assert_str_eq(display_time(1e9, text), "over 99 h");
    ck_assert_str_eq(display_time(NAN, text), "over 99 h");
    ck_assert_str_eq(display_time(INFINITY, text), "over 99 h");
}
END_TEST

int main(void)
{
    const TTest *const anywhere[] = {a_pipe_gets_lines, times};
    const TTest *const on_terminals[] = {the_text_is_cut_to_the_window,
                                         bars_of_any_width,
                                         nothing_stays_after_a_resize,
                                         ten_times_a_second,
                                         lines_and_the_time_left,
                                         messages_stand_above,
                                         results_in_a_pipe_are_made_way_for,
                                         a_terminal_that_can_do_nothing_gets_lines,
                                         a_job_in_the_background_leaves_the_prompt_alone,
                                         a_signal_that_ends_the_process_leaves_no_bar,
                                         handlers_that_are_there_stay};
    if (run_tests("display", anywhere, sizeof anywhere / sizeof *anywhere) != EXIT_SUCCESS)
        return EXIT_FAILURE;
    return terminal_available() ? run_tests("display on terminals", on_terminals, sizeof on_terminals / sizeof *on_terminals)
                                : 77; /* Meson: skipped */
}
