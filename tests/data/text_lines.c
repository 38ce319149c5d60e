/* SPDX-License-Identifier: MIT */
/* The lines of a file by number, read into memory and mapped. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

#include "data_test.h"
#include <weft/internal/lines.h>
#include <weft/runtime.h>

/* Both ways to open give these lines. */
static void expect(const char *data, size_t bytes, const char *const line[], int64_t count)
{
    const char *path = test_file("lines", data, bytes);
    for (int map = 0; map < 2; map++) {
        struct wf_text_lines lines;
        int64_t length;
        ck_ok(wf_text_lines_open(&lines, path, error, .map = map));
        ck_assert_int_eq(lines.count, count);
        for (int64_t i = 0; i < count; i++) {
            const char *text = wf_text_lines_at(&lines, i, &length);
            ck_assert_int_eq(length, strlen(line[i]));
            ck_assert_mem_eq(text, line[i], (size_t)length);
        }
        ck_assert_ptr_null(wf_text_lines_at(&lines, count, &length));
        ck_assert_int_eq(length, 0);
        ck_assert_ptr_null(wf_text_lines_at(&lines, -1, NULL));
        wf_text_lines_close(&lines);
        ck_assert(lines.count == 0 && lines.text == NULL);
    }
}
#define EXPECT(text, ...)                                                                                                                  \
    expect(text, sizeof(text) - 1, (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

START_TEST(lines_and_their_ends)
{
    EXPECT("a", "a");
    EXPECT("a\n", "a");
    EXPECT("\n", "");
    EXPECT("\n\nb\n\n", "", "", "b", "");
    EXPECT("one\r\ntwo\r\n\r\nthree", "one", "two", "", "three");
    EXPECT("a\rb\r\r\n\n\rc\r", "a\rb\r", "", "\rc\r"); /* "\r" ends a line with "\n" alone */
    EXPECT("\xEF\xBB\xBFGr\xC3\xB6\xC3\x9F"
           "e\n\xEF\xBB\xBFx",
           "Gr\xC3\xB6\xC3\x9F"
           "e",
           "\xEF\xBB\xBFx");
    EXPECT("\xEF\xBB\xBF\r\n", "");
    EXPECT(" blanks \t\n", " blanks \t");
}
END_TEST

/* Megabytes of lines of all lengths, with characters of several bytes across the ends of pieces: as the reader of lines has them. */
START_TEST(large_files)
{
    struct wf_text_lines lines;
    struct wf_lines reader;
    static char text[3 << 20];
    size_t bytes = 0;
    wf_rng rng = wf_rng_new(1, 2);
    while (bytes < sizeof text - 16) {
        static const char *const piece[] = {"\n", "\r\n", "a", "\xC3\xA4", "\xE2\x82\xAC", "\xF0\x9D\x84\x9E"};
        const char *p = piece[wf_rng_below(&rng, 40) == 0 ? wf_rng_below(&rng, 2) : 2 + wf_rng_below(&rng, 4)];
        if (bytes > 600000 && bytes < 2000000) /* a line over several pieces */
            p = piece[5];
        bytes += (size_t)sprintf(text + bytes, "%s", p);
    }
    const char *path = test_file("large", text, bytes);
    for (int threads = 1; threads <= 3; threads += 2) {
        ck_ok(wf_set_threads(threads, error));
        ck_ok(wf_text_lines_open(&lines, path, error));
        wf_lines_of(&reader, "text", text, (int64_t)bytes);
        for (int64_t i = 0, length; i <= lines.count; i++) {
            ck_ok(wf_lines_next(&reader, error));
            const char *line = wf_text_lines_at(&lines, i, &length);
            ck_assert(i < lines.count ? reader.text != NULL : reader.text == NULL);
            if (line)
                ck_assert(length == reader.length && memcmp(line, reader.text, (size_t)length) == 0);
        }
        wf_lines_close(&reader);
        wf_text_lines_close(&lines);
    }
}
END_TEST

static void refused(const char *data, size_t bytes, wf_status status, const char *message)
{
    const char *path = test_file("bad", data, bytes);
    for (int map = 0; map < 2; map++) {
        struct wf_text_lines lines;
        ck_fails(wf_text_lines_open(&lines, path, error, .map = map), status, message);
        ck_assert(lines.count == 0 && lines.store == NULL);
    }
}

START_TEST(invalid_text)
{
    refused("", 0, WF_ERR_FORMAT, "bad: the file is empty; text is required");
    refused("\xEF\xBB\xBF", 3, WF_ERR_FORMAT, "the file is empty");
    refused("good\nb\xFF"
            "d\n",
            9, WF_ERR_FORMAT, "bad:2:2: not UTF-8: byte 0xFF: ");
    refused("\xEF\xBB\xBF"
            "a\x80",
            5, WF_ERR_FORMAT, "bad:1:5: not UTF-8: byte 0x80: ");
    refused("a\nb\0c\n", 6, WF_ERR_FORMAT, "bad:2:2: a NUL byte: ");
    refused("\xFF\xFE"
            "a\0",
            4, WF_ERR_FORMAT, "bad:1:1: this is UTF-16");
    refused("a\nbc\xE2\x82", 7, WF_ERR_FORMAT, "bad:2:3: not UTF-8: byte 0xE2: ");
}
END_TEST

/* The first bad byte, around the end of a piece and on any number of threads. */
START_TEST(bad_bytes_at_the_ends_of_pieces)
{
    enum { PIECE = 1 << 18 };
    static char text[3 * PIECE];
    char message[80];
    for (int threads = 1; threads <= 3; threads += 2) {
        ck_ok(wf_set_threads(threads, error));
        for (int at = -5; at <= 5; at++)
            for (int kind = 0; kind < 3; kind++) {
                static const char *const bad[] = {"\xFF", "\x80\x80\x80\x80\x80\x80", "\xF0\x9D\x84z"};
                const int place = PIECE + at;
                memset(text, 'a', sizeof text);
                text[99] = text[PIECE - 100] = '\n';
                memcpy(text + place, bad[kind], strlen(bad[kind]));
                text[2 * PIECE + 17] = '\xFF';
                snprintf(message, sizeof message, "bad:3:%d: not UTF-8: byte 0x%02X", place - PIECE + 100, (unsigned char)bad[kind][0]);
                refused(text, sizeof text, WF_ERR_FORMAT, message);
            }
    }
}
END_TEST

START_TEST(invalid_files)
{
    struct wf_text_lines lines;
    const char *path = test_file("absent", NULL, 0);
    for (int map = 0; map < 2; map++) {
        ck_fails(wf_text_lines_open(&lines, path, error, .map = map), WF_ERR_IO, "absent: cannot be opened: ");
        ck_fails(wf_text_lines_open(&lines, test_folder, error, .map = map), WF_ERR_IO, "a folder");
    }
    ck_assert_int_eq(wf_text_lines_open(&lines, path, NULL), WF_ERR_IO);
}
END_TEST

static void *feed(void *path)
{
    int fd = open(path, O_WRONLY);
    ck_assert_int_eq(write(fd, "one\ntwo\n", 8), 8);
    close(fd);
    return NULL;
}

START_TEST(pipes)
{
    struct wf_text_lines lines;
    int64_t length;
    pthread_t thread;
    char *path = test_file("pipe", NULL, 0);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, feed, path), 0);
    ck_ok(wf_text_lines_open(&lines, path, error));
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(lines.count, 2);
    ck_assert(memcmp(wf_text_lines_at(&lines, 1, &length), "two", 3) == 0 && length == 3);
    wf_text_lines_close(&lines);
    ck_fails(wf_text_lines_open(&lines, path, error, .map = true), WF_ERR_IO, "a device or a pipe");
}
END_TEST

static wf_status open_and_close(void *path, wf_error *error)
{
    struct wf_text_lines lines;
    wf_status status = wf_text_lines_open(&lines, path, error);
    wf_text_lines_close(&lines);
    return status;
}

START_TEST(memory_runs_out)
{
    char *path = text_file("lines", "a\nb\n");
    ck_assert_int_gt(sweep_memory(open_and_close, path), 3);
}
END_TEST

WF_TEST_MAIN("text_lines", lines_and_their_ends, large_files, invalid_text, bad_bytes_at_the_ends_of_pieces, invalid_files, pipes,
             memory_runs_out)
