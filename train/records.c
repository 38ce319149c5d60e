/* SPDX-License-Identifier: MIT */
/* Records: the message of each rank at the end of a phase, apart from gradients. */
#include <string.h>

#include <weft/internal/dist.h>
#include <weft/memory.h>

#include "loop.h"

static size_t valid_bytes(const struct exchange *x)
{
    size_t bytes = 0;
    for (int k = 0; k < x->count; k++)
        bytes += (size_t)x->grads[k]->parameters;
    return bytes;
}

/* A record: status, scalars of the leaves, and which gradients this rank has. */
static size_t place_records(struct fit *f)
{
    struct exchange *x = &f->exchange;
    for (int r = 0; r < f->processes; r++) {
        const struct leaves_of l = together_leaves(f, r);
        x->at[r + 1] = x->at[r] + (int64_t)(sizeof(int64_t) + (size_t)(l.end - l.begin) * sizeof(struct leaf) + valid_bytes(x));
    }
    return (size_t)x->at[f->processes];
}

static void write_record(struct fit *f)
{
    const struct exchange *x = &f->exchange;
    char *to = x->record + x->at[f->rank];
    const struct leaves_of l = together_leaves(f, f->rank);
    const int64_t code = f->error->code;
    memcpy(to, &code, sizeof code);
    to += sizeof code;
    memcpy(to, f->leaf + l.begin, (size_t)(l.end - l.begin) * sizeof *f->leaf);
    to += (size_t)(l.end - l.begin) * sizeof *f->leaf;
    for (int k = 0; k < x->count; k++)
        for (int p = 0; p < x->grads[k]->parameters; p++) {
            *to = 0;
            for (int i = 0; i < x->own; i++)
                *to |= (char)exchange_valid(f, i, k, p);
            to++;
        }
}

/* The scalars of all leaves, and which gradients there are; whether a process has failed. */
static wf_status read_records(struct fit *f)
{
    const struct exchange *x = &f->exchange;
    bool failed = false;
    for (int r = 0; r < f->processes; r++) {
        const char *at = x->record + x->at[r];
        const struct leaves_of l = together_leaves(f, r);
        int64_t code;
        memcpy(&code, at, sizeof code);
        failed |= code != WF_OK;
        at += sizeof code;
        memcpy(f->leaf + l.begin, at, (size_t)(l.end - l.begin) * sizeof *f->leaf);
        at += (size_t)(l.end - l.begin) * sizeof *f->leaf;
        for (int k = 0; k < x->count; k++)
            for (int p = 0; p < x->grads[k]->parameters; p++)
                x->grads[k]->valid[p] |= *at++ != 0;
    }
    for (int k = 0; k < x->count; k++)
        x->grads[k]->finite = false;
    if (!failed || f->error->code)
        return f->error->code;
    f->echo = true; /* the rank that failed reports why */
    return wf_error_set(f->error, WF_ERR_STATE, "another process has failed");
}

wf_status records_pass(struct fit *f)
{
    struct exchange *x = &f->exchange;
    const size_t bytes = place_records(f);
    if (bytes > x->record_room) {
        wf_free(x->record);
        x->record = wf_alloc_zero(bytes, 1);
        x->record_room = x->record ? bytes : 0;
        if (!x->record)
            return exchange_no_memory(f);
    }
    write_record(f);
    wf_error why = {0};
    return wf_dist_gather_parts(f->dist, x->record, x->at, &why) == WF_OK ? read_records(f) : together_failed(f, &why);
}
