/* SPDX-License-Identifier: MIT */
/* Scores the choices of multiple-choice questions by their log-likelihood. Questions with contexts of similar length are computed together:
 * first their contexts, into a cache, then all their choices after them. A log-likelihood does not depend on the others. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weft/internal/family.h>
#include <weft/internal/grow.h>
#include <weft/internal/minmax.h>
#include <weft/internal/needs.h>
#include <weft/internal/several.h>
#include <weft/internal/utf8.h>
#include <weft/memory.h>

#include "choice_ids.h"

enum { TOKENS = 4096 }; /* default number of tokens that are computed at once, and for which a cache has room */

/* A question in the order of computation. */
struct turn {
    int64_t index;  /* of the question */
    int64_t before; /* ids that the cache holds before the choices: those of the context but the last; 0: the choices are computed with all
                       their context, without a cache */
    int64_t cols;   /* ids of the longest of the rows that follow, one row a choice */
};

struct scoring {
    const wf_model *model;
    wf_tape *tape;
    int64_t context, tokens;
    struct choice_ids c;
    struct turn *turn; /* [count] */
    int64_t count;
    int32_t *x, *y;         /* inputs and targets of a batch, [rows, cols] */
    int64_t x_room, y_room; /* capacities of x and y */
    int32_t *from;          /* row of the cache that a choice continues */
    int64_t from_room;
    double *score; /* [choices]: log-likelihoods */
    struct wf_share share;
};

static wf_status no_memory(wf_error *error)
{
    return wf_error_set(error, WF_ERR_MEMORY, "no memory to score choices");
}

/* --- the order ------------------------------------------------------------------------------------------------------ */

/* Whether the choices can continue a cache of the context. A cache of states cannot be shortened to the rows' own lengths. */
static wf_status can_cache(const struct scoring *s, bool *out, wf_error *error)
{
    struct wf_cache cache;
    *out = false;
    if (s->model->family->no_cache)
        return WF_OK;
    wf_status status = wf_model_cache_with(s->model, &cache, 1, &(struct wf_model_cache_options){.capacity = 1}, error);
    *out = status == WF_OK && !cache.states;
    if (status == WF_OK)
        wf_cache_free(&cache);
    return status;
}

static int by_length(const void *a, const void *b)
{
    const struct turn *x = a, *y = b;
    if (x->before != y->before)
        return x->before < y->before ? -1 : 1;
    if (x->cols != y->cols)
        return x->cols < y->cols ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

static wf_status put_in_order(struct scoring *s, wf_error *error)
{
    bool caches;
    wf_status status = can_cache(s, &caches, error);
    s->turn = wf_alloc((size_t)WF_MAX(s->count, 1) * sizeof *s->turn);
    s->score = wf_alloc((size_t)WF_MAX(s->c.choices, 1) * sizeof *s->score);
    if (status == WF_OK && (!s->turn || !s->score))
        status = no_memory(error);
    for (int64_t i = 0; status == WF_OK && i < s->count; i++) {
        const struct asked *a = &s->c.asked[i];
        const int64_t all = a->count - 1 + a->longest;
        const bool fits = caches && all <= s->context; /* else the choices have different ids before them */
        s->turn[i] = (struct turn){i, fits ? a->count - 1 : 0, fits ? a->longest : WF_MIN(all, s->context)};
    }
    if (status == WF_OK)
        qsort(s->turn, (size_t)s->count, sizeof *s->turn, by_length);
    return status;
}

/* --- a batch -------------------------------------------------------------------------------------------------------- */

/* Questions turn[begin .. end-1]. */
struct batch {
    int64_t begin, end;
    int64_t rows;   /* number of their choices */
    int64_t before; /* ids of the longest context in the cache; 0: there is no cache */
    int64_t cols;   /* ids of the longest row */
};

/* Takes questions while all rows have `tokens` ids at most, but at least one. Questions with a cache and without are not mixed. */
static struct batch next_batch(const struct scoring *s, int64_t begin)
{
    struct batch b = {.begin = begin, .end = begin};
    for (; b.end < s->count; b.end++) {
        const struct turn *t = &s->turn[b.end];
        const int64_t rows = b.rows + s->c.asked[t->index].choices;
        const int64_t before = WF_MAX(b.before, t->before), cols = WF_MAX(b.cols, t->cols);
        if (b.rows > 0 && (rows * (before + cols) > s->tokens || before + cols > s->context || (t->before > 0) != (b.before > 0)))
            break;
        b = (struct batch){begin, b.end, rows, before, cols};
    }
    return b;
}

/* Appends the contexts to the cache: a row for each question, with its own length. */
static wf_status read_contexts(struct scoring *s, const struct batch *b, struct wf_cache *cache, wf_error *error)
{
    const int64_t rows = b->end - b->begin;
    if (!wf_grow(&s->x, &s->x_room, rows * b->before, sizeof *s->x) || !wf_grow(&s->from, &s->from_room, b->rows, sizeof *s->from))
        return no_memory(error);
    memset(s->x, 0, (size_t)(rows * b->before) * sizeof *s->x);
    for (int64_t r = 0; r < rows; r++) {
        const struct turn *t = &s->turn[b->begin + r];
        memcpy(s->x + r * b->before, s->c.ids.id + s->c.asked[t->index].at, (size_t)t->before * sizeof *s->x);
        s->from[r] = (int32_t)r;
    }
    wf_status status = wf_cache_select(cache, s->from, rows, error);
    if (status != WF_OK)
        return status;
    wf_tape_reset(s->tape, WF_INFER, .precision = wf_model_precision(s->model));
    if (wf_is_poison(wf_model_next(s->model, wf_ids(s->tape, s->x, rows, b->before), cache)))
        return wf_tape_status(s->tape, error);
    for (int64_t r = 0; r < rows; r++)
        wf_cache_rewind(cache, r, (int32_t)s->turn[b->begin + r].before);
    return WF_OK;
}

/* Writes the row of a choice: the ids of the context that the cache lacks, and those of the choice but the last; then the targets. */
static void fill_row(const struct scoring *s, const struct turn *t, int64_t choice, int64_t cols, int32_t *x, int32_t *y)
{
    const struct asked *a = &s->c.asked[t->index];
    const int32_t *ids = s->c.ids.id, *scored = ids + s->c.at[choice];
    const int64_t n = s->c.length[choice], context = WF_MIN(a->count - t->before, s->context - (n - 1));
    memcpy(x, ids + a->at + a->count - context, (size_t)context * sizeof *x);
    memcpy(x + context, scored, (size_t)(n - 1) * sizeof *x);
    memcpy(y + context - 1, scored, (size_t)n * sizeof *y);
    for (int64_t i = context + n - 1; i < cols; i++)
        x[i] = 0;
    for (int64_t i = 0; i < cols; i++)
        if (i < context - 1 || i >= context - 1 + n)
            y[i] = WF_NO_TARGET;
}

/* Scores the choices first .. first+rows-1 of a batch, which are the rows of x and y. */
static wf_status score_rows(struct scoring *s, const int64_t *choice, int64_t first, int64_t rows, int64_t cols, struct wf_cache *cache,
                            wf_error *error)
{
    wf_array losses;
    wf_tape_reset(s->tape, WF_INFER, .precision = wf_model_precision(s->model));
    wf_tensor *x = wf_ids(s->tape, s->x + first * cols, rows, cols), *y = wf_ids(s->tape, s->y + first * cols, rows, cols);
    if (wf_view(wf_contiguous(wf_model_token_losses(s->model, x, y, cache)), &losses) != WF_OK)
        return wf_tape_status(s->tape, error);
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0;
        for (int64_t i = 0; i < cols; i++)
            sum -= (double)((const wf_real *)losses.data)[r * cols + i];
        s->score[choice[first + r]] = sum;
    }
    return WF_OK;
}

/* Fills x and y with the rows of a batch. choice[r] becomes the choice of row r, and from[r] the row of its question. */
static wf_status fill_rows(struct scoring *s, const struct batch *b, int64_t *choice, wf_error *error)
{
    if (!wf_grow(&s->x, &s->x_room, b->rows * b->cols, sizeof *s->x) || !wf_grow(&s->y, &s->y_room, b->rows * b->cols, sizeof *s->y) ||
        !wf_grow(&s->from, &s->from_room, b->rows, sizeof *s->from))
        return no_memory(error);
    for (int64_t q = b->begin, r = 0; q < b->end; q++) {
        const struct asked *a = &s->c.asked[s->turn[q].index];
        for (int64_t i = 0; i < a->choices; i++, r++) {
            s->from[r] = (int32_t)(q - b->begin);
            fill_row(s, &s->turn[q], choice[r] = a->first + i, b->cols, s->x + r * b->cols, s->y + r * b->cols);
        }
    }
    return WF_OK;
}

/* Scores a batch whose contexts are in the cache. If the cache has only one row, the choices of the only question take turns. */
static wf_status score_after(struct scoring *s, const struct batch *b, const int64_t *choice, struct wf_cache *cache, wf_error *error)
{
    if (cache->most_rows == b->rows) {
        wf_status status = wf_cache_select(cache, s->from, b->rows, error);
        return status == WF_OK ? score_rows(s, choice, 0, b->rows, b->cols, cache, error) : status;
    }
    wf_status status = WF_OK;
    for (int64_t r = 0; r < b->rows && status == WF_OK; r++) {
        status = score_rows(s, choice, r, 1, b->cols, cache, error);
        wf_cache_rewind(cache, 0, (int32_t)b->before);
    }
    return status;
}

static wf_status with_cache(struct scoring *s, const struct batch *b, int64_t *choice, wf_error *error)
{
    const int64_t capacity = b->before + b->cols;
    struct wf_cache cache;
    const bool large = b->end == b->begin + 1 && b->rows * capacity > s->tokens;
    wf_status status =
        wf_model_cache_with(s->model, &cache, large ? 1 : b->rows, &(struct wf_model_cache_options){.capacity = capacity}, error);
    if (status != WF_OK)
        return status;
    status = read_contexts(s, b, &cache, error);
    if (status == WF_OK)
        status = fill_rows(s, b, choice, error);
    if (status == WF_OK)
        status = score_after(s, b, choice, &cache, error);
    wf_tape_reset(s->tape, WF_INFER); /* its records point into the cache */
    wf_cache_free(&cache);
    return status;
}

static wf_status run_batch(struct scoring *s, const struct batch *b, wf_error *error)
{
    int64_t *choice = wf_alloc((size_t)b->rows * sizeof *choice);
    const int64_t most = WF_MAX(1, s->tokens / b->cols);
    wf_status status = choice ? WF_OK : no_memory(error);
    if (status == WF_OK)
        status = b->before > 0 ? with_cache(s, b, choice, error) : fill_rows(s, b, choice, error);
    for (int64_t r = 0; b->before == 0 && r < b->rows && status == WF_OK; r += most)
        status = score_rows(s, choice, r, WF_MIN(most, b->rows - r), b->cols, NULL, error);
    for (int64_t r = 0; r < b->rows && status == WF_OK; r++)
        wf_share_add(&s->share, &s->score[choice[r]], sizeof *s->score);
    wf_free(choice);
    return status;
}

/* Takes the results of all processes, in the order in which run_batch added them. */
static wf_status take_scores(struct scoring *s, wf_status status, wf_error *error)
{
    status = wf_share_gather(&s->share, status, error);
    int64_t item = 0;
    for (int64_t at = 0; status == WF_OK && at < s->count; item++) {
        const struct batch b = next_batch(s, at);
        for (int64_t q = b.begin; q < b.end && status == WF_OK; q++) {
            const struct asked *a = &s->c.asked[s->turn[q].index];
            for (int64_t i = 0; i < a->choices && status == WF_OK; i++)
                status = wf_share_take(&s->share, item, &s->score[a->first + i], sizeof *s->score, error);
        }
        at = b.end;
    }
    wf_share_free(&s->share);
    return status;
}

/* --- accuracy ------------------------------------------------------------------------------------------------------- */

int64_t wf_choice_best(const struct wf_question *question, const double *log_likelihood, bool normalized)
{
    int64_t best = 0;
    double largest = -INFINITY;
    for (int64_t i = 0; question && log_likelihood && i < question->choices; i++) {
        const char *text = question->choice[i];
        const double score = normalized ? log_likelihood[i] / (double)wf_utf8_count(text, (int64_t)strlen(text)) : log_likelihood[i];
        if (score > largest) {
            largest = score;
            best = i;
        }
    }
    return best;
}

/* The share of right answers, and its standard error: the deviation of a sample of zeros and ones, divided by sqrt(n). */
static double share_of(int64_t right, int64_t n, double *deviation)
{
    const double mean = (double)right / (double)n;
    *deviation = n > 1 ? sqrt(mean * (1 - mean) / (double)(n - 1)) : NAN;
    return mean;
}

static void count_right(const struct scoring *s, const struct wf_question *questions, struct wf_choice_scores *out)
{
    int64_t right[2] = {0, 0};
    for (int64_t i = 0; i < s->count; i++)
        for (int k = 0; k < 2; k++)
            right[k] += wf_choice_best(&questions[i], s->score + s->c.asked[i].first, k == 1) == questions[i].answer;
    out->questions = s->count;
    out->acc = share_of(right[0], s->count, &out->acc_stderr);
    out->acc_norm = share_of(right[1], s->count, &out->acc_norm_stderr);
}

static wf_status check(const wf_model *model, const wf_tokenizer *tokenizer, int64_t count, const struct wf_choice_options *o,
                       wf_error *error)
{
    if (wf_model_kind_of(model) != WF_MODEL_LANGUAGE)
        return wf_error_set(error, WF_ERR_STATE, "%s is not a language model: it cannot score choices", model->config.model);
    if (!wf_config_fits(&model->config, wf_tokenizer_vocab_size(tokenizer)))
        return wf_error_set(error, WF_ERR_ARGUMENT, "vocabulary size mismatch: tokenizer %lld, model %lld",
                            (long long)wf_tokenizer_vocab_size(tokenizer), (long long)model->shape.vocab_size);
    if (o->begins < 0 || (o->begins > 0 && !o->begin))
        return wf_error_set(error, WF_ERR_ARGUMENT, "begins: %lld is below 0, or begin is NULL", (long long)o->begins);
    if (count < 1 || o->tokens < 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s: %lld is out of range: at least %d", count < 1 ? "count" : "tokens",
                            (long long)(count < 1 ? count : o->tokens), count < 1);
    return WF_OK;
}

wf_status wf_evaluate_choices_on(wf_dist *dist, const wf_model *model, const wf_tokenizer *tokenizer, wf_tape *tape,
                                 const struct wf_question *questions, int64_t count, const struct wf_choice_options *options,
                                 const struct wf_progress *progress, struct wf_choice_scores *out, wf_error *error)
{
    static const struct wf_choice_options none = {0};
    const struct wf_choice_options *o = options ? options : &none;
    *out = (struct wf_choice_scores){.acc = NAN, .acc_stderr = NAN, .acc_norm = NAN, .acc_norm_stderr = NAN};
    if (check(model, tokenizer, count, o, error) != WF_OK)
        return error->code;
    struct scoring s = {.model = model, .tape = tape, .context = model->shape.context, .tokens = o->tokens > 0 ? o->tokens : TOKENS};
    s.share.dist = dist;
    s.count = count;
    wf_status status = choice_ids_make(&s.c, tokenizer, questions, count, s.context, o, error);
    if (status == WF_OK)
        status = put_in_order(&s, error);
    const bool ordered = status == WF_OK;
    for (int64_t at = 0, item = 0; status == WF_OK && at < count; item++) {
        const struct batch b = next_batch(&s, at);
        if (wf_share_mine(&s.share, item))
            status = run_batch(&s, &b, error);
        at = b.end;
        if (progress)
            progress->tell(progress->ctx, at, count);
    }
    s.count = ordered ? count : 0;
    status = take_scores(&s, status, error);
    if (status == WF_OK) {
        count_right(&s, questions, out);
        if (o->log_likelihood)
            memcpy(o->log_likelihood, s.score, (size_t)s.c.choices * sizeof *s.score);
    }
    choice_ids_free(&s.c);
    void *const all[] = {s.turn, s.x, s.y, s.from, s.score};
    for (int i = 0; i < 5; i++)
        wf_free(all[i]);
    return status;
}

wf_status wf_evaluate_choices(const wf_model *model, const wf_tokenizer *tokenizer, wf_tape *tape, const struct wf_question *questions,
                              int64_t count, const struct wf_choice_options *options, struct wf_choice_scores *out, wf_error *error)
{
    if (wf_needs(error, "out, model, tokenizer, tape, questions", out, model, tokenizer, tape, questions))
        return WF_ERR_ARGUMENT;
    return wf_evaluate_choices_on(NULL, model, tokenizer, tape, questions, count, options, NULL, out, error);
}
