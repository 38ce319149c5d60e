/* SPDX-License-Identifier: MIT */
/* Opens a parallel text: checks the files and tokenizers of both sides, and loads the survey from the cache or runs it (survey.c).
 * Also holds the encoders, with which threads encode sentences, and reads a sentence by its offset. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weft/internal/encode.h>
#include <weft/internal/hash.h>
#include <weft/internal/lines.h>
#include <weft/internal/minmax.h>
#include <weft/internal/needs.h>
#include <weft/internal/sentence.h>
#include <weft/internal/string.h>
#include <weft/internal/text.h>
#include <weft/memory.h>
#include <weft/runtime.h>

#include "bitext_internal.h"

/* Words that each thread's token cache holds. On the 29,000 pairs of Multi30k a quarter of this number made encoding a sixth slower, and
 * four times this number was not measurably faster. */
enum { WORDS = 1 << 15 };

wf_status encoders_new(const struct wf_bitext *bitext, int count, struct encoder **out, wf_error *error)
{
    struct encoder *encoder = *out = wf_alloc_zero((size_t)count, sizeof *encoder);
    bool one = bitext->side[0].tokenizer == bitext->side[1].tokenizer;
    if (!encoder)
        return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory to encode its lines", bitext->side[0].file.path);
    for (int i = 0; i < 2 * count; i++) {
        wf_token_cache **cache = encoder[i / 2].cache;
        cache[i % 2] = i % 2 && one ? cache[0] : wf_token_cache_new(bitext->side[i % 2].tokenizer, WORDS, error);
        if (!cache[i % 2]) {
            encoders_free(encoder, count);
            *out = NULL;
            return WF_ERR_MEMORY;
        }
    }
    return WF_OK;
}

wf_status encoders_warm(const struct wf_bitext *bitext, int count, struct encoder *encoders, wf_error *error)
{
    for (int k = 0; k < 2; k++) {
        const struct bitext_side *side = bitext->side + k;
        int64_t at[2] = {side->longest_at, 0};
        uint32_t most = 0;
        for (int64_t i = 0; i < bitext->survey.used; i++)
            if (bitext->pair[i].ids[k] > most) {
                most = bitext->pair[i].ids[k];
                at[1] = bitext->pair[i].at[k];
            }
        for (int i = 0; i < 2 * count; i++) {
            struct encoder *e = encoders + i / 2;
            const struct wf_encode_options options = {.cache = e->cache[k]};
            e->ids.count = 0;
            wf_error failure = {0}; /* only WF_ERR_MEMORY counts here; other errors are reported when the sentence is encoded for a batch */
            wf_status status = bitext_sentence(side, at[i % 2], &e->text, &failure);
            if (status == WF_OK)
                status = wf_tokenizer_encode_with(side->tokenizer, e->text.data, e->text.length, &options, &e->ids, &failure);
            if (status == WF_ERR_MEMORY)
                return wf_error_set(error, WF_ERR_MEMORY, "%s", failure.message);
        }
    }
    return WF_OK;
}

void encoders_free(struct encoder *encoders, int count)
{
    for (int i = 0; encoders && i < count; i++) {
        if (encoders[i].cache[1] != encoders[i].cache[0])
            wf_token_cache_free(encoders[i].cache[1]);
        wf_token_cache_free(encoders[i].cache[0]);
        wf_tokens_free(&encoders[i].ids);
        wf_string_free(&encoders[i].text);
    }
    wf_free(encoders);
}

wf_status bitext_sentence(const struct bitext_side *side, int64_t at, struct wf_string *out, wf_error *error)
{
    enum { FIRST = 512 };
    const char *newline = NULL;
    int64_t from, to;
    out->length = 0;
    for (int64_t bytes = FIRST; !newline && at + out->length < side->file.bytes; bytes = 3 * out->length) {
        int64_t left = side->file.bytes - at - out->length, more = WF_MIN(left, bytes);
        if (!wf_string_reserve(out, more))
            return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for a line", side->file.path);
        wf_status status = text_file_read(&side->file, at + out->length, more, out->data + out->length, error);
        if (status != WF_OK)
            return status;
        newline = memchr(out->data + out->length, '\n', (size_t)more);
        out->length += more;
    }
    wf_line_at(out->data, out->length, 0, &from, &to); /* `at` is the first byte that is not white space, so `from` is 0 */
    out->length = to;
    return WF_OK;
}

wf_status bitext_verify(struct wf_bitext *bitext, wf_error *error)
{
    wf_status status = text_file_verify(&bitext->side[0].file, bitext->side[0].content, error);
    return status == WF_OK ? text_file_verify(&bitext->side[1].file, bitext->side[1].content, error) : status;
}

/* Finds the special tokens of a side, and checks that the side has those that it needs. `both`: the side is the target, which needs BOS and
 * EOS; its lengths do not count the BOS, so side->bos is false although it needs one. */
static wf_status open_specials(struct bitext_side *side, bool both, wf_error *error)
{
    side->bos_id = wf_tokenizer_special(side->tokenizer, WF_SPECIAL_BOS);
    side->eos_id = wf_tokenizer_special(side->tokenizer, WF_SPECIAL_EOS);
    bool no_bos = (side->bos || both) && side->bos_id < 0, no_eos = side->eos && side->eos_id < 0;
    if (no_bos || no_eos)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s: its tokenizer has no token for the %s: train one with --specials that contain it",
                            side->file.path, no_bos ? "start of a sentence (<s>, <bos>, [CLS])" : "end of a sentence (</s>, <eos>, [SEP])");
    return wf_tokenizer_check_whole(side->tokenizer, side->file.path, error);
}

static wf_status open_files(struct wf_bitext *bitext, const char *const paths[2], wf_error *error)
{
    for (int i = 0; i < 2; i++) {
        wf_status status = text_file_open(&bitext->side[i].file, paths[i], false, error);
        if (status == WF_OK)
            status = open_specials(bitext->side + i, i == 1, error);
        if (status != WF_OK)
            return status;
    }
    return WF_OK;
}

static wf_status survey(struct wf_bitext *bitext, const struct wf_bitext_options *o, struct wf_scans *scans, wf_error *error)
{
    struct bitext_side *source = bitext->side, *target = bitext->side + 1;
    struct text_scan scan[2];
    struct text_progress call = {o->progress, o->ctx, 0, source->file.bytes + target->file.bytes, "the survey of the parallel text"};
    for (int i = 0; i < 2; i++) {
        wf_status status = text_file_scan_once(&bitext->side[i].file, scans, &call, scan + i, error);
        if (status != WF_OK)
            return status;
        bitext->side[i].content = scan[i].content;
    }
    int64_t lines = scan[0].lines;
    if (lines != scan[1].lines)
        return wf_error_set(error, WF_ERR_FORMAT, "%s has %" PRId64 " line%s and %s has %" PRId64 "; the files must be aligned by line",
                            source->file.path, lines, lines == 1 ? "" : "s", target->file.path, scan[1].lines);
    if (lines > UINT32_MAX)
        return wf_error_set(error, WF_ERR_FORMAT, "%s: %" PRId64 " lines, more than the maximum of 4,294,967,295", source->file.path,
                            lines);
    const uint64_t contents[2] = {source->content, target->content};
    bitext->survey.lines = lines;
    bitext->survey.max_length = o->max_length;
    bitext->survey.max_ratio = o->max_ratio;
    bitext->deduplicate = o->deduplicate;
    bitext->survey.hash = wf_hash(contents, sizeof contents, 0);
    bool found = false;
    wf_status status = WF_OK;
    if (o->cache && (status = survey_cache_read(bitext, o->cache, lines, &found, error)) != WF_OK)
        return status;
    if (found)
        return text_progress(&call, call.total, error);
    if ((status = survey_encode(bitext, scan, &call, error)) != WF_OK)
        return status;
    if (bitext->survey.used == 0) {
        char text[500];
        return wf_error_set(error, WF_ERR_FORMAT, "%s, %s: no pair of lines can be used: %s", source->file.path, target->file.path,
                            wf_bitext_describe(&bitext->survey, text, sizeof text));
    }
    return o->cache ? survey_cache_write(bitext, o->cache, error) : WF_OK;
}

wf_status wf_bitext_open(const char *source, const char *target, const struct wf_bitext_options *options, wf_bitext **out, wf_error *error)
{
    if (wf_needs(error, "out", out))
        return WF_ERR_ARGUMENT;
    *out = NULL;
    if (wf_needs(error, "source, target, options", source, target, options))
        return WF_ERR_ARGUMENT;
    if (options->max_length < 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "max_length %" PRId64 " is out of range: it must be positive, or 0 for no limit",
                            options->max_length);
    if (!(options->max_ratio == 0 || options->max_ratio >= 1))
        return wf_error_set(error, WF_ERR_ARGUMENT, "max_ratio %g is out of range: it must be at least 1, or 0 for no limit",
                            options->max_ratio);
    struct wf_bitext *bitext = wf_alloc_zero(1, sizeof *bitext);
    if (!bitext)
        return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory to open it", source);
    bitext->side[0].tokenizer = options->source;
    bitext->side[0].bos = options->source_bos;
    bitext->side[0].eos = options->source_eos;
    bitext->side[1].tokenizer = options->target;
    bitext->side[1].eos = true;
    struct wf_scans own = {0};
    wf_status status = open_files(bitext, (const char *const[]){source, target}, error);
    if (status == WF_OK)
        status = survey(bitext, options, options->scans ? options->scans : &own, error);
    text_scans_clear(&own);
    if (status == WF_OK)
        *out = bitext;
    else
        wf_bitext_close(bitext);
    return status;
}

void wf_bitext_close(wf_bitext *bitext)
{
    if (!bitext)
        return;
    for (int i = 0; i < 2; i++)
        text_file_close(&bitext->side[i].file);
    wf_free(bitext->memory);
    wf_map_close(&bitext->map);
    wf_free(bitext);
}

const struct wf_bitext_survey *wf_bitext_survey(const wf_bitext *bitext)
{
    if (!bitext)
        return NULL;
    return &bitext->survey;
}

void wf_bitext_lengths(const wf_bitext *bitext, int64_t pair, int64_t *source, int64_t *target)
{
    if (!bitext || !source || !target)
        return;
    *source = bitext->pair[pair].ids[0];
    *target = bitext->pair[pair].ids[1];
}

wf_status wf_bitext_text(const wf_bitext *bitext, int64_t pair, int side, struct wf_string *out, wf_error *error)
{
    if (wf_needs(error, "bitext, out", bitext, out))
        return WF_ERR_ARGUMENT;
    return bitext_sentence(bitext->side + side, bitext->pair[pair].at[side], out, error);
}

char *wf_bitext_describe(const struct wf_bitext_survey *s, char *text, size_t size)
{
    if (!s || !text)
        return text;
    char number[WF_NUMBER_SIZE], second[WF_NUMBER_SIZE], length[WF_NUMBER_SIZE], ratio[WF_NUMBER_SIZE];
    const struct {
        int64_t count;
        const char *what, *limit;
    } reason[] = {
        {s->empty_source, "empty source", ""},
        {s->empty_target, "empty target", ""},
        {s->empty_both, "empty on both sides", ""},
        {s->long_source, "source longer than ", length},
        {s->long_target, "target longer than ", length},
        {s->long_both, "both longer than ", length},
        {s->over_ratio, "with a length ratio above ", ratio},
        {s->duplicates, s->duplicates == 1 ? "duplicate" : "duplicates", ""},
    };
    wf_text_count(s->max_length, length);
    wf_text_double(isfinite(s->max_ratio) ? s->max_ratio : 0, ratio);
    if (strlen(ratio) > 2 && strcmp(ratio + strlen(ratio) - 2, ".0") == 0)
        ratio[strlen(ratio) - 2] = '\0';
    struct wf_string w = {0};
    wf_string_format(&w, "%s pair%s", wf_text_count(s->used, number), s->used == 1 ? "" : "s");
    if (s->used > 0)
        wf_string_format(&w, ", %s + %s tokens", wf_text_count(s->source_tokens, number), wf_text_count(s->target_tokens, second));
    if (s->source_unknown > 0 || s->target_unknown > 0)
        wf_string_format(&w, " (%s + %s unknown)", wf_text_count(s->source_unknown, number), wf_text_count(s->target_unknown, second));
    if (s->lines > s->used)
        wf_string_format(&w, "; %s skipped: ", wf_text_count(s->lines - s->used, number));
    const char *between = "";
    for (size_t i = 0; i < sizeof reason / sizeof *reason; i++) {
        if (reason[i].count == 0)
            continue;
        wf_string_format(&w, "%s%s %s%s", between, wf_text_count(reason[i].count, number), reason[i].what, reason[i].limit);
        between = ", ";
    }
    snprintf(text, size, "%s", w.data ? w.data : "");
    wf_string_free(&w);
    return text;
}
