/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <sys/socket.h>

#include "io_test.h"
#include <weft/internal/minmax.h>

/* Root may read and write everything: such cases run in a child as the user nobody. */
static bool become_nobody(void)
{
    return getuid() != 0 || (setgid(65534) == 0 && setuid(65534) == 0);
}

START_TEST(loads_what_was_saved)
{
    const char *path = in_folder("a");
    for (int bytes = 0; bytes < 600000; bytes = bytes * 3 + 1) {
        char *data = wf_alloc((size_t)bytes + 1);
        for (int i = 0; i < bytes; i++)
            data[i] = (char)(i * 37 + i / 256);
        ck_ok(wf_file_save(path, data, bytes, error));
        assert_file_is(path, data, bytes);
        ck_assert_int_eq(count_names(folder_of_test), 1);
        int64_t length = -1;
        char *loaded = ck_makes(wf_file_load(path, bytes, &length, error)); /* the limit is allowed, one less is not */
        ck_assert_int_eq(loaded[bytes], 0);
        wf_free(loaded);
        if (bytes > 0)
            ck_fails_null(wf_file_load(path, bytes - 1, &length, error), WF_ERR_FORMAT, "larger than the limit of");
        wf_free(data);
    }
    ck_assert_int_eq(wf_alloc_live(), 0);
}
END_TEST

START_TEST(load_says_what_is_wrong)
{
    ck_fails_null(wf_file_load(in_folder("missing"), 100, NULL, error), WF_ERR_IO, "/missing: cannot be opened: No such file or directory");
    ck_fails_null(wf_file_load(folder_of_test, 100, NULL, error), WF_ERR_IO, "is a folder, not a file");
    write_text(in_folder("plain"), "x");
    ck_fails_null(wf_file_load(in_folder("plain/below"), 100, NULL, error), WF_ERR_IO, "Not a directory");
    ck_fails_null(wf_file_load(in_folder("plain"), -1, NULL, error), WF_ERR_ARGUMENT, "limit");
    ck_assert_ptr_null(wf_file_load(in_folder("missing"), 100, NULL, NULL)); /* without an error */
}
END_TEST

static int without_permission(int saves)
{
    wf_error bad = {0};
    if (!become_nobody())
        return 99;
    if (saves ? wf_file_save(in_folder("closed/a"), "x", 1, &bad) == WF_OK : wf_file_load(in_folder("secret"), 100, NULL, &bad) != NULL)
        return 1;
    return bad.code != WF_ERR_IO || !strstr(bad.message, saves ? "cannot write in the folder" : "secret") ||
           !strstr(bad.message, "Permission denied");
}

START_TEST(permissions_are_reported)
{
    write_text(in_folder("secret"), "x");
    ck_assert_int_eq(chmod(in_folder("secret"), 0), 0);
    ck_assert_int_eq(mkdir(in_folder("closed"), 0555), 0);
    ck_assert_int_eq(chmod(folder_of_test, 0755), 0);
    in_processes(2, without_permission);
    ck_assert_int_eq(count_names(in_folder("closed")), 0);
}
END_TEST

START_TEST(reads_pipes_to_the_end)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        char data[10000];
        memset(data, 'p', sizeof data);
        for (int i = 0; i < 10; i++)
            if (write(ends[1], data, sizeof data) != sizeof data)
                _exit(1);
        _exit(0);
    }
    close(ends[1]);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
    int64_t bytes;
    char *text = ck_makes(wf_file_load(path, 100000, &bytes, error));
    ck_assert_int_eq(bytes, 100000);
    ck_assert_uint_eq(strspn(text, "p"), 100000);
    wf_free(text);
    waitpid(child, NULL, 0);
}
END_TEST

START_TEST(pieces_make_a_file)
{
    const char *path = in_folder("a");
    enum { TOTAL = 3000000 };
    char *data = malloc(TOTAL);
    for (int i = 0; i < TOTAL; i++)
        data[i] = (char)(i * 31 + i / 1000);
    write_text(path, "old");
    wf_file_writer *w = ck_makes(wf_file_begin(path, error));
    /* Small pieces, pieces that just fill the writer's buffer, and larger ones. */
    static const int sizes[] = {0, 1, 7, 262144, 262143, 262145, 100, 500000, 1};
    int at = 0;
    for (int i = 0; at < TOTAL; i++) {
        int bytes = WF_MIN(sizes[i % 9], TOTAL - at);
        ck_assert_int_eq(wf_file_append(w, data + at, bytes), WF_OK);
        at += bytes;
        assert_text_is(path, "old");
    }
    ck_ok(wf_file_commit(w, error));
    assert_file_is(path, data, TOTAL);
    w = ck_makes(wf_file_begin(path, error));
    ck_assert_int_eq(wf_file_append(w, "new", 3), WF_OK);
    wf_file_abort(w);
    assert_file_is(path, data, TOTAL);
    ck_assert_int_eq(count_names(folder_of_test), 1);
    free(data);
}
END_TEST

START_TEST(null_writers_are_harmless)
{
    wf_error bad = {0};
    wf_file_writer *w = wf_file_begin(in_folder("missing/a"), &bad);
    assert_message(&bad, WF_ERR_IO, "No such file or directory");
    ck_assert_ptr_null(w);
    ck_assert_int_eq(wf_file_append(w, "x", 1), WF_ERR_STATE);
    ck_assert_int_eq(wf_file_commit(w, &bad), WF_ERR_IO); /* says the same as wf_file_begin */
    ck_assert_int_eq(wf_file_commit(w, NULL), WF_ERR_STATE);
    wf_file_abort(NULL);
    ck_fails(wf_file_save(folder_of_test, "x", 1, error), WF_ERR_IO, "is a folder");
    ck_assert_int_eq(wf_file_save("", "x", 1, NULL), WF_ERR_IO);
    ck_assert_int_eq(wf_alloc_live(), 0);
}
END_TEST

START_TEST(a_full_disk_leaves_the_old_file)
{
    const char *path = in_folder("a");
    char *data = calloc(1, 1000000);
    write_text(path, "old");
    for (int limit = 0; limit < 1000000; limit = limit * 2 + 1) {
        wf_error bad = {0};
        limit_file_size((rlim_t)limit);
        wf_status whole = wf_file_save(path, data, 1000000, &bad);
        wf_file_writer *w = wf_file_begin(path, NULL); /* in small pieces: the failure comes in the middle, and stays */
        for (int i = 0; i < 10000; i++)
            wf_file_append(w, data, 100);
        wf_status pieces = wf_file_commit(w, NULL);
        limit_file_size(RLIM_INFINITY);
        ck_assert(w && whole == WF_ERR_IO && pieces == WF_ERR_IO);
        char place[64];
        snprintf(place, sizeof place, "/a: cannot be written at byte %d: File too large", limit);
        assert_message(&bad, WF_ERR_IO, place);
        assert_text_is(path, "old");
        ck_assert_int_eq(count_names(folder_of_test), 1);
    }
    free(data);
    ck_assert_int_eq(wf_alloc_live(), 0);
}
END_TEST

START_TEST(devices_are_written_not_replaced)
{
    struct stat before, after;
    ck_assert_int_eq(stat("/dev/full", &before), 0);
    ck_fails(wf_file_save("/dev/full", "x", 1, error), WF_ERR_IO, "/dev/full: cannot be written at byte 0: No space left on device");
    ck_assert_int_eq(stat("/dev/full", &after), 0);
    ck_assert(S_ISCHR(after.st_mode) && after.st_ino == before.st_ino);
    ck_ok(wf_file_save("/dev/null", "x", 1, error));
    ck_assert_int_eq(stat("/dev/null", &after), 0);
    ck_assert(S_ISCHR(after.st_mode));
    /* A standard stream that leads to a regular file. */
    int fd = open(in_folder("a"), O_RDWR | O_CREAT, 0666);
    char path[64];
    snprintf(path, sizeof path, "/dev/fd/%d", fd);
    ck_ok(wf_file_save(path, "text", 4, error));
    assert_text_is(in_folder("a"), "text");
    ck_ok(wf_file_save(path, "more", 4, error)); /* it is written on, as a shell's >> wants it */
    assert_text_is(in_folder("a"), "textmore");
    close(fd);
    ck_fails(wf_file_save(path, "x", 1, error), WF_ERR_IO, "");
    ck_fails(wf_file_save("/dev/fd/4294967297", "x", 1, error), WF_ERR_IO, ""); /* whose lower half is 1 */
    int ends[2];
    char got[4];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0); /* which can't be opened by name */
    snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
    ck_ok(wf_file_save(path, "text", 4, error));
    ck_assert_int_eq((int)read(ends[1], got, 4), 4);
    close(ends[0]);
    close(ends[1]);
}
END_TEST

START_TEST(modes_and_links)
{
    struct stat info;
    umask(027);
    ck_ok(wf_file_save(in_folder("new"), "x", 1, error));
    ck_assert_int_eq(stat(in_folder("new"), &info), 0);
    ck_assert_int_eq(info.st_mode & 07777, 0640);
    ck_assert_int_eq(chmod(in_folder("new"), 0604), 0);
    ck_ok(wf_file_save(in_folder("new"), "y", 1, error));
    ck_assert_int_eq(stat(in_folder("new"), &info), 0);
    ck_assert_int_eq(info.st_mode & 07777, 0604);
    ck_assert_int_eq(symlink("new", in_folder("link")), 0);
    ck_ok(wf_file_save(in_folder("link"), "z", 1, error));
    assert_text_is(in_folder("link"), "z");
    assert_text_is(in_folder("new"), "y");
    /* The longest name that a file may have still leaves room for a temporary one. */
    char name[256];
    memset(name, 'n', 255);
    name[255] = 0;
    ck_ok(wf_file_save(in_folder(name), "x", 1, error));
    assert_text_is(in_folder(name), "x");
    /* In the working folder, without any slash. */
    ck_assert_int_eq(chdir(folder_of_test), 0);
    ck_ok(wf_file_save("here", "x", 1, error));
    assert_text_is(in_folder("here"), "x");
}
END_TEST

START_TEST(sweeps_only_what_nobody_writes)
{
    int removed = -1;
    wf_file_writer *alive = ck_makes(wf_file_begin(in_folder("alive"), error));
    wf_file_append(alive, "text", 4);
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();
        if (child == 0) {
            /* It inherits the lock of `alive`, and takes nothing from it when it dies. */
            wf_file_writer *w = wf_file_begin(in_folder("dead"), NULL);
            wf_file_append(w, "x", 1);
            raise(SIGKILL);
        }
        int status;
        waitpid(child, &status, 0);
        ck_assert(WIFSIGNALED(status));
    }
    /* Names that only look like it. */
    static const char *const others[] = {".weft-0123456789abcdef.tm",  ".weft-0123456789abcdeg.tmp", ".weft-0123456789abcdef.tmp2",
                                         ".weft-0123456789ABCDEF.tmp", "weft-0123456789abcdef.tmp",  ".weft-.tmp"};
    for (int i = 0; i < 6; i++)
        write_text(in_folder(others[i]), "mine");
    ck_assert_int_eq(mkdir(in_folder(".weft-0123456789abcdef.tmp"), 0777), 0);
    ck_assert_int_eq(count_names(folder_of_test), 4 + 6 + 1);
    ck_ok(wf_file_sweep(folder_of_test, &removed, error));
    ck_assert_int_eq(removed, 3);
    ck_assert_int_eq(count_names(folder_of_test), 1 + 6 + 1);
    ck_ok(wf_file_commit(alive, error));
    assert_text_is(in_folder("alive"), "text");
    ck_ok(wf_file_sweep(folder_of_test, NULL, error));
    ck_fails(wf_file_sweep(in_folder("missing"), &removed, error), WF_ERR_IO, "No such file or directory");
}
END_TEST

START_TEST(two_writers_of_one_file)
{
    wf_file_writer *a = ck_makes(wf_file_begin(in_folder("f"), error)), *b = ck_makes(wf_file_begin(in_folder("f"), error));
    wf_file_append(a, "aaaa", 4);
    wf_file_append(b, "bb", 2);
    ck_ok(wf_file_commit(a, error));
    assert_text_is(in_folder("f"), "aaaa");
    ck_ok(wf_file_commit(b, error));
    assert_text_is(in_folder("f"), "bb");
    ck_assert_int_eq(count_names(folder_of_test), 1);
}
END_TEST

static int save_or_sweep(int number)
{
    char name[16], text[32];
    snprintf(name, sizeof name, "f%d", number);
    for (int i = 0; i < 150; i++) {
        int length = snprintf(text, sizeof text, "%d.%d", number, i);
        if ((number == 3 ? wf_file_sweep(folder_of_test, NULL, NULL) : wf_file_save(in_folder(name), text, length, NULL)) != WF_OK)
            return 1;
    }
    return 0;
}

/* Several processes save and sweep in one folder at once: nobody may lose a temporary file to another's sweep. */
START_TEST(saves_and_sweeps_do_not_meet)
{
    in_folder("");
    in_processes(4, save_or_sweep);
    assert_text_is(in_folder("f0"), "0.149");
    assert_text_is(in_folder("f2"), "2.149");
    ck_assert_int_eq(count_names(folder_of_test), 3);
}
END_TEST

START_TEST(makes_folders)
{
    struct stat info;
    ck_ok(wf_folder_make(in_folder("a/b//c/"), error));
    ck_assert(wf_folder_exists(in_folder("a/b/c")));
    ck_ok(wf_folder_make(in_folder("a/b/c"), error));
    ck_ok(wf_folder_make("/", error));
    ck_ok(wf_folder_make(".", error));
    write_text(in_folder("a/file"), "x");
    ck_fails(wf_folder_make(in_folder("a/file/d"), error), WF_ERR_IO, "a/file: not a folder");
    ck_fails(wf_folder_make(in_folder("a/file"), error), WF_ERR_IO, "not a folder");
    ck_assert_int_eq(wf_folder_make("", NULL), WF_ERR_ARGUMENT);
    ck_assert(wf_file_exists(in_folder("a/file")));
    ck_assert(!wf_folder_exists(in_folder("a/file")));
    ck_assert(!wf_file_exists(in_folder("a")));
    ck_assert(!wf_file_exists(in_folder("no")));
    ck_ok(wf_file_remove(in_folder("a/file"), error));
    ck_ok(wf_file_remove(in_folder("a/file"), error));
    ck_assert(!wf_file_exists(in_folder("a/file")));
    ck_fails(wf_file_remove(in_folder("a"), error), WF_ERR_IO, "it is a folder");
    ck_assert_int_eq(stat(in_folder("a"), &info), 0);
}
END_TEST

START_TEST(lists_by_prefix)
{
    static const char *const made[] = {"step-2", "step-10", "step-1", "other", ".step-0", "ste", "step-", "\xc3\xa9"};
    for (int i = 0; i < 8; i++)
        write_text(in_folder(made[i]), "x");
    ck_assert_int_eq(mkdir(in_folder("step-folder"), 0777), 0);
    struct wf_names names;
    ck_ok(wf_folder_list(folder_of_test, "step-", &names, error));
    ck_assert_int_eq(names.count, 4);
    ck_assert_str_eq(names.name[0], "step-");
    ck_assert_str_eq(names.name[1], "step-1");
    ck_assert_str_eq(names.name[2], "step-10");
    ck_assert_str_eq(names.name[3], "step-2");
    wf_names_free(&names);
    ck_ok(wf_folder_list(folder_of_test, "", &names, error));
    ck_assert_int_eq(names.count, 7);
    wf_names_free(&names);
    ck_ok(wf_folder_list(folder_of_test, ".", &names, error));
    ck_assert_int_eq(names.count, 1);
    wf_names_free(&names);
    ck_fails(wf_folder_list(in_folder("ste"), "", &names, error), WF_ERR_IO, "Not a directory");
    ck_assert_int_eq(names.count, 0);
    ck_assert_int_eq(wf_alloc_live(), 0);
}
END_TEST

WF_TEST_MAIN("file", loads_what_was_saved, load_says_what_is_wrong, permissions_are_reported, reads_pipes_to_the_end, pieces_make_a_file,
             null_writers_are_harmless, a_full_disk_leaves_the_old_file, devices_are_written_not_replaced, modes_and_links,
             sweeps_only_what_nobody_writes, two_writers_of_one_file, saves_and_sweeps_do_not_meet, makes_folders, lists_by_prefix)
