/* SPDX-License-Identifier: MIT */
/* The command on a pseudo terminal, and all that it writes there. */
#ifndef WEFT_TESTS_CLI_TERMINAL_TEST_H
#define WEFT_TESTS_CLI_TERMINAL_TEST_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "../check_weft.h"

enum { DEADLINE = 100 /* seconds, for a machine that has much else to do */ };

static char weft[4096], story[4096], folder[64], run_folder[80];
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
    snprintf(run_folder, sizeof run_folder, "%s/run", folder);
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

/* A file with a few lines of the story: to validate on in no time. */
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

/* The command on a new terminal that controls it: Ctrl-C reaches it. */
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

static void runs_to_its_end(int fd, pid_t child, int code)
{
    watch(fd, TO_THE_END);
    ends_with(code, child);
    close(fd);
}

static inline bool shows(const char *text)
{
    return memmem(seen, (size_t)length, text, strlen(text)) != NULL;
}

/* Begins a training that would take hours. */
static inline pid_t train_on_terminal(const char *valid_every, int columns, int *terminal)
{
    begin();
    char valid[128];
    snprintf(valid, sizeof valid, "%s/valid.txt", folder);
    write_beginning(valid);
    /* clang-format off */
    char *arguments[] = {"weft", "train", "char-rms", "--train", story, "--valid", valid, "--out", run_folder, "--steps", "87654", "--threads", "1",
                         "--set", "batch=2", "--set", "context=16", "--set", (char *)valid_every, "--set", "save_every=0", NULL};
    /* clang-format on */
    return run_on_terminal("xterm", arguments, columns, terminal);
}

/* Ctrl-C */
static inline void interrupt(int terminal, pid_t child)
{
    ck_assert_int_eq((int)write(terminal, "\003", 1), 1);
    runs_to_its_end(terminal, child, 130);
}

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

#endif
