/* SPDX-License-Identifier: MIT */
#include "check_weft.h"
#include <weft/internal/name_table.h>

enum { MANY = 5000 };
static char name[MANY][16];

START_TEST(finds_what_it_was_given)
{
    struct wf_name_table t = {0};
    ck_assert_int_eq(wf_name_table_find(&t, "a", 1), -1);
    for (int i = 0; i < MANY; i++) {
        int length = snprintf(name[i], sizeof name[i], i % 2 ? "layers.%d" : "%d", i);
        ck_assert_int_eq(wf_name_table_find(&t, name[i], (size_t)length), -1);
        ck_assert(wf_name_table_add(&t, name[i], 3 * i));
    }
    ck_assert(wf_name_table_add(&t, "", 77));
    ck_assert_int_eq(t.count, MANY + 1);
    for (int i = 0; i < MANY; i++)
        ck_assert_int_eq(wf_name_table_find(&t, name[i], strlen(name[i])), 3 * i);
    ck_assert_int_eq(wf_name_table_find(&t, "", 0), 77);
    /* a piece of a longer text, the beginning of a name, and a name with more behind it */
    ck_assert_int_eq(wf_name_table_find(&t, "layers.17.weight", 9), 3 * 17);
    ck_assert_int_eq(wf_name_table_find(&t, "layers.", 7), -1);
    ck_assert_int_eq(wf_name_table_find(&t, "layers.17.", 10), -1);
    ck_assert_int_eq(wf_name_table_find(&t, "layers.17\0", 10), -1);
    wf_name_table_free(&t);
    ck_assert_int_eq(wf_name_table_find(&t, "layers.17", 9), -1);
    wf_name_table_free(&t);
}
END_TEST

START_TEST(without_memory)
{
    struct wf_name_table t = {0};
    int64_t live = wf_alloc_live();
    int failures = 0;
    for (int i = 0; i < 200; i++) {
        int length = snprintf(name[i], sizeof name[i], "%d", i);
        wf_alloc_fail_after(0);
        if (!wf_name_table_add(&t, name[i], i)) {
            failures++;
            ck_assert_int_eq(wf_name_table_find(&t, name[i], (size_t)length), -1);
            ck_assert(wf_name_table_add(&t, name[i], i));
        }
        wf_alloc_fail_after(-1);
    }
    ck_assert_int_eq(failures, 4); /* room for 32, 64, 128 and 256 names */
    for (int i = 0; i < 200; i++)
        ck_assert_int_eq(wf_name_table_find(&t, name[i], strlen(name[i])), i);
    wf_name_table_free(&t);
    ck_assert_int_eq(wf_alloc_live(), live);
}
END_TEST

WF_TEST_MAIN("name_table", finds_what_it_was_given, without_memory)
