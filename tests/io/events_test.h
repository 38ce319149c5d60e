/* SPDX-License-Identifier: MIT */
/* Shared by the tests of event files. */
#ifndef TESTS_IO_EVENTS_TEST_H
#define TESTS_IO_EVENTS_TEST_H

#include "../events_test.h"
#include "io_test.h"

static inline wf_events *open_events(int64_t last)
{
    in_folder("");
    return ck_makes(wf_events_open(folder_of_test, last, error));
}

/* The one event file of the test's folder. */
static inline const char *file_of_test(void)
{
    struct wf_names names;
    ck_ok(wf_event_files(folder_of_test, &names, error));
    ck_assert_int_eq(names.count, 1);
    const char *path = in_folder(names.name[0]);
    wf_names_free(&names);
    return path;
}

static inline void use_file(const void *data, size_t bytes)
{
    write_file(in_folder("events.out.tfevents.1700000000.there.weft"), data, bytes);
}

/* The steps of a file's events, "0 10 20"; the version record's 0 is left out. */
static inline const char *steps_of(const char *path)
{
    static char text[4096];
    int64_t bytes, at = 0;
    unsigned char *data = load_bytes(path, &bytes);
    text[0] = 0;
    for (Wf__Event *event; (event = next_event(data, bytes, &at)); wf__event__free_unpacked(event, NULL))
        if (event->what_case != WF__EVENT__WHAT_FILE_VERSION)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%lld", text[0] ? " " : "", (long long)event->step);
    wf_free(data);
    return text;
}

/* The bytes of the first record: it names the writer. */
static inline int64_t first_record(const unsigned char *data)
{
    uint64_t length;
    memcpy(&length, data, 8);
    return 16 + (int64_t)length;
}

#endif
