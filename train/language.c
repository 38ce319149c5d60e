/* SPDX-License-Identifier: MIT */
/* Training of language models: random crops of one long sequence of ids. */
#include <math.h>

#include <weft/generate.h>
#include <weft/internal/string.h>
#include <weft/memory.h>

#include "sequence.h"

struct language {
    struct sequence sequence;
    int32_t *x, *y; /* [batch / accumulate, rounded up, context] */
};

static wf_status open(struct trainer *t, bool resuming)
{
    struct language *l = t->data = wf_alloc_zero(1, sizeof *l);
    if (!l)
        return wf_error_set(t->error, WF_ERR_MEMORY, "no memory for a training");
    if (t->options->source_tokenizer)
        return wf_error_set(t->error, WF_ERR_ARGUMENT, "%s is a language model: it has one tokenizer, not two", t->config.model);
    /* Of both texts: a character that only the validation text has must not end the run. */
    if (sequence_tokenizer(t, &l->sequence, resuming, true) || sequence_encode(t, &l->sequence))
        return t->error->code;
    if (t->options->tokenizer) { /* config.json says what is, not what would have been made */
        t->config.tokenizer.kind = wf_tokenizer_kind_of(t->tokenizer);
        t->config.tokenizer.min_frequency = 0;
    }
    wf_config_set_vocab(&t->config, wf_tokenizer_vocab_size(t->tokenizer), 0);
    choose_validation(t, t->config.training.batch * wf_config_shape(&t->config).context);
    l->x = wf_alloc(sequence_room(t) * sizeof *l->x);
    l->y = wf_alloc(sequence_room(t) * sizeof *l->y);
    return l->x && l->y ? WF_OK : wf_error_set(t->error, WF_ERR_MEMORY, "no memory for a batch");
}

static wf_status tell(struct trainer *t)
{
    return sequence_tell(t, &((struct language *)t->data)->sequence);
}

/* A crop is a function of the step and its row: there is nothing to take. */
static wf_status next(struct trainer *t)
{
    t->step_tokens = t->config.training.batch * wf_config_shape(&t->config).context;
    return WF_OK;
}

static wf_tensor *forward(struct trainer *t, int64_t micro, wf_tensor **plain)
{
    struct language *l = t->data;
    int64_t context = wf_config_shape(&t->config).context, first, rows = sequence_rows(t, micro, &first);
    wf_crops_fill(&l->sequence.crops, t->step, first, rows, l->x, l->y);
    wf_tape_reset(t->tape, WF_TRAIN, .seed = t->options->seed, .step = (uint64_t)t->step, .first_row = (uint64_t)first);
    return wf_model_loss(t->model, wf_ids(t->tape, l->x, rows, context), wf_ids(t->tape, l->y, rows, context),
                         .label_smoothing = t->config.training.label_smoothing, .normalizer = (double)(t->config.training.batch * context),
                         .plain = plain);
}

static wf_status evaluate(struct trainer *t)
{
    struct wf_id_view valid = ((struct language *)t->data)->sequence.corpus.valid.ids;
    int64_t tokens;
    t->valid_smoothed = NAN;
    return wf_model_evaluate_some(t->model, t->tape, valid, t->valid_limit, &t->valid, &tokens, t->error);
}

static bool append(void *ctx, const char *text, int64_t length)
{
    return wf_string_add(ctx, text, length);
}

/* The validation text's beginning and how the model continues it. The draw is the same each time: what changes between two samples is the
 * model. */
static wf_status sample(struct trainer *t, struct wf_string *text, wf_error *error)
{
    enum { PROMPT = 16, TOKENS = 128 };
    const struct wf_generation *g = &t->config.generation;
    struct wf_id_view valid = ((struct language *)t->data)->sequence.corpus.valid.ids;
    struct wf_generate_options o = {
        .max_tokens = TOKENS, .sampler = {.temperature = g->temperature, .top_k = g->top_k, .top_p = g->top_p, .seed = t->options->seed}};
    int32_t prompt[PROMPT];
    int64_t count = valid.count < PROMPT ? valid.count : PROMPT;
    wf_id_view_copy(valid, 0, count, prompt);
    wf_status status = wf_generate_text(t->model, t->tokenizer, t->tape, prompt, count, &o, append, text, error);
    return status == WF_OK && text->failed ? wf_error_set(error, WF_ERR_MEMORY, "no memory for a sample") : status;
}

static void end(struct trainer *t)
{
    struct language *l = t->data;
    if (!l)
        return;
    sequence_free(&l->sequence);
    wf_free(l->x);
    wf_free(l->y);
    wf_free(l);
    t->data = NULL;
}

const struct task language_task = {
    .open = open, .tell = tell, .next = next, .forward = forward, .evaluate = evaluate, .sample = sample, .free = end};
