/* SPDX-License-Identifier: MIT */
/* A plug-in between dist/ and that of an MPI, as slow as a network: each process has one link, on which the messages that it sends
 * follow each other; what others send to it at once does not meet. Messages are as fast as the MPI passes them, and are withheld until they
 * would have come.
 *
 *   WEFT_PLUGINS=FOLDER     where this file lies under the name of the MPI's plug-in
 *   WEFT_SLOW_OVER=FOLDER   where that plug-in lies
 *   WEFT_SLOW_MBIT=RATE     megabits a second, each way; none: as fast as the MPI
 *   WEFT_SLOW_LATENCY=US    microseconds of each message
 *   WEFT_SLOW_REPORT=FILE   FILE.RANK gets the numbers of messages and bytes sent, and the seconds spent waiting */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weft/internal/minmax.h>
#include <weft/internal/transport.h>

struct passing {
    double left, arrives; /* when a message sent, or one received, would come */
    int64_t bytes;        /* of one received, and where it goes */
    void *to;
};
struct transfer {
    bool used, here; /* here: the MPI has passed it on */
    int inner, ins;
    double sent, due;        /* seconds: when its own messages are on their way; when all would have come */
    struct passing *passing; /* [outs + ins at most] */
    struct wf_message *list; /* of the inner transport: stamp, message, stamp, message, ... */
    void *held;              /* messages received lie here end to end until they would have come */
    int64_t held_room;       /* bytes */
    int room;
};
struct slow {
    struct wf_transport *inner;
    double rate, latency; /* bytes a second, 0: no limit; seconds */
    double out;           /* when the link is free */
    struct transfer *transfer;
    int transfers;
    int64_t messages, bytes;
    double waited;
    const char *report;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static wf_status fail(wf_error *error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (error && error->code == WF_OK) {
        error->code = WF_ERR_STATE;
        vsnprintf(error->message, sizeof error->message, format, args);
    }
    va_end(args);
    return WF_ERR_STATE;
}

static struct transfer *new_transfer(struct slow *s, int outs, int ins)
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
    if (outs + ins > x->room) {
        const size_t room = (size_t)(outs + ins);
        free(x->passing);
        free(x->list);
        x->passing = calloc(room, sizeof *x->passing);
        x->list = calloc(2 * room, sizeof *x->list);
        x->room = x->passing && x->list ? outs + ins : 0;
        if (x->room == 0)
            return NULL;
    }
    x->used = true;
    x->here = false;
    return x;
}

/* Seconds that bytes take on a link. */
static double length(const struct slow *s, int64_t bytes)
{
    return s->rate > 0 ? (double)bytes / s->rate : 0;
}

static wf_status begin(struct wf_transport *t, int label, const struct wf_message *out, int outs, const struct wf_message *in, int ins,
                       int *transfer, wf_error *error)
{
    struct slow *s = t->state;
    struct transfer *x = new_transfer(s, outs, ins);
    if (!x)
        return fail(error, "no memory for messages");
    struct wf_message *to = x->list, *from = x->list + 2 * outs;
    x->sent = now();
    for (int i = 0; i < outs; i++) {
        if (out[i].bytes > 0) {
            s->out = WF_MAX(s->out, x->sent) + length(s, out[i].bytes);
            x->sent = s->out;
            s->messages++;
            s->bytes += out[i].bytes;
        }
        x->passing[i].left = x->sent + s->latency;
        to[2 * i] = (struct wf_message){out[i].peer, &x->passing[i].left, sizeof(double)};
        to[2 * i + 1] = out[i];
    }
    int64_t all = 0, at = 0;
    for (int i = 0; i < ins; i++)
        all += in[i].bytes;
    if (all > x->held_room) { /* kept: fresh pages for each message would be times of this file's, not of a network's */
        free(x->held);
        x->held = malloc((size_t)all);
        x->held_room = x->held ? all : 0;
        if (!x->held)
            return fail(error, "no memory for %lld bytes", (long long)all);
    }
    for (int i = 0; i < ins; i++) {
        x->passing[i].bytes = in[i].bytes;
        x->passing[i].to = in[i].data;
        from[2 * i] = (struct wf_message){in[i].peer, &x->passing[i].arrives, sizeof(double)};
        from[2 * i + 1] = (struct wf_message){in[i].peer, (char *)x->held + at, in[i].bytes};
        at += in[i].bytes;
    }
    x->ins = ins;
    *transfer = (int)(x - s->transfer);
    return s->inner->begin(s->inner, label, to, 2 * outs, from, 2 * ins, &x->inner, error);
}

static void sleep_until(double when)
{
    const double left = when - now();
    struct timespec t = {(time_t)left, (long)((left - (double)(time_t)left) * 1e9)};
    if (left > 0)
        nanosleep(&t, NULL);
}

static wf_status finish(struct wf_transport *t, int transfer, bool wait, bool *done, wf_error *error)
{
    struct slow *s = t->state;
    struct transfer *x = &s->transfer[transfer];
    const double begun = now();
    wf_status status = WF_OK;
    if (!x->here) {
        status = s->inner->finish(s->inner, x->inner, wait, &x->here, error);
        x->due = x->sent;
        for (int i = 0; x->here && i < x->ins; i++)
            x->due = WF_MAX(x->passing[i].arrives, x->due);
    }
    if (x->here && wait)
        sleep_until(x->due);
    *done = x->here && (wait || now() >= x->due);
    x->used = !*done;
    int64_t at = 0;
    for (struct passing *p = x->passing; *done && p < x->passing + x->ins; at += p++->bytes)
        if (p->bytes > 0)
            memcpy(p->to, (char *)x->held + at, (size_t)p->bytes);
    s->waited += wait ? now() - begun : 0;
    return status;
}

static void late(struct wf_transport *t, int transfer, bool *late)
{
    struct slow *s = t->state;
    if (!s->transfer[transfer].here)
        s->inner->late(s->inner, s->transfer[transfer].inner, late);
}

static void release(struct wf_transport *t)
{
    struct slow *s = t->state;
    char path[4096];
    snprintf(path, sizeof path, "%s.%d", s->report ? s->report : "", t->rank);
    FILE *file = s->report ? fopen(path, "w") : NULL;
    if (file) {
        fprintf(file, "%lld messages %lld bytes %.3f s waited\n", (long long)s->messages, (long long)s->bytes, s->waited);
        fclose(file);
    }
    for (int i = 0; i < s->transfers; i++) {
        free(s->transfer[i].passing);
        free(s->transfer[i].list);
        free(s->transfer[i].held);
    }
    free(s->transfer);
    free(s);
    free(t);
}

static void close_all(struct wf_transport *t)
{
    struct slow *s = t->state;
    s->inner->close(s->inner);
    release(t);
}

static void abort_all(struct wf_transport *t, int code)
{
    struct slow *s = t->state;
    s->inner->abort(s->inner, code);
}

static double number(const char *name)
{
    const char *text = getenv(name);
    return text ? strtod(text, NULL) : 0;
}

__attribute__((visibility("default"))) wf_transport_open_function wf_transport_open;

struct wf_transport *wf_transport_open(wf_error *error)
{
    Dl_info here;
    char path[4096];
    const char *over = getenv("WEFT_SLOW_OVER");
    dladdr((void *)(uintptr_t)number, &here);
    const char *name = strrchr(here.dli_fname, '/');
    snprintf(path, sizeof path, "%s%s", over ? over : ".", name ? name : "/");
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    wf_transport_open_function *open_inner = NULL;
    if (library)
        *(void **)&open_inner = dlsym(library, "wf_transport_open");
    struct slow *s = calloc(1, sizeof *s);
    struct wf_transport *t = calloc(1, sizeof *t);
    if (!open_inner || !s || !t || !(s->inner = open_inner(error))) {
        fail(error, "%s: not a plug-in", path);
        free(s);
        free(t);
        return NULL;
    }
    s->rate = number("WEFT_SLOW_MBIT") * 1e6 / 8;
    s->latency = number("WEFT_SLOW_LATENCY") * 1e-6;
    s->report = getenv("WEFT_SLOW_REPORT");
    *t = *s->inner;
    t->state = s;
    t->begin = begin;
    t->finish = finish;
    t->late = late;
    t->close = close_all;
    t->abort = abort_all;
    return t;
}
