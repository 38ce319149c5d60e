/* SPDX-License-Identifier: MIT */
/* TensorBoard's event files: records (length, masked CRC-32C, bytes, CRC) of the protocol buffers `Event` and `Summary` of
 * TensorFlow (tensorflow/core/util/event.proto, framework/summary.proto). */
#ifndef WEFT_EVENTS_H
#define WEFT_EVENTS_H

#include <weft/error.h>

WF_BEGIN_DECLS

typedef struct wf_events wf_events;

/* Opens the event file of a folder for appending: events.out.tfevents.SECONDS.HOST.weft, which is created if it does not exist; event files
 * of other programs are not changed. An incomplete last record (of a killed process) and events of steps above `last` are removed first,
 * atomically: a resume writes them again. NULL with *error; any other damage is WF_ERR_FORMAT. In a build without protobuf-c:
 * WF_ERR_STATE. */
WF_API wf_events *wf_events_open(const char *folder, int64_t last, wf_error *error) WF_CHECKED;
/* Whether this library was built with protobuf-c. */
WF_API bool wf_events_available(void);
/* Appends an event with one write, so that it survives a crash of the process; on a full disk the file is unchanged (WF_ERR_IO). wall:
 * seconds since 1970; 0: now. The file holds the value as a float. Tags and texts that are not UTF-8 are WF_ERR_ARGUMENT. */
WF_API wf_status wf_events_scalar(wf_events *events, const char *tag, int64_t step, double wall, double value, wf_error *error) WF_CHECKED;
WF_API wf_status wf_events_text(wf_events *events, const char *tag, int64_t step, double wall, const char *text,
                                wf_error *error) WF_CHECKED;
WF_API void wf_events_close(wf_events *events); /* NULL is allowed */

WF_END_DECLS

#endif
