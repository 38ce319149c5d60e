/* SPDX-License-Identifier: MIT */
/* The survey of a parallel text encodes every line of both files once. The scan of each file, which comes before, has counted the lines and
 * hashed the content. */
#include <inttypes.h>
#include <string.h>

#include <weft/internal/hash.h>
#include <weft/internal/lines.h>
#include <weft/internal/minmax.h>
#include <weft/internal/sentence.h>
#include <weft/internal/string.h>
#include <weft/memory.h>
#include <weft/runtime.h>

#include "bitext_internal.h"

struct work {              /* results of one worker */
    int64_t longest;       /* most ids of a line */
    int64_t longest_bytes; /* most bytes of a line that has at most max_length ids */
    int64_t longest_at;    /* offset of that line in the file */
};
struct encoding {
    struct wf_bitext *bitext;
    int which; /* the side: 0 source, 1 target */
    const struct text_scan *scan;
    uint32_t *unknown; /* [lines]: number of unknown tokens of each line; NULL if the tokenizer has no unknown token */
    uint64_t *hash;    /* [lines]: hash of each line's sentences on the sides encoded so far; NULL without deduplication */
    struct encoder *encoder;
    struct work *work;
};

/* Encodes line number `line` (from 0), which begins at text[begin], and sets *next to the index in `text` at which the next line begins.
 * `text` is the encoder's text, which holds the bytes of the file from offset `base` on. */
static wf_status survey_line(struct encoding *e, struct encoder *encoder, struct work *work, int64_t line, int64_t base, int64_t begin,
                             int64_t *next, wf_error *error)
{
    const struct bitext_side *side = e->bitext->side + e->which;
    const char *text = encoder->text.data;
    struct pair *pair = e->bitext->pair + line;
    int64_t from, to, unknown = 0, most = e->bitext->survey.max_length;
    *next = wf_line_at(text, encoder->text.length, begin, &from, &to);
    int64_t bad = wf_text_fault(text + begin, *next - begin);
    if (bad >= 0) /* in the first line the byte number in the message counts a byte order mark too */
        return wf_text_refuse(side->file.path, line + 1, bad + (line == 0 ? begin : 0) + 1, text + begin + bad,
                              encoder->text.length - begin - bad, error);
    pair->at[e->which] = base + from;
    pair->ids[e->which] = 0;
    if (from == to)
        return WF_OK;
    if (e->hash)
        e->hash[line] = wf_hash(text + from, to - from, e->hash[line]);
    encoder->ids.count = 0;
    const struct wf_encode_options options = {.cache = encoder->cache[e->which], .unknown = &unknown};
    wf_status status = wf_line_encode(side->tokenizer, side->file.path, text, line, begin, from, to, &options, &encoder->ids, error);
    if (status != WF_OK)
        return status;
    int64_t ids = encoder->ids.count;
    if (ids == 0) /* The tokenizer gives no ids for this line, so the line counts as empty. */
        return WF_OK;
    ids += side->bos + side->eos;
    if (ids > INT32_MAX)
        return wf_error_set(error, WF_ERR_FORMAT, "%s:%" PRId64 ": a line of %" PRId64 " tokens; is this one sentence per line?",
                            side->file.path, line + 1, ids);
    pair->ids[e->which] = (uint32_t)ids;
    if (e->unknown)
        e->unknown[line] = (uint32_t)unknown;
    work->longest = WF_MAX(work->longest, ids);
    if (to - from > work->longest_bytes && (!most || ids <= most)) {
        work->longest_bytes = to - from;
        work->longest_at = base + from;
    }
    return WF_OK;
}

/* Appends the next `more` bytes of the file to the encoder's text. */
static wf_status read_more(const struct text_file *file, struct wf_string *text, int64_t base, int64_t more, wf_error *error)
{
    int64_t left = file->bytes - base - text->length;
    more = WF_MIN(more, left);
    if (!wf_string_reserve(text, more))
        return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for a line", file->path);
    wf_status status = text_file_read(file, base + text->length, more, text->data + text->length, error);
    text->length += status == WF_OK ? more : 0;
    return status;
}

/* Encodes the lines of a piece: each line that follows a "\n" of the piece, and line 0 in the first piece. Such a line may end in a later
 * piece. */
static wf_status survey_piece(void *ctx, int64_t worker, int64_t piece, wf_error *error)
{
    struct encoding *e = ctx;
    struct encoder *encoder = e->encoder + worker;
    const struct text_file *file = &e->bitext->side[e->which].file;
    struct wf_string *text = &encoder->text;
    int64_t base = piece * TEXT_PIECE, bytes = text_piece_bytes(file, piece), line = piece == 0 ? 0 : e->scan->ends[piece] + 1;
    text->length = 0;
    wf_status status = read_more(file, text, base, bytes, error);
    if (status != WF_OK)
        return status;
    const char *newline = memchr(text->data, '\n', (size_t)bytes);
    int64_t begin = piece == 0 ? e->scan->first : newline ? newline + 1 - text->data : bytes + 1;
    for (; status == WF_OK && begin <= bytes && base + begin < file->bytes; line++) {
        if (line > e->scan->ends[piece + 1] || line >= e->scan->lines)
            return text_file_changed(file, error);
        for (int64_t seen = begin; status == WF_OK && base + text->length < file->bytes;) {
            if (text->length > seen && memchr(text->data + seen, '\n', (size_t)(text->length - seen)))
                break;
            seen = text->length;
            status = read_more(file, text, base, 4096 + seen / 2, error);
        }
        if (status == WF_OK)
            status = survey_line(e, encoder, e->work + worker, line, base, begin, &begin, error);
    }
    return status;
}

static wf_status survey_side(struct encoding *e, int workers, struct text_progress *progress, wf_error *error)
{
    struct wf_bitext *bitext = e->bitext;
    struct bitext_side *side = bitext->side + e->which;
    wf_error failure = {0};
    wf_status status = text_file_walk(&side->file, workers, 2, 20, survey_piece, e, progress, true, &failure);
    /* If the file changed while it was read, report that rather than any other fault. */
    if ((status == WF_OK || status == WF_ERR_FORMAT) && (status = bitext_verify(bitext, error)) != WF_OK)
        return status;
    if (failure.code)
        return wf_error_set(error, failure.code, "%s", failure.message);
    int64_t *longest = e->which ? &bitext->survey.longest_target : &bitext->survey.longest_source, bytes = 0;
    for (int i = 0; i < workers; i++) {
        struct work *work = e->work + i;
        *longest = WF_MAX(work->longest, *longest);
        if (work->longest_bytes > bytes || (work->longest_bytes == bytes && work->longest_at < side->longest_at)) {
            bytes = work->longest_bytes;
            side->longest_at = work->longest_at;
        }
        *work = (struct work){0};
    }
    return WF_OK;
}

static bool over_ratio(const struct wf_bitext *bitext, const struct pair *pair)
{
    double n[2];
    for (int k = 0; k < 2; k++)
        n[k] = (double)pair->ids[k] - bitext->side[k].bos - bitext->side[k].eos;
    return bitext->survey.max_ratio > 0 && (n[0] > bitext->survey.max_ratio * n[1] || n[1] > bitext->survey.max_ratio * n[0]);
}

/* Counts the skipped pairs by reason, and moves the used pairs, in order, to the front of bitext->pair. */
static wf_status survey_sum(struct wf_bitext *bitext, uint32_t *const unknown[2], struct repeats *repeats, struct text_progress *progress,
                            wf_error *error)
{
    struct wf_bitext_survey *s = &bitext->survey;
    wf_status status = WF_OK;
    for (int64_t line = 0; line < s->lines && status == WF_OK; line++) {
        const struct pair *pair = bitext->pair + line;
        bool repeated = false;
        if (line % 65536 == 65535 && (status = text_progress(progress, 0, error)) != WF_OK)
            return status;
        bool no_source = pair->ids[0] == 0, no_target = pair->ids[1] == 0;
        bool long_source = s->max_length > 0 && pair->ids[0] > s->max_length,
             long_target = s->max_length > 0 && pair->ids[1] > s->max_length;
        if (no_source || no_target) {
            *(no_source && no_target ? &s->empty_both : no_source ? &s->empty_source : &s->empty_target) += 1;
        } else if (long_source || long_target) {
            *(long_source && long_target ? &s->long_both : long_source ? &s->long_source : &s->long_target) += 1;
        } else if (over_ratio(bitext, pair)) {
            s->over_ratio++;
        } else if (repeats && (status = repeats_find(repeats, line, s->used, &repeated, error)) != WF_OK) {
            return status;
        } else if (repeated) {
            s->duplicates++;
        } else {
            s->source_tokens += pair->ids[0];
            s->target_tokens += pair->ids[1];
            s->source_unknown += unknown[0] ? unknown[0][line] : 0;
            s->target_unknown += unknown[1] ? unknown[1][line] : 0;
            bitext->pair[s->used++] = *pair;
        }
    }
    return status;
}

/* Selects the used pairs after both sides are encoded, and shrinks the array of pairs to the used ones. */
static wf_status survey_choose(struct wf_bitext *bitext, uint32_t *const unknown[2], uint64_t *hash, struct text_progress *progress,
                               wf_error *error)
{
    struct repeats repeats = {0};
    wf_status status = hash ? repeats_open(&repeats, bitext, hash, error) : WF_OK;
    if (status == WF_OK)
        status = survey_sum(bitext, unknown, hash ? &repeats : NULL, progress, error);
    repeats_close(&repeats);
    if (hash && (status == WF_OK || status == WF_ERR_FORMAT)) { /* repeats_find has read sentences again, so the files are checked again */
        wf_status changed = bitext_verify(bitext, error);
        status = changed == WF_OK ? status : changed;
    }
    if (status != WF_OK)
        return status;
    size_t bytes = (size_t)(bitext->survey.used ? bitext->survey.used : 1) * sizeof *bitext->pair;
    struct pair *less = wf_realloc(bitext->memory, bytes);
    if (less) /* if realloc fails, the larger memory stays valid */
        bitext->memory = bitext->pair = less;
    return WF_OK;
}

wf_status survey_encode(struct wf_bitext *bitext, const struct text_scan scan[2], struct text_progress *progress, wf_error *error)
{
    int64_t lines = scan[0].lines;
    int workers = wf_threads();
    uint32_t *unknown[2] = {NULL, NULL};
    struct encoder *encoder = NULL;
    struct work *work = wf_alloc_zero((size_t)workers, sizeof *work);
    uint64_t *hash = bitext->deduplicate ? wf_alloc_zero((size_t)lines, sizeof *hash) : NULL;
    bool enough =
        work && (hash || !bitext->deduplicate) && (bitext->memory = bitext->pair = wf_alloc_zero((size_t)lines, sizeof *bitext->pair));
    for (int i = 0; i < 2; i++)
        if (wf_tokenizer_special(bitext->side[i].tokenizer, WF_SPECIAL_UNKNOWN) >= 0)
            enough = enough && (unknown[i] = wf_alloc_zero((size_t)lines, sizeof **unknown));
    wf_status status =
        enough ? encoders_new(bitext, workers, &encoder, error)
               : wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for the survey of %" PRId64 " lines", bitext->side[0].file.path, lines);
    for (int i = 0; i < 2 && status == WF_OK; i++) {
        struct encoding e = {
            .bitext = bitext, .which = i, .scan = scan + i, .unknown = unknown[i], .hash = hash, .encoder = encoder, .work = work};
        status = survey_side(&e, workers, progress, error);
    }
    encoders_free(encoder, workers);
    if (status == WF_OK)
        status = survey_choose(bitext, unknown, hash, progress, error);
    wf_free(hash);
    for (int i = 0; i < 2; i++)
        wf_free(unknown[i]);
    wf_free(work);
    return status;
}
