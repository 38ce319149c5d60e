/* SPDX-License-Identifier: MIT */
/* Encodes a text in blocks, on all threads. A cut between two blocks is valid if it does not change the ids: the text on the left and the
 * text on the right, encoded separately, must give the ids of both encoded together. A candidate is a space or line end after a word. The
 * check encodes only a window of text around the candidate. If no candidate near the end of a block is valid, the block continues to the
 * next valid cut, or to the end of the text. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include <weft/internal/encode.h>
#include <weft/internal/grow.h>
#include <weft/internal/lines.h>
#include <weft/internal/minmax.h>
#include <weft/memory.h>
#include <weft/runtime.h>

#include "text_ids.h"

enum {
    BLOCK = 1 << 17,  /* wanted bytes of a block */
    SEARCH = 1 << 14, /* bytes after the wanted position in which candidates are looked for */
    TRIES = 12,       /* candidates that are checked before the search gives up */
    WINDOW = 512,     /* bytes on each side of a candidate that are encoded for the check; twice the longest token is added */
    SLOTS = 4,        /* blocks per worker that are encoded in one parallel region */
    ALONE =
        1 << 22, /* if a block is longer, the caller's thread encodes alone, so that it can call the user's progress function meanwhile */
    WORDS = 1 << 15 /* words that a worker's token cache holds */
};

struct slot {
    int64_t nominal; /* the wanted end of the block */
    int64_t cut;     /* the first valid cut from there on; -1: none found */
    int64_t begin;   /* first byte of the block */
    int64_t end;     /* one past the last byte of the block */
    struct wf_tokens ids;
    int64_t unknown; /* number of unknown tokens among the ids */
};
struct worker {
    wf_token_cache *cache;
    char *text;
    int64_t capacity;
    struct wf_tokens both, left, right;
};
struct encoding {
    const wf_tokenizer *tokenizer;
    const struct text_part *part;
    bool characters; /* each character is a token, so every cut between two characters is valid */
    int64_t window;  /* bytes on each side of a candidate that are encoded for the check */
    int workers;
    struct worker *worker;
    struct slot *slot;
    struct text_progress *progress;
    pthread_t caller;
    atomic_bool stopped;
};

/* Whether to stop. Only the caller's thread may call the user's progress function, which decides this; other threads read e->stopped. */
static bool stopped(void *ctx)
{
    struct encoding *e = ctx;
    struct text_progress *p = e->progress;
    if (p && p->call && pthread_equal(pthread_self(), e->caller) && !p->call(p->ctx, p->done, p->total))
        atomic_store(&e->stopped, true);
    return atomic_load(&e->stopped);
}

static wf_status read_text(struct encoding *e, struct worker *w, int64_t begin, int64_t end, wf_error *error)
{
    if (!wf_grow(&w->text, &w->capacity, end - begin, 1))
        return wf_error_set(error, WF_ERR_MEMORY, "%s: no memory to encode %lld bytes", e->part->file->path, (long long)(end - begin));
    for (int64_t at = begin, bytes; at < end; at += bytes) {
        bytes = WF_MIN(end - at, ALONE);
        wf_status status = text_file_read(e->part->file, at, bytes, w->text + at - begin, error);
        if (status == WF_OK && at + bytes < end && stopped(e))
            status = wf_error_set(error, WF_ERR_CANCELLED, "%s was cancelled", e->progress->what);
        if (status != WF_OK)
            return status;
    }
    return WF_OK;
}

/* --- finding valid cuts --- */

static bool encode_probe(const struct encoding *e, const struct worker *w, const char *text, int64_t length, struct wf_tokens *out)
{
    const struct wf_encode_options options = {.cache = w->cache, .whole = true};
    struct wf_encode_fault fault;
    out->count = 0;
    return wf_tokenizer_encode_placed(e->tokenizer, text, length, &options, out, &fault) == WF_OK;
}

static bool continues(char c)
{
    return (c & 0xC0) == 0x80;
}

/* Whether text[0 .. length-1] may be cut at `at`. The check runs twice, with windows whose starts differ by one character, because a
 * tokenizer that splits by counting characters could pass one check by chance but not both. */
static bool safe_cut(const struct encoding *e, struct worker *w, const char *text, int64_t length, int64_t at)
{
    int64_t from = at > e->window ? at - e->window : 0, to = length - at > e->window ? at + e->window : length;
    while (to < length && to > at && continues(text[to]))
        to--;
    if (!encode_probe(e, w, text + at, to - at, &w->right))
        return false;
    for (int k = 0; k < 2; k++) {
        from += k;
        while (from < at && continues(text[from]))
            from++;
        if (from == at || !encode_probe(e, w, text + from, at - from, &w->left) || !encode_probe(e, w, text + from, to - from, &w->both))
            return false;
        int64_t left = w->left.count, right = w->right.count;
        if (w->both.count != left + right || (left > 0 && memcmp(w->both.id, w->left.id, (size_t)left * 4) != 0) ||
            (right > 0 && memcmp(w->both.id + left, w->right.id, (size_t)right * 4) != 0))
            return false;
    }
    return true;
}

/* Sets s->cut to the first valid cut from s->nominal on. Candidates are spaces and line ends that follow a word, because in nearly every
 * tokenizer a word begins at white space. Line ends alone would not suffice: some tokenizers join a line end to the full stop before it. */
static wf_status find_cut(void *ctx, int64_t worker, int64_t slot, wf_error *error)
{
    static const char spaces[] = " \t\r\n\v\f";
    struct encoding *e = ctx;
    struct worker *w = e->worker + worker;
    struct slot *s = e->slot + slot;
    const struct text_part *part = e->part;
    s->cut = s->nominal >= part->end ? part->end : -1;
    if (s->cut >= 0)
        return WF_OK;
    int64_t search = e->characters ? 4 : SEARCH, window = e->characters ? 0 : e->window;
    int64_t from = s->nominal - part->begin > window ? s->nominal - window : part->begin, wanted = s->nominal - from, tries = 0;
    int64_t to = part->end - s->nominal > search + window ? s->nominal + search + window : part->end;
    wf_status status = read_text(e, w, from, to, error);
    for (int64_t at = wanted; status == WF_OK && s->cut < 0 && at < to - from && at < wanted + search && tries < TRIES; at++) {
        const char *text = w->text;
        bool begins = at > 0 && (text[at] == ' ' || text[at] == '\n') && !memchr(spaces, text[at - 1], sizeof spaces);
        tries += begins && !e->characters;
        if (e->characters ? !continues(text[at]) : begins && safe_cut(e, w, text, to - from, at))
            s->cut = from + at;
    }
    return status;
}

/* --- blocks --- */

static wf_status encode_block(void *ctx, int64_t worker, int64_t slot, wf_error *error)
{
    struct encoding *e = ctx;
    struct worker *w = e->worker + worker;
    struct slot *s = e->slot + slot;
    const struct text_file *file = e->part->file;
    int64_t length = s->end - s->begin;
    s->ids.count = s->unknown = 0;
    wf_status status = read_text(e, w, s->begin, s->end, error);
    if (status != WF_OK)
        return status;
    int64_t bad = wf_text_fault(w->text, length);
    if (bad >= 0)
        return text_file_refuse(file, s->begin + bad, error);
    const struct wf_encode_options options = {.cache = w->cache, .whole = true, .unknown = &s->unknown, .cancelled = stopped, .ctx = e};
    struct wf_encode_fault fault = {0};
    char place[1024];
    status = wf_tokenizer_encode_placed(e->tokenizer, w->text, length, &options, &s->ids, &fault);
    if (status == WF_OK)
        return WF_OK;
    if (status == WF_ERR_CANCELLED)
        return wf_error_set(error, status, "%s was cancelled", e->progress->what);
    if (status == WF_ERR_MEMORY)
        return wf_error_set(error, status, "%s: no memory for the ids of %lld bytes", file->path, (long long)length);
    if (text_file_place(file, s->begin + fault.offset, place, sizeof place, error) == WF_OK)
        wf_tokenizer_fault(e->tokenizer, w->text, length, &fault, place, error);
    return error->code;
}

/* Fills the slots with the next blocks. *begin is where the first of them begins, and becomes the end of the last one. *from is the last
 * position at which a cut was wanted; the next ones are BLOCK bytes apart. If no valid cut is found near such a position, the block
 * continues to the next valid cut. */
static wf_status next_blocks(struct encoding *e, int64_t *begin, int64_t *from, int64_t *blocks, wf_error *error)
{
    int64_t count = 0;
    do {
        *from += BLOCK;
        e->slot[count++].nominal = *from;
    } while (count < SLOTS * e->workers && *from < e->part->end);
    *blocks = 0;
    wf_status status = share_out(e->workers, 0, count, (double)count * 1e5, find_cut, e, error);
    for (int64_t i = 0; i < count && status == WF_OK; i++) {
        int64_t cut = e->slot[i].cut;
        if (cut <= *begin) /* no cut was found, or the block would be empty */
            continue;
        struct slot *s = e->slot + (*blocks)++;
        s->begin = *begin;
        s->end = *begin = cut;
    }
    return status;
}

static wf_status encode_blocks(struct encoding *e, int64_t blocks, double cost, wf_error *error)
{
    bool alone = false;
    wf_status status = WF_OK;
    for (int64_t i = 0; i < blocks; i++)
        alone = alone || e->slot[i].end - e->slot[i].begin > ALONE;
    if (!alone)
        return share_out(e->workers, 0, blocks, cost, encode_block, e, error);
    for (int64_t i = 0; i < blocks && status == WF_OK; i++)
        status = encode_block(e, 0, i, error);
    return status;
}

static wf_status encode_part(struct encoding *e, struct text_progress *progress, struct ids_writer *writer, int64_t *unknown,
                             wf_error *error)
{
    wf_status status = WF_OK;
    for (int64_t begin = e->part->begin, from = begin; begin < e->part->end && status == WF_OK;) {
        int64_t blocks, first = begin;
        status = next_blocks(e, &begin, &from, &blocks, error);
        if (status == WF_OK)
            status = encode_blocks(e, blocks, (double)(begin - first) * 20, error);
        for (int64_t i = 0; i < blocks && status == WF_OK; i++) {
            status = ids_writer_add(writer, e->slot[i].ids.id, e->slot[i].ids.count, error);
            *unknown += e->slot[i].unknown;
        }
        if (status == WF_OK)
            status = text_progress(progress, begin - first, error);
    }
    return status;
}

static void encoding_free(struct encoding *e)
{
    for (int i = 0; e->worker && i < e->workers; i++) {
        struct worker *w = e->worker + i;
        wf_token_cache_free(w->cache);
        wf_free(w->text);
        wf_tokens_free(&w->both);
        wf_tokens_free(&w->left);
        wf_tokens_free(&w->right);
    }
    for (int i = 0; e->slot && i < SLOTS * e->workers; i++)
        wf_tokens_free(&e->slot[i].ids);
    wf_free(e->worker);
    wf_free(e->slot);
}

static wf_status encoding_new(struct encoding *e, const wf_tokenizer *tokenizer, wf_error *error)
{
    int64_t longest = 0, length;
    *e = (struct encoding){.tokenizer = tokenizer, .workers = wf_threads()};
    e->characters = wf_tokenizer_kind_of(tokenizer) == WF_TOKENIZER_CHAR;
    for (int32_t id = 0; id < wf_tokenizer_vocab_size(tokenizer); id++)
        if (wf_tokenizer_token(tokenizer, id, &length) && length > longest)
            longest = length;
    e->window = WINDOW + 2 * longest;
    e->worker = wf_alloc_zero((size_t)e->workers, sizeof *e->worker);
    e->slot = wf_alloc_zero((size_t)(SLOTS * e->workers), sizeof *e->slot);
    if (!e->worker || !e->slot)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory to encode a text");
    for (int i = 0; i < e->workers && !e->characters; i++)
        if (!(e->worker[i].cache = wf_token_cache_new(tokenizer, WORDS, error)))
            return WF_ERR_MEMORY;
    return WF_OK;
}

wf_status text_encode(const wf_tokenizer *tokenizer, const struct text_part *part, int64_t parts, int32_t separator,
                      struct text_progress *progress, struct ids_writer *writer, int64_t *unknown, wf_error *error)
{
    struct encoding e;
    wf_status status = encoding_new(&e, tokenizer, error);
    e.progress = progress;
    e.caller = pthread_self();
    for (int64_t i = 0; i < parts && status == WF_OK; i++) {
        e.part = part + i;
        if (i > 0 && separator >= 0)
            status = ids_writer_add(writer, &separator, 1, error);
        if (status == WF_OK)
            status = encode_part(&e, progress, writer, unknown, error);
    }
    encoding_free(&e);
    return status;
}
