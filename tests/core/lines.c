/* SPDX-License-Identifier: MIT */
#include "check_weft.h"
#include <weft/internal/lines.h>

static const char *const path = "core_lines.txt";

static void put(const char *text, int64_t length)
{
    FILE *file = fopen(path, "wb");
    ck_assert(file && fwrite(text, 1, (size_t)length, file) == (size_t)length && fclose(file) == 0);
}

static void ck_piece(const struct wf_lines *in, const char *text, int64_t line)
{
    ck_assert_ptr_nonnull(in->text);
    ck_assert_int_eq(in->length, (int64_t)strlen(text));
    ck_assert_int_eq(memcmp(in->text, text, strlen(text)), 0);
    ck_assert_int_eq(in->line, line);
}

#define TEXT "\xEF\xBB\xBFone\r\n\ntwo\rthree\nlast"

static void ck_lines(struct wf_lines *in)
{
    static const char *const line[] = {"one", "", "two\rthree", "last"};
    for (int i = 0; i < 4; i++) {
        ck_ok(wf_lines_next(in, error));
        ck_piece(in, line[i], i + 1);
        ck_assert_int_eq(in->mark, i == 0 ? 3 : 0);
        ck_ok(wf_lines_check(in, error));
    }
    for (int i = 0; i < 2; i++) {
        ck_ok(wf_lines_next(in, error));
        ck_assert_ptr_null(in->text);
        ck_assert_int_eq(in->line, 5);
        ck_assert_int_eq(in->done, (int64_t)strlen(TEXT));
    }
}

START_TEST(lines_of_files_and_of_memory)
{
    struct wf_lines in;
    put(TEXT, strlen(TEXT));
    ck_ok(wf_lines_open(&in, path, error));
    ck_assert_int_eq(in.size, (int64_t)strlen(TEXT));
    ck_lines(&in);
    wf_lines_close(&in);
    wf_lines_of(&in, "memory", TEXT, strlen(TEXT));
    ck_lines(&in);
    wf_lines_close(&in);
    put("", 0);
    ck_ok(wf_lines_open(&in, path, error));
    ck_ok(wf_lines_next(&in, error));
    ck_assert_ptr_null(in.text);
    wf_lines_close(&in);
    wf_lines_close(&in);
}
END_TEST

/* Blocks of any size are whole lines and join to the text; numbers of lines and places count on from block to block. */
START_TEST(blocks_are_whole_lines)
{
    enum { LINES = 6000 };
    char *text = wf_alloc(64 * LINES);
    int64_t length = 0;
    for (int i = 0; i < LINES; i++)
        length += sprintf(text + length, "%d%.*s\n", i, i % 50, "..................................................");
    text[--length] = 0; /* the last line lacks its end */
    put(text, length);
    static const int64_t sizes[] = {1, 50, 1000, 65536, 100000, 10000000};
    for (size_t k = 0; k < 2 * (sizeof sizes / sizeof *sizes); k++) {
        struct wf_lines in;
        int64_t size = sizes[k / 2], at = 0, line = 1, blocks = 0;
        if (k % 2)
            wf_lines_of(&in, "memory", text, length);
        else
            ck_ok(wf_lines_open(&in, path, error));
        while (wf_lines_block(&in, size, NULL) == WF_OK && in.text) {
            ck_assert(at + in.length <= length && !memcmp(in.text, text + at, (size_t)in.length));
            ck_assert_int_eq(in.line, line);
            ck_assert(in.text[in.length - 1] == '\n' || at + in.length == length);
            ck_assert(in.length <= (size < 60 ? 60 : size));
            char place[64], expected[64];
            snprintf(expected, sizeof expected, "%s:%d:1", in.name, (int)(line + wf_line_ends(in.text, in.length - 1)));
            const char *last = memrchr(in.text, '\n', (size_t)in.length - 1);
            ck_assert_str_eq(wf_lines_place(&in, last ? last + 1 - in.text : 0, place, sizeof place), expected);
            blocks++;
            at += in.length;
            line += wf_line_ends(in.text, in.length);
        }
        ck_assert_int_eq(at, length);
        ck_assert_int_eq(in.line, LINES + 1);
        ck_assert(size < length || blocks == 1);
        wf_lines_close(&in);
    }
    wf_free(text);
}
END_TEST

/* All of the file, by blocks or by lines. */
static wf_status read_all(struct wf_lines *in, bool block, wf_error *error)
{
    wf_status status = WF_OK;
    while (status == WF_OK && (status = block ? wf_lines_block(in, 1 << 20, error) : wf_lines_next(in, error)) == WF_OK && in->text)
        status = wf_lines_check(in, error);
    return status;
}

static void ck_refused(const char *text, int64_t length, bool block, const char *message)
{
    struct wf_lines in;
    put(text, length);
    ck_ok(wf_lines_open(&in, path, error));
    in.longest = 20;
    ck_fails(read_all(&in, block, error), WF_ERR_FORMAT, message);
    wf_lines_close(&in);
}

START_TEST(what_no_text_may_hold_is_placed)
{
    for (int block = 0; block < 2; block++) {
        ck_refused("one\ntwo \xFF\n", 10, block, "core_lines.txt:2:5: not UTF-8: byte 0xFF");
        ck_refused("\xEF\xBB\xBF\xC3(\n", 6, block, "core_lines.txt:1:4: not UTF-8: byte 0xC3: a truncated sequence");
        ck_refused("one\ntwo\nthr\0e", 13, block, "core_lines.txt:3:4: a NUL byte");
        ck_refused("\xFF\xFEo\0n\0", 6, block, "core_lines.txt:1:1: this is UTF-16");
    }
    ck_refused("one\nthis line is longer than twenty bytes\n", 42, false, "core_lines.txt:2: a line of more than 20 bytes");
    struct wf_lines in;
    ck_fails(wf_lines_open(&in, "no such file", error), WF_ERR_IO, "no such file: cannot be opened: No such file");
    wf_lines_close(&in);
    ck_ok(wf_lines_open(&in, ".", error));
    ck_fails(wf_lines_next(&in, error), WF_ERR_IO, ".: is a folder, not a file");
    wf_lines_close(&in);
}
END_TEST

static bool never(void *ctx, int fd)
{
    ++*(int *)ctx;
    return fd < 0;
}

START_TEST(waiting_can_be_cancelled)
{
    struct wf_lines in;
    int calls = 0;
    put("one\n", 4);
    ck_ok(wf_lines_open(&in, path, error));
    in.wait = never;
    in.ctx = &calls;
    ck_fails(wf_lines_next(&in, error), WF_ERR_CANCELLED, "");
    ck_assert_int_eq(calls, 1);
    wf_lines_close(&in);
    remove(path);
}
END_TEST

WF_TEST_MAIN("lines", lines_of_files_and_of_memory, blocks_are_whole_lines, what_no_text_may_hold_is_placed, waiting_can_be_cancelled)
