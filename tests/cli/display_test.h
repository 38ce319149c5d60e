/* SPDX-License-Identifier: MIT */
/* Standard error as a pseudo terminal, whose other side is read onto screens of both kinds. */
#ifndef WEFT_TESTS_DISPLAY_TEST_H
#define WEFT_TESTS_DISPLAY_TEST_H

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../../cli/display.h"
#include "../check_weft.h"
#include "terminal.h"

static struct terminal cutting, reflowing;
static int controller = -1, kept = -1; /* the pseudo terminal, and the real standard error */
static int draws;

static inline void set_window(int columns)
{
    struct winsize w = {.ws_row = 50, .ws_col = (unsigned short)columns};
    ck_assert_int_eq(ioctl(controller, TIOCSWINSZ, &w), 0);
}

/* Standard error becomes a terminal of so many columns. */
static inline void begin(int columns)
{
    controller = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    ck_assert_msg(controller >= 0 && grantpt(controller) == 0 && unlockpt(controller) == 0, "no pseudo terminal");
    int slave = open(ptsname(controller), O_RDWR | O_NOCTTY | O_CLOEXEC);
    ck_assert_int_ge(slave, 0);
    kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
    dup2(slave, STDERR_FILENO);
    close(slave);
    fcntl(controller, F_SETFL, O_NONBLOCK);
    setenv("TERM", "xterm-256color", 1);
    set_window(columns);
    terminal_open(&cutting, false, columns);
    terminal_open(&reflowing, true, columns);
    draws = 0;
}

/* What was written shows; at no time more than one bar. */
static inline void look(void)
{
    static char bytes[1 << 16];
    static const char mark[] = "\033[?7l";
    static size_t matched;
    for (ssize_t got; (got = read(controller, bytes, sizeof bytes)) > 0;)
        for (ssize_t i = 0; i < got; i++) {
            terminal_byte(&cutting, bytes[i]);
            terminal_byte(&reflowing, bytes[i]);
            matched = bytes[i] == mark[matched] ? matched + 1 : bytes[i] == mark[0];
            if (!mark[matched]) {
                draws++;
                matched = 0;
            }
            if (bytes[i] >= '0' && bytes[i] <= '9')
                ck_assert_msg(terminal_count(&cutting, "BAR") <= 1 && terminal_count(&reflowing, "BAR") <= 1, "two bars");
        }
    ck_assert(!cutting.unknown && !reflowing.unknown);
}

static inline void end(void)
{
    look();
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(controller);
}

static inline void resize(int columns)
{
    terminal_resize(&cutting, columns);
    terminal_resize(&reflowing, columns);
}

static inline void row_is(const struct terminal *t, int row, const char *want)
{
    char text[TERMINAL_TEXT];
    terminal_row(t, row, text);
    ck_assert_msg(strcmp(text, want) == 0, "%s, %d columns: row %d is '%s', not '%s'", t->reflows ? "reflowing" : "cutting", t->columns,
                  row, text, want);
}

static inline void both_rows_are(int row, const char *want)
{
    row_is(&cutting, row, want);
    row_is(&reflowing, row, want);
}

#endif
