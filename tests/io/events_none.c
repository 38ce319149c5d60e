/* SPDX-License-Identifier: MIT */
/* A library without protobuf-c says so. */
#include "io_test.h"

START_TEST(refuses)
{
    wf_error bad = {0};
    ck_assert(!wf_events_available());
    write_text(in_folder("there"), "");
    ck_assert_ptr_null(wf_events_open(folder_of_test, 0, &bad));
    assert_message(&bad, WF_ERR_STATE, "without protobuf-c");
    ck_assert_int_eq(count_names(folder_of_test), 1);
    wf_events_close(NULL);
}
END_TEST

WF_TEST_MAIN("events_none", refuses)
