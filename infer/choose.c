/* SPDX-License-Identifier: MIT */
/* The next token of a text: its choice, its score, and whether the text ends with it. */
#include <string.h>

#include <weft/internal/grow.h>
#include <weft/internal/minmax.h>

#include "generator.h"
#include "search.h"

enum { MOST_TOPS = 100 };

int64_t generator_types(const wf_generator *g, const struct wf_generate_options *o)
{
    return o->types > 0 ? WF_MIN(o->types, g->main.model.vocab_size) : g->main.model.vocab_size;
}

wf_status choose(wf_generator *g, const struct text *t, const wf_real *logits, int32_t *id, wf_error *error)
{
    const struct wf_generate_options *o = &t->options;
    const struct wf_sampler *s = &o->sampler;
    const int64_t types = generator_types(g, o);
    if ((s->repetition_penalty != 0 && s->repetition_penalty != 1) || s->presence_penalty != 0 || s->frequency_penalty != 0) {
        memcpy(g->logits, logits, (size_t)types * sizeof *logits);
        if (wf_penalize(s, g->logits, types, t->ids, t->count, t->prompt, g->order, error) != WF_OK)
            return error->code;
        logits = g->logits;
    }
    return wf_sample(s, logits, types, (uint64_t)t->count, g->order, id, error);
}

bool is_end(const struct wf_generate_options *o, int32_t id)
{
    bool found = false;
    for (int i = 0; o->end && i < WF_MAX(o->ends, 1); i++)
        found |= o->end[i] == id;
    return found;
}

void finish(wf_generator *g, struct text *t, enum wf_generate_end end)
{
    const struct wf_generate_result result = {t->count - t->prompt, end};
    t->active = false;
    g->active--;
    if (t->options.result)
        *t->options.result = result;
    if (t->options.done)
        t->options.done(t->options.ctx, &result);
}

/* Tells the caller the log-probabilities of a token and of the likeliest ones. */
static wf_status tell_score(const wf_generator *g, const struct wf_generate_options *o, const wf_real *logits, int32_t id, wf_error *error)
{
    const int64_t types = generator_types(g, o);
    const int64_t tops = WF_MIN(WF_MIN(o->tops, MOST_TOPS), types);
    const double none = 0;
    struct candidate best[MOST_TOPS];
    int32_t top[MOST_TOPS];
    double log_probability[MOST_TOPS];
    if (top_continuations(logits, 1, types, &none, WF_MAX(tops, 1), best) >= 0)
        return wf_error_set(error, WF_ERR_NUMERIC, "the logits are not finite: the weights are damaged, or the training diverged");
    for (int64_t i = 0; i < tops; i++) {
        top[i] = best[i].id;
        log_probability[i] = best[i].total;
    }
    o->scored(o->scored_ctx, &(struct wf_token_score){.id = id,
                                                      .log_probability = best[0].total - (logits[best[0].id] - (double)logits[id]),
                                                      .top = top,
                                                      .top_log_probability = log_probability,
                                                      .tops = tops});
    return WF_OK;
}

bool accept(wf_generator *g, struct text *t, const wf_real *logits, int32_t id, wf_error *error)
{
    const struct wf_generate_options *o = &t->options;
    const int64_t context = g->main.model.context;
    g->counts.tokens++;
    if (o->scored && tell_score(g, o, logits, id, error) != WF_OK)
        return false;
    if (is_end(o, id)) {
        finish(g, t, WF_GENERATE_END_TOKEN);
        return false;
    }
    if (!wf_grow(&t->ids, &t->capacity, t->count + 1, sizeof *t->ids)) {
        wf_error_set(error, WF_ERR_MEMORY, "no memory for a text of %lld ids", (long long)t->count);
        return false;
    }
    const bool full = t->count - t->first == context;
    t->ids[t->count++] = id;
    if (o->token && !o->token(o->ctx, id))
        finish(g, t, WF_GENERATE_STOPPED);
    else if (t->count - t->prompt >= o->max_tokens)
        finish(g, t, WF_GENERATE_MAX_TOKENS);
    if (full) { /* drop the oldest quarter; the other ids then have new positions, so they are computed again */
        t->first += context >= 4 ? context / 4 : 1;
        t->cached = 0;
    }
    return t->active;
}
