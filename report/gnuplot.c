/* SPDX-License-Identifier: MIT */
/* The program gnuplot: a script to its standard input, a picture from its standard output, complaints from its standard error. */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weft/internal/text.h>
#include <weft/memory.h>

#include "gnuplot.h"

enum { COMPLAINT = 4096, BLOCK = 65536 };

wf_status picture_format_of(const char *path, enum picture_format *out, wf_error *error)
{
    size_t length = strlen(path);
    const char *end = length >= 4 ? path + length - 4 : "";
    bool svg = strcmp(end, ".svg") == 0;
    if (!svg && strcmp(end, ".png") != 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s: no format of pictures; the name must end in .svg or .png", path);
    *out = svg ? PICTURE_SVG : PICTURE_PNG;
    return WF_OK;
}

/* The environment of the child: that of this process without what changes drawings, in a locale that knows UTF-8. The strings stay those
 * of this process. NULL without memory. */
static char **make_environment(void)
{
    static char locale[] = "LC_ALL=C.UTF-8";
    static const char *const drop[] = {"LC_ALL=", "GNUTERM=", "GNUPLOT_", "GDFONTPATH=", "GNUFITLOG="};
    size_t count = 0, used = 0;
    while (environ && environ[count])
        count++;
    char **list = wf_alloc((count + 2) * sizeof *list);
    if (!list)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        bool keep = true;
        for (size_t d = 0; d < sizeof drop / sizeof *drop; d++)
            keep = keep && strncmp(environ[i], drop[d], strlen(drop[d])) != 0;
        if (keep)
            list[used++] = environ[i];
    }
    list[used++] = locale;
    list[used] = NULL;
    return list;
}

/* Both ends of the three connections; -1: closed. Ours is [0]. Standard input is a socket, for only send() can be told to raise no
 * SIGPIPE when gnuplot has ended. */
struct child {
    pid_t pid;
    int fd[3][2];
    char complaint[COMPLAINT + 1];
    size_t complaint_length;
};

/* In English whatever the locale is; newlocale gives the C locale as a constant object. */
static const char *reason_text(int number)
{
    return strerror_l(number, newlocale(LC_ALL_MASK, "C", (locale_t)0));
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* The ends lie above 2, or moving them to 0, 1 and 2 in the child could overwrite one. */
static bool open_connection(int pair[2], bool input)
{
    int raw[2];
    if (input ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, raw) != 0 : pipe2(raw, O_CLOEXEC) != 0)
        return false;
    for (int i = 0; i < 2; i++) {
        pair[i] = fcntl(raw[i], F_DUPFD_CLOEXEC, 3);
        int number = errno;
        close(raw[i]);
        errno = number;
    }
    return pair[0] >= 0 && pair[1] >= 0;
}

/* 0 or the system's number. */
static int spawn(struct child *c, char *const environment[])
{
    static char name[] = "gnuplot", defaults[] = "--default-settings", input[] = "-";
    char *const arguments[] = {name, defaults, input, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int number = posix_spawn_file_actions_init(&actions);
    if (number != 0)
        return number;
    number = posix_spawnattr_init(&attributes);
    if (number == 0) {
        for (int i = 0; i < 3 && number == 0; i++)
            number = posix_spawn_file_actions_adddup2(&actions, c->fd[i][1], i);
        sigset_t none, all;
        sigemptyset(&none);
        sigemptyset(&all);
        sigaddset(&all, SIGPIPE); /* it must die of a pipe that this process gives up */
        if (number == 0)
            number = posix_spawnattr_setsigmask(&attributes, &none);
        if (number == 0)
            number = posix_spawnattr_setsigdefault(&attributes, &all);
        if (number == 0)
            number = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        if (number == 0)
            number = posix_spawnp(&c->pid, name, &actions, &attributes, arguments, environment);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return number;
}

static void close_child(struct child *c)
{
    for (int i = 0; i < 3; i++)
        for (int side = 0; side < 2; side++)
            close_fd(&c->fd[i][side]);
}

static wf_status start(struct child *c, wf_error *error)
{
    for (int i = 0; i < 3; i++)
        c->fd[i][0] = c->fd[i][1] = -1;
    char **environment = make_environment();
    if (!environment)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory to run gnuplot");
    bool open = open_connection(c->fd[0], true) && open_connection(c->fd[1], false) && open_connection(c->fd[2], false);
    int number = open ? spawn(c, environment) : errno;
    wf_free(environment);
    if (number == 0) {
        for (int i = 0; i < 3; i++)
            close_fd(&c->fd[i][1]);
        return WF_OK;
    }
    close_child(c);
    if (open && number == ENOENT)
        return wf_error_set(error, WF_ERR_STATE,
                            "gnuplot, which draws the pictures, is not installed: install the package gnuplot-nox (or gnuplot)");
    return wf_error_set(error, number == ENOMEM ? WF_ERR_MEMORY : WF_ERR_IO, "gnuplot cannot be run: %s", reason_text(number));
}

/* --- talking to it ------------------------------------------------------------------------------------------------- */

/* Sends what fits of the script; closes the connection at its end, and when gnuplot reads no more. */
static void send_some(struct child *c, const struct wf_string *script, int64_t *sent)
{
    ssize_t done =
        script->length > *sent ? send(c->fd[0][0], script->data + *sent, (size_t)(script->length - *sent), MSG_NOSIGNAL | MSG_DONTWAIT) : 0;
    if (done < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK))
        return;
    *sent += done > 0 ? done : 0;
    if (done < 0 || *sent == script->length)
        close_fd(&c->fd[0][0]);
}

static bool make_room(struct wf_string *out, int64_t more)
{
    if (out->length + more < out->capacity)
        return true;
    int64_t capacity = 2 * out->capacity + more + 1;
    char *data = wf_realloc(out->data, (size_t)capacity);
    if (!data)
        return false;
    out->data = data;
    out->capacity = capacity;
    return true;
}

/* What gnuplot printed; at its end, or on a failure to read, the connection is closed. False without memory. */
static bool receive_some(struct child *c, struct wf_string *out)
{
    if (!make_room(out, BLOCK))
        return false;
    ssize_t got = read(c->fd[1][0], out->data + out->length, BLOCK);
    if (got > 0)
        out->length += got;
    else if (got == 0 || errno != EINTR)
        close_fd(&c->fd[1][0]);
    out->data[out->length] = 0;
    return true;
}

/* Keeps the beginning of the complaints, and reads the rest too, for a full pipe would stop gnuplot. */
static void hear_some(struct child *c)
{
    char block[COMPLAINT];
    ssize_t got = read(c->fd[2][0], block, sizeof block);
    if (got == 0 || (got < 0 && errno != EINTR))
        close_fd(&c->fd[2][0]);
    if (got <= 0)
        return;
    size_t room = COMPLAINT - c->complaint_length, keep = (size_t)got < room ? (size_t)got : room;
    memcpy(c->complaint + c->complaint_length, block, keep);
    c->complaint_length += keep;
    c->complaint[c->complaint_length] = 0;
}

static wf_status talk(struct child *c, const struct wf_string *script, struct wf_string *out, wf_error *error)
{
    int64_t sent = 0;
    while (c->fd[0][0] >= 0 || c->fd[1][0] >= 0 || c->fd[2][0] >= 0) {
        /* poll leaves out what has a negative number */
        struct pollfd wait[3] = {{c->fd[0][0], POLLOUT, 0}, {c->fd[1][0], POLLIN, 0}, {c->fd[2][0], POLLIN, 0}};
        if (poll(wait, 3, -1) < 0) {
            if (errno == EINTR)
                continue;
            return wf_error_set(error, errno == ENOMEM ? WF_ERR_MEMORY : WF_ERR_IO, "waiting for gnuplot failed: %s", reason_text(errno));
        }
        if (wait[0].revents)
            send_some(c, script, &sent);
        if (wait[1].revents && !receive_some(c, out))
            return wf_error_set(error, WF_ERR_MEMORY, "no memory for the picture that gnuplot draws");
        if (wait[2].revents)
            hear_some(c);
    }
    return WF_OK;
}

/* --- how it ended -------------------------------------------------------------------------------------------------- */

/* gnuplot's own words: the first line of the form "line 0: ...", without what is a mere warning; else the first line that says anything. */
static char *first_complaint(char *text)
{
    char *first = NULL, *rest = text;
    for (char *line; (line = strsep(&rest, "\n"));) {
        line += strspn(line, " \t\r");
        if (strncmp(line, "line ", 5) == 0) {
            char *words = line + 5 + strspn(line + 5, "0123456789");
            if (words > line + 5 && words[0] == ':' && words[1] == ' ' && strncmp(words + 2, "warning", 7) != 0)
                return words + 2;
        }
        if (!first && line[0])
            first = line;
    }
    return first;
}

static wf_status judge(struct child *c, int ended, bool known, int64_t drawn, wf_error *error)
{
    if (known ? WIFEXITED(ended) && WEXITSTATUS(ended) == 0 && drawn > 0 : drawn > 0)
        return WF_OK;
    if (strstr(c->complaint, "unknown or ambiguous terminal type"))
        return wf_error_set(
            error, WF_ERR_STATE,
            "this gnuplot was built without that format of pictures: take another one (.svg), or install the package gnuplot-nox");
    char quoted[WF_QUOTE_SIZE];
    const char *said = first_complaint(c->complaint);
    if (said)
        return wf_error_set(error, WF_ERR_STATE, "gnuplot failed: %s", wf_text_quote(said, quoted));
    if (known && WIFSIGNALED(ended))
        return wf_error_set(error, WF_ERR_STATE, "gnuplot was ended by signal %d", WTERMSIG(ended));
    if (known && WIFEXITED(ended) && WEXITSTATUS(ended) != 0)
        return wf_error_set(error, WF_ERR_STATE, "gnuplot failed with exit code %d and said nothing", WEXITSTATUS(ended));
    return wf_error_set(error, WF_ERR_STATE, "gnuplot drew nothing and said nothing");
}

wf_status gnuplot_run(const struct wf_string *script, struct wf_string *out, wf_error *error)
{
    struct child c = {0};
    int64_t before = out->length;
    wf_status status = start(&c, error);
    if (status != WF_OK)
        return status;
    status = talk(&c, script, out, error);
    close_child(&c); /* of an interrupted talk gnuplot ends by SIGPIPE */
    int ended;
    pid_t got;
    do
        got = waitpid(c.pid, &ended, 0);
    while (got < 0 && errno == EINTR);
    /* where the caller ignores SIGCHLD nobody knows how it ended */
    if (status == WF_OK)
        status = judge(&c, ended, got == c.pid, out->length - before, error);
    if (status != WF_OK && out->data) {
        out->length = before;
        out->data[before] = 0;
    }
    return status;
}
