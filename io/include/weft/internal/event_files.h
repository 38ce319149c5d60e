/* SPDX-License-Identifier: MIT */
/* The event files of a folder, and the records in them. */
#ifndef WEFT_INTERNAL_EVENT_FILES_H
#define WEFT_INTERNAL_EVENT_FILES_H

#include <weft/internal/files.h>

/* The names of the event files that Weft wrote into a folder, oldest first: events.out.tfevents.SECONDS.HOST.weft. TensorBoard
 * takes whatever has "tfevents" in its name; by the end we know ours, and leave alone what other programs log beside it.
 * Also in a library without protobuf-c. */
wf_status wf_event_files(const char *folder, struct wf_names *names, wf_error *error) WF_CHECKED;
/* The name of a new one; wf_free. */
char *wf_event_file_name(int64_t seconds, const char *host);

/* A record is the length of its data (8 bytes), a checksum of these 8 (4), the data, and a checksum of the data (4), all little-endian
 * (tensorflow/core/lib/io/record_writer.h). The checksum is a CRC-32C, masked. */
enum { WF_RECORD_HEAD = 12, WF_RECORD_TAIL = 4 };
uint32_t wf_record_checksum(const void *data, int64_t bytes);
/* CRC-32C (Castagnoli; RFC 3720, appendix B.4): polynomial 0x1edc6f41, bits reflected. */
uint32_t wf_crc32c(const void *data, int64_t bytes);

/* Moves the records of the bytes of an event file that stay, those whose event is of step `last` or before, to the front of `data`;
 * *kept is their length. *prefix: they are where they were. A torn last record goes. WF_ERR_FORMAT with `where` and the byte:
 * a checksum that is wrong, data that is no event, a first event that does not name the version of the format. Only with protobuf-c. */
wf_status wf_event_records_keep(char *data, int64_t bytes, int64_t last, const char *where, int64_t *kept, bool *prefix,
                                wf_error *error) WF_CHECKED;

#endif
