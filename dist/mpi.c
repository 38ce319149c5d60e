/* SPDX-License-Identifier: MIT */
/* The plug-in for one MPI. It is compiled once for each MPI that Meson finds, with the header of that MPI, because the types of different
 * MPIs differ. */
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

#include <weft/internal/minmax.h>
#include <weft/internal/transport.h>

enum {
    CHUNK = 1 << 30, /* bytes of a request: MPI takes counts as int */
    TAG = 77,        /* MPI tag of label 0 */
    LOOKS = 20000    /* how often `finish` with `wait` polls */
};

struct transfer {
    MPI_Request *request;
    int *peer; /* for each request, its other rank: r if it receives from rank r, ~r if it sends to rank r */
    int count, room;
    bool used;
};
struct state {
    MPI_Comm world;
    bool started; /* MPI was initialised here, so it is finalised here */
    struct transfer *transfer;
    int transfers;
};

/* Replaces wf_error_set. A plug-in can't call that, because a program into which Weft is linked statically need not export it. */
__attribute__((format(printf, 3, 4))) static wf_status set(wf_error *error, wf_status code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (error && error->code == WF_OK) {
        error->code = code;
        vsnprintf(error->message, sizeof error->message, format, args);
    }
    va_end(args);
    return code;
}

static wf_status fail(wf_error *error, const char *call, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    return set(error, WF_ERR_STATE, "%s: %s", call, text);
}

static int64_t chunks(const struct wf_message *m, int count)
{
    int64_t sum = 0;
    for (int i = 0; i < count; i++)
        sum += (m[i].bytes + CHUNK - 1) / CHUNK;
    return sum;
}

/* Posts the requests of one message, one for each CHUNK bytes. MPI keeps their order. */
static void post(struct state *s, struct transfer *x, int tag, bool send, const struct wf_message *m, int *code)
{
    for (int64_t at = 0; at < m->bytes && *code == MPI_SUCCESS; at += CHUNK) {
        int n = (int)WF_MIN(m->bytes - at, CHUNK);
        char *data = (char *)m->data + at;
        *code = send ? MPI_Isend(data, n, MPI_BYTE, m->peer, tag, s->world, &x->request[x->count])
                     : MPI_Irecv(data, n, MPI_BYTE, m->peer, tag, s->world, &x->request[x->count]);
        x->peer[x->count] = send ? ~m->peer : m->peer;
        x->count += *code == MPI_SUCCESS;
    }
}

/* Returns an unused transfer that can hold `requests` requests, or NULL if there is no memory. */
static struct transfer *new_transfer(struct state *s, int64_t requests)
{
    int i = 0;
    while (i < s->transfers && s->transfer[i].used)
        i++;
    if (i == s->transfers) {
        struct transfer *grown = realloc(s->transfer, ((size_t)s->transfers + 1) * sizeof *grown);
        if (!grown)
            return NULL;
        s->transfer = grown;
        s->transfer[s->transfers++] = (struct transfer){0};
    }
    struct transfer *x = &s->transfer[i];
    if (requests > x->room) {
        MPI_Request *request = realloc(x->request, (size_t)requests * sizeof *request);
        x->request = request ? request : x->request;
        int *peer = request ? realloc(x->peer, (size_t)requests * sizeof *peer) : NULL;
        if (!peer)
            return NULL;
        x->peer = peer;
        x->room = (int)requests;
    }
    x->count = 0;
    x->used = true;
    return x;
}

static wf_status begin(struct wf_transport *t, int label, const struct wf_message *out, int outs, const struct wf_message *in, int ins,
                       int *transfer, wf_error *error)
{
    struct state *s = t->state;
    int64_t needed = chunks(out, outs) + chunks(in, ins);
    int code = MPI_SUCCESS;
    if (needed > 1 << 24)
        return set(error, WF_ERR_ARGUMENT, "%lld messages at once", (long long)needed);
    struct transfer *x = new_transfer(s, needed);
    if (!x)
        return set(error, WF_ERR_MEMORY, "no memory for %lld messages", (long long)needed);
    *transfer = (int)(x - s->transfer);
    for (int i = 0; i < ins; i++)
        post(s, x, TAG + label, false, &in[i], &code);
    for (int i = 0; i < outs; i++)
        post(s, x, TAG + label, true, &out[i], &code);
    return code == MPI_SUCCESS ? WF_OK : fail(error, "a message between processes", code);
}

static wf_status finish(struct wf_transport *t, int transfer, bool wait, bool *done, wf_error *error)
{
    struct state *s = t->state;
    struct transfer *x = &s->transfer[transfer];
    int flag = 0, code = MPI_SUCCESS;
    for (int looks = 0; code == MPI_SUCCESS && !flag && looks < (wait ? LOOKS : 1); looks++) {
        if (looks > 0)
            sched_yield(); /* the late rank may need this processor; MPICH's MPI_Waitall would not yield it */
        code = MPI_Testall(x->count, x->request, &flag, MPI_STATUSES_IGNORE);
    }
    *done = code == MPI_SUCCESS && flag;
    x->used = !*done;
    return code == MPI_SUCCESS ? WF_OK : fail(error, "a message between processes", code);
}

static void late(struct wf_transport *t, int transfer, bool *late)
{
    const struct state *s = t->state;
    const struct transfer *x = &s->transfer[transfer];
    bool found = false;
    for (int send = 0; send < 2 && !found; send++)
        for (int i = 0; i < x->count; i++) {
            int flag = 1;
            if ((x->peer[i] < 0) != send || MPI_Request_get_status(x->request[i], &flag, MPI_STATUS_IGNORE) != MPI_SUCCESS || flag)
                continue;
            late[send ? ~x->peer[i] : x->peer[i]] = true;
            found = true;
        }
}

static void destroy(struct wf_transport *t)
{
    struct state *s = t->state;
    for (int i = 0; i < s->transfers; i++) {
        free(s->transfer[i].request);
        free(s->transfer[i].peer);
    }
    free(s->transfer);
    free(s);
    free(t);
}

static void close_world(struct wf_transport *t)
{
    struct state *s = t->state;
    int over = 0;
    MPI_Finalized(&over);
    if (!over)
        MPI_Comm_free(&s->world);
    if (!over && s->started)
        MPI_Finalize();
    destroy(t);
}

static void abort_all(struct wf_transport *t, int code)
{
    int over = 0;
    MPI_Finalized(&over);
    if (!over)
        MPI_Abort(((struct state *)t->state)->world, code);
}

__attribute__((visibility("default"))) wf_transport_open_function wf_transport_open;

struct wf_transport *wf_transport_open(wf_error *error)
{
    struct wf_transport *t = calloc(1, sizeof *t);
    struct state *s = calloc(1, sizeof *s);
    int provided, running = 0;
    if (!t || !s) {
        free(t);
        free(s);
        set(error, WF_ERR_MEMORY, "no memory for a communicator");
        return NULL;
    }
    *t = (struct wf_transport){.abi = WF_TRANSPORT_ABI,
                               .library = WF_MPI_NAME,
                               .state = s,
                               .begin = begin,
                               .finish = finish,
                               .late = late,
                               .close = close_world,
                               .abort = abort_all};
    s->world = MPI_COMM_WORLD;
    MPI_Initialized(&running);
    s->started = !running;
    int code = running ? MPI_SUCCESS : MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_dup(MPI_COMM_WORLD, &s->world); /* so that messages of the program never match Weft's */
    if (code == MPI_SUCCESS)
        code = MPI_Comm_set_errhandler(s->world, MPI_ERRORS_RETURN);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_rank(s->world, &t->rank);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_size(s->world, &t->size);
    if (code == MPI_SUCCESS)
        return t;
    fail(error, WF_MPI_NAME " does not start", code);
    destroy(t);
    return NULL;
}
