/* SPDX-License-Identifier: MIT */
/* Reading event files back, for tests: records with their checksums, events by protobuf-c. */
#ifndef TESTS_EVENTS_TEST_H
#define TESTS_EVENTS_TEST_H

#include <string.h>

#include <check.h>
#include <weft/internal/event_files.h>
#include <weft/memory.h>

#include "events.pb-c.h"

static inline unsigned char *load_bytes(const char *path, int64_t *bytes)
{
    wf_error bad = {0};
    char *data = wf_file_load(path, 1 << 24, bytes, &bad);
    ck_assert_msg(data != NULL, "%s", bad.message);
    return (unsigned char *)data;
}

/* The event of the record at *at, which goes on to the next; NULL at the end. */
static inline Wf__Event *next_event(const unsigned char *data, int64_t bytes, int64_t *at)
{
    if (*at == bytes)
        return NULL;
    uint64_t length;
    uint32_t sum;
    ck_assert_int_ge(bytes - *at, 16);
    memcpy(&length, data + *at, 8);
    memcpy(&sum, data + *at + 8, 4);
    ck_assert_uint_eq(sum, wf_record_checksum(data + *at, 8));
    ck_assert_uint_le(length, (uint64_t)(bytes - *at - 16));
    memcpy(&sum, data + *at + 12 + length, 4);
    ck_assert_uint_eq(sum, wf_record_checksum(data + *at + 12, (int64_t)length));
    Wf__Event *event = wf__event__unpack(NULL, length, data + *at + 12);
    ck_assert_ptr_nonnull(event);
    *at += (int64_t)length + 16;
    return event;
}

#endif
