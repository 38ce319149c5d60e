/* SPDX-License-Identifier: MIT */
/* The reader of event files under libFuzzer. */
#include "events.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Once as a file, once as the contents of two records: each checksum would keep the fuzzer out. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const int64_t last[] = {-2, 0, 20, INT64_MAX};
    for (int i = 0; i < 4; i++)
        drop_events(data, bytes, last[i]);
    size_t half = bytes > 0 ? data[0] % bytes : 0;
    unsigned char *records = wf_alloc(bytes + 32);
    EVENTS_CHECK(records);
    size_t used = make_record(data, half, records);
    used += make_record(data + half, bytes - half, records + used);
    drop_events(records, used, 20);
    wf_free(records);
    return 0;
}
