/* SPDX-License-Identifier: MIT */
/* The check of packed rows, and its message. */
#include "check_weft.h"

#include <weft/packed.h>

#define PACKED(n, ...) ((struct wf_packed){(const int32_t[]){__VA_ARGS__}, n})

START_TEST(taken)
{
    ck_ok(wf_packed_check(PACKED(3, 0, 4, 4, 9), 9, "x", error));
    ck_ok(wf_packed_check(PACKED(0, 0), 0, "x", error));
    ck_ok(wf_packed_check(PACKED(2, 0, 0, 0), 0, "x", error));
    ck_assert_int_eq(wf_packed_longest(PACKED(3, 0, 4, 4, 9)), 5);
    ck_assert_int_eq(wf_packed_longest(PACKED(0, 0)), 0);
    ck_assert_int_eq(wf_packed_longest((struct wf_packed){0}), 0);
    ck_assert(wf_is_packed(PACKED(0, 0)) && wf_is_packed((struct wf_packed){NULL, 1}) && !wf_is_packed((struct wf_packed){0}));
}
END_TEST

START_TEST(refused)
{
    const struct {
        struct wf_packed packed;
        const char *says;
    } bad[] = {
        {{(const int32_t[]){1, 4}, 1},
         "f: k_packed: offsets[0] = 1, but offsets of 1 sequences must begin with 0, never fall, and end with"},
        {{(const int32_t[]){0, 5, 3, 4}, 3}, "f: k_packed: offsets[2] = 3 after 5, but offsets of 3 sequences must begin with 0"},
        {{(const int32_t[]){0, -1, 4}, 2}, "f: k_packed: offsets[1] = -1 after 0, but"},
        {{(const int32_t[]){0, 3}, 1},
         "f: k_packed: offsets[1] = 3 after 0, but offsets of 1 sequences must begin with 0, never fall, and end "
         "with the number of rows, 4"},
        {{(const int32_t[]){0}, 0}, "f: k_packed: offsets[0] = 0, but offsets of 0 sequences"},
        {{(const int32_t[]){0, 4}, -1}, "f: k_packed: count = -1 sequences is negative"},
        {{NULL, 2}, "f: k_packed: the offsets of 2 sequences are NULL"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_fails(wf_packed_check(bad[i].packed, 4, "f: k_packed", error), WF_ERR_ARGUMENT, bad[i].says);
}
END_TEST

WF_TEST_MAIN("packed", taken, refused)
