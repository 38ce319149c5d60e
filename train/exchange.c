/* SPDX-License-Identifier: MIT */
/* The gradients of an update on several processes. Each has computed the leaves of its part of the tree. Then, for a piece of the gradients
 * at a time, each process gets from every other the subtrees' sums of its share of the piece, adds them in the order of the tree, and sends
 * the result to all: where each process has one subtree as many bytes as recursive halving and doubling take, in one round each way. */
#include <inttypes.h>
#include <string.h>

#include <weft/compute.h>
#include <weft/internal/dist.h>
#include <weft/internal/kernels.h>
#include <weft/internal/slab.h>
#include <weft/memory.h>

#include "loop.h"

enum { SHARE = 64 }; /* blocks of a process's share of a piece: 2 MiB in float */

struct leaves_of together_leaves(const struct fit *f, int rank)
{
    return (struct leaves_of){f->o.leaves * rank / f->processes, f->o.leaves * (rank + 1) / f->processes};
}

void exchange_free(struct exchange *x)
{
    wf_free(x->record);
    wf_free(x->at);
    wf_free(x->span);
    wf_free(x->message);
    wf_free(x->received);
    *x = (struct exchange){0};
}

/* --- the processes' parts ------------------------------------------------------------------------------------------- */

static size_t valid_bytes(wf_grads *const *grads, int count)
{
    size_t bytes = 0;
    for (int k = 0; k < count; k++)
        bytes += (size_t)grads[k]->parameters;
    return bytes;
}

/* A record: the status, the scalars of the leaves, then for each subtree which gradients it has. */
static size_t record_bytes(const struct fit *f, int rank, int spans, size_t valid)
{
    const struct leaves_of l = together_leaves(f, rank);
    return sizeof(int64_t) + (size_t)(l.end - l.begin) * sizeof(struct leaf) + (size_t)spans * valid;
}

/* Memory for the records of all and for what is received of a piece; made once, and again where registries have grown. */
static wf_status prepare(struct fit *f, wf_grads *const *grads, int count)
{
    struct exchange *x = &f->exchange;
    struct span span[2 * TREE_LEVELS];
    const size_t valid = valid_bytes(grads, count), processes = (size_t)f->processes;
    size_t bytes = 0;
    if (!x->span) {
        x->span = wf_alloc_zero(processes * 2 * TREE_LEVELS, sizeof *x->span);
        x->at = wf_alloc_zero(processes, sizeof *x->at);
        if (!x->span || !x->at)
            return wf_error_set(f->error, WF_ERR_MEMORY, "no memory for an update of %d processes", f->processes);
    }
    x->spans = 0;
    for (int r = 0; r < f->processes; r++) {
        const struct leaves_of l = together_leaves(f, r);
        const int n = tree_spans(l.begin, l.end, span);
        for (int i = 0; i < n; i++)
            x->span[x->spans++] = (struct sent){.rank = r, .span = span[i]};
        x->at[r] = bytes;
        bytes += record_bytes(f, r, n, valid);
    }
    x->record_bytes = bytes;
    if (bytes > x->record_room) {
        wf_free(x->record);
        x->record = wf_alloc_zero(bytes, 1);
        x->record_room = x->record ? bytes : 0;
    }
    if (!x->message)
        x->message = wf_alloc_zero(2 * processes * (size_t)x->spans, sizeof *x->message);
    if (!x->received)
        x->received = wf_alloc_zero((size_t)x->spans * SHARE * (WF_GRADS_BLOCK + 16), sizeof *x->received);
    return x->record && x->message && x->received
               ? WF_OK
               : wf_error_set(f->error, WF_ERR_MEMORY, "no memory for an update of %d processes", f->processes);
}

/* This process's subtree number i of `own`: a slab that is held, or the gradients themselves. */
static struct tree_slab own_slab(const struct fit *f, int i, int k, const wf_grads *grads)
{
    return i < f->tree.count ? f->tree.held[i].slab[k] : (struct tree_slab){grads->slab, grads->valid, grads->count, grads->parameters};
}

static void write_record(struct fit *f, wf_grads *const *grads, int count, int own)
{
    char *to = f->exchange.record + f->exchange.at[f->rank];
    const struct leaves_of l = together_leaves(f, f->rank);
    const int64_t code = f->error->code;
    memcpy(to, &code, sizeof code);
    to += sizeof code;
    memcpy(to, f->leaf + l.begin, (size_t)(l.end - l.begin) * sizeof *f->leaf);
    to += (size_t)(l.end - l.begin) * sizeof *f->leaf;
    for (int i = 0; i < own; i++)
        for (int k = 0; k < count; k++) {
            const struct tree_slab s = f->error->code ? (struct tree_slab){0} : own_slab(f, i, k, grads[k]);
            if (s.valid)
                memcpy(to, s.valid, (size_t)grads[k]->parameters);
            else
                memset(to, 0, (size_t)grads[k]->parameters);
            to += grads[k]->parameters;
        }
}

/* The scalars of all leaves, and where each subtree's flags are; whether a process has failed. */
static wf_status read_records(struct fit *f, int count, wf_grads *const *grads)
{
    struct exchange *x = &f->exchange;
    const size_t valid = valid_bytes(grads, count);
    const char *flags = NULL;
    bool failed = false;
    for (int i = 0, last = -1; i < x->spans; i++) {
        const int r = x->span[i].rank;
        if (r != last) {
            const char *at = x->record + x->at[r];
            const struct leaves_of l = together_leaves(f, r);
            int64_t code;
            memcpy(&code, at, sizeof code);
            failed |= code != WF_OK;
            at += sizeof code;
            memcpy(f->leaf + l.begin, at, (size_t)(l.end - l.begin) * sizeof *f->leaf);
            flags = at + (size_t)(l.end - l.begin) * sizeof *f->leaf;
            last = r;
        }
        x->span[i].valid = flags;
        flags += valid;
    }
    if (!failed || f->error->code)
        return f->error->code;
    f->echo = true; /* who has failed says why */
    return wf_error_set(f->error, WF_ERR_STATE, "another process has failed");
}

static wf_status send_records(struct fit *f)
{
    struct exchange *x = &f->exchange;
    struct wf_message *out = x->message, *in = out + f->processes;
    int n = 0;
    for (int r = 0; r < f->processes; r++)
        if (r != f->rank) {
            size_t end = r + 1 < f->processes ? x->at[r + 1] : x->record_bytes;
            size_t own = f->rank + 1 < f->processes ? x->at[f->rank + 1] : x->record_bytes;
            out[n] = (struct wf_message){r, x->record + x->at[f->rank], (int64_t)(own - x->at[f->rank])};
            in[n++] = (struct wf_message){r, x->record + x->at[r], (int64_t)(end - x->at[r])};
        }
    wf_error why = {0};
    if (wf_dist_exchange(f->dist, out, n, in, n, &why) == WF_OK)
        return WF_OK;
    *f->error = why;
    return together_lost(f);
}

/* --- gradients ------------------------------------------------------------------------------------------------------ */

/* A share of a piece: blocks first .. end - 1, which lie end to end in the slab, with what rounds a parameter up to 16 elements. */
struct share {
    int64_t first, end, offset, count;
};
static struct share share_of(const struct fit *f, const wf_grads *grads, int64_t begin, int64_t blocks, int rank)
{
    struct share s = {begin + blocks * rank / f->processes, begin + blocks * (rank + 1) / f->processes, 0, 0};
    if (s.first < s.end) {
        const struct wf_grads_block *last = &grads->block[s.end - 1];
        s.offset = wf_grads_block_data(grads, &grads->block[s.first]) - grads->slab;
        s.count = wf_grads_block_data(grads, last) + last->count - grads->slab - s.offset;
    }
    return s;
}

struct piece {
    const struct fit *f;
    wf_grads *grads;
    struct share share;
    size_t flags;   /* where the registry's flags begin in a subtree's */
    wf_real **part; /* [spans]: the share in each subtree's sum */
};

/* The tree over the subtrees of all processes, for one block; the sum ends in the gradients. */
static void add_block(void *ctx, int64_t i)
{
    const struct piece *p = ctx;
    const struct wf_grads_block *b = &p->grads->block[p->share.first + i];
    wf_real *to = wf_grads_block_data(p->grads, b);
    const int64_t at = to - p->grads->slab - p->share.offset;
    struct entry {
        struct span span;
        wf_real *sum; /* NULL: no gradient */
    } stack[2 * TREE_LEVELS + 1];
    int depth = 0;
    for (int k = 0; k < p->f->exchange.spans; k++) {
        const struct sent *s = &p->f->exchange.span[k];
        struct entry e = {s->span, s->valid[p->flags + (size_t)b->parameter] ? p->part[k] + at : NULL};
        for (; depth > 0 && tree_joins(stack[depth - 1].span, e.span); depth--) {
            wf_real *left = stack[depth - 1].sum;
            if (left && e.sum)
                wf_kernel->add(b->count, left, 1, e.sum, 1, e.sum);
            e = (struct entry){{stack[depth - 1].span.first, 2 * e.span.leaves}, e.sum ? e.sum : left};
        }
        stack[depth++] = e;
    }
    if (stack[0].sum && stack[0].sum != to)
        memcpy(to, stack[0].sum, (size_t)b->count * sizeof *to);
}

static wf_status exchange_piece(struct fit *f, wf_grads *grads, int k, size_t flags, int64_t begin, int64_t blocks)
{
    struct exchange *x = &f->exchange;
    wf_real *part[2 * TREE_LEVELS * 64], **parts = x->spans <= (int)(sizeof part / sizeof *part) ? part : NULL;
    struct wf_message *out = x->message, *in = out + (size_t)f->processes * (size_t)x->spans;
    const struct share mine = share_of(f, grads, begin, blocks, f->rank);
    wf_real *received = x->received;
    int outs = 0, ins = 0;
    if (!parts)
        return wf_error_set(f->error, WF_ERR_ARGUMENT, "%d processes have %d subtrees, which is more than this version adds", f->processes,
                            x->spans);
    for (int i = 0, own = 0; i < x->spans; i++) {
        if (x->span[i].rank == f->rank) {
            const struct tree_slab s = own_slab(f, own++, k, grads);
            parts[i] = s.slab + mine.offset;
            for (int r = 0; r < f->processes; r++) {
                const struct share theirs = share_of(f, grads, begin, blocks, r);
                if (r != f->rank && theirs.count > 0)
                    out[outs++] = (struct wf_message){r, s.slab + theirs.offset, theirs.count * (int64_t)sizeof(wf_real)};
            }
        } else {
            parts[i] = received;
            received += mine.count;
            if (mine.count > 0)
                in[ins++] = (struct wf_message){x->span[i].rank, parts[i], mine.count * (int64_t)sizeof(wf_real)};
        }
    }
    if (wf_dist_exchange(f->dist, out, outs, in, ins, f->error))
        return together_lost(f);
    struct piece p = {f, grads, mine, flags, parts};
    wf_parallel(mine.end - mine.first, 0.2 * (double)mine.count * (double)(x->spans - 1), add_block, &p);
    outs = ins = 0;
    for (int r = 0; r < f->processes; r++) {
        const struct share theirs = share_of(f, grads, begin, blocks, r);
        if (r != f->rank && mine.count > 0)
            out[outs++] = (struct wf_message){r, grads->slab + mine.offset, mine.count * (int64_t)sizeof(wf_real)};
        if (r != f->rank && theirs.count > 0)
            in[ins++] = (struct wf_message){r, grads->slab + theirs.offset, theirs.count * (int64_t)sizeof(wf_real)};
    }
    wf_dist_exchange(f->dist, out, outs, in, ins, f->error);
    return together_lost(f);
}

wf_status exchange_add(struct fit *f, wf_grads *const *grads, int count)
{
    struct exchange *x = &f->exchange;
    struct span span[2 * TREE_LEVELS];
    const struct leaves_of mine = together_leaves(f, f->rank);
    if (f->processes == 1)
        return f->error->code;
    wf_error why = *f->error;
    wf_error_clear(f->error);
    if (prepare(f, grads, count))
        return together_lost(f);
    *f->error = why;
    const int own = tree_spans(mine.begin, mine.end, span);
    write_record(f, grads, count, own);
    if (send_records(f) || read_records(f, count, grads))
        return f->error->code;
    size_t flags = 0;
    for (int k = 0; k < count; k++) {
        for (int64_t begin = 0, blocks; begin < grads[k]->blocks; begin += blocks) {
            blocks = grads[k]->blocks - begin < (int64_t)SHARE * f->processes ? grads[k]->blocks - begin : (int64_t)SHARE * f->processes;
            if (exchange_piece(f, grads[k], k, flags, begin, blocks))
                return f->error->code;
        }
        for (int i = 0; i < x->spans; i++)
            for (int p = 0; p < grads[k]->parameters; p++)
                grads[k]->valid[p] |= x->span[i].valid[flags + (size_t)p];
        grads[k]->finite = false;
        flags += (size_t)grads[k]->parameters;
    }
    return WF_OK;
}
