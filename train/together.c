/* SPDX-License-Identifier: MIT */
/* An update on several processes. Each computes the leaves of its part of the tree. Then, for a piece of the gradients at a time, each
 * process gets from every other the subtrees' sums of its share of the piece, adds them in the order of the tree, and sends the result to
 * all: as many bytes as recursive halving and doubling take, in one round each way, and for any number of processes. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weft/compute.h>
#include <weft/internal/dist.h>
#include <weft/internal/hash.h>
#include <weft/internal/kernels.h>
#include <weft/internal/runtime.h>
#include <weft/internal/slab.h>
#include <weft/memory.h>
#include <weft/runtime.h>

#include "loop.h"

enum { SHARE = 64 }; /* blocks of a process's share of a piece: 2 MiB in float */

struct leaves_of together_leaves(const struct fit *f, int rank)
{
    return (struct leaves_of){f->o.leaves * rank / f->processes, f->o.leaves * (rank + 1) / f->processes};
}

/* What the transport could not do leaves the others alone: they are ended when this process ends. */
static wf_status lost(struct fit *f)
{
    f->lost |= f->error->code != WF_OK;
    return f->error->code;
}

wf_status together_agree(struct fit *f)
{
    if (f->processes == 1 || f->lost || !f->in_company)
        return f->error->code;
    wf_error why = *f->error;
    bool sent;
    const wf_status status = wf_dist_agree_as(f->dist, why.code, f->echo ? 1 : why.code == WF_ERR_CANCELLED ? 2 : 3, &sent, &why);
    *f->error = why;
    f->lost |= !sent;
    f->told = status != WF_OK;
    return status;
}

wf_status together_from_first(struct fit *f, void *data, int64_t bytes)
{
    if (f->processes > 1 && wf_dist_broadcast(f->dist, data, bytes, 0, f->error))
        return lost(f);
    return WF_OK;
}

wf_status together_open(struct fit *f)
{
    f->dist = wf_dist_world(f->error);
    f->rank = wf_dist_rank(f->dist);
    f->processes = wf_dist_size(f->dist);
    if (f->dist && f->processes > 1)
        wf_dist_together(f->dist, true);
    f->in_company = f->dist && f->processes > 1;
    return f->error->code;
}

void together_close(struct fit *f)
{
    if (f->in_company && !f->lost)
        wf_dist_together(f->dist, false);
    f->in_company = false;
    wf_free(f->exchange.record);
    wf_free(f->exchange.at);
    wf_free(f->exchange.span);
    wf_free(f->exchange.message);
    wf_free(f->exchange.received);
    f->exchange = (struct exchange){0};
}

/* The parts of a batch, enough of them for all processes. */
wf_status together_share(struct fit *f)
{
    struct wf_string text = {0};
    int64_t least = 1, was = f->o.accumulate;
    const bool chosen = f->o.leaves == 0;
    while (least < f->processes)
        least *= 2;
    if (f->o.leaves > 0 && f->o.leaves < f->processes)
        return wf_error_set(f->error, WF_ERR_ARGUMENT,
                            "%d processes were started, and leaves = %" PRId64 " is for at most %" PRId64
                            ": start fewer, or set more leaves",
                            f->processes, f->o.leaves, f->o.leaves);
    f->o.accumulate = (was + least - 1) / least * least;
    if (f->o.leaves == 0)
        f->o.leaves = tree_leaves(f->o.accumulate) > least ? tree_leaves(f->o.accumulate) : least;
    const bool usual = !chosen || f->o.leaves == tree_leaves(f->o.accumulate);
    if (f->o.accumulate == was && usual)
        return WF_OK;
    wf_string_format(&text, "%d processes share a batch", f->processes);
    if (f->o.accumulate != was)
        wf_string_format(&text, ", which is cut into %" PRId64 " parts instead of %" PRId64, f->o.accumulate, was);
    wf_string_format(&text, ": set accumulate = %" PRId64, f->o.accumulate);
    if (!usual)
        wf_string_format(&text, " and leaves = %" PRId64, f->o.leaves);
    wf_string_format(&text, " for the same bytes on one process");
    return report_string(f, WF_EVENT_WARNING, &text);
}

wf_status together_resume(struct fit *f, const char *path)
{
    if (f->o.leaves >= f->processes)
        return WF_OK;
    return wf_error_set(f->error, WF_ERR_ARGUMENT,
                        "%s: the run has leaves = %" PRId64 ", the largest number of processes that can resume it; %d were started", path,
                        f->o.leaves, f->processes);
}

/* What the bits depend on, as words; the weights, too, which a program may have filled in another way on each process. */
static void identify(const struct fit *f, char text[IDENTITY])
{
    struct wf_string s = {0};
    uint64_t weights = 0, program = 0;
    const char *const set[] = {f->o.settings, f->o.fixed};
    for (int i = 0; i < 2; i++)
        program = set[i] ? wf_hash(set[i], (int64_t)strlen(set[i]), program) : program;
    for (int k = 0; k < f->o.registries; k++)
        for (int i = 0; i < wf_registry_count(f->o.registry[k].registry); i++) {
            const wf_array *value = &wf_parameter_info(wf_registry_at(f->o.registry[k].registry, i))->value;
            weights = wf_hash(value->data, wf_array_count(value) * (int64_t)sizeof(wf_real), weights);
        }
    wf_string_format(&s,
                     "version=%s instruction-set=%s blas=%s gemm=%s processes=%d task=%s steps=%" PRId64 " accumulate=%" PRId64
                     " leaves=%" PRId64 " seed=%" PRIu64 " first-step=%" PRId64 " clip=%.17g patience=%" PRId64 " valid_every=%" PRId64
                     " save_every=%" PRId64 " program=%016" PRIx64 " ",
                     wf_version(), wf_isa(), wf_blas(), wf_gemm_mode(), f->processes, f->task.name, f->o.steps, f->o.accumulate,
                     f->o.leaves, f->o.seed, f->step, f->o.clip, f->o.patience, f->o.valid_every, f->o.save_every, program);
    if (f->owner->identify)
        f->owner->identify(f, &s);
    wf_string_format(&s, "weights=%016" PRIx64, weights);
    snprintf(text, IDENTITY, "%s", s.failed ? "" : s.data);
    wf_string_free(&s);
}

wf_status together_compare(struct fit *f)
{
    char mine[IDENTITY] = "", *all;
    if (f->processes == 1)
        return WF_OK;
    identify(f, mine);
    if (!(all = wf_alloc_zero((size_t)f->processes, IDENTITY)) || wf_dist_all_gather(f->dist, mine, IDENTITY, all, f->error)) {
        wf_free(all);
        wf_error_set(f->error, WF_ERR_MEMORY, "no memory to compare %d processes", f->processes);
        return lost(f);
    }
    for (int r = 1; r < f->processes && !f->error->code; r++) {
        const char *a = all, *b = all + (size_t)r * IDENTITY;
        for (; !f->error->code && (*a || *b);) {
            const int n = (int)strcspn(a, " "), m = (int)strcspn(b, " ");
            if (n != m || memcmp(a, b, (size_t)n) != 0) {
                f->told = true;
                wf_error_set(f->error, WF_ERR_ARGUMENT,
                             "the processes differ: rank 0 has %.*s, rank %d has %.*s; all must train the same with the same program", n, a,
                             r, m, b);
            }
            a += n + (a[n] == ' ');
            b += m + (b[m] == ' ');
        }
    }
    wf_free(all);
    return f->error->code;
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
    return lost(f);
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
        return lost(f);
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
    return lost(f);
}

wf_status together_add(struct fit *f, wf_grads *const *grads, int count)
{
    struct exchange *x = &f->exchange;
    struct span span[2 * TREE_LEVELS];
    const struct leaves_of mine = together_leaves(f, f->rank);
    if (f->processes == 1)
        return f->error->code;
    wf_error why = *f->error;
    wf_error_clear(f->error);
    if (prepare(f, grads, count))
        return lost(f);
    *f->error = why;
    const int own = tree_spans(mine.begin, mine.end, span);
    x->record_bytes = x->at[f->processes - 1] + record_bytes(f, f->processes - 1,
                                                             tree_spans(together_leaves(f, f->processes - 1).begin, f->o.leaves, span),
                                                             valid_bytes(grads, count));
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
