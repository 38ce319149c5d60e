/* SPDX-License-Identifier: MIT */
/* Counts the words of a text. Every block is divided into one share per thread, and each share has its own table of words. A word of more
 * than LONGEST bytes, such as a DNA sequence, is counted in pieces of at most LONGEST bytes. So training takes no more time and memory than
 * for ordinary text, and loses only the pairs between two pieces. A word-level vocabulary leaves such words out. */
#include <string.h>

#include "build.h"
#include "scratch.h"
#include <weft/compute.h>
#include <weft/internal/grow.h>
#include <weft/internal/lines.h>
#include <weft/internal/minmax.h>
#include <weft/internal/runtime.h>
#include <weft/internal/utf8.h>
#include <weft/memory.h>

enum {
    MOST_SHARES = 16,       /* maximum number of shares */
    SMALLEST_SHARE = 65536, /* minimum bytes of a share, if there are several */
    LONGEST = 1 << 21,      /* maximum bytes of a word */
    ASK = 1 << 16           /* words that join() adds between two calls of the user's progress function */
};

struct share {
    const struct part *pre_tokenizer;
    struct scratch scratch;
    bool running; /* a line end is a word of its own */
    bool whole;   /* words of more than LONGEST bytes are left out */
    const char *data;
    int64_t length;
    struct word_counts counts;
    int64_t cut;   /* number of words of more than LONGEST bytes */
    bool full;     /* there was no memory */
    int64_t fault; /* offset in `data` of the first byte that is NUL or not UTF-8; -1: none */
};

static bool add(struct word_counts *c, const char *word, int64_t length, int64_t times)
{
    int64_t count = c->words.count;
    int32_t id = vocab_add(&c->words, word, length);
    if (id < 0 || (id == count && !wf_grow(&c->times, &c->times_room, count + 1, sizeof *c->times)))
        return false;
    c->times[id] = times + (id < count ? c->times[id] : 0);
    return true;
}

void word_counts_free(struct word_counts *c)
{
    vocab_free(&c->words);
    wf_free(c->times);
    *c = (struct word_counts){0};
}

/* Counts a word of more than LONGEST bytes. */
static bool add_pieces(struct share *s, const char *word, int64_t length)
{
    s->cut++;
    for (int64_t at = 0, end; at < length && !s->whole; at = end) {
        end = length - at > LONGEST ? at + LONGEST : length;
        while (end < length && (word[end] & 0xC0) == 0x80)
            end--;
        if (!add(&s->counts, word + at, end - at, 1))
            return false;
    }
    return true;
}

/* Counts the words that the pre-tokenizer makes of a line, as the model would get them. False if there is no memory, the only possible
 * error: the pre-tokenizers of trained tokenizers use no pattern that could take too long. */
static bool count_line(struct share *s, const char *line, int64_t length)
{
    struct words *words = &s->scratch.words;
    scratch_start(&s->scratch, length, false);
    words->text = (struct view){.data = line, .length = length};
    words->spans.count = 0;
    bool ok = spans_add(&words->spans, 0, length) && part_split(s->pre_tokenizer, &s->scratch) == WF_OK;
    for (int64_t i = 0; ok && i < words->spans.count; i++) {
        struct span span = words->spans.span[i];
        const char *word = words->text.data + span.begin;
        int64_t bytes = span.end - span.begin;
        ok = bytes > LONGEST ? add_pieces(s, word, bytes) : add(&s->counts, word, bytes, 1);
    }
    return ok;
}

static void count_share(void *ctx, int64_t block)
{
    struct share *s = (struct share *)ctx + block;
    s->fault = wf_text_fault(s->data, s->length);
    for (int64_t at = 0, next; at < s->length && s->fault < 0 && !s->full; at = next) {
        const char *end = memchr(s->data + at, '\n', (size_t)(s->length - at));
        next = end ? end + 1 - s->data : s->length;
        int64_t length = next - at;
        if (end && !s->running)
            length -= length > 1 && end[-1] == '\r' ? 2 : 1;
        s->full = length > 0 && !count_line(s, s->data + at, length);
    }
}

struct counting {
    struct share share[MOST_SHARES];
    int shares;
    int64_t bytes, lines_cut;
};

/* Divides a block at line ends and counts the words of each share. Of several invalid bytes the first in the text is reported. */
static wf_status count_block(void *ctx, const struct wf_lines *blocks, wf_error *error)
{
    struct share *share = ((struct counting *)ctx)->share;
    int shares = ((struct counting *)ctx)->shares;
    int64_t begin = 0;
    if (blocks->length / SMALLEST_SHARE < shares)
        shares = blocks->length < SMALLEST_SHARE ? 1 : (int)(blocks->length / SMALLEST_SHARE);
    for (int i = 0; i < shares; i++) {
        int64_t end = blocks->length * (i + 1) / shares;
        end = WF_MAX(begin, end);
        const char *line = i + 1 < shares && end < blocks->length ? memchr(blocks->text + end, '\n', (size_t)(blocks->length - end)) : NULL;
        end = line ? line + 1 - blocks->text : blocks->length;
        share[i].data = blocks->text + begin;
        share[i].length = end - begin;
        begin = end;
    }
    ((struct counting *)ctx)->lines_cut += blocks->cut;
    ((struct counting *)ctx)->bytes += blocks->length;
    wf_parallel(shares, (double)blocks->length * 20, count_share, share);
    for (int i = 0; i < shares; i++) {
        if (share[i].fault >= 0)
            return wf_lines_refuse(blocks, share[i].data + share[i].fault - blocks->text, error);
        if (share[i].full)
            return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory for the words of the text", blocks->name);
    }
    return WF_OK;
}

/* Adds the words of all tables to the first table. */
static wf_status join(struct share *share, int shares, const struct wf_tokenizer_options *options, int64_t bytes, wf_error *error)
{
    struct train_clock clock = {options, 0};
    struct word_counts *all = &share[0].counts;
    for (int i = 1; i < shares; i++) {
        const struct word_counts *c = &share[i].counts;
        for (int32_t k = 0; k < c->words.count; k++) {
            int64_t length;
            const char *word = vocab_piece(&c->words, k, &length);
            wf_status status = k % ASK == ASK - 1 ? train_tick(&clock, "reading", bytes, bytes, false, error) : WF_OK;
            if (status != WF_OK)
                return status;
            if (!add(all, word, length, c->times[k]))
                return wf_error_set(error, WF_ERR_MEMORY, "no memory for %lld words", (long long)(all->words.count + c->words.count));
        }
        word_counts_free(&share[i].counts);
    }
    return WF_OK;
}

wf_status word_counts_read(const struct tokenizer_source *source, const struct wf_tokenizer_options *options, struct word_counts *out,
                           wf_error *error)
{
    struct counting c = {.shares = WF_MIN(wf_parallel_threads(), MOST_SHARES)};
    struct share *share = c.share;
    const struct part *pre_tokenizer = NULL;
    *out = (struct word_counts){0};
    wf_tokenizer *holder = build_cutter(options, &pre_tokenizer, error);
    for (int i = 0; i < c.shares; i++)
        share[i] = (struct share){
            .pre_tokenizer = pre_tokenizer, .running = build_running_text(options), .whole = options->kind == WF_TOKENIZER_WORD};
    wf_status status = holder ? train_read(source, options, count_block, &c, error) : WF_ERR_MEMORY;
    wf_tokenizer_free(holder);
    if (status == WF_OK)
        status = join(share, c.shares, options, c.bytes, error);
    int64_t long_words = 0;
    for (int i = 0; i < c.shares; i++)
        long_words += share[i].cut;
    if (status == WF_OK && share[0].counts.words.count == 0)
        status = wf_error_set(error, WF_ERR_FORMAT, "%s%s: no words in it%s", source->count ? source->path[0] : "the text",
                              source->count > 1 ? " and the files after it" : "", long_words ? " of at most 2 MiB" : "");
    if (status == WF_OK && options->long_words)
        *options->long_words += long_words ? long_words : c.lines_cut;
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
