/* SPDX-License-Identifier: MIT */
/* Reads an event file that may be damaged, for the fuzzer and the tests of event files. */
#ifndef TESTS_FUZZ_EVENTS_H
#define TESTS_FUZZ_EVENTS_H

#include <stdlib.h>
#include <string.h>

#include <weft/internal/event_files.h>
#include <weft/memory.h>

#define EVENTS_CHECK(condition) ((condition) ? (void)0 : abort())

/* Drops the records after a step; doing so again changes nothing. Returns whether the file was accepted. */
static inline bool drop_events(const unsigned char *data, size_t bytes, int64_t last)
{
    wf_error error = {0};
    int64_t kept, again;
    bool prefix;
    char *copy = wf_alloc(bytes + 1), *second = wf_alloc(bytes + 1);
    EVENTS_CHECK(copy && second);
    if (bytes > 0)
        memcpy(copy, data, bytes);
    wf_status status = wf_event_records_keep(copy, (int64_t)bytes, last, "fuzz", &kept, &prefix, &error);
    if (status != WF_OK) {
        EVENTS_CHECK(status == WF_ERR_FORMAT && !strncmp(error.message, "fuzz: byte ", 11) && !strchr(error.message, '\n'));
    } else {
        EVENTS_CHECK(kept >= 0 && kept <= (int64_t)bytes && (!prefix || !memcmp(copy, data, (size_t)kept)));
        memcpy(second, copy, (size_t)kept);
        EVENTS_CHECK(wf_event_records_keep(second, kept, last, "fuzz", &again, &prefix, NULL) == WF_OK);
        EVENTS_CHECK(again == kept && prefix && !memcmp(second, copy, (size_t)kept));
    }
    wf_free(copy);
    wf_free(second);
    return status == WF_OK;
}

/* One record around some bytes, so that what is inside gets looked at. Returns its length. */
static inline size_t make_record(const unsigned char *content, size_t bytes, unsigned char *out)
{
    uint64_t length = bytes;
    memcpy(out, &length, 8);
    memcpy(out + 8, &(uint32_t){wf_record_checksum(out, 8)}, 4);
    memcpy(out + 12, content, bytes);
    memcpy(out + 12 + bytes, &(uint32_t){wf_record_checksum(content, (int64_t)bytes)}, 4);
    return bytes + 16;
}

#endif
