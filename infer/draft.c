/* SPDX-License-Identifier: MIT */
/* Speculative decoding. A small model, the draft, guesses the next tokens of a text one by one. The model then computes the logits after
 * each of them in a single pass, which costs little more than a pass for one token, because it reads the weights once. At each position the
 * model chooses its token as it would without a draft, with the random number of that position; the first token that differs from the guess
 * is the model's own, and the guesses after it are dropped. */
#include <weft/internal/grow.h>
#include <weft/internal/minmax.h>

#include "generator.h"

/* Guesses up to `most` ids after t->count, and writes them behind the ids of the text. Returns their number. The draft draws with the
 * random numbers of the same positions as the model, so that its choice differs only where its probabilities do. */
static wf_status guess(wf_generator *g, struct text *t, int64_t most, int64_t *count, wf_error *error)
{
    struct side *d = &g->draft;
    wf_status status = wf_cache_view(&d->view, d->cache, 0, 1, error);
    for (*count = 0; status == WF_OK && *count < most;) {
        const int64_t held = t->count + *count, missing = held - t->first - g->draft_cached, T = WF_MIN(missing, g->chunk);
        wf_array logits;
        int32_t id;
        status = generator_pass(g, d, &d->view, t->ids + t->first + g->draft_cached, 1, T, false, &logits, error);
        g->draft_cached += T;
        if (status == WF_OK && T == missing) {
            struct text ahead = *t; /* with the ids that are guessed so far */
            ahead.count = held;
            status = choose(g, &ahead, logits.data, &id, error);
            if (status == WF_OK)
                t->ids[held] = id;
            ++*count;
            most = status == WF_OK && is_end(&t->options, id) ? *count : most;
        }
        wf_tape_rewind(g->tape, g->mark, NULL);
    }
    return status;
}

/* The most guesses for which there is room: in what the caller wants, in the window, which must not slide meanwhile, and in the draft's. */
static int64_t room(const wf_generator *g, const struct text *t)
{
    const int64_t held = t->count - t->first;
    const int64_t most = WF_MIN(g->guess, t->options.max_tokens - (t->count - t->prompt) - 1);
    return WF_MIN(most, WF_MIN(g->main.model.context - held, g->draft.model.context - held));
}

wf_status speculate(wf_generator *g, wf_error *error)
{
    struct text *t = &g->text[0];
    const int64_t start = t->count, types = g->main.model.vocab_size, first = t->first;
    const int64_t most = WF_MAX(0, room(g, t));
    int64_t guesses = 0, right = 0;
    int32_t guessed[64], id = -1;
    wf_array logits;
    wf_error failed = {0};
    if (!wf_grow(&t->ids, &t->capacity, t->count + most + 1, sizeof *t->ids))
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for a text of %lld ids", (long long)t->count);
    wf_status status = most > 0 ? guess(g, t, most, &guesses, error) : WF_OK;
    for (int64_t i = 0; i < guesses; i++)
        guessed[i] = t->ids[start + i];
    if (status == WF_OK)
        status = wf_cache_view(&g->main.view, g->main.cache, 0, 1, error);
    if (status == WF_OK)
        status = generator_pass(g, &g->main, &g->main.view, t->ids + start - 1, 1, 1 + guesses, true, &logits, error);
    g->counts.passes++;
    for (int64_t i = 0; status == WF_OK && i <= guesses; i++) {
        const wf_real *row = (const wf_real *)logits.data + i * types;
        status = choose(g, t, row, &id, error);
        if (status != WF_OK)
            break;
        const bool same = i < guesses && id == guessed[i];
        right += same;
        if (!accept(g, t, row, id, &failed) || !same)
            break;
    }
    wf_tape_rewind(g->tape, g->mark, NULL);
    if (status == WF_OK && failed.code != WF_OK)
        status = wf_error_set(error, failed.code, "%s", failed.message);
    g->counts.guesses += guesses;
    g->counts.right += right;
    if (guesses > 0)
        g->guess = right == guesses ? WF_MIN(g->guess + 2, g->most_guesses) : WF_MAX(1, right + 1);
    /* Ids whose choice was confirmed stay in the caches; the last id that was chosen is in neither. If the window has slid, nothing stays.
     */
    t->cached = t->first != first ? 0 : WF_MIN(start + right, t->count) - first;
    g->draft_cached = t->first != first ? 0 : WF_MIN(g->draft_cached, t->cached);
    wf_cache_rewind(g->main.cache, 0, (int32_t)t->cached);
    wf_cache_rewind(g->draft.cache, 0, (int32_t)g->draft_cached);
    return status;
}
