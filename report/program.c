/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weft/internal/reason.h>
#include <weft/memory.h>

#include "program.h"

enum { BLOCK = 65536 };

/* The strings stay those of this process. NULL without memory. */
static char **make_environment(const char *const *drop)
{
    static char locale[] = "LC_ALL=C.UTF-8";
    size_t count = 0, used = 0;
    while (environ && environ[count])
        count++;
    char **list = wf_alloc((count + 2) * sizeof *list);
    if (!list)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        bool keep = strncmp(environ[i], "LC_ALL=", 7) != 0;
        for (const char *const *d = drop; *d && keep; d++)
            keep = strncmp(environ[i], *d, strlen(*d)) != 0;
        if (keep)
            list[used++] = environ[i];
    }
    list[used++] = locale;
    list[used] = NULL;
    return list;
}

/* Both ends of the three connections; -1: closed. Ours is [0]. Standard input is a socket, for only send() can be told to raise no
 * SIGPIPE when the program has ended. */
struct child {
    const char *name;
    pid_t pid;
    int fd[3][2];
    struct program_end *end;
    size_t complaint_length;
};

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
static int spawn(struct child *c, const char *const *arguments, char *const environment[])
{
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
            number = posix_spawnp(&c->pid, c->name, &actions, &attributes, (char *const *)arguments, environment);
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

static wf_status start(struct child *c, const char *const *arguments, const char *const *drop, wf_error *error)
{
    for (int i = 0; i < 3; i++)
        c->fd[i][0] = c->fd[i][1] = -1;
    char **environment = make_environment(drop);
    if (!environment)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory to run %s", c->name);
    bool open = open_connection(c->fd[0], true) && open_connection(c->fd[1], false) && open_connection(c->fd[2], false);
    int number = open ? spawn(c, arguments, environment) : errno;
    wf_free(environment);
    if (number == 0) {
        for (int i = 0; i < 3; i++)
            close_fd(&c->fd[i][1]);
        return WF_OK;
    }
    close_child(c);
    if (open && number == ENOENT)
        return wf_error_set(error, WF_ERR_EXISTS, "there is no program %s", c->name);
    return wf_error_set(error, number == ENOMEM ? WF_ERR_MEMORY : WF_ERR_IO, "%s cannot be run: %s", c->name, wf_reason(number));
}

/* --- talking to it ------------------------------------------------------------------------------------------------- */

/* Sends what fits of the input; closes the connection at its end, and when the program reads no more. */
static void send_some(struct child *c, const struct wf_string *input, int64_t *sent)
{
    ssize_t done =
        input->length > *sent ? send(c->fd[0][0], input->data + *sent, (size_t)(input->length - *sent), MSG_NOSIGNAL | MSG_DONTWAIT) : 0;
    if (done < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK))
        return;
    *sent += done > 0 ? done : 0;
    if (done < 0 || *sent == input->length)
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

/* What it printed; at its end, or on a failure to read, the connection is closed. False without memory. */
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

/* Keeps the beginning of the complaints, and reads the rest too, for a full pipe would stop it. */
static void hear_some(struct child *c)
{
    char block[PROGRAM_COMPLAINT];
    ssize_t got = read(c->fd[2][0], block, sizeof block);
    if (got == 0 || (got < 0 && errno != EINTR))
        close_fd(&c->fd[2][0]);
    if (got <= 0)
        return;
    size_t room = PROGRAM_COMPLAINT - c->complaint_length, keep = (size_t)got < room ? (size_t)got : room;
    memcpy(c->end->complaint + c->complaint_length, block, keep);
    c->complaint_length += keep;
    c->end->complaint[c->complaint_length] = 0;
}

static wf_status talk(struct child *c, const struct wf_string *input, struct wf_string *out, wf_error *error)
{
    int64_t sent = 0;
    while (c->fd[0][0] >= 0 || c->fd[1][0] >= 0 || c->fd[2][0] >= 0) {
        /* poll leaves out what has a negative number */
        struct pollfd wait[3] = {{c->fd[0][0], POLLOUT, 0}, {c->fd[1][0], POLLIN, 0}, {c->fd[2][0], POLLIN, 0}};
        if (poll(wait, 3, -1) < 0) {
            if (errno == EINTR)
                continue;
            return wf_error_set(error, errno == ENOMEM ? WF_ERR_MEMORY : WF_ERR_IO, "waiting for %s failed: %s", c->name, wf_reason(errno));
        }
        if (wait[0].revents)
            send_some(c, input, &sent);
        if (wait[1].revents && !receive_some(c, out))
            return wf_error_set(error, WF_ERR_MEMORY, "no memory for what %s prints", c->name);
        if (wait[2].revents)
            hear_some(c);
    }
    return WF_OK;
}

wf_status program_run(const char *const *arguments, const char *const *drop, const struct wf_string *input, struct wf_string *out,
                      struct program_end *end, wf_error *error)
{
    static const struct wf_string nothing;
    struct child c = {.name = arguments[0], .end = end};
    *end = (struct program_end){0};
    wf_status status = start(&c, arguments, drop, error);
    if (status != WF_OK)
        return status;
    status = talk(&c, input ? input : &nothing, out, error);
    close_child(&c); /* of an interrupted talk the program ends by SIGPIPE */
    pid_t got;
    do
        got = waitpid(c.pid, &end->status, 0);
    while (got < 0 && errno == EINTR);
    end->known = got == c.pid;
    return status;
}
