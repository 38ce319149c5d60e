/* SPDX-License-Identifier: MIT */
/* The event files of TensorBoard in a folder, and the records in them. */
#ifndef WEFT_INTERNAL_EVENT_FILES_H
#define WEFT_INTERNAL_EVENT_FILES_H

#include <weft/internal/files.h>

/* Lists the names of the event files that Weft has written into a folder, oldest first: events.out.tfevents.SECONDS.HOST.weft. TensorBoard
 * reads every file with "tfevents" in its name. The ending .weft distinguishes Weft's files from event files of other programs, which are
 * not changed. Works without protobuf-c too. */
wf_status wf_event_files(const char *folder, struct wf_names *names, wf_error *error) WF_CHECKED;
/* Returns the name of a new event file, which the caller frees with wf_free. */
char *wf_event_file_name(int64_t seconds, const char *host);

/* A record consists of the length of its data (8 bytes), a checksum of these 8 bytes (4 bytes), the data, and a checksum of the data (4
 * bytes), all little-endian (tensorflow/core/lib/io/record_writer.h). The checksum is a masked CRC-32C. */
enum { WF_RECORD_HEAD = 12, WF_RECORD_TAIL = 4 };
uint32_t wf_record_checksum(const void *data, int64_t bytes);
/* CRC-32C (Castagnoli; RFC 3720, appendix B.4): polynomial 0x1edc6f41, bits reflected. */
uint32_t wf_crc32c(const void *data, int64_t bytes);

/* Removes the events of steps above `last`, and an incomplete last record, from the bytes of an event file. Moves the other records to the
 * front of `data` and sets *kept to their length. *prefix becomes true if no record had to move. WF_ERR_FORMAT, with `where` and the byte:
 * a checksum is wrong, the data of a record are not an event, or the first event does not give the version of the format. Only in builds
 * with protobuf-c. */
wf_status wf_event_records_keep(char *data, int64_t bytes, int64_t last, const char *where, int64_t *kept, bool *prefix,
                                wf_error *error) WF_CHECKED;

#endif
