/* SPDX-License-Identifier: MIT */
#include "../data/data_test.h"
#include <sys/stat.h>

static wf_status read_one(const char *path, struct wf_text *text, wf_error *error)
{
    return wf_text_read(&path, 1, text, error);
}

#define LITERAL(s) s, sizeof(s) - 1

START_TEST(keeps_every_byte)
{
    struct wf_text text;
    ck_ok(read_one(test_file("a", LITERAL("caf\xC3\xA9\r\n\r\n\xF0\x9F\x98\x80 no end of line")), &text, error));
    ck_assert_int_eq(text.length, 28);
    ck_assert_int_eq(text.characters, 24);
    ck_assert_str_eq(text.data, "caf\xC3\xA9\r\n\r\n\xF0\x9F\x98\x80 no end of line");
    ck_assert_int_eq(text.files, 1);
    wf_text_free(&text);
    wf_text_free(&text);
    ck_assert_ptr_null(text.data);
    remove_test_files();
}
END_TEST

START_TEST(drops_the_mark_at_the_start_only)
{
    struct wf_text text;
    char *one = wf_strdup(test_file("one", LITERAL("\xEF\xBB\xBF"
                                                   "ab\xEF\xBB\xBF\n")));
    char *two = wf_strdup(test_file("two", LITERAL("cd")));
    char *three = wf_strdup(test_file("three", LITERAL("\xEF\xBB\xBF"
                                                       "e\nf")));
    const char *paths[] = {one, two, three};
    ck_ok(wf_text_read(paths, 3, &text, error));
    ck_assert_str_eq(text.data, "ab\xEF\xBB\xBF\ncde\nf");
    ck_assert_int_eq(text.length, 11);
    ck_assert_int_eq(text.characters, 9);
    ck_assert_int_eq(text.files, 3);
    /* Places are those of the files as they lie on the disk. */
    static const struct {
        int64_t offset;
        int file;
        const char *place;
    } places[] = {{0, 0, ":1:4"}, {1, 0, ":1:5"}, {5, 0, ":1:9"},  {6, 1, ":1:1"}, {7, 1, ":1:2"},
                  {8, 2, ":1:4"}, {9, 2, ":1:5"}, {10, 2, ":2:1"}, {11, 2, ":2:2"}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char place[300], expected[300];
        snprintf(expected, sizeof expected, "%s%s", paths[places[i].file], places[i].place);
        ck_assert_str_eq(wf_text_place(&text, places[i].offset, place, sizeof place), expected);
    }
    static const int64_t offsets[] = {0, 1, 2, 5, 6, 7, 8, 9, 10, 11};
    for (int64_t c = 0; c <= text.characters; c++)
        ck_assert_int_eq(wf_text_offset(&text, c), offsets[c]);
    wf_text_free(&text);
    wf_free(one);
    wf_free(two);
    wf_free(three);
    remove_test_files();
}
END_TEST

START_TEST(places_the_first_bad_byte)
{
    static const struct {
        const char *data;
        size_t length;
        const char *message;
    } cases[] = {
        {LITERAL("\xFF"), "bad:1:1: not UTF-8: byte 0xFF (offset 0)"},
        {LITERAL("ab\ncd\xE9 ef\n"), "bad:2:3: not UTF-8: byte 0xE9 (offset 5)"},
        {LITERAL("\n\n\n\x80"), "bad:4:1: not UTF-8: byte 0x80 (offset 3)"},
        {LITERAL("a\r\nb\xC0\x80"), "bad:2:2: not UTF-8: byte 0xC0 (offset 4): an overlong form"},
        {LITERAL("\xC3\xA9\xC3\xA9\xED\xA0\x80"), "bad:1:5: not UTF-8: byte 0xED (offset 4): a surrogate"},
        {LITERAL("x\xF4\x90\x80\x80"), "bad:1:2: not UTF-8: byte 0xF4 (offset 1): above U+10FFFF"},
        {LITERAL("end\n\xE2\x82"), "bad:2:1: not UTF-8: byte 0xE2 (offset 4): a sequence cut short"},
        {LITERAL("\xEF\xBB\xBF"
                 "a\x80"),
         "bad:1:5: not UTF-8: byte 0x80 (offset 4)"},
        {LITERAL("\xEF\xBB\xBF"
                 "a\nb\x80"),
         "bad:2:2: not UTF-8: byte 0x80 (offset 6)"},
        {LITERAL("a\nb\0c\x80"), "bad:2:2: a NUL byte (offset 3)"},
        {LITERAL("\0"), "bad:1:1: a NUL byte"},
        {LITERAL("\xFF\xFE"
                 "a\0"),
         "bad:1:1: this is UTF-16"},
        {LITERAL("\xFE\xFF\0a"), "bad:1:1: this is UTF-16"},
        {LITERAL(""), "bad: the file is empty"},
        {LITERAL("\xEF\xBB\xBF"), "bad: the file is empty"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct wf_text text;
        const char *path = test_file("bad", cases[i].data, cases[i].length);
        ck_fails(read_one(path, &text, error), WF_ERR_FORMAT, cases[i].message);
        ck_assert_ptr_null(text.data);
        ck_fails(wf_text_of(cases[i].data, (int64_t)cases[i].length, "bad", &text, error), WF_ERR_FORMAT, cases[i].message);
        /* The second file of two: the place is its own, and the first is given up. */
        char *bad = wf_strdup(path);
        int64_t live = wf_alloc_live();
        const char *paths[] = {test_file("good", LITERAL("good\n")), NULL};
        char *good = strdup(paths[0]);
        ck_fails(wf_text_read((const char *[]){good, bad}, 2, &text, error), WF_ERR_FORMAT, cases[i].message);
        ck_assert_int_eq(wf_alloc_live(), live);
        free(good);
        wf_free(bad);
    }
    remove_test_files();
}
END_TEST

START_TEST(files_that_cannot_be_read)
{
    struct wf_text text;
    ck_fails(wf_text_read(NULL, 0, &text, error), WF_ERR_ARGUMENT, "no text file");
    ck_fails(read_one(test_file("missing", NULL, 0), &text, error), WF_ERR_IO, "missing");
    ck_fails(read_one(test_file("", NULL, 0), &text, error), WF_ERR_IO, "weft-data-");
    const char *path = test_file("locked", LITERAL("text"));
    ck_assert_int_eq(chmod(path, 0), 0);
    if (access(path, R_OK) != 0) /* root reads everything */
        ck_fails(read_one(path, &text, error), WF_ERR_IO, "locked");
    /* A NULL error is allowed, and an earlier failure stays. */
    wf_error earlier = {0};
    wf_error_set(&earlier, WF_ERR_STATE, "first");
    ck_assert_int_eq(read_one("/nonexistent", &text, NULL), WF_ERR_IO);
    ck_assert_int_eq(read_one("/nonexistent", &text, &earlier), WF_ERR_IO);
    ck_assert_str_eq(earlier.message, "first");
    remove_test_files();
}
END_TEST

static wf_status read_two(void *ctx, wf_error *error)
{
    struct wf_text text;
    wf_status status = wf_text_read(ctx, 2, &text, error);
    if (status == WF_OK)
        ck_assert_str_eq(text.data, "onetwo");
    wf_text_free(&text);
    return status;
}

START_TEST(no_memory)
{
    char *one = wf_strdup(test_file("one", LITERAL("\xEF\xBB\xBFone"))), *two = wf_strdup(test_file("two", LITERAL("two")));
    ck_assert_int_ge(sweep_memory(read_two, (const char *[]){one, two}), 5);
    wf_free(one);
    wf_free(two);
    remove_test_files();
}
END_TEST

WF_TEST_MAIN("text", keeps_every_byte, drops_the_mark_at_the_start_only, places_the_first_bad_byte, files_that_cannot_be_read, no_memory)
