/* SPDX-License-Identifier: MIT */
/* Work that several processes share, item by item, and what they compare before it. */
#include <stdio.h>
#include <string.h>

#include <weft/internal/dist.h>
#include <weft/internal/grow.h>
#include <weft/memory.h>

/* The rank that does an item. */
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

/* One that was interrupted says less than one that failed. */
static wf_status agree(const struct wf_share *s, wf_status status, wf_error *error)
{
    bool sent;
    return wf_dist_agree_as(s->dist, status, status == WF_ERR_CANCELLED ? 2 : 3, &sent, error);
}

/* Everyone's to all. */
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

/* --- the same on all ------------------------------------------------------------------------------------------------ */

static wf_status first_difference(const char *all, int rank, wf_error *error)
{
    const char *a = all, *b = all + (size_t)rank * WF_DIST_WORDS;
    while (*a || *b) {
        const int n = (int)strcspn(a, " "), m = (int)strcspn(b, " ");
        if (n != m || memcmp(a, b, (size_t)n) != 0)
            return wf_error_set(error, WF_ERR_ARGUMENT,
                                "the processes differ: rank 0 has %.*s, rank %d has %.*s; all must do the same with the same program", n, a,
                                rank, m, b);
        a += n + (a[n] == ' ');
        b += m + (b[m] == ' ');
    }
    return WF_OK;
}

wf_status wf_dist_compare(wf_dist *dist, const char *mine, wf_error *error)
{
    const int size = wf_dist_size(dist);
    char words[WF_DIST_WORDS] = "", *all = size > 1 ? wf_alloc_zero((size_t)size, WF_DIST_WORDS) : NULL;
    if (size == 1)
        return WF_OK;
    wf_status status = all ? WF_OK : wf_error_set(error, WF_ERR_MEMORY, "no memory to compare %d processes", size);
    snprintf(words, sizeof words, "%s", mine);
    if ((status = wf_dist_agree(dist, status, error)) == WF_OK)
        status = wf_dist_all_gather(dist, words, WF_DIST_WORDS, all, error);
    const bool passed = status == WF_OK;
    for (int r = 1; status == WF_OK && r < size; r++)
        status = first_difference(all, r, error);
    wf_free(all);
    /* All have seen the difference, and each may end with it. */
    return passed && status != WF_OK ? wf_dist_agree(dist, status, error) : status;
}
