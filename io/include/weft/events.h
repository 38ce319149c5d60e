/* SPDX-License-Identifier: MIT */
/* Writes event files for TensorBoard. An event file is a sequence of records. Each record has the length of its data, a checksum of the
 * length, the data, and a checksum of the data. Both checksums are CRC-32C, masked as TensorFlow does. The data are the protocol buffers
 * `Event` and `Summary` of TensorFlow (tensorflow/core/util/event.proto, framework/summary.proto). */
#ifndef WEFT_EVENTS_H
#define WEFT_EVENTS_H

#include <weft/error.h>

WF_BEGIN_DECLS

typedef struct wf_events wf_events;

/* Opens the event file of a folder for appending: events.out.tfevents.SECONDS.HOST.weft. Creates the file if it does not exist. Event files
 * of other programs are not changed. Before any event is appended, wf_events_open atomically removes an incomplete last record, as a killed
 * process leaves it, and the events of steps above `last`, because a resume writes these events again. Returns NULL and sets *error on
 * failure: WF_ERR_FORMAT if the file is damaged in any other way, WF_ERR_STATE in a build without protobuf-c. */
WF_API wf_events *wf_events_open(const char *folder, int64_t last, wf_error *error) WF_CHECKED;
/* Returns true if this library was built with protobuf-c. */
WF_API bool wf_events_available(void);
/* Appends an event with one write, so that the event survives a crash of the process. On a full disk the file stays unchanged (WF_ERR_IO).
 * `wall` is the time of the event in seconds since 1970; 0 means now. `value` is stored as a float. WF_ERR_ARGUMENT: `tag` or `text` is not
 * UTF-8. */
WF_API wf_status wf_events_scalar(wf_events *events, const char *tag, int64_t step, double wall, double value, wf_error *error) WF_CHECKED;
WF_API wf_status wf_events_text(wf_events *events, const char *tag, int64_t step, double wall, const char *text,
                                wf_error *error) WF_CHECKED;
WF_API void wf_events_close(wf_events *events); /* `events` may be NULL */

WF_END_DECLS

#endif
