/* SPDX-License-Identifier: MIT */
/* Distributes items of work over the ranks, and checks that all ranks have the same settings. */
#include <stdio.h>
#include <string.h>

#include <weft/internal/dist.h>
#include <weft/internal/grow.h>
#include <weft/internal/minmax.h>
#include <weft/internal/string.h>
#include <weft/memory.h>

/* Returns the rank that computes an item. */
static int owner(const struct wf_share *s, int64_t item)
{
    const int size = wf_dist_size(s->dist), place = (int)(item % size);
    return item / size % 2 ? size - 1 - place : place;
}

bool wf_share_mine(const struct wf_share *s, int64_t item)
{
    return owner(s, item) == wf_dist_rank(s->dist);
}

void wf_share_add(struct wf_share *s, const void *result, int64_t bytes)
{
    if (s->failed || !wf_grow(&s->mine, &s->room, s->bytes + bytes, 1)) {
        s->failed = true;
        return;
    }
    if (bytes > 0)
        memcpy(s->mine + s->bytes, result, (size_t)bytes);
    s->bytes += bytes;
}

static wf_status no_memory(const struct wf_share *s, wf_error *error)
{
    return wf_error_set(error, WF_ERR_MEMORY, "no memory for the results of %d processes", wf_dist_size(s->dist));
}

/* Returns one outcome on all ranks. A failure has a greater weight than an interruption, so that the message names the cause. */
static wf_status agree(const struct wf_share *s, wf_status status, wf_error *error)
{
    bool sent;
    return wf_dist_agree_as(s->dist, status, status == WF_ERR_CANCELLED ? 2 : 3, &sent, error);
}

/* Gathers the results of all ranks on all ranks. */
static wf_status send_all(struct wf_share *s, wf_error *error)
{
    const int rank = wf_dist_rank(s->dist);
    s->all = wf_alloc((size_t)s->at[wf_dist_size(s->dist)] + 1);
    wf_status status = agree(s, s->all ? WF_OK : no_memory(s, error), error);
    if (status != WF_OK)
        return status;
    if (s->bytes > 0)
        memcpy(s->all + s->at[rank], s->mine, (size_t)s->bytes);
    return wf_dist_gather_parts(s->dist, s->all, s->at, error);
}

wf_status wf_share_gather(struct wf_share *s, wf_status status, wf_error *error)
{
    const int size = wf_dist_size(s->dist);
    if (status == WF_OK && s->failed)
        status = no_memory(s, error);
    if (size == 1) {
        s->all = s->mine;
        return status;
    }
    if (status == WF_OK && !(s->at = wf_alloc_zero(2 * (size_t)size + 1, sizeof *s->at)))
        status = no_memory(s, error);
    status = agree(s, status, error);
    if (status == WF_OK)
        status = wf_dist_all_gather(s->dist, &s->bytes, sizeof s->bytes, s->at + 1, error);
    for (int r = 0; status == WF_OK && r < size; r++)
        s->at[r + 1] += s->at[size + 1 + r] = s->at[r];
    return status == WF_OK ? send_all(s, error) : status;
}

wf_status wf_share_take(struct wf_share *s, int64_t item, void *result, int64_t bytes, wf_error *error)
{
    const int rank = owner(s, item), size = wf_dist_size(s->dist);
    int64_t *at = size > 1 ? &s->at[size + 1 + rank] : &s->one, end = size > 1 ? s->at[rank + 1] : s->bytes;
    if (bytes > end - *at)
        return wf_error_set(error, WF_ERR_STATE, "rank %d has fewer results than rank %d expects: the processes do not do the same", rank,
                            wf_dist_rank(s->dist));
    if (bytes > 0)
        memcpy(result, s->all + *at, (size_t)bytes);
    *at += bytes;
    return WF_OK;
}

void wf_share_free(struct wf_share *s)
{
    if (s->all != s->mine)
        wf_free(s->all);
    wf_free(s->mine);
    wf_free(s->at);
    *s = (struct wf_share){0};
}

/* --- comparison of settings ----------------------------------------------------------------------------------------- */

/* A word of a text: KEY=VALUE, KEY, or #KEY=HASH. `length` is its length, 0 at the end of the text; `key` is the length of KEY or #KEY. */
struct word {
    const char *at;
    int length, key;
};

static struct word word_at(const char *text)
{
    const char *at = text + strspn(text, " ");
    const int length = (int)strcspn(at, " ");
    const char *equals = memchr(at, '=', (size_t)length);
    return (struct word){at, length, equals ? (int)(equals - at) : length};
}

static bool is_same(const struct word *a, const struct word *b)
{
    return a->length == b->length && memcmp(a->at, b->at, (size_t)a->length) == 0;
}

static bool has_key(const char *text, const struct word *like)
{
    for (struct word w = word_at(text); w.length > 0; w = word_at(w.at + w.length))
        if (w.key == like->key && memcmp(w.at, like->at, (size_t)w.key) == 0)
            return true;
    return false;
}

/* Returns how many bytes of a word a message shows: at most MOST, and only whole UTF-8 characters. */
static int shown(const char *at, int length)
{
    enum { MOST = 300 };
    int n = WF_MIN(length, MOST);
    while (n < length && n > 0 && ((unsigned char)at[n] & 0xC0) == 0x80)
        n--;
    return n;
}

/* Writes the message about the first words that differ: `a` in the text of rank 0, and `b` in the text of `rank`. */
static void describe(const char *zero, const char *other, const struct word *a, const struct word *b, int rank, char *text, size_t size)
{
    const int n = shown(a->at, a->length), m = shown(b->at, b->length);
    if (a->key == b->key && memcmp(a->at, b->at, (size_t)a->key) == 0 && a->at[0] == '#') {
        snprintf(text, size, "rank 0 and rank %d do not have the same %.*s", rank, shown(a->at, a->key) - 1, a->at + 1);
        for (char *c = strchr(text, '-'); c; c = strchr(c, '-'))
            *c = ' ';
    } else if (a->length > 0 && !has_key(other, a))
        snprintf(text, size, "rank 0 has %.*s, rank %d has no %.*s", n, a->at, rank, shown(a->at, a->key), a->at);
    else if (b->length > 0 && !has_key(zero, b))
        snprintf(text, size, "rank 0 has no %.*s, rank %d has %.*s", shown(b->at, b->key), b->at, rank, m, b->at);
    else
        snprintf(text, size, "rank 0 has %.*s, rank %d has %.*s", n, a->at, rank, m, b->at);
}

static wf_status first_difference(const char *zero, const char *other, int rank, wf_error *error)
{
    char text[800];
    struct word a = word_at(zero), b = word_at(other);
    for (; is_same(&a, &b); a = word_at(a.at + a.length), b = word_at(b.at + b.length))
        if (a.length == 0)
            return WF_OK;
    describe(zero, other, &a, &b, rank, text, sizeof text);
    return wf_error_set(error, WF_ERR_ARGUMENT, "the processes differ: %s; all must do the same with the same program, settings and files",
                        text);
}

wf_status wf_dist_compare(wf_dist *dist, struct wf_string *words, wf_error *error)
{
    struct wf_share share = {.dist = dist};
    const int size = wf_dist_size(dist);
    wf_status status = words->failed ? wf_error_set(error, WF_ERR_MEMORY, "no memory to compare the processes") : WF_OK;
    if (size > 1) {
        wf_share_add(&share, words->data ? words->data : "", words->length + 1);
        status = wf_share_gather(&share, status, error);
        const bool passed = status == WF_OK;
        for (int r = 1; status == WF_OK && r < size; r++)
            status = first_difference(share.all + share.at[0], share.all + share.at[r], r, error);
        if (passed && status != WF_OK) /* all ranks know the difference; after the agreement each may exit with this error */
            status = wf_dist_agree(dist, status, error);
        wf_share_free(&share);
    }
    wf_string_free(words);
    return status;
}
