/* SPDX-License-Identifier: MIT */
/* The world of ranks and its collective calls. Each call starts its messages with `begin` of the transport and waits for them with
 * `finish`. */
#include <weft/dist.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weft/compute.h>
#include <weft/internal/dist.h>
#include <weft/internal/minmax.h>
#include <weft/memory.h>

#include "plugin.h"

enum { PATIENCE = 60 }; /* seconds after which a wait is reported, if wf_dist_watch.seconds is 0 */
struct outcome {        /* what each rank sends in wf_dist_agree_as */
    int32_t status, weight;
};
struct wf_dist {
    int rank, size, local_rank;
    struct wf_transport *transport; /* NULL with one process */
    struct wf_message *message;     /* [2 size]: scratch of the collective calls */
    struct outcome *outcome;        /* [size]: scratch of wf_dist_agree_as */
    bool *late;                     /* [size]: scratch of report_wait */
    struct wf_dist_watch watch;
    pid_t owner;  /* the process that opened the world: a forked child must not close it */
    int together; /* depth of nested calls of wf_dist_together; if > 0, the other ranks wait for this one, or will */
    bool agreed;  /* all ranks know of a failure, so each may exit with an error */
    bool lost;    /* a message has failed: the ranks are out of step, and no further message is sent */
};

static struct wf_dist world;
static bool opened;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Aborts all ranks if this rank exits while the other ranks wait for it, or exits with an error that they do not know of. */
static void at_exit(int code, void *unused)
{
    (void)unused;
    if (!world.transport || world.owner != getpid())
        return;
    if (world.together > 0 || (code != 0 && !world.agreed)) /* prints nothing, because the MPI names the rank that aborted */
        world.transport->abort(world.transport, 1);
    world.transport->close(world.transport);
    world.transport = NULL;
    wf_free(world.message);
    wf_free(world.outcome);
    wf_free(world.late);
}

static wf_status open_world(wf_error *error)
{
    const struct wf_launcher launcher = wf_launcher();
    struct wf_dist d = {.size = 1, .owner = getpid()};
    if (launcher.kind != WF_LAUNCHER_NONE && launcher.size > 1) {
        if (!(d.transport = plugin_open(&launcher, error)))
            return error->code;
        d.rank = d.transport->rank;
        d.size = d.transport->size;
        d.local_rank = launcher.local_rank;
    }
    d.message = wf_alloc_zero(2 * (size_t)d.size, sizeof *d.message);
    d.outcome = wf_alloc_zero((size_t)d.size, sizeof *d.outcome);
    d.late = wf_alloc_zero((size_t)d.size, sizeof *d.late);
    if (!d.message || !d.outcome || !d.late)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for a communicator");
    world = d;
    opened = true;
    if (d.transport)
        on_exit(at_exit, NULL);
    return WF_OK;
}

wf_dist *wf_dist_world(wf_error *error)
{
    wf_error failure = {0};
    pthread_mutex_lock(&lock);
    wf_status status = opened ? WF_OK : open_world(&failure);
    pthread_mutex_unlock(&lock);
    if (status == WF_OK)
        return &world;
    wf_error_set(error, status, "%s", failure.message);
    return NULL;
}

int wf_dist_rank(const wf_dist *dist)
{
    return dist ? dist->rank : 0;
}

int wf_dist_size(const wf_dist *dist)
{
    return dist ? dist->size : 1;
}

int wf_dist_local_rank(const wf_dist *dist)
{
    return dist ? dist->local_rank : 0;
}

void wf_dist_together(wf_dist *dist, bool begin)
{
    if (dist)
        dist->together += begin ? 1 : -1;
}

wf_status wf_dist_exchange(wf_dist *dist, const struct wf_message *out, int outs, const struct wf_message *in, int ins, wf_error *error)
{
    int transfer;
    bool done;
    const wf_status status = wf_dist_begin(dist, 0, out, outs, in, ins, &transfer, error);
    return status == WF_OK ? wf_dist_finish(dist, transfer, true, &done, error) : status;
}

static wf_status after(wf_dist *dist, wf_status status)
{
    dist->lost |= status != WF_OK;
    return status;
}

wf_status wf_dist_begin(wf_dist *dist, int label, const struct wf_message *out, int outs, const struct wf_message *in, int ins,
                        int *transfer, wf_error *error)
{
    if (!dist->transport)
        return WF_OK;
    if (dist->lost)
        return wf_error_set(error, WF_ERR_STATE, "an earlier message between the processes has failed");
    return after(dist, dist->transport->begin(dist->transport, label % WF_TRANSPORT_LABELS, out, outs, in, ins, transfer, error));
}

struct wf_dist_watch wf_dist_watch(wf_dist *dist, const struct wf_dist_watch *watch)
{
    const struct wf_dist_watch former = dist ? dist->watch : (struct wf_dist_watch){0};
    if (dist)
        dist->watch = watch ? *watch : (struct wf_dist_watch){0};
    return former;
}

static void report_wait(wf_dist *dist, int transfer, double seconds)
{
    enum { NAMED = 8 };
    char ranks[NAMED * 16] = "", text[NAMED * 16 + 96];
    int count = 0, length = 0;
    memset(dist->late, 0, (size_t)dist->size * sizeof *dist->late);
    dist->transport->late(dist->transport, transfer, dist->late);
    for (int r = 0; r < dist->size; r++)
        if (dist->late[r] && count++ < NAMED)
            length += snprintf(ranks + length, sizeof ranks - (size_t)length, "%s%d", count > 1 ? ", " : "", r);
    if (count == 0) /* the messages have arrived in the meantime */
        return;
    snprintf(text, sizeof text, "waiting for rank%s %s%s since %.0f s: %s", count > 1 ? "s" : "", ranks, count > NAMED ? ", ..." : "",
             seconds, count > 1 ? "are their processes stopped?" : "is its process stopped?");
    dist->watch.waits(dist->watch.ctx, text);
}

/* A wait for one transfer. */
struct waiting {
    double since; /* time of the first call of wait_on in seconds; 0 before that call */
    bool reported;
};

/* Called while a transfer is not done, after some time of polling or sleep. Reports a long wait, once. */
static void wait_on(wf_dist *dist, int transfer, struct waiting *w)
{
    struct timespec now;
    if (!dist->watch.waits || w->reported)
        return;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const double seconds = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec,
                 limit = dist->watch.seconds > 0 ? dist->watch.seconds : PATIENCE;
    w->since = w->since > 0 ? w->since : seconds;
    if (seconds - w->since < limit)
        return;
    w->reported = true;
    report_wait(dist, transfer, seconds - w->since);
}

wf_status wf_dist_finish(wf_dist *dist, int transfer, bool wait, bool *done, wf_error *error)
{
    struct waiting w = {0};
    wf_status status = WF_OK;
    *done = true;
    if (!dist->transport)
        return WF_OK;
    while ((status = after(dist, dist->transport->finish(dist->transport, transfer, wait, done, error))) == WF_OK && wait && !*done)
        wait_on(dist, transfer, &w);
    return status;
}

/* wf_dist_exchange, except that the rank sleeps while it waits. */
static wf_status exchange_asleep(wf_dist *dist, const struct wf_message *out, int outs, const struct wf_message *in, int ins,
                                 wf_error *error)
{
    enum { LONGEST = 4000000 }; /* the longest sleep in nanoseconds */
    struct timespec pause = {.tv_nsec = LONGEST / 64};
    struct waiting w = {0};
    int transfer;
    bool done = false;
    wf_status status = wf_dist_begin(dist, 0, out, outs, in, ins, &transfer, error);
    while (status == WF_OK && (status = wf_dist_finish(dist, transfer, false, &done, error)) == WF_OK && !done) {
        wait_on(dist, transfer, &w);
        nanosleep(&pause, NULL); /* a signal may end the sleep early */
        pause.tv_nsec = pause.tv_nsec < LONGEST ? 2 * pause.tv_nsec : LONGEST;
    }
    return status;
}

/* A barrier in which the waiting ranks sleep. All ranks send a byte to rank 0, so that rank 0 can name the late ranks. Then rank 0 answers
 * all ranks; a rank returns when it has the answer. */
wf_status wf_dist_rest(wf_dist *dist, wf_error *error)
{
    const int size = wf_dist_size(dist);
    if (size == 1)
        return WF_OK;
    struct wf_message *there = dist->message, *back = there + size;
    char sent = 0, received = 0;
    if (dist->rank > 0)
        return exchange_asleep(dist, &(struct wf_message){0, &sent, 1}, 1, &(struct wf_message){0, &received, 1}, 1, error);
    for (int r = 1; r < size; r++) {
        there[r - 1] = (struct wf_message){r, &dist->outcome[r], 1};
        back[r - 1] = (struct wf_message){r, &sent, 1};
    }
    const wf_status status = exchange_asleep(dist, NULL, 0, there, size - 1, error);
    return status == WF_OK ? exchange_asleep(dist, back, size - 1, NULL, 0, error) : status;
}

static wf_status refuse(const char *call, const char *what, wf_error *error)
{
    return wf_error_set(error, WF_ERR_ARGUMENT, "%s: %s", call, what);
}

wf_status wf_dist_all_gather(wf_dist *dist, const void *mine, int64_t bytes, void *all, wf_error *error)
{
    if (!dist || bytes < 0 || (bytes > 0 && (!mine || !all)))
        return refuse("wf_dist_all_gather",
                      !dist       ? "dist is NULL: see wf_dist_world"
                      : bytes < 0 ? "bytes is negative"
                                  : "the data are NULL",
                      error);
    struct wf_message *out = dist->message, *in = out + dist->size;
    int count = 0;
    for (int r = 0; r < dist->size; r++)
        if (r != dist->rank) {
            out[count] = (struct wf_message){r, (void *)(uintptr_t)mine, bytes};
            in[count++] = (struct wf_message){r, (char *)all + r * bytes, bytes};
        }
    if (bytes > 0)
        memmove((char *)all + dist->rank * bytes, mine, (size_t)bytes);
    return wf_dist_exchange(dist, out, count, in, count, error);
}

wf_status wf_dist_gather_parts(wf_dist *dist, void *all, const int64_t *at, wf_error *error)
{
    struct wf_message *out = dist->message, *in = out + dist->size;
    int count = 0;
    for (int r = 0; r < dist->size; r++)
        if (r != dist->rank) {
            out[count] = (struct wf_message){r, (char *)all + at[dist->rank], at[dist->rank + 1] - at[dist->rank]};
            in[count++] = (struct wf_message){r, (char *)all + at[r], at[r + 1] - at[r]};
        }
    return wf_dist_exchange(dist, out, count, in, count, error);
}

wf_status wf_dist_barrier(wf_dist *dist, wf_error *error)
{
    if (!dist)
        return refuse("wf_dist_barrier", "dist is NULL: see wf_dist_world", error);
    char mine = 0, *all = wf_alloc_zero((size_t)dist->size, 1);
    wf_status status = all ? wf_dist_all_gather(dist, &mine, 1, all, error) : wf_error_set(error, WF_ERR_MEMORY, "no memory for a barrier");
    wf_free(all);
    return status;
}

wf_status wf_dist_broadcast(wf_dist *dist, void *data, int64_t bytes, int root, wf_error *error)
{
    if (!dist || bytes < 0 || (bytes > 0 && !data) || root < 0 || root >= dist->size)
        return refuse("wf_dist_broadcast",
                      !dist                ? "dist is NULL: see wf_dist_world"
                      : bytes < 0          ? "bytes is negative"
                      : bytes > 0 && !data ? "the data are NULL"
                                           : "root is not the rank of a process",
                      error);
    struct wf_message *out = dist->message;
    int count = 0;
    if (dist->rank != root)
        return wf_dist_exchange(dist, NULL, 0, &(struct wf_message){root, data, bytes}, 1, error);
    for (int r = 0; r < dist->size; r++)
        if (r != root)
            out[count++] = (struct wf_message){r, data, bytes};
    return wf_dist_exchange(dist, out, count, NULL, 0, error);
}

/* Adds rows first .. first + rows - 1 of all[size][n] as a binary tree. Row `first` becomes the sum. */
static void sum_tree(wf_real *all, int64_t n, int first, int rows)
{
    int left = 1;
    if (rows == 1)
        return;
    while (2 * left < rows)
        left *= 2;
    sum_tree(all, n, first, left);
    sum_tree(all, n, first + left, rows - left);
    wf_real *to = all + first * n;
    wf_kernel->add(n, to, 1, all + (first + left) * n, 1, to);
}

wf_status wf_dist_sum(wf_dist *dist, wf_real *data, int64_t count, wf_error *error)
{
    enum { PIECE = 1 << 16 }; /* elements that are gathered from each rank at a time */
    if (!dist || count < 0 || (count > 0 && !data))
        return refuse("wf_dist_sum",
                      !dist       ? "dist is NULL: see wf_dist_world"
                      : count < 0 ? "count is negative"
                                  : "the data are NULL",
                      error);
    int64_t piece = WF_MIN(count, PIECE);
    if (dist->size == 1 || count == 0)
        return WF_OK;
    wf_real *all = wf_alloc_zero((size_t)(dist->size * piece), sizeof *all);
    wf_status status = all ? WF_OK : wf_error_set(error, WF_ERR_MEMORY, "no memory for a sum over %d processes", dist->size);
    for (int64_t at = 0, n; status == WF_OK && at < count; at += n) {
        n = WF_MIN(count - at, piece);
        status = wf_dist_all_gather(dist, data + at, n * (int64_t)sizeof *data, all, error);
        if (status == WF_OK) {
            sum_tree(all, n, 0, dist->size);
            memcpy(data + at, all, (size_t)n * sizeof *data);
        }
    }
    wf_free(all);
    return status;
}

wf_status wf_dist_agree(wf_dist *dist, wf_status status, wf_error *error)
{
    bool sent;
    return wf_dist_agree_as(dist, status, 0, &sent, error);
}

wf_status wf_dist_agree_as(wf_dist *dist, wf_status status, int weight, bool *sent, wf_error *error)
{
    const struct outcome mine = {(int32_t)status, weight};
    struct outcome *all = dist ? dist->outcome : NULL;
    int worst = -1;
    wf_error shared = {0}; /* the error that all ranks return */
    *sent = true;
    if (!dist || dist->size == 1)
        return status;
    *sent = false;
    if (dist->lost)
        return status != WF_OK ? status : wf_error_set(error, WF_ERR_STATE, "an earlier message between the processes has failed");
    wf_error why = {0};
    wf_status passed = wf_dist_all_gather(dist, &mine, sizeof mine, all, &why);
    for (int r = 0; passed == WF_OK && r < dist->size; r++)
        if (all[r].status != WF_OK && (worst < 0 || all[r].weight > all[worst].weight))
            worst = r;
    *sent = passed == WF_OK;
    if (passed == WF_OK && worst < 0)
        return WF_OK;
    if (worst == dist->rank)
        shared = (wf_error){.code = status};
    if (worst == dist->rank && error)
        shared = *error;
    passed = passed == WF_OK ? wf_dist_broadcast(dist, &shared, sizeof shared, worst, &why) : passed;
    *sent = passed == WF_OK;
    if (error)
        *error = (wf_error){0};
    if (passed != WF_OK)
        return wf_error_set(error, passed, "%s", why.message);
    dist->agreed = true;
    if (shared.code == WF_OK) /* the failed rank has set no error */
        shared.code = WF_ERR_STATE;
    return worst > 0 ? wf_error_set(error, shared.code, "rank %d: %s", worst, shared.message)
                     : wf_error_set(error, shared.code, "%s", shared.message);
}
