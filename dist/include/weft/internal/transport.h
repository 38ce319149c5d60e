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
enum { WF_TRANSPORT_ABI = 3, WF_TRANSPORT_LABELS = 16384 };
struct wf_transport {
    int abi; /* WF_TRANSPORT_ABI */
    int rank, size;
    const char *library; /* which MPI, for messages */
    void *state;         /* of the plug-in */
    /* Begins to send all `out` and to receive all `in`, whose data stay in use until finish says that they are done; *transfer is its
     * number. Messages of one label, 0 .. WF_TRANSPORT_LABELS - 1, between two processes keep their order, and each meets one of the same
     * size on the other side. */
    wf_status (*begin)(struct wf_transport *t, int label, const struct wf_message *out, int outs, const struct wf_message *in, int ins,
                       int *transfer, wf_error *error);
    /* Whether a transfer is done, whose number is free then. Also moves on what else is under way. With `wait` it looks many times, for
     * some hundredths of a second, before it says that it is not. */
    wf_status (*finish)(struct wf_transport *t, int transfer, bool wait, bool *done, wf_error *error);
    /* Of a transfer that is not done: sets late[peer], of [size], for each process whose message has not come; where all have, for each
     * that has not taken one. */
    void (*late)(struct wf_transport *t, int transfer, bool *late);
    void (*close)(struct wf_transport *t);           /* all processes do; frees t */
    void (*abort)(struct wf_transport *t, int code); /* ends all processes */
};
/* NULL: *error. */
typedef struct wf_transport *wf_transport_open_function(wf_error *error);

WF_END_DECLS

#endif
