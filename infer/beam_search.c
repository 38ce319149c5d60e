/* SPDX-License-Identifier: MIT */
/* Beam search from one prompt with any model. The search handles the prompt as a batch of one sentence without a source. */
#include <math.h>

#include <weft/internal/minmax.h>
#include <weft/internal/needs.h>
#include <weft/memory.h>

#include "search.h"

enum { BEAM = 4, MOST_BEAM = 1024 };

static wf_status check(const struct wf_next *model, const int32_t *prompt, int64_t length, const struct wf_beam_options *o, wf_error *error)
{
    int64_t beam = o->beam > 0 ? o->beam : BEAM;
    if (check_prompt(model, prompt, length, o->max_tokens, error) != WF_OK)
        return WF_ERR_ARGUMENT;
    if (!model->cache)
        return wf_error_set(error, WF_ERR_ARGUMENT, "beam search needs a cache: set struct wf_next's .cache");
    if (o->beam < 0 || o->beam > MOST_BEAM)
        return wf_error_set(error, WF_ERR_ARGUMENT, "beam: %lld is out of range: 0 to %d", (long long)o->beam, MOST_BEAM);
    if (o->n_best < 0 || o->n_best > beam)
        return wf_error_set(error, WF_ERR_ARGUMENT, "n_best: %lld is out of range: at most the beam, which is %lld", (long long)o->n_best,
                            (long long)beam);
    if (!(o->length_penalty >= 0 && o->length_penalty <= 100))
        return wf_error_set(error, WF_ERR_ARGUMENT, "length_penalty: %g is out of range: 0 to 100", o->length_penalty);
    if (o->end && (*o->end < 0 || *o->end >= model->vocab_size))
        return wf_error_set(error, WF_ERR_ARGUMENT, "end: id %d is not in the vocabulary of %lld", *o->end, (long long)model->vocab_size);
    if (length >= model->context)
        return wf_error_set(error, WF_ERR_ARGUMENT, "the prompt has %lld ids, and the context of %lld has no room for more: shorten it",
                            (long long)length, (long long)model->context);
    return WF_OK;
}

static wf_status take_results(const struct search *s, const struct sentence *t, struct wf_hypotheses *out, wf_error *error)
{
    int64_t ids = 0, count = WF_MIN(t->kept, s->n_best);
    for (int64_t k = 0; k < count; k++)
        ids += t->ending[k].length;
    int32_t *id = wf_alloc((size_t)(ids + 1) * sizeof *id);
    out->memory = id;
    out->hypothesis = wf_alloc_zero((size_t)count + 1, sizeof *out->hypothesis);
    if (!id || !out->hypothesis)
        return wf_error_set(error, WF_ERR_MEMORY, "no memory for %lld hypotheses", (long long)count);
    for (int64_t k = 0; k < count; k++) {
        const struct ending *e = &t->ending[k];
        int64_t length = e->length - e->finished;
        for (int64_t i = length, node = e->node; i-- > 0; node = t->node[node].before)
            id[i] = t->node[node].id;
        out->hypothesis[k] = (struct wf_hypothesis){
            .ids = id, .length = length, .score = e->score, .log_probability = e->log_probability, .finished = e->finished};
        id += length;
    }
    out->count = count;
    return WF_OK;
}

wf_status wf_beam_search_with(const struct wf_next *model, wf_tape *tape, const int32_t *prompt, int64_t length,
                              const struct wf_beam_options *options, struct wf_hypotheses *out, wf_error *error)
{
    if (wf_needs(error, "out", out))
        return WF_ERR_ARGUMENT;
    *out = (struct wf_hypotheses){0};
    if (wf_needs(error, "model, tape, prompt", model, tape, prompt))
        return WF_ERR_ARGUMENT;
    options = options ? options : &(const struct wf_beam_options){0};
    const struct wf_beam_options *o = options;
    if (check(model, prompt, length, o, error) != WF_OK)
        return WF_ERR_ARGUMENT;
    int64_t beam = o->beam > 0 ? o->beam : BEAM, picks = beam > 1 ? 2 * beam : 1, room = model->context - length;
    struct sentence sentence = {.limit = (int32_t)(o->max_tokens > 0 && o->max_tokens < room ? o->max_tokens : room)};
    struct search s = {.next = model,
                       .prompt = prompt,
                       .prompt_length = length,
                       .tape = tape,
                       .beam = beam,
                       .n_best = o->n_best > 0 ? o->n_best : 1,
                       .batch = 1,
                       .types = model->vocab_size,
                       .picks = picks,
                       .most = WF_MIN(picks, model->vocab_size),
                       .limit = sentence.limit,
                       .length_penalty = o->length_penalty,
                       .eos = o->end ? *o->end : -1,
                       .sentence = &sentence,
                       .cancelled = o->cancelled,
                       .ctx = o->ctx};
    wf_status status = search_make(&s, error);
    if (status == WF_OK)
        status = search_batch(&s, 1, error);
    if (status == WF_OK)
        status = take_results(&s, &sentence, out, error);
    /* The tape's records point into the cache, which is freed next. */
    wf_tape_reset(tape, WF_INFER);
    search_free(&s);
    if (status != WF_OK)
        wf_hypotheses_free(out);
    return status;
}

void wf_hypotheses_free(struct wf_hypotheses *hypotheses)
{
    if (!hypotheses)
        return;
    wf_free(hypotheses->hypothesis);
    wf_free(hypotheses->memory);
    *hypotheses = (struct wf_hypotheses){0};
}
