/* SPDX-License-Identifier: MIT */
/* The interface between Weft and an MPI: sends and receives bytes, without arithmetic. A plug-in, weft-mpi-NAME.so, exports one function,
 * wf_transport_open. */
#ifndef WEFT_INTERNAL_TRANSPORT_H
#define WEFT_INTERNAL_TRANSPORT_H

#include <weft/error.h>

WF_BEGIN_DECLS

struct wf_message {
    int peer;   /* the rank at the other end */
    void *data; /* read or written; not NULL if bytes > 0 */
    int64_t bytes;
};
enum {
    WF_TRANSPORT_ABI = 3, /* version of this interface */
    WF_TRANSPORT_LABELS = 16384
};
struct wf_transport {
    int abi; /* WF_TRANSPORT_ABI */
    int rank, size;
    const char *library; /* name of the MPI, for error messages */
    void *state;         /* data of the plug-in */
    /* Begins to send all messages `out` and to receive all messages `in`. Sets *transfer to the number of this transfer. The data stay in
     * use until `finish` sets *done. Messages of one label, 0 .. WF_TRANSPORT_LABELS - 1, between two ranks keep their order, and both
     * ranks give the same sizes. */
    wf_status (*begin)(struct wf_transport *t, int label, const struct wf_message *out, int outs, const struct wf_message *in, int ins,
                       int *transfer, wf_error *error);
    /* Sets *done to whether the transfer is done; then its number may be used again. Each call also lets the MPI work on other transfers.
     * With `wait`, polls for some hundredths of a second before it returns with *done = false. */
    wf_status (*finish)(struct wf_transport *t, int transfer, bool wait, bool *done, wf_error *error);
    /* Names the late ranks of a transfer that is not done. Sets late[r] to true for each rank r whose message has not arrived. If all
     * messages have arrived, sets late[r] for each rank r that has not received a message of this rank. `late` has `size` elements. */
    void (*late)(struct wf_transport *t, int transfer, bool *late);
    void (*close)(struct wf_transport *t);           /* called by all ranks; frees t */
    void (*abort)(struct wf_transport *t, int code); /* ends all ranks */
};
/* Starts the MPI. Returns NULL and sets *error if that fails. */
typedef struct wf_transport *wf_transport_open_function(wf_error *error);

WF_END_DECLS

#endif
