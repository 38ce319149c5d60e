/* SPDX-License-Identifier: MIT */
/* BLEU and chrF of a model's translations of a file. */
#include <inttypes.h>
#include <string.h>

#include <weft/internal/lines.h>
#include <weft/run.h>

enum { LINES = 1024 }; /* translated at a time: enough to be sorted by length */

/* All lines of a file, which are UTF-8. */
static wf_status read_all(struct wf_lines *text, const char *path, wf_error *error)
{
    wf_status status = wf_lines_open(text, path, error);
    if (status == WF_OK)
        status = wf_lines_block(text, INT64_MAX / 4, error);
    if (status == WF_OK && text->length == 0)
        status = wf_text_empty(path, error);
    return status == WF_OK ? wf_lines_check(text, error) : status;
}

/* The end of the line that begins at `at`: past its newline. */
static int64_t line_end(const struct wf_lines *text, int64_t at)
{
    const char *newline = memchr(text->text + at, '\n', (size_t)(text->length - at));
    return newline ? newline - text->text + 1 : text->length;
}

/* The line without its end, and without blanks before it, which count for nothing in either score. */
static struct wf_segment line_at(const struct wf_lines *text, int64_t at, int64_t end)
{
    while (end > at && strchr(" \t\r\n\v\f", text->text[end - 1]))
        end--;
    return (struct wf_segment){text->text + at, end - at};
}

struct scoring {
    wf_translator *translator;
    wf_bleu *bleu;
    wf_chrf *chrf;
    struct wf_lines source, target;
    int64_t source_at, target_at, done;
    int64_t total, window; /* lines in all, and those that are translated now */
    bool stopped;
    const struct wf_translate_options *search; /* the caller's */
    bool (*progress)(void *ctx, int64_t done, int64_t total);
    void *ctx;
};

/* A window may take minutes: batches in it count too. */
static void batch_done(void *scoring, int64_t done, int64_t count)
{
    struct scoring *s = scoring;
    if (s->search && s->search->progress)
        s->search->progress(s->search->ctx, done, count);
    if (s->progress && done < count && !s->progress(s->ctx, s->done + s->window * done / count, s->total))
        s->stopped = true;
}

static bool is_cancelled(void *scoring)
{
    const struct scoring *s = scoring;
    return s->stopped || (s->search && s->search->cancelled && s->search->cancelled(s->search->ctx));
}

static wf_status next_lines(struct scoring *s, int64_t n_best, wf_error *error)
{
    int64_t end = s->source_at;
    for (s->window = 0; s->window < LINES && end < s->source.length; s->window++)
        end = line_end(&s->source, end);
    struct wf_line_translations lines;
    wf_status status = wf_translator_lines(s->translator, s->source.text + s->source_at, end - s->source_at, &lines, error);
    for (int64_t i = 0; status == WF_OK && i < lines.count; i++) {
        const struct wf_line_translation *best = &lines.translation[i * n_best];
        int64_t target_end = line_end(&s->target, s->target_at);
        struct wf_segment hypothesis = {best->text, best->length}, reference = line_at(&s->target, s->target_at, target_end);
        status = wf_bleu_add(s->bleu, hypothesis, &reference, 1, error);
        if (status == WF_OK)
            status = wf_chrf_add(s->chrf, hypothesis, &reference, 1, error);
        s->target_at = target_end;
    }
    s->source_at = end;
    s->done += lines.count;
    return status;
}

static wf_status score(struct scoring *s, const struct wf_run *run, const char *source, const char *target,
                       const struct wf_translator_options *options, bool (*progress)(void *ctx, int64_t done, int64_t total), void *ctx,
                       struct wf_translation_scores *out, wf_error *error)
{
    wf_status status = read_all(&s->source, source, error);
    if (status == WF_OK)
        status = read_all(&s->target, target, error);
    if (status != WF_OK)
        return status;
    int64_t total = s->source.ends, others = s->target.ends;
    if (total != others)
        return wf_error_set(error, WF_ERR_FORMAT, "%s has %" PRId64 " lines, %s has %" PRId64 ": they must be aligned line by line", source,
                            total, target, others);
    struct wf_translator_options o = options ? *options : (struct wf_translator_options){0};
    int64_t n_best = o.search.n_best > 0 ? o.search.n_best : 1;
    if (!o.name)
        o.name = source;
    s->search = options ? &options->search : NULL;
    s->progress = progress;
    s->ctx = ctx;
    s->total = total;
    o.search.progress = batch_done;
    o.search.cancelled = is_cancelled;
    o.search.ctx = s;
    if (!(s->translator = wf_translator_new(run->model, run->source_tokenizer, run->tokenizer, &o, error)))
        return error->code;
    status = wf_bleu_new(NULL, &s->bleu, error);
    if (status == WF_OK)
        status = wf_chrf_new(NULL, &s->chrf, error);
    while (status == WF_OK && s->source_at < s->source.length) {
        status = next_lines(s, n_best, error);
        if (status == WF_OK && progress && !progress(ctx, s->done, total))
            s->stopped = true;
        if (s->stopped || status == WF_ERR_CANCELLED) {
            wf_error_clear(error);
            status = wf_error_set(error, WF_ERR_CANCELLED, "cancelled after %" PRId64 " of %" PRId64 " lines", s->done, total);
        }
    }
    if (status == WF_OK)
        status = wf_bleu_result(s->bleu, &out->bleu, error);
    if (status == WF_OK)
        status = wf_chrf_result(s->chrf, &out->chrf, error);
    out->counts = wf_translator_counts(s->translator);
    return status;
}

wf_status wf_evaluate_translation(const struct wf_run *run, const char *source, const char *target,
                                  const struct wf_translator_options *options, bool (*progress)(void *ctx, int64_t done, int64_t total),
                                  void *ctx, struct wf_translation_scores *out, wf_error *error)
{
    wf_error local = {0};
    struct scoring s = {.source.fd = -1, .target.fd = -1};
    *out = (struct wf_translation_scores){0};
    wf_status status = score(&s, run, source, target, options, progress, ctx, out, error ? error : &local);
    wf_translator_free(s.translator);
    wf_bleu_free(s.bleu);
    wf_chrf_free(s.chrf);
    wf_lines_close(&s.source);
    wf_lines_close(&s.target);
    return status;
}
