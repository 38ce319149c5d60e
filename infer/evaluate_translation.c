/* SPDX-License-Identifier: MIT */
/* Translates a file with a model and computes BLEU and chrF of the translations. */
#include <inttypes.h>
#include <string.h>

#include <weft/internal/lines.h>
#include <weft/internal/needs.h>
#include <weft/internal/several.h>

/* Bytes of source text for each process in one call of the translator. They are enough to form batches of lines of similar length. */
enum { BLOCK = 1 << 16 };

/* A whole file in memory. */
struct text {
    struct wf_lines file;  /* holds the lines of the file */
    struct wf_lines lines; /* reads these lines from memory */
};

static wf_status read_all(struct text *t, const char *path, wf_error *error)
{
    wf_status status = wf_lines_open(&t->file, path, error);
    if (status == WF_OK)
        status = wf_lines_block(&t->file, INT64_MAX / 4, error);
    if (status == WF_OK && t->file.length == 0)
        status = wf_text_empty(path, error);
    wf_lines_of(&t->lines, path, t->file.text, t->file.length);
    return status == WF_OK ? wf_lines_check(&t->file, error) : status;
}

struct scoring {
    wf_dist *dist;
    wf_translator *translator;
    wf_bleu *bleu;
    wf_chrf *chrf;
    struct text source, target;
    int64_t done, total;
    bool stopped;
    const struct wf_translate_options *search; /* the caller's options */
    bool (*progress)(void *ctx, int64_t done, int64_t total);
    void *ctx;
};

/* Called after each batch of a block: reports the progress within the block, because a block may take minutes. */
static void batch_done(void *scoring, int64_t done, int64_t count)
{
    struct scoring *s = scoring;
    if (s->search && s->search->progress)
        s->search->progress(s->search->ctx, done, count);
    if (s->progress && done < count && !s->progress(s->ctx, s->done + s->source.lines.ends * done / count, s->total))
        s->stopped = true;
}

static bool is_cancelled(void *scoring)
{
    const struct scoring *s = scoring;
    return s->stopped || (s->search && s->search->cancelled && s->search->cancelled(s->search->ctx));
}

/* Reads the next line of the target file and removes blanks at its end, which count in neither BLEU nor chrF. */
static wf_status next_reference(struct wf_lines *target, struct wf_segment *out, wf_error *error)
{
    wf_status status = wf_lines_next(target, error);
    *out = (struct wf_segment){target->text, target->length};
    while (out->length > 0 && strchr(" \t\r\n\v\f", out->text[out->length - 1]))
        out->length--;
    return status;
}

/* Translates the block that source.lines holds, and scores its lines. */
static wf_status next_lines(struct scoring *s, int64_t n_best, wf_error *error)
{
    struct wf_line_translations lines;
    const struct wf_lines *source = &s->source.lines;
    wf_status status = wf_translator_lines(s->translator, source->text, source->length, &lines, error);
    for (int64_t i = 0; status == WF_OK && i < lines.count; i++) {
        const struct wf_line_translation *best = &lines.translation[i * n_best];
        struct wf_segment hypothesis = {best->text, best->length}, reference;
        status = next_reference(&s->target.lines, &reference, error);
        if (status == WF_OK)
            status = wf_bleu_add(s->bleu, hypothesis, &reference, 1, error);
        if (status == WF_OK)
            status = wf_chrf_add(s->chrf, hypothesis, &reference, 1, error);
    }
    s->done += lines.count;
    if (status == WF_OK && s->progress && !s->progress(s->ctx, s->done, s->total))
        s->stopped = true;
    if (!s->stopped && status != WF_ERR_CANCELLED)
        return status;
    wf_error_clear(error);
    return wf_error_set(error, WF_ERR_CANCELLED, "cancelled after %" PRId64 " of %" PRId64 " lines", s->done, s->total);
}

static wf_status begin(struct scoring *s, const struct wf_run *run, const char *source, const char *target,
                       const struct wf_translator_options *o, wf_error *error)
{
    wf_status status = read_all(&s->source, source, error);
    if (status == WF_OK)
        status = read_all(&s->target, target, error);
    if (status != WF_OK)
        return status;
    s->total = s->source.file.ends;
    if (s->total != s->target.file.ends)
        return wf_error_set(error, WF_ERR_FORMAT, "%s has %" PRId64 " lines, %s has %" PRId64 ": they must be aligned line by line", source,
                            s->total, target, s->target.file.ends);
    if (!(s->translator = wf_translator_new(run->model, run->source_tokenizer, run->tokenizer, o, error)))
        return error->code;
    if (s->dist)
        wf_translator_share(s->translator, s->dist);
    status = wf_bleu_new(NULL, &s->bleu, error);
    return status == WF_OK ? wf_chrf_new(NULL, &s->chrf, error) : status;
}

static wf_status score(struct scoring *s, const struct wf_run *run, const char *source, const char *target, struct wf_translator_options o,
                       struct wf_translation_scores *out, wf_error *error)
{
    const int64_t n_best = o.search.n_best > 0 ? o.search.n_best : 1, block = (int64_t)BLOCK * wf_dist_size(s->dist);
    wf_status status = wf_dist_agree(s->dist, begin(s, run, source, target, &o, error), error);
    while (status == WF_OK && (status = wf_lines_block(&s->source.lines, block, error)) == WF_OK && s->source.lines.text)
        status = wf_dist_agree(s->dist, next_lines(s, n_best, error), error);
    if (status == WF_OK)
        status = wf_bleu_result(s->bleu, &out->bleu, error);
    if (status == WF_OK)
        status = wf_chrf_result(s->chrf, &out->chrf, error);
    out->counts = wf_translator_counts(s->translator);
    return wf_dist_agree(s->dist, status, error);
}

wf_status wf_evaluate_translation(const struct wf_run *run, const char *source, const char *target,
                                  const struct wf_translator_options *options, bool (*progress)(void *ctx, int64_t done, int64_t total),
                                  void *ctx, struct wf_translation_scores *out, wf_error *error)
{
    if (wf_needs(error, "out, run, source, target", out, run, source, target))
        return WF_ERR_ARGUMENT;
    return wf_evaluate_translation_on(NULL, run, source, target, options, progress, ctx, out, error);
}

wf_status wf_evaluate_translation_on(wf_dist *dist, const struct wf_run *run, const char *source, const char *target,
                                     const struct wf_translator_options *options, bool (*progress)(void *ctx, int64_t done, int64_t total),
                                     void *ctx, struct wf_translation_scores *out, wf_error *error)
{
    wf_error local = {0};
    struct scoring s = {.dist = dist, .source.file.fd = -1, .target.file.fd = -1, .progress = progress, .ctx = ctx};
    struct wf_translator_options o = options ? *options : (struct wf_translator_options){0};
    s.search = options ? &options->search : NULL;
    o.name = o.name ? o.name : source;
    o.search.progress = batch_done;
    o.search.cancelled = is_cancelled;
    o.search.ctx = &s;
    *out = (struct wf_translation_scores){0};
    wf_status status = score(&s, run, source, target, o, out, error ? error : &local);
    wf_translator_free(s.translator);
    wf_bleu_free(s.bleu);
    wf_chrf_free(s.chrf);
    wf_lines_close(&s.source.file);
    wf_lines_close(&s.target.file);
    return status;
}
