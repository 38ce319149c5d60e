/* SPDX-License-Identifier: MIT */
/* Random crops and adjacent windows of a sequence of ids, as batches. */
#include <inttypes.h>
#include <string.h>

#include <weft/internal/minmax.h>
#include <weft/internal/needs.h>
#include <weft/internal/spread.h>
#include <weft/memory.h>
#include <weft/random.h>

void wf_id_view_copy(struct wf_id_view ids, int64_t begin, int64_t count, int32_t *out)
{
    if (!ids.narrow) {
        memcpy(out, (const int32_t *)ids.data + begin, (size_t)count * sizeof *out);
        return;
    }
    const uint16_t *from = (const uint16_t *)ids.data + begin;
    for (int64_t i = 0; i < count; i++)
        out[i] = from[i];
}

wf_status wf_crops_init(struct wf_crops *crops, struct wf_id_view ids, int64_t context, uint64_t seed, wf_error *error)
{
    if (wf_needs(error, "crops", crops))
        return WF_ERR_ARGUMENT;
    *crops = (struct wf_crops){0};
    if (context < 1)
        return wf_error_set(error, WF_ERR_ARGUMENT, "crops of %" PRId64 " tokens: the context must be at least 1", context);
    if (ids.count <= context)
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "a text of %" PRId64 " tokens is too short for a context of %" PRId64
                            ": it needs one token more than the context; use a longer text or a smaller context",
                            ids.count, context);
    *crops = (struct wf_crops){.ids = ids, .context = context, .seed = seed};
    return WF_OK;
}

int64_t wf_crops_start(const struct wf_crops *crops, int64_t step, int64_t row)
{
    if (!crops)
        return 0;
    /* The tag in the last counter word separates these random numbers from all others that are drawn under the same seed. */
    static const uint32_t crops_tag = 0x706F7263; /* "crop" in ASCII */
    uint32_t key[2] = {(uint32_t)crops->seed, (uint32_t)(crops->seed >> 32)}, word[4];
    uint32_t counter[4] = {(uint32_t)step, (uint32_t)(step >> 32), (uint32_t)row, crops_tag ^ (uint32_t)(row >> 32)};
    wf_philox(counter, key, word);
    /* Maps a random 64-bit u to floor(u n / 2^64), where n is the number of possible starts. The probabilities of two starts differ by at
     * most one part in 2^64 / n. */
    uint64_t u = (uint64_t)word[1] << 32 | word[0], starts = (uint64_t)(crops->ids.count - crops->context);
    return (int64_t)((unsigned __int128)u * starts >> 64);
}

void wf_crops_fill(const struct wf_crops *crops, int64_t step, int64_t first_row, int64_t rows, int32_t *x, int32_t *y)
{
    if (!crops || !x)
        return;
    int64_t context = crops->context;
    for (int64_t r = 0; r < rows; r++) {
        int64_t start = wf_crops_start(crops, step, first_row + r);
        wf_id_view_copy(crops->ids, start, context, x + r * context);
        if (y)
            wf_id_view_copy(crops->ids, start + 1, context, y + r * context);
    }
}

wf_status wf_windows_init(struct wf_windows *windows, struct wf_id_view ids, int64_t context, int64_t rows, wf_error *error)
{
    if (wf_needs(error, "windows", windows))
        return WF_ERR_ARGUMENT;
    *windows = (struct wf_windows){0};
    if (context < 1 || rows < 1)
        return wf_error_set(error, WF_ERR_ARGUMENT, "batches of %" PRId64 " windows of %" PRId64 " tokens: both must be at least 1", rows,
                            context);
    if (ids.count < 2)
        return wf_error_set(error, WF_ERR_ARGUMENT,
                            "a text of %" PRId64 " tokens has nothing to predict: an evaluation needs at least two tokens", ids.count);
    int64_t most = ids.count / context < rows ? ids.count : rows * context + 1;
    *windows = (struct wf_windows){.ids = ids, .context = context, .rows = rows};
    if (ids.narrow && !(windows->buffer = wf_alloc((size_t)most * sizeof *windows->buffer)))
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for %" PRId64 " ids", most);
    return WF_OK;
}

struct wf_spread wf_spread_of(int64_t limit, int64_t count, int64_t context, int64_t *rows)
{
    enum { PIECES = 16 }; /* minimum number of chosen pieces, unless `limit` has room for fewer windows */
    if (limit <= 0 || limit >= count)
        return (struct wf_spread){0};
    int64_t most = limit / context / PIECES;
    *rows = most < 1 ? 1 : WF_MIN(most, *rows);
    struct wf_spread s = {.chosen = limit / (*rows * context), .total = count / (*rows * context)};
    s.chosen += s.chosen == 0;
    return s.chosen < s.total ? s : (struct wf_spread){0};
}

int64_t wf_spread_at(const struct wf_spread *s, int64_t i)
{
    /* The middle of share i, if `total` is divided into `chosen` shares. */
    return (int64_t)((__int128)(2 * i + 1) * s->total / (2 * s->chosen));
}

void wf_windows_limit(struct wf_windows *windows, int64_t limit)
{
    if (!windows)
        return;
    windows->spread = wf_spread_of(limit, windows->ids.count - !windows->no_targets, windows->context, &windows->rows);
}

bool wf_windows_next(struct wf_windows *windows, struct wf_window_batch *batch)
{
    if (!windows || !batch)
        return false;
    if (windows->spread.chosen > 0) {
        if (windows->batch == windows->spread.chosen)
            return false;
        windows->position = wf_spread_at(&windows->spread, windows->batch++) * windows->rows * windows->context;
    }
    int64_t ahead = !windows->no_targets, targets = windows->ids.count - ahead - windows->position, whole = targets / windows->context;
    if (targets <= 0)
        return false;
    batch->rows = whole == 0 ? 1 : WF_MIN(whole, windows->rows);
    batch->cols = whole == 0 ? targets : windows->context;
    batch->x = windows->buffer;
    if (windows->buffer)
        wf_id_view_copy(windows->ids, windows->position, batch->rows * batch->cols + ahead, windows->buffer);
    else
        batch->x = (const int32_t *)windows->ids.data + windows->position;
    batch->y = windows->no_targets ? NULL : batch->x + 1;
    windows->position += batch->rows * batch->cols;
    return true;
}

void wf_windows_free(struct wf_windows *windows)
{
    if (!windows)
        return;
    wf_free(windows->buffer);
    *windows = (struct wf_windows){0};
}
