/* SPDX-License-Identifier: MIT */
/* Counting the words of a text: every block is cut into as many shares as there are threads, each with a table of its own. */
#include <string.h>

#include "scratch.h"
#include "word_counts.h"
#include <weft/internal/lines.h>
#include <weft/internal/parallel.h>
#include <weft/internal/runtime.h>
#include <weft/memory.h>

enum { MOST_SHARES = 16, SMALLEST_SHARE = 65536 };

struct share {
    const struct part *pre_tokenizer;
    struct scratch scratch;
    bool running;     /* line ends are words */
    const char *data; /* of the block that all shares are cut from */
    int64_t begin, end;
    struct word_counts counts;
    wf_status status;
    int64_t fault; /* offset in the block of the first byte that no text may hold, or -1 */
};

static bool count_word(void *ctx, const char *bytes, int64_t length)
{
    struct share *s = ctx;
    if (word_counts_add(&s->counts, bytes, length, 1))
        return true;
    s->status = WF_ERR_MEMORY;
    return false;
}

static void count_share(void *ctx, int64_t block)
{
    struct share *s = (struct share *)ctx + block;
    const char *data = s->data + s->begin;
    int64_t length = s->end - s->begin;
    s->fault = wf_text_fault(data, length);
    if (s->fault >= 0) {
        s->fault += s->begin;
        return;
    }
    for (int64_t at = 0; at < length && s->status == WF_OK;) {
        const char *end = memchr(data + at, '\n', (size_t)(length - at));
        int64_t next = end ? end + 1 - data : length, line = end ? end - data - at : length - at, fault;
        if (s->running)
            line = next - at;
        else if (end && line > 0 && data[at + line - 1] == '\r')
            line--;
        wf_status status = line > 0 ? tokenizer_words(s->pre_tokenizer, &s->scratch, data + at, line, count_word, s, &fault) : WF_OK;
        if (s->status == WF_OK && status == WF_ERR_FORMAT)
            s->fault = s->begin + at + fault;
        if (s->status == WF_OK)
            s->status = status;
        at = next;
    }
}

struct counting {
    struct share share[MOST_SHARES];
    int shares;
};

/* Cuts a block at ends of lines and counts it; what is wrong first in the text is what is said. */
static wf_status count_block(void *ctx, const struct wf_lines *blocks, wf_error *error)
{
    struct share *share = ((struct counting *)ctx)->share;
    int shares = ((struct counting *)ctx)->shares;
    int64_t begin = 0;
    if (blocks->length / SMALLEST_SHARE < shares)
        shares = blocks->length < SMALLEST_SHARE ? 1 : (int)(blocks->length / SMALLEST_SHARE);
    for (int i = 0; i < shares; i++) {
        int64_t end = blocks->length * (i + 1) / shares;
        end = end < begin ? begin : end;
        const char *line = i + 1 < shares && end < blocks->length ? memchr(blocks->text + end, '\n', (size_t)(blocks->length - end)) : NULL;
        end = line ? line + 1 - blocks->text : blocks->length;
        share[i].data = blocks->text;
        share[i].begin = begin;
        share[i].end = begin = end;
        share[i].fault = -1;
    }
    wf_parallel(shares, (double)blocks->length * 20, count_share, share);
    for (int i = 0; i < shares; i++) {
        if (share[i].fault >= 0)
            return wf_lines_refuse(blocks, share[i].fault, error);
        if (share[i].status == WF_ERR_MEMORY)
            return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for the words of the text", blocks->name);
        if (share[i].status != WF_OK)
            return wf_error_set(error, share[i].status, "%s: its words can't be told apart", blocks->name);
    }
    return WF_OK;
}

/* Puts all tables into the first one. */
static wf_status join(struct share *share, int shares, wf_error *error)
{
    struct word_counts *all = &share[0].counts;
    for (int i = 1; i < shares; i++) {
        const struct word_counts *c = &share[i].counts;
        for (int32_t k = 0; k < c->words.count; k++) {
            int64_t length;
            const char *word = vocab_piece(&c->words, k, &length);
            if (!word_counts_add(all, word, length, c->times[k]))
                return wf_error_set(error, WF_ERR_MEMORY, "no memory for %lld words", (long long)(all->words.count + c->words.count));
        }
        word_counts_free(&share[i].counts);
    }
    return WF_OK;
}

wf_status word_counts_read(const struct tokenizer_source *source, const struct wf_tokenizer_options *options, struct word_counts *out,
                           wf_error *error)
{
    struct counting c = {.shares = wf_parallel_threads() < MOST_SHARES ? wf_parallel_threads() : MOST_SHARES};
    struct share *share = c.share;
    const struct part *pre_tokenizer = NULL;
    *out = (struct word_counts){0};
    wf_tokenizer *holder = build_cutter(options, &pre_tokenizer, error);
    for (int i = 0; i < c.shares; i++)
        share[i] = (struct share){.pre_tokenizer = pre_tokenizer, .running = build_running_text(options)};
    wf_status status = holder ? train_read(source, options, count_block, &c, error) : WF_ERR_MEMORY;
    wf_tokenizer_free(holder);
    if (status == WF_OK)
        status = join(share, c.shares, error);
    if (status == WF_OK && share[0].counts.words.count == 0)
        status = wf_error_set(error, WF_ERR_FORMAT, "%s%s: there is no word in it", source->count ? source->path[0] : "the text",
                              source->count > 1 ? " and the files after it" : "");
    if (status == WF_OK) {
        *out = share[0].counts;
        share[0].counts = (struct word_counts){0};
    }
    for (int i = 0; i < c.shares; i++) {
        word_counts_free(&share[i].counts);
        scratch_free(&share[i].scratch);
    }
    return status;
}
