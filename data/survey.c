/* SPDX-License-Identifier: MIT */
/* The survey of parallel text: one walk over the bytes of each file, for content and number of lines, and one that encodes every line. */
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include <weft/internal/hash.h>
#include <weft/internal/lines.h>
#include <weft/internal/parallel.h>
#include <weft/internal/sentence.h>
#include <weft/memory.h>
#include <weft/runtime.h>

#include "bitext_internal.h"

bool survey_goes_on(struct survey_call *call, int64_t more)
{
    if (!call)
        return true;
    call->done += more;
    const struct wf_bitext_options *o = call->options;
    return !o->progress || o->progress(o->ctx, call->done, call->total);
}

wf_status survey_cancelled(wf_error *error)
{
    return wf_error_set(error, WF_ERR_CANCELLED, "the survey of the parallel text was cancelled");
}

/* --- content and lines --- */

struct scanning {
    const struct wf_map *map;
    int64_t first;
    int64_t *ends;
    uint64_t *hash;
};

static int64_t piece_bytes(const struct wf_map *map, int64_t piece)
{
    int64_t left = map->bytes - piece * SURVEY_PIECE;
    return left < SURVEY_PIECE ? left : SURVEY_PIECE;
}

static void scan_piece(void *ctx, int64_t block)
{
    struct scanning *s = ctx;
    int64_t piece = s->first + block, bytes = piece_bytes(s->map, piece);
    const char *text = s->map->data + piece * SURVEY_PIECE;
    s->hash[piece] = wf_hash(text, bytes, 0);
    s->ends[piece + 1] = wf_line_ends(text, bytes);
}

wf_status survey_scan(const struct bitext_side *side, struct survey_call *call, struct survey_scan *out, uint64_t *content, wf_error *error)
{
    enum { AT_ONCE = 256 };
    const struct wf_map *map = &side->map;
    int64_t pieces = (map->bytes + SURVEY_PIECE - 1) / SURVEY_PIECE;
    *out = (struct survey_scan){.pieces = pieces, .ends = wf_alloc((size_t)(pieces + 1) * sizeof *out->ends)};
    uint64_t *hash = wf_alloc((size_t)(pieces + 1) * sizeof *hash);
    wf_status status = WF_OK;
    if (!out->ends || !hash)
        status = wf_error_set(error, WF_ERR_MEMORY, "%s: no memory to count its lines", side->path);
    for (int64_t first = 0; status == WF_OK && first < pieces; first += AT_ONCE) {
        int64_t count = pieces - first < AT_ONCE ? pieces - first : AT_ONCE;
        wf_parallel(count, (double)count * SURVEY_PIECE / 5, scan_piece, &(struct scanning){map, first, out->ends, hash});
        if (!survey_goes_on(call, 0))
            status = survey_cancelled(error);
    }
    if (status == WF_OK) {
        out->ends[0] = 0;
        for (int64_t i = 0; i < pieces; i++)
            out->ends[i + 1] += out->ends[i];
        out->lines = out->ends[pieces] + (map->bytes > 0 && map->data[map->bytes - 1] != '\n');
        *content = wf_hash(hash, pieces * (int64_t)sizeof *hash, (uint64_t)map->bytes);
    } else {
        survey_scan_free(out);
    }
    wf_free(hash);
    return status;
}

void survey_scan_free(struct survey_scan *scan)
{
    wf_free(scan->ends);
    *scan = (struct survey_scan){0};
}

/* --- encoding --- */

struct fault {
    int64_t line;
    wf_status status;
    wf_error error;
};
struct work {           /* of a worker */
    struct fault fault; /* the first in its pieces */
    int64_t longest, longest_bytes, longest_at;
};
struct encoding {
    struct wf_bitext *bitext;
    int which;
    const struct survey_scan *scan;
    int64_t max_length, first, end; /* pieces that are shared out */
    _Atomic int64_t next;
    uint32_t *unknown; /* [lines], or NULL */
    struct encoder *encoder;
    struct work *work;
};

static wf_status survey_line(struct encoding *e, struct encoder *encoder, struct work *work, int64_t line, int64_t begin, int64_t *next,
                             wf_error *error)
{
    const struct bitext_side *side = e->bitext->side + e->which;
    const char *text = side->map.data;
    struct pair *pair = e->bitext->pair + line;
    int64_t from, to, unknown = 0;
    *next = wf_line_at(text, side->map.bytes, begin, &from, &to);
    int64_t bad = wf_text_fault(text + begin, *next - begin);
    if (bad >= 0) /* in the first line bytes count from the start of the file, a byte order mark too */
        return wf_text_refuse(side->path, line + 1, bad + (line == 0 ? begin : 0) + 1, text + begin + bad, side->map.bytes - begin - bad,
                              error);
    pair->at[e->which] = from;
    pair->ids[e->which] = 0;
    if (from == to)
        return WF_OK;
    encoder->ids.count = 0;
    const struct wf_encode_options options = {.cache = encoder->cache[e->which], .unknown = &unknown};
    wf_status status = wf_line_encode(side->tokenizer, side->path, text, line, begin, from, to, &options, &encoder->ids, error);
    if (status != WF_OK)
        return status;
    int64_t ids = encoder->ids.count;
    if (ids == 0) /* nothing that the tokenizer keeps */
        return WF_OK;
    ids += side->bos + side->eos;
    if (ids > INT32_MAX)
        return wf_error_set(error, WF_ERR_FORMAT, "%s:%" PRId64 ": a line of %" PRId64 " tokens; is this one sentence a line?", side->path,
                            line + 1, ids);
    pair->ids[e->which] = (uint32_t)ids;
    if (e->unknown)
        e->unknown[line] = (uint32_t)unknown;
    if (ids > work->longest)
        work->longest = ids;
    if (to - from > work->longest_bytes && (!e->max_length || ids <= e->max_length)) {
        work->longest_bytes = to - from;
        work->longest_at = from;
    }
    return WF_OK;
}

/* The lines that begin in a piece: line 0, or what follows a "\n" in it. */
static void survey_piece(struct encoding *e, struct encoder *encoder, struct work *work, int64_t piece)
{
    const struct wf_map *map = &e->bitext->side[e->which].map;
    int64_t begin = piece * SURVEY_PIECE, limit = begin + piece_bytes(map, piece), line = 0;
    if (piece == 0) {
        begin = wf_line_first(map->data, map->bytes);
    } else {
        const char *newline = memchr(map->data + begin, '\n', (size_t)(limit - begin));
        begin = newline ? newline + 1 - map->data : limit + 1;
        line = e->scan->ends[piece] + 1;
    }
    for (; begin <= limit && begin < map->bytes; line++) {
        wf_error error = {0};
        wf_status status = survey_line(e, encoder, work, line, begin, &begin, &error);
        if (status != WF_OK) {
            if (work->fault.status == WF_OK || line < work->fault.line)
                work->fault = (struct fault){line, status, error};
            return;
        }
    }
}

static void survey_worker(void *ctx, int64_t block)
{
    struct encoding *e = ctx;
    for (int64_t piece; (piece = atomic_fetch_add(&e->next, 1)) < e->end;)
        survey_piece(e, e->encoder + block, e->work + block, piece);
}

/* Pieces a few at a time, so that the caller hears of them and can stop; the first fault in the file is the one that is told,
 * whoever met it. */
static wf_status survey_side(struct encoding *e, int workers, struct survey_call *call, wf_error *error)
{
    struct wf_bitext *bitext = e->bitext;
    struct bitext_side *side = bitext->side + e->which;
    for (int64_t first = 0; first < e->scan->pieces; first = e->end) {
        int64_t bytes = 0;
        wf_status status = bitext_verify(bitext, error);
        if (status != WF_OK)
            return status;
        e->end = e->scan->pieces - first < 4 * workers ? e->scan->pieces : first + 4 * workers;
        atomic_store(&e->next, first);
        for (int64_t i = first; i < e->end; i++)
            bytes += piece_bytes(&side->map, i);
        wf_parallel(workers, (double)bytes * 20, survey_worker, e);
        const struct fault *worst = NULL;
        for (int i = 0; i < workers; i++)
            if (e->work[i].fault.status != WF_OK && (!worst || e->work[i].fault.line < worst->line))
                worst = &e->work[i].fault;
        if (worst)
            return wf_error_set(error, worst->status, "%s", worst->error.message);
        if (!survey_goes_on(call, bytes))
            return survey_cancelled(error);
    }
    int64_t *longest = e->which ? &bitext->survey.longest_target : &bitext->survey.longest_source;
    for (int i = 0; i < workers; i++) {
        struct work *work = e->work + i;
        *longest = work->longest > *longest ? work->longest : *longest;
        if (work->longest_bytes > side->longest_bytes ||
            (work->longest_bytes == side->longest_bytes && work->longest_at < side->longest_at)) {
            side->longest_bytes = work->longest_bytes;
            side->longest_at = work->longest_at;
        }
        *work = (struct work){0};
    }
    return WF_OK;
}

/* Sums up and leaves the used pairs, in order, at the front of the list. */
static void survey_sum(struct wf_bitext *bitext, uint32_t *const unknown[2])
{
    struct wf_bitext_survey *s = &bitext->survey;
    for (int64_t line = 0; line < s->lines; line++) {
        const struct pair *pair = bitext->pair + line;
        bool no_source = pair->ids[0] == 0, no_target = pair->ids[1] == 0;
        bool long_source = s->max_length > 0 && pair->ids[0] > s->max_length,
             long_target = s->max_length > 0 && pair->ids[1] > s->max_length;
        if (no_source || no_target) {
            *(no_source && no_target ? &s->empty_both : no_source ? &s->empty_source : &s->empty_target) += 1;
        } else if (long_source || long_target) {
            *(long_source && long_target ? &s->long_both : long_source ? &s->long_source : &s->long_target) += 1;
        } else {
            s->source_tokens += pair->ids[0];
            s->target_tokens += pair->ids[1];
            s->source_unknown += unknown[0] ? unknown[0][line] : 0;
            s->target_unknown += unknown[1] ? unknown[1][line] : 0;
            bitext->pair[s->used++] = *pair;
        }
    }
}

wf_status survey_encode(struct wf_bitext *bitext, const struct survey_scan scan[2], struct survey_call *call, wf_error *error)
{
    int64_t lines = scan[0].lines;
    int workers = wf_threads();
    uint32_t *unknown[2] = {NULL, NULL};
    struct encoder *encoder = NULL;
    struct work *work = wf_alloc_zero((size_t)workers, sizeof *work);
    bool enough = work && (bitext->memory = bitext->pair = wf_alloc_zero((size_t)lines, sizeof *bitext->pair));
    for (int i = 0; i < 2; i++)
        if (wf_tokenizer_special(bitext->side[i].tokenizer, WF_SPECIAL_UNKNOWN) >= 0)
            enough = enough && (unknown[i] = wf_alloc_zero((size_t)lines, sizeof **unknown));
    wf_status status =
        enough ? encoders_new(bitext, workers, &encoder, error)
               : wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for the survey of %" PRId64 " lines", bitext->side[0].path, lines);
    for (int i = 0; i < 2 && status == WF_OK; i++) {
        struct encoding e = {.bitext = bitext,
                             .which = i,
                             .scan = scan + i,
                             .max_length = call->options->max_length,
                             .unknown = unknown[i],
                             .encoder = encoder,
                             .work = work};
        status = survey_side(&e, workers, call, error);
    }
    if (status == WF_OK) {
        survey_sum(bitext, unknown);
        size_t bytes = (size_t)(bitext->survey.used ? bitext->survey.used : 1) * sizeof *bitext->pair;
        struct pair *less = wf_realloc(bitext->memory, bytes);
        if (less) /* else it stays as large as it is */
            bitext->memory = bitext->pair = less;
    }
    encoders_free(encoder, workers);
    for (int i = 0; i < 2; i++)
        wf_free(unknown[i]);
    wf_free(work);
    return status;
}
