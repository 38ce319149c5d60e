/* SPDX-License-Identifier: MIT */
/* The three streams of the program are files in memory: nothing waits for anything but the program's end. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weft/internal/reason.h>
#include <weft/internal/string.h>
#include <weft/memory.h>

#include "program.h"

/* Above 2, so that moving it to 0, 1 or 2 in the child overwrites no other. */
static int open_memory(void)
{
    int raw = memfd_create("weft", MFD_CLOEXEC), fd = raw < 0 ? -1 : fcntl(raw, F_DUPFD_CLOEXEC, 3);
    if (raw >= 0)
        close(raw);
    return fd;
}

static bool write_all(int fd, const char *data, int64_t length)
{
    for (int64_t done = 0; done < length;) {
        ssize_t now = pwrite(fd, data + done, (size_t)(length - done), done);
        if (now < 0 && errno != EINTR)
            return false;
        done += now > 0 ? now : 0;
    }
    return true;
}

/* Appends at most `most` bytes of the file. */
static bool read_all(int fd, int64_t most, struct wf_string *out)
{
    int64_t length = lseek(fd, 0, SEEK_END), done = 0;
    length = length < most ? length : most;
    if (!wf_string_reserve(out, length))
        return false;
    for (ssize_t now = 1; done < length && now != 0; done += now > 0 ? now : 0)
        now = pread(fd, out->data + out->length + done, (size_t)(length - done), done);
    out->length += done;
    out->data[out->length] = 0;
    return true;
}

/* 0 or the system's number. */
static int spawn(const char *const *arguments, const int fd[3], pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    int number = posix_spawn_file_actions_init(&actions);
    if (number != 0)
        return number;
    for (int i = 0; i < 3 && number == 0; i++)
        number = posix_spawn_file_actions_adddup2(&actions, fd[i], i);
    if (number == 0)
        number = posix_spawnp(pid, arguments[0], &actions, NULL, (char *const *)arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    return number;
}

wf_status program_run(const char *const *arguments, const struct wf_string *input, struct wf_string *out, int *status,
                      char complaint[PROGRAM_COMPLAINT + 1], wf_error *error)
{
    enum { MOST = 16 };
    const char *all[MOST + 5] = {"env", "-u", "GNUTERM", "LC_ALL=C.UTF-8"};
    int fd[3] = {open_memory(), open_memory(), open_memory()}, number = 0;
    pid_t pid = 0;
    *status = 0;
    for (int i = 0; arguments[i] && i < MOST; i++)
        all[4 + i] = arguments[i];
    if (fd[0] < 0 || fd[1] < 0 || fd[2] < 0 || !write_all(fd[0], input->data, input->length))
        number = errno;
    else if ((number = spawn(all, fd, &pid)) == ENOENT)
        *status = PROGRAM_MISSING;
    else if (number == 0)
        while (waitpid(pid, status, 0) < 0 && errno == EINTR)
            continue;
    struct wf_string said = {0};
    bool fine = number != 0 || (read_all(fd[1], INT64_MAX, out) && read_all(fd[2], PROGRAM_COMPLAINT, &said));
    complaint[0] = 0;
    if (said.length > 0)
        memcpy(complaint, said.data, (size_t)said.length + 1);
    wf_string_free(&said);
    for (int i = 0; i < 3; i++)
        if (fd[i] >= 0)
            close(fd[i]);
    if (!fine || number == ENOMEM)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for what %s prints", arguments[0]);
    return number == 0 || number == ENOENT ? WF_OK
                                           : wf_error_set(error, WF_ERR_IO, "%s cannot be run: %s", arguments[0], wf_reason(number));
}
