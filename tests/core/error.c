/* SPDX-License-Identifier: MIT */
#include "check_weft.h"

START_TEST(first_wins)
{
    wf_error e = {0};
    ck_assert_int_eq(wf_error_set(&e, WF_ERR_IO, "file %s: %d", "a", 3), WF_ERR_IO);
    ck_assert_int_eq(wf_error_set(&e, WF_ERR_SHAPE, "second"), WF_ERR_SHAPE);
    ck_assert_int_eq(e.code, WF_ERR_IO);
    ck_assert_str_eq(e.message, "file a: 3");
    wf_error_clear(&e);
    ck_assert_int_eq(e.code, WF_OK);
    ck_assert_str_eq(e.message, "");
    wf_error_set(&e, WF_ERR_SHAPE, "third");
    ck_assert_str_eq(e.message, "third");
}
END_TEST

START_TEST(null_is_fine)
{
    ck_assert_int_eq(wf_error_set(NULL, WF_ERR_BUSY, "%d", 1), WF_ERR_BUSY);
    wf_error_prefix(NULL, "x");
    wf_error_clear(NULL);
}
END_TEST

START_TEST(prefix)
{
    wf_error e = {0};
    wf_error_prefix(&e, "nothing");
    ck_assert_str_eq(e.message, "");
    wf_error_set(&e, WF_ERR_FORMAT, "bad length");
    wf_error_prefix(&e, "line %d", 7);
    wf_error_prefix(&e, "file");
    ck_assert_str_eq(e.message, "file: line 7: bad length");
    ck_assert_int_eq(e.code, WF_ERR_FORMAT);
}
END_TEST

/* Long messages end with a whole character, wherever the cut falls, and messages are one line. */
START_TEST(cut_and_one_line)
{
    static const char *const letters[] = {"a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    for (size_t l = 0; l < 4; l++)
        for (size_t shift = 0; shift < 5; shift++) {
            char text[3000] = "";
            memset(text, 'x', shift);
            size_t size = strlen(letters[l]);
            for (size_t at = shift; at + size < 2900; at += size)
                memcpy(text + at, letters[l], size);
            wf_error e = {0};
            wf_error_set(&e, WF_ERR_IO, "%s", text);
            size_t length = strlen(e.message);
            ck_assert_uint_lt(length, sizeof e.message);
            ck_assert_uint_ge(length, sizeof e.message - 4);
            ck_assert_uint_eq((length - shift) % size, 0);
            ck_assert_int_eq(memcmp(e.message, text, length), 0);
            wf_error_prefix(&e, "ab");
            length = strlen(e.message);
            ck_assert_uint_ge(length, sizeof e.message - 4);
            ck_assert_uint_eq((length - 4 - shift) % size, 0);
        }
    wf_error e = {0};
    wf_error_set(&e, WF_ERR_IO, "two\nlines\tand\x1b[31m");
    ck_assert_str_eq(e.message, "two lines and [31m");
}
END_TEST

START_TEST(names)
{
    for (int i = WF_OK; i <= WF_ERR_TIME; i++)
        for (int j = WF_OK; j < i; j++)
            ck_assert_str_ne(wf_status_name((wf_status)i), wf_status_name((wf_status)j));
    ck_assert_str_eq(wf_status_name(WF_ERR_ARGUMENT), "argument");
    ck_assert_str_eq(wf_status_name(WF_ERR_CANCELLED), "cancelled");
    ck_assert_str_eq(wf_status_name((wf_status)99), "unknown");
}
END_TEST

WF_TEST_MAIN("error", first_wins, null_is_fine, prefix, cut_and_one_line, names)
