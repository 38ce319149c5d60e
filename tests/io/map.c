/* SPDX-License-Identifier: MIT */
#include "io_test.h"
#include <weft/internal/map.h>

START_TEST(shows_the_file)
{
    struct wf_map map;
    const char *path = in_folder("text"), *empty = in_folder("empty");
    write_file(path, "abc\0d", 5);
    write_file(empty, "", 0);
    ck_ok(wf_map_open(path, WF_MAP_SHARED, &map, error));
    ck_assert(map.bytes == 5 && !memcmp(map.data, "abc\0d", 5));
    wf_map_close(&map);
    ck_assert(map.bytes == 0 && !map.data);
    wf_map_close(&map);
    ck_ok(wf_map_open(empty, WF_MAP_SHARED, &map, error));
    ck_assert(map.bytes == 0 && map.data);
    wf_map_close(&map);
}
END_TEST

static void refused(const char *path, const char *part)
{
    struct wf_map map;
    char words[512];
    snprintf(words, sizeof words, "%s: %s", path, part);
    ck_fails(wf_map_open(path, WF_MAP_SHARED, &map, error), WF_ERR_IO, words);
    ck_assert(!map.data && map.bytes == 0);
    wf_map_close(&map);
}

START_TEST(refuses_what_is_no_file)
{
    const char *pipe = in_folder("pipe");
    ck_assert_int_eq(mkfifo(pipe, 0600), 0);
    refused("/no/such/file", "cannot be opened: No such file or directory");
    refused("/tmp", "is a folder");
    refused("/dev/null", "is a device or a pipe");
    refused(pipe, "is a device or a pipe");
}
END_TEST

/* No file handle and no pages are left behind. */
START_TEST(leaves_nothing_open)
{
    struct wf_map map;
    const char *path = in_folder("text");
    write_file(path, "abc", 3);
    for (int i = 0; i < 3000; i++) {
        ck_ok(wf_map_open(path, WF_MAP_SHARED, &map, error));
        wf_map_close(&map);
        ck_fails(wf_map_open("/tmp", WF_MAP_SHARED, &map, error), WF_ERR_IO, "");
    }
}
END_TEST

START_TEST(shows_the_file_that_was_opened)
{
    struct wf_map map;
    const char *path = in_folder("text"), *other = in_folder("other");
    write_file(path, "first\n", 6);
    ck_ok(wf_map_open(path, WF_MAP_SHARED, &map, error));
    write_file(other, "second and longer\n", 18);
    ck_assert_int_eq(rename(other, path), 0);
    ck_assert(map.bytes == 6 && !memcmp(map.data, "first\n", 6));
    wf_map_close(&map);
}
END_TEST

WF_TEST_MAIN("map", shows_the_file, refuses_what_is_no_file, leaves_nothing_open, shows_the_file_that_was_opened)
