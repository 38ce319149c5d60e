/* SPDX-License-Identifier: MIT */
/* Computes sentence vectors: encodes lines, sorts them by length, packs them into batches without padding, and pools token vectors. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weft/compute.h>
#include <weft/embed.h>
#include <weft/internal/grow.h>
#include <weft/internal/needs.h>
#include <weft/internal/sentence.h>
#include <weft/memory.h>

#include <weft/internal/family.h>
#include <weft/internal/minmax.h>

enum {
    LANES = 16, /* maximum number of lanes; each encodes some of the lines, in parallel, and has its own list of ids and its own cache */
    CACHED_WORDS = 2048, /* words in the cache of a lane */
    LANE_LINES = 8       /* if there are few lines, one lane is used for every LANE_LINES of them */
};
/* Maximum tokens of a batch, unless one line has more. They are enough for fast matrix products, and few enough for intermediate results to
 * stay in the processor's cache. */
enum { BATCH_TOKENS = 1024 };

/* The ids of consecutive lines, which one task encodes, with the task's cache, counts and error. */
struct lane {
    struct wf_tokens ids;
    wf_token_cache *cache;
    int64_t truncated; /* number of truncated lines */
    int64_t unknown;   /* number of unknown tokens */
    int64_t failed;    /* index of the first invalid line; -1: all lines are valid */
    wf_error error;
};

struct line {
    int32_t length; /* number of ids */
    int32_t lane;   /* index of the lane that holds the ids */
    int64_t begin;  /* index of the first id in the lane's ids */
    int64_t row;    /* index of the line among the caller's lines */
};

struct wf_embedder {
    const wf_model *model;
    const wf_tokenizer *tokenizer;
    struct wf_embedder_options options; /* the caller's; the context replaces a max_length of 0, and "input" a NULL name */
    int64_t width;
    wf_tape *tape;
    struct lane lane[LANES];

    /* memory that later calls of wf_embed reuse */
    struct line *line;
    int32_t *ids;     /* packed ids of a batch */
    int32_t *offsets; /* index in ids where each sentence of a batch begins */
    int64_t line_room, id_room, offset_room;
};

static wf_status no_memory(wf_error *error)
{
    return wf_error_set(error, WF_ERR_MEMORY, "no memory for sentence vectors");
}

/* --- making an embedder -------------------------------------------------------------------------------------------- */

/* Checks that a sentence has room for at least one token besides its special tokens. */
static wf_status check_marks(const wf_tokenizer *tokenizer, int64_t max_length, wf_error *error)
{
    struct wf_tokens marks = {0};
    wf_status status =
        wf_tokenizer_encode_with(tokenizer, "", 0, &(struct wf_encode_options){.specials = true, .whole = true}, &marks, error);
    if (status == WF_OK && marks.count >= max_length)
        status =
            wf_error_set(error, WF_ERR_ARGUMENT, "max_length: %" PRId64 " leaves no room besides the %" PRId64 " special tokens: raise it",
                         max_length, marks.count);
    wf_tokens_free(&marks);
    return status;
}

static wf_status check(const wf_model *model, const wf_tokenizer *tokenizer, const struct wf_embedder_options *o, wf_error *error)
{
    const struct wf_model_shape *c = wf_model_shape_of(model);
    if (wf_model_kind_of(model) != WF_MODEL_ENCODER)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%s is not an encoder; sentence vectors need one, such as a BERT or encoder-attention",
                            wf_model_config(model)->model);
    if (o->pooling != WF_POOL_MEAN && o->pooling != WF_POOL_CLS)
        return wf_error_set(error, WF_ERR_ARGUMENT, "pooling %d is unknown", (int)o->pooling);
    if (wf_tokenizer_vocab_size(tokenizer) > c->vocab_size)
        return wf_error_set(error, WF_ERR_ARGUMENT, "vocabulary size mismatch: tokenizer %" PRId64 ", model %" PRId64,
                            wf_tokenizer_vocab_size(tokenizer), c->vocab_size);
    if (o->max_length < 0 || o->max_length > c->context)
        return wf_error_set(error, WF_ERR_ARGUMENT, "max_length: %" PRId64 " is out of range: 1 to %" PRId64 ", the model's context",
                            o->max_length, c->context);
    return check_marks(tokenizer, o->max_length > 0 ? o->max_length : c->context, error);
}

wf_embedder *wf_embedder_new(const wf_model *model, const wf_tokenizer *tokenizer, const struct wf_embedder_options *options,
                             wf_error *error)
{
    if (wf_needs(error, "model, tokenizer", model, tokenizer))
        return NULL;
    options = options ? options : &(const struct wf_embedder_options){0};
    const struct wf_model_shape *c = wf_model_shape_of(model);
    if (check(model, tokenizer, options, error) != WF_OK)
        return NULL;
    wf_embedder *e = wf_alloc_zero(1, sizeof *e);
    if (!e) {
        no_memory(error);
        return NULL;
    }
    *e = (wf_embedder){.model = model, .tokenizer = tokenizer, .options = *options, .width = c->width};
    if (!e->options.name)
        e->options.name = "input";
    if (e->options.max_length == 0)
        e->options.max_length = c->context;
    e->tape = wf_tape_new(error);
    bool made = e->tape;
    for (int i = 0; made && i < LANES; i++)
        made = (e->lane[i].cache = wf_token_cache_new(tokenizer, CACHED_WORDS, error));
    if (made)
        return e;
    wf_embedder_free(e);
    return NULL;
}

void wf_embedder_free(wf_embedder *e)
{
    if (!e)
        return;
    for (int i = 0; i < LANES; i++) {
        wf_tokens_free(&e->lane[i].ids);
        wf_token_cache_free(e->lane[i].cache);
    }
    wf_tape_free(e->tape);
    wf_free(e->line);
    wf_free(e->ids);
    wf_free(e->offsets);
    wf_free(e);
}

int64_t wf_embedder_width(const wf_embedder *e)
{
    return e ? e->width : 0;
}

/* --- lines to ids -------------------------------------------------------------------------------------------------- */

struct encoding {
    wf_embedder *e;
    const char *const *lines;
    const int64_t *lengths;
    int64_t count, first_line, per_lane;
};

static wf_status encode_line(const struct encoding *x, struct lane *lane, int64_t i)
{
    wf_embedder *e = x->e;
    int64_t most = e->options.max_length, before = lane->ids.count, cut = 0, number = x->first_line + i;
    struct wf_encode_options o = {.specials = true,
                                  .unknown = &lane->unknown,
                                  .cache = lane->cache,
                                  .whole = true,
                                  .most = e->options.truncate ? most : 0,
                                  .cut = &cut};
    wf_status status =
        wf_line_encode(e->tokenizer, e->options.name, x->lines[i], number - 1, 0, 0, x->lengths[i], &o, &lane->ids, &lane->error);
    int64_t length = lane->ids.count - before;
    if (status == WF_OK && length > most)
        return wf_error_set(&lane->error, WF_ERR_FORMAT,
                            "%s:%" PRId64 ": the line has %" PRId64 " tokens, more than the maximum of %" PRId64
                            ": shorten it, or truncate long lines (--truncate)",
                            e->options.name, number, length, most);
    if (status != WF_OK)
        return status;
    lane->truncated += cut > 0;
    e->line[i] = (struct line){.length = (int32_t)length, .lane = (int32_t)(lane - e->lane), .begin = before, .row = i};
    return WF_OK;
}

static void encode_lane(void *ctx, int64_t block)
{
    const struct encoding *x = ctx;
    struct lane *lane = &x->e->lane[block];
    int64_t begin = block * x->per_lane, end = WF_MIN(begin + x->per_lane, x->count);
    lane->ids.count = 0;
    lane->truncated = lane->unknown = 0;
    lane->failed = -1;
    lane->error = (wf_error){0};
    for (int64_t i = begin; i < end && lane->failed < 0; i++)
        if (encode_line(x, lane, i) != WF_OK)
            lane->failed = i;
}

/* Encodes all lines in parallel. Lanes hold consecutive lines, so the first invalid line is in the first lane with an error. */
static wf_status encode_lines(struct encoding *x, int64_t *truncated, int64_t *unknown, int64_t *tokens, wf_error *error)
{
    double bytes = 0;
    int64_t lanes = (x->count + LANE_LINES - 1) / LANE_LINES;
    lanes = WF_MIN(lanes, LANES);
    x->per_lane = (x->count + lanes - 1) / lanes;
    for (int64_t i = 0; i < x->count; i++)
        bytes += (double)x->lengths[i];
    wf_parallel(lanes, 50 * bytes, encode_lane, x);
    for (int64_t i = 0; i < lanes; i++) {
        if (x->e->lane[i].failed >= 0)
            return wf_error_set(error, x->e->lane[i].error.code, "%s", x->e->lane[i].error.message);
        *truncated += x->e->lane[i].truncated;
        *unknown += x->e->lane[i].unknown;
        *tokens += x->e->lane[i].ids.count;
    }
    return WF_OK;
}

/* --- ids to vectors ------------------------------------------------------------------------------------------------ */

/* Orders lines by length, the longest first. Lines of the same length stay in their order. */
static int longer(const void *a, const void *b)
{
    const struct line *x = a, *y = b;
    return x->length != y->length ? (x->length < y->length ? 1 : -1) : x->row < y->row ? -1 : 1;
}

/* Packs the next sorted lines, from index `at` on, into a batch of at least one line. Lines without ids are not packed. *sentences is the
 * number of packed lines. */
static wf_status pack(wf_embedder *e, int64_t at, int64_t count, int64_t *sentences, wf_error *error)
{
    int64_t tokens = 0, end = at;
    while (end < count) {
        int64_t length = e->line[end].length;
        if (length == 0 || (end > at && tokens + length > BATCH_TOKENS))
            break;
        tokens += length;
        end++;
    }
    *sentences = end - at;
    if (!wf_grow(&e->ids, &e->id_room, tokens, sizeof *e->ids) ||
        !wf_grow(&e->offsets, &e->offset_room, *sentences + 1, sizeof *e->offsets))
        return no_memory(error);
    e->offsets[0] = 0;
    for (int64_t i = 0; i < *sentences; i++) {
        const struct line *line = &e->line[at + i];
        memcpy(e->ids + e->offsets[i], e->lane[line->lane].ids.id + line->begin, (size_t)line->length * sizeof *e->ids);
        e->offsets[i + 1] = e->offsets[i] + line->length;
    }
    return WF_OK;
}

/* The arguments of pool_one. */
struct pooling {
    const wf_embedder *e;
    const wf_real *vectors; /* [tokens,d], contiguous */
    const struct line *line;
    wf_real *out;
};

/* Makes the vector of sentence i of the batch from its token vectors. */
static void pool_one(void *ctx, int64_t i)
{
    const struct pooling *p = ctx;
    int64_t d = p->e->width, begin = p->e->offsets[i], length = p->e->offsets[i + 1] - begin;
    const wf_real *x = p->vectors + begin * d;
    wf_real *out = p->out + p->line[i].row * d;
    double squares = 0, scale = 1;
    memcpy(out, x, (size_t)d * sizeof *out);
    if (p->e->options.pooling == WF_POOL_MEAN && length > 1) {
        for (int64_t t = 1; t < length; t++)
            for (int64_t j = 0; j < d; j++)
                out[j] += x[t * d + j];
        scale = 1 / (double)length;
    }
    for (int64_t j = 0; j < d; j++)
        squares += (double)out[j] * (double)out[j];
    if (p->e->options.normalize) { /* x / max(|x|, 1e-12) */
        double norm = sqrt(squares) * scale;
        scale /= WF_MAX(norm, 1e-12);
    }
    for (int64_t j = 0; j < d; j++)
        out[j] = (wf_real)((double)out[j] * scale);
}

/* Computes the vectors of the batch that `pack` has made from lines at .. at+sentences-1. */
static wf_status run_batch(wf_embedder *e, int64_t at, int64_t sentences, wf_real *out, wf_error *error)
{
    int64_t tokens = e->offsets[sentences];
    wf_array view;
    wf_tape_reset(e->tape, WF_INFER, .precision = wf_model_precision(e->model));
    wf_tensor *ids = wf_ids_of(e->tape, e->ids, WF_SHAPE(tokens));
    wf_tensor *x = wf_contiguous(wf_encoder_forward(e->model, ids, .packed = {e->offsets, (int)sentences})); /* [N] -> [N,d] */
    if (wf_view(x, &view) != WF_OK)
        return wf_tape_status(e->tape, error);
    struct pooling p = {e, view.data, e->line + at, out};
    wf_parallel(sentences, (double)(tokens * e->width) / 4, pool_one, &p);
    return WF_OK;
}

wf_status wf_embed(wf_embedder *e, const char *const *lines, const int64_t *lengths, int64_t count, int64_t first_line, wf_real *out,
                   int64_t *truncated, wf_error *error)
{
    if (wf_needs(error, "embedder, lines, lengths, out", e, wf_some(lines, count), wf_some(lengths, count), wf_some(out, count)))
        return WF_ERR_ARGUMENT;
    struct encoding x = {.e = e, .lines = lines, .lengths = lengths, .count = count, .first_line = first_line};
    int64_t cut = 0, unknown = 0, tokens = 0, sentences;
    if (truncated)
        *truncated = 0;
    if (count <= 0)
        return count == 0 ? WF_OK : wf_error_set(error, WF_ERR_ARGUMENT, "%" PRId64 " lines", count);
    if (!wf_grow(&e->line, &e->line_room, count, sizeof *e->line))
        return no_memory(error);
    wf_status status = encode_lines(&x, &cut, &unknown, &tokens, error);
    if (status == WF_OK)
        qsort(e->line, (size_t)count, sizeof *e->line, longer);
    for (int64_t at = 0; status == WF_OK && at < count; at += sentences) {
        if (e->line[at].length == 0) { /* this line and all lines after it have no ids, so their vectors are zero */
            for (; at < count; at++)
                memset(out + e->line[at].row * e->width, 0, (size_t)e->width * sizeof *out);
            break;
        }
        status = pack(e, at, count, &sentences, error);
        if (status == WF_OK)
            status = run_batch(e, at, sentences, out, error);
    }
    if (status == WF_OK && truncated)
        *truncated = cut;
    if (status == WF_OK && e->options.unknown)
        *e->options.unknown += unknown;
    if (status == WF_OK && e->options.tokens)
        *e->options.tokens += tokens;
    return status;
}

/* --- vectors to cosines -------------------------------------------------------------------------------------------- */

wf_status wf_cosines(const wf_real *x, int64_t n, int64_t d, int64_t from, int64_t count, wf_real *out, wf_error *error)
{
    if (wf_needs(error, "x, out", wf_some(x, count), wf_some(out, count)))
        return WF_ERR_ARGUMENT;
    const struct wf_gemm g = {.m = count,
                              .n = n,
                              .k = d,
                              .alpha = 1,
                              .a = x + from * d,
                              .a_rs = d,
                              .a_cs = 1,
                              .b = x,
                              .b_rs = 1,
                              .b_cs = d,
                              .c = out,
                              .c_rs = n,
                              .c_cs = 1,
                              .rows_alone = true};
    wf_status status = wf_gemm(&g);
    if (status != WF_OK)
        return wf_error_set(error, status, "no memory for the cosines of %lld vectors of width %lld: use fewer threads", (long long)n,
                            (long long)d);
    for (int64_t i = 0; i < count * n; i++) /* a cosine can be above 1, because rounding can make a norm larger than 1 */
        out[i] = WF_MIN(1, WF_MAX(-1, out[i]));
    for (int64_t i = 0; i < count; i++)
        if (out[i * n + from + i] > 0)
            out[i * n + from + i] = 1;
    return WF_OK;
}
