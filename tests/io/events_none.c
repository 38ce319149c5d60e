/* SPDX-License-Identifier: MIT */
/* A library without protobuf-c says so. */
#include "io_test.h"

START_TEST(refuses)
{
    ck_assert(!wf_events_available());
    write_text(in_folder("there"), "");
    ck_fails_null(wf_events_open(folder_of_test, 0, error), WF_ERR_STATE, "without protobuf-c");
    ck_assert_int_eq(count_names(folder_of_test), 1);
    wf_events_close(NULL);
}
END_TEST

WF_TEST_MAIN("events_none", refuses)
