/* SPDX-License-Identifier: MIT */
/* TensorBoard's event files: records (length, masked CRC-32C, bytes, CRC) of the protocol buffers `Event` and `Summary` of
 * TensorFlow (tensorflow/core/util/event.proto, framework/summary.proto). */
#ifndef WEFT_EVENTS_H
#define WEFT_EVENTS_H

#include <weft/error.h>

WF_BEGIN_DECLS

typedef struct wf_events wf_events;

/* Opens the event file of a folder for appending: events.out.tfevents.SECONDS.HOST.weft, which is made where there is none; those of other
 * programs are left alone. Of what is there, a torn last record (of a killed process) and events of steps above `last` are removed first,
 * at one go: a resume writes them again. NULL with *error; a file that is damaged otherwise is WF_ERR_FORMAT. Built without protobuf-c:
 * WF_ERR_STATE, which says so. */
WF_API wf_events *wf_events_open(const char *folder, int64_t last, wf_error *error) WF_CHECKED;
/* Whether this library was built with protobuf-c. */
WF_API bool wf_events_available(void);
/* Appends, in one write each, so that it survives the death of the process; on a full disk the file is as before (WF_ERR_IO). wall:
 * seconds since 1970; 0: now. The file holds the value as a float. Tags and texts that are not UTF-8 are WF_ERR_ARGUMENT. */
WF_API wf_status wf_events_scalar(wf_events *events, const char *tag, int64_t step, double wall, double value, wf_error *error) WF_CHECKED;
WF_API wf_status wf_events_text(wf_events *events, const char *tag, int64_t step, double wall, const char *text, wf_error *error) WF_CHECKED;
WF_API void wf_events_close(wf_events *events); /* NULL is allowed */

WF_END_DECLS

#endif
