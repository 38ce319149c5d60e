/* SPDX-License-Identifier: MIT */
/* What stands between Weft and an MPI: messages from process to process, and nothing that computes. A plug-in, weft-mpi-NAME.so, has one
 * function, wf_transport_open. */
#ifndef WEFT_INTERNAL_TRANSPORT_H
#define WEFT_INTERNAL_TRANSPORT_H

#include <weft/error.h>

WF_BEGIN_DECLS

struct wf_message {
    int peer;
    void *data; /* read or written; not NULL where bytes > 0 */
    int64_t bytes;
};
enum { WF_TRANSPORT_ABI = 1 };
struct wf_transport {
    int abi; /* WF_TRANSPORT_ABI */
    int rank, size;
    const char *library; /* which MPI, for messages */
    void *state;         /* of the plug-in */
    /* Sends all `out` and receives all `in`, and returns when both are done. Messages between two processes keep their order. Each message
     * meets one of the same size on the other side. */
    wf_status (*exchange)(struct wf_transport *t, const struct wf_message *out, int outs, const struct wf_message *in, int ins,
                          wf_error *error);
    void (*close)(struct wf_transport *t);           /* all processes do; frees t */
    void (*abort)(struct wf_transport *t, int code); /* ends all processes */
};
/* NULL: *error. */
typedef struct wf_transport *wf_transport_open_function(wf_error *error);

WF_END_DECLS

#endif
