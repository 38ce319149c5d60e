/* SPDX-License-Identifier: MIT */
/* weft train on a pseudo terminal whose window changes, and in a pipe; weft embed on one. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../cli/display.h"
#include "../check_weft.h"

enum { DEADLINE = 100 /* seconds, for a machine that has much else to do */ };

static char weft[4096], story[4096], folder[64];
static char seen[1 << 20]; /* all that was written */
static int64_t length;
static int draws;
static double start, last_draw; /* before anything was drawn, and when the last was seen */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void begin(void)
{
    snprintf(weft, sizeof weft, "%s/cli/weft", getenv("WEFT_BUILD_ROOT"));
    snprintf(story, sizeof story, "%s/tests/golden/story.txt", getenv("WEFT_SOURCE_ROOT"));
    snprintf(folder, sizeof folder, "%s/weft-progress-XXXXXX",
             getenv("TMPDIR") && strlen(getenv("TMPDIR")) < 30 ? getenv("TMPDIR") : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_msg(access(weft, X_OK) == 0, "%s is not built", weft);
    length = draws = 0;
    start = now();
}

static void end(void)
{
    pid_t child = fork();
    if (child == 0) {
        execlp("rm", "rm", "-rf", folder, NULL);
        _exit(127);
    }
    waitpid(child, NULL, 0);
}

/* A few lines of the story: to validate on in no time. */
static void write_beginning(const char *path)
{
    char line[4096];
    FILE *in = fopen(story, "r"), *out = fopen(path, "w");
    ck_assert(in && out);
    for (int i = 0; i < 4 && fgets(line, sizeof line, in); i++)
        fputs(line, out);
    fclose(in);
    ck_assert_int_eq(fclose(out), 0);
}

static void set_window(int terminal, int columns)
{
    struct winsize w = {.ws_row = 50, .ws_col = (unsigned short)columns};
    ck_assert_int_eq(ioctl(terminal, TIOCSWINSZ, &w), 0);
}

/* The command on a terminal of its own, which it has as its controlling one: Ctrl-C reaches it. */
static pid_t run_on_terminal(const char *term, char *const *arguments, int columns, int *terminal)
{
    *terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    ck_assert_msg(*terminal >= 0 && grantpt(*terminal) == 0 && unlockpt(*terminal) == 0, "no pseudo terminal");
    set_window(*terminal, columns);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        setsid();
        int slave = open(ptsname(*terminal), O_RDWR);
        for (int fd = 0; fd < 3; fd++)
            dup2(slave, fd);
        setenv("TERM", term, 1);
        signal(SIGINT, SIG_DFL);
        execv(weft, arguments);
        _exit(127);
    }
    return child;
}

static void take(const char *bytes, int64_t count)
{
    static const char mark[] = "\033[?7l";
    static size_t matched;
    ck_assert_int_lt(length + count, (int64_t)sizeof seen);
    memcpy(seen + length, bytes, (size_t)count);
    length += count;
    for (int64_t i = 0; i < count; i++) {
        matched = bytes[i] == mark[matched] ? matched + 1 : bytes[i] == mark[0];
        if (!mark[matched]) {
            last_draw = now();
            draws++;
            matched = 0;
        }
    }
}

/* What a terminal shows of the row that ends at `end`: what follows the last erasure. Returns where the row begins. */
static const char *row_before(const char *end, char text[512])
{
    static const char erase[] = "\r\033[K";
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

/* Reads until there are so many drawings more, or to the end. */
static void watch(int fd, int more)
{
    static char bytes[1 << 14];
    double begun = now();
    for (int goal = draws + more; draws < goal;) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        ck_assert_msg(now() - begun < DEADLINE, "%d of %d drawings: %.*s", draws, goal, (int)length, seen);
        if (poll(&ready, 1, 1000) <= 0)
            continue;
        ssize_t got = read(fd, bytes, sizeof bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) { /* EIO: the other side of the terminal is closed */
            ck_assert_msg(more > 1000, "it ended: %.*s", (int)length, seen);
            return;
        }
        take(bytes, got);
    }
}
enum { TO_THE_END = 1 << 20 };

static void ends_with(int code, pid_t child)
{
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == code, "status %d: %.*s", status, (int)length, seen);
}

START_TEST(on_a_terminal)
{
    begin();
    char out[128], valid[128];
    snprintf(out, sizeof out, "%s/run", folder);
    snprintf(valid, sizeof valid, "%s/valid.txt", folder);
    write_beginning(valid);
    /* clang-format off */
    char *arguments[] = {"weft", "train", "char-rms", "--train", story, "--valid", valid, "--out", out, "--steps", "87654", "--threads", "1",
                         "--set", "batch=2", "--set", "context=16", "--set", "valid_every=400", "--set", "save_every=0", NULL};
    /* clang-format on */
    int terminal;
    pid_t child = run_on_terminal("xterm", arguments, 90, &terminal);
    watch(terminal, 5);
    while (!memmem(seen, (size_t)length, "validation loss", 15)) /* a slow machine */
        watch(terminal, 1);
    /* at most ten a second: the first may come at once */
    ck_assert_msg(draws - 1 <= 10 * (last_draw - start), "%d drawings in %g s", draws, last_draw - start);
    ck_assert_int_eq((int)write(terminal, "\003", 1), 1); /* Ctrl-C */
    watch(terminal, TO_THE_END);
    ends_with(130, child);
    close(terminal);

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
    ck_assert_ptr_nonnull(memmem(seen, (size_t)length, "\033[?7l[", 6)); /* the terminal cuts what is too long for it */
    ck_assert_ptr_nonnull(memmem(seen, (size_t)length, "] 1/87654  loss ", 16));
    end();
}
END_TEST

START_TEST(on_a_terminal_that_can_do_nothing)
{
    begin();
    char out[128];
    snprintf(out, sizeof out, "%s/run", folder);
    char *arguments[] = {"weft", "train", "char-rms", "--train", story, "--out", out, "--steps", "3", "--threads", "1", NULL};
    int terminal;
    pid_t child = run_on_terminal("dumb", arguments, 90, &terminal);
    watch(terminal, TO_THE_END);
    ends_with(0, child);
    close(terminal);
    ck_assert_ptr_null(memchr(seen, 033, (size_t)length));
    ck_assert_ptr_nonnull(memmem(seen, (size_t)length, "step 3/3  loss ", 15));
    end();
}
END_TEST

START_TEST(numbers_that_are_no_text)
{
    begin();
    char *arguments[] = {"weft", "embed", folder, "--format", "npy", NULL};
    int terminal, status;
    pid_t child = run_on_terminal("xterm", arguments, 90, &terminal);
    watch(terminal, TO_THE_END);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    close(terminal);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 2, "status %d", status);
    ck_assert_msg(memmem(seen, (size_t)length, "redirect it to a file", 21), "%.*s", (int)length, seen);
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
    char out[128];
    int ends[2];
    snprintf(out, sizeof out, "%s/run", folder);
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        execl(weft, "weft", "train", "char-rms", "--train", story, "--out", out, "--steps", "47", "--threads", "1", "--set", "batch=2",
              "--set", "context=16", NULL);
        _exit(127);
    }
    close(ends[1]);
    watch(ends[0], TO_THE_END);
    close(ends[0]);
    ends_with(0, child);
    ck_assert_msg(!memchr(seen, '\r', (size_t)length) && !memchr(seen, 033, (size_t)length), "%.*s", (int)length, seen);
    ck_assert_int_gt(length, 0);
    ck_assert_int_eq(seen[length - 1], '\n');
    int steps = 0;
    for (const char *at = seen; (at = strstr(at, " tok/s  ")); at++)
        steps++;
    ck_assert_int_ge(steps, 20);
    ck_assert_int_le(steps, 25);
    ck_assert_ptr_nonnull(memmem(seen, (size_t)length, "step 47/47  loss ", 17)); /* the last one, though no round number */
    end();
}
END_TEST

static bool terminal_available(void)
{
    int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    bool there = terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0;
    if (terminal >= 0)
        close(terminal);
    if (!there)
        puts("no pseudo terminal here: the tests on one are skipped");
    return there;
}

int main(void)
{
    const TTest *const anywhere[] = {in_a_pipe, times}, *const on_terminals[] = {on_a_terminal, on_a_terminal_that_can_do_nothing,
                                                                                 numbers_that_are_no_text};
    if (run_tests("progress", anywhere, sizeof anywhere / sizeof *anywhere) != EXIT_SUCCESS)
        return EXIT_FAILURE;
    return terminal_available() ? run_tests("progress on a terminal", on_terminals, sizeof on_terminals / sizeof *on_terminals)
                                : 77; /* Meson: skipped */
}
