/* SPDX-License-Identifier: MIT */
/* Reads event files for a resume, and checks every record, because a file in the folder may be damaged or come from another program. */
#include <inttypes.h>
#include <string.h>

#include <weft/internal/event_files.h>
#include <weft/memory.h>

#include "events.pb-c.h"

/* Processes four bits at a time: table[i] is the CRC of the four bits i. */
uint32_t wf_crc32c(const void *data, int64_t bytes)
{
    static const uint32_t table[16] = {0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
                                       0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75};
    const unsigned char *byte = data;
    uint32_t crc = ~(uint32_t)0;
    for (int64_t i = 0; i < bytes; i++) {
        crc ^= byte[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return ~crc;
}

uint32_t wf_record_checksum(const void *data, int64_t bytes)
{
    uint32_t crc = wf_crc32c(data, bytes);
    return (crc >> 15 | crc << 17) + 0xa282ead8u; /* the mask of TensorFlow's records */
}

static uint32_t load32(const char *p)
{
    uint32_t value;
    memcpy(&value, p, sizeof value); /* little-endian, like all machines that meson.build allows */
    return value;
}

static void *take(void *failed, size_t bytes)
{
    void *block = wf_alloc(bytes);
    if (!block)
        *(bool *)failed = true;
    return block;
}

static void give(void *failed, void *block)
{
    (void)failed;
    wf_free(block);
}

struct event {
    bool versioned; /* the event names a known version of the format */
    int64_t step;
};

static wf_status decode(const char *data, int64_t bytes, struct event *out)
{
    bool failed = false;
    ProtobufCAllocator allocator = {.alloc = take, .free = give, .allocator_data = &failed};
    Wf__Event *event = wf__event__unpack(&allocator, (size_t)bytes, (const uint8_t *)data);
    if (!event)
        return failed ? WF_ERR_MEMORY : WF_ERR_FORMAT;
    *out = (struct event){.step = event->step,
                          .versioned = event->what_case == WF__EVENT__WHAT_FILE_VERSION && event->file_version &&
                                       strncmp(event->file_version, "brain.Event:", 12) == 0};
    wf__event__free_unpacked(event, &allocator);
    return WF_OK;
}

static wf_status damaged(const char *where, int64_t at, const char *what, wf_error *error)
{
    return wf_error_set(error, WF_ERR_FORMAT, "%s: byte %" PRId64 ": %s", where, at, what);
}

wf_status wf_event_records_keep(char *data, int64_t bytes, int64_t last, const char *where, int64_t *kept, bool *prefix, wf_error *error)
{
    *kept = 0;
    *prefix = true;
    for (int64_t at = 0, size; bytes - at >= WF_RECORD_HEAD; at += size) {
        uint64_t length;
        memcpy(&length, data + at, sizeof length);
        if (load32(data + at + 8) != wf_record_checksum(data + at, 8))
            return damaged(where, at, "not a record: its length's checksum is wrong", error);
        if (length > (uint64_t)(bytes - at) || bytes - at - (int64_t)length < WF_RECORD_HEAD + WF_RECORD_TAIL)
            break; /* an incomplete last record */
        const char *content = data + at + WF_RECORD_HEAD;
        size = WF_RECORD_HEAD + (int64_t)length + WF_RECORD_TAIL;
        if (load32(content + length) != wf_record_checksum(content, (int64_t)length))
            return damaged(where, at, "the record's checksum is wrong", error);
        struct event event = {0};
        wf_status status = decode(content, (int64_t)length, &event);
        if (status == WF_ERR_MEMORY)
            return wf_error_set(error, status, "%s: no memory for the record at byte %" PRId64, where, at);
        if (status != WF_OK)
            return damaged(where, at, "the record is not a TensorBoard event", error);
        if (at == 0 && !event.versioned)
            return damaged(where, at, "not an event file: the first event's file_version is not brain.Event:2", error);
        if (at > 0 && event.step > last)
            continue;
        *prefix &= *kept == at;
        memmove(data + *kept, data + at, (size_t)size);
        *kept += size;
    }
    return WF_OK;
}
