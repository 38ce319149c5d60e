/* SPDX-License-Identifier: MIT */
/* Functions that all trainers use: reading text, options, special tokens, progress. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "build.h"
#include <weft/internal/foreign.h>
#include <weft/internal/lines.h>
#include <weft/internal/text.h>

wf_status train_tick(struct train_clock *clock, const char *phase, int64_t done, int64_t total, bool always, wf_error *error)
{
    struct timespec t;
    if (!clock->options->progress)
        return WF_OK;
    clock_gettime(CLOCK_MONOTONIC, &t);
    double now = (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
    if (!always && clock->last >= 0 && now - clock->last < 0.1)
        return WF_OK;
    clock->last = now;
    if (clock->options->progress(clock->options->ctx, &(struct wf_tokenizer_progress){phase, done, total}))
        return WF_OK;
    return wf_error_set(error, WF_ERR_CANCELLED, "the training of the tokenizer was stopped; nothing was saved");
}

/* Sets *total to the number of bytes of a source, or to 0 if one of the files is not a regular file. Looks at all files before
 * any is read, so that a missing one is reported at once. */
static wf_status total_of(const struct tokenizer_source *source, int64_t *total, wf_error *error)
{
    bool known = true;
    *total = source->count ? 0 : source->length;
    for (int64_t i = 0; i < source->count; i++) {
        struct stat info;
        if (stat(source->path[i], &info) != 0)
            return wf_file_refused(source->path[i], "opened", errno, error);
        known = known && S_ISREG(info.st_mode);
        *total += known ? info.st_size : 0;
    }
    *total = known ? *total : 0;
    return WF_OK;
}

/* Bytes of a block: enough work for all threads, and small enough for a smooth display of progress. A line longer than a block is
 * divided. */
enum { BLOCK = 4 << 20 };

struct reading {
    struct train_clock clock;
    int64_t done;  /* number of bytes read */
    int64_t total; /* number of bytes to read; 0: not known */
    wf_status (*block)(void *ctx, const struct wf_lines *block, wf_error *error);
    void *ctx;
};

static wf_status read_file(struct reading *r, struct wf_lines *file, wf_error *error)
{
    int64_t before = r->done;
    wf_status status;
    while ((status = wf_lines_block(file, BLOCK, error)) == WF_OK && file->text) {
        if (file->length == 0) /* the file has only a byte order mark */
            return wf_text_empty(file->name, error);
        const char *foreign = r->done == before ? wf_foreign_text(file->text, file->length) : NULL;
        if (foreign)
            return wf_error_set(error, WF_ERR_FORMAT, "%s: %s", file->name, foreign);
        status = r->block(r->ctx, file, error);
        r->done = before + file->done;
        if (status == WF_OK)
            status = train_tick(&r->clock, "reading", r->done, r->total, false, error);
        if (status != WF_OK)
            return status;
    }
    if (status == WF_OK && file->done == 0)
        return wf_text_empty(file->name, error);
    return status;
}

wf_status train_read(const struct tokenizer_source *source, const struct wf_tokenizer_options *options,
                     wf_status (*block)(void *ctx, const struct wf_lines *block, wf_error *error), void *ctx, wf_error *error)
{
    struct reading r = {{options, -1}, .block = block, .ctx = ctx};
    wf_status status = total_of(source, &r.total, error);
    struct wf_lines in;
    for (int64_t i = 0; i < source->count && status == WF_OK; i++) {
        status = wf_lines_open(&in, source->path[i], error);
        in.cuts = true;
        if (status == WF_OK)
            status = read_file(&r, &in, error);
        wf_lines_close(&in);
    }
    if (status == WF_OK && source->count == 0) {
        wf_lines_of(&in, "the text", source->text, source->length);
        in.cuts = true;
        status = read_file(&r, &in, error);
    }
    return status == WF_OK ? train_tick(&r.clock, "reading", r.done, r.total, true, error) : status;
}

wf_status train_specials(const struct wf_tokenizer_options *options, struct tokenizer_table *table, wf_error *error)
{
    static const char *const of_words[] = {"<pad>", "<bos>", "<eos>"}, *const of_bpe[] = {"<s>", "<pad>", "</s>", "<unk>"};
    const char *const *special = options->specials;
    int64_t count = options->special_count;
    char quoted[WF_QUOTE_SIZE];
    if (options->vocab_size < 0 || options->vocab_size > INT32_MAX)
        return wf_error_set(error, WF_ERR_ARGUMENT, "vocab_size: %" PRId64 " is out of range, 1 to %" PRId32, options->vocab_size,
                            INT32_MAX);
    if (options->min_frequency < 0)
        return wf_error_set(error, WF_ERR_ARGUMENT, "min_frequency: %" PRId64 " is out of range; 1 keeps everything",
                            options->min_frequency);
    if (count < 0 || count > 65536)
        return wf_error_set(error, WF_ERR_ARGUMENT, "%" PRId64 " special tokens are out of range, 0 to 65536", count);
    if (!special) {
        bool words = options->kind == WF_TOKENIZER_WORD;
        special = words ? of_words : of_bpe;
        count = words || options->kind == WF_TOKENIZER_BYTE_BPE ? 3 : 4;
    }
    for (int64_t i = 0; i < count; i++) {
        const char *token = special[i];
        int64_t length = token ? (int64_t)strlen(token) : 0;
        if (length == 0)
            return wf_error_set(error, WF_ERR_ARGUMENT, "special token %" PRId64 " is empty", i + 1);
        if (wf_utf8_check(token, length) >= 0)
            return wf_error_set(error, WF_ERR_ARGUMENT, "the special token %s is not UTF-8", wf_text_quote(token, quoted));
        int32_t id = vocab_add(&table->pieces, token, length);
        if (id < 0)
            return wf_error_set(error, WF_ERR_MEMORY, "no memory for special tokens");
        if (id < i)
            return wf_error_set(error, WF_ERR_ARGUMENT, "the special token %s is given twice", wf_text_quote(token, quoted));
    }
    table->specials = count;
    return WF_OK;
}
