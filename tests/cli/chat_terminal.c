/* SPDX-License-Identifier: MIT */
/* weft chat on a pseudo terminal: Ctrl-C at the prompt and during an answer, Ctrl-D, and a signal that ends the command. */
#include "terminal_test.h"

static char model[80];

/* The tiny model with a context so long that its greedy answer, which repeats itself, takes minutes. */
static void make_model(void)
{
    char command[8400];
    snprintf(model, sizeof model, "%s/model", folder);
    snprintf(command, sizeof command,
             "cp -r '%s/tests/golden/chat/model' '%s' && chmod -R u+w '%s' && "
             "sed -i 's/\"max_position_embeddings\": 128/\"max_position_embeddings\": 300000/' '%s/config.json'",
             getenv("WEFT_SOURCE_ROOT"), model, model, model);
    ck_assert_int_eq(system(command), 0);
}

static pid_t start_chat(const char *term, int *terminal)
{
    begin();
    make_model();
    /* clang-format off */
    char *arguments[] = {"weft", "chat", model, "--greedy", "--max-tokens", "250000", "--threads", "1", NULL};
    /* clang-format on */
    return run_on_terminal(term, arguments, 90, terminal);
}

/* Reads until the terminal shows the text behind the first `from` bytes, or `more` bytes more than these. Returns where the rest begins. */
static int64_t wait_for(int fd, int64_t from, const char *text, int64_t more)
{
    char bytes[1 << 12];
    const double begun = now();
    for (;;) {
        const char *at = text ? memmem(seen + from, (size_t)(length - from), text, strlen(text)) : NULL;
        if (at)
            return at + strlen(text) - seen;
        if (!text && length >= from + more)
            return length;
        ck_assert_msg(now() - begun < DEADLINE, "waiting for '%s': %.*s", text ? text : "output", (int)length, seen);
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        if (poll(&ready, 1, 1000) <= 0)
            continue;
        const ssize_t got = read(fd, bytes, sizeof bytes);
        ck_assert_msg(got > 0, "it ended: %.*s", (int)length, seen);
        take(bytes, got);
    }
}

static void type(int fd, const char *keys)
{
    ck_assert_int_eq((int)write(fd, keys, strlen(keys)), (int)strlen(keys));
}

static void talks(const char *term)
{
    int terminal;
    pid_t child = start_chat(term, &terminal);
    int64_t at = wait_for(terminal, 0, "/quit\r\n", 0);
    at = wait_for(terminal, at, "> ", 0);

    /* Ctrl-C at the prompt drops the line */
    type(terminal, "/quit");
    at = wait_for(terminal, at, "/quit", 0);
    type(terminal, "\003");
    at = wait_for(terminal, at, "> ", 0);

    /* Ctrl-C ends an answer, and the conversation goes on with it */
    type(terminal, "Hello\n");
    at = wait_for(terminal, at, "Hello\r\n", 0);
    at = wait_for(terminal, at, NULL, 100);
    type(terminal, "\003");
    at = wait_for(terminal, at, "\n> ", 0);
    type(terminal, "/nothing\n");
    at = wait_for(terminal, at, "/nothing\r\n", 0);
    at = wait_for(terminal, at, NULL, 100);
    type(terminal, "\003");
    at = wait_for(terminal, at, "\n> ", 0);
    type(terminal, "/help\n");
    at = wait_for(terminal, at, "/reset forgets the conversation", 0);
    at = wait_for(terminal, at, "> ", 0);

    /* Ctrl-D ends it */
    type(terminal, "\004");
    runs_to_its_end(terminal, child, 0);
    ck_assert(!shows("interrupted"));
    end();
}

START_TEST(on_a_terminal)
{
    talks("xterm");
}
END_TEST

START_TEST(on_a_terminal_that_can_do_nothing)
{
    talks("dumb");
}
END_TEST

/* Signals end the command with their exit code, at the prompt and during an answer; the terminal has its settings again. */
START_TEST(signals)
{
    for (int answering = 0; answering < 2; answering++) {
        int terminal;
        struct termios after;
        pid_t child = start_chat("xterm", &terminal);
        int64_t at = wait_for(terminal, 0, "message", 0);
        at = wait_for(terminal, at, "> ", 0);
        if (answering) {
            type(terminal, "Hello\n");
            at = wait_for(terminal, at, "Hello\r\n", 0);
            wait_for(terminal, at, NULL, 100);
        }
        ck_assert_int_eq(kill(child, SIGTERM), 0);
        const int copy = dup(terminal);
        runs_to_its_end(terminal, child, 143);
        ck_assert_msg(shows("interrupted"), "%.*s", (int)length, seen);
        if (tcgetattr(copy, &after) == 0)
            ck_assert_uint_eq(after.c_lflag & (ICANON | ECHO | ISIG), ICANON | ECHO | ISIG);
        close(copy);
        end();
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {on_a_terminal, on_a_terminal_that_can_do_nothing, signals};
    return terminal_available() ? run_tests("chat on a terminal", tests, sizeof tests / sizeof *tests) : 77; /* Meson: skipped */
}
