/* SPDX-License-Identifier: MIT */
/* Training of encoders: in random crops of one long sequence of ids some tokens are hidden, to be predicted from those around
 * them (Devlin et al. 2019, section 3.1). */
#include <math.h>

#include <weft/encoder.h>
#include <weft/masking.h>
#include <weft/memory.h>

#include "sequence.h"

struct masked {
    struct sequence sequence;
    struct wf_masking masking;
    int32_t *ids, *places, *targets; /* [batch / accumulate, rounded up, context]; of a micro-batch */
    int64_t chosen;                  /* of the whole batch */
};

static wf_status check(const struct trainer *t)
{
    const struct wf_train_options *o = t->options;
    const struct wf_config *c = &t->config;
    if (o->source_tokenizer)
        return wf_error_set(t->error, WF_ERR_ARGUMENT, "%s is an encoder: it has one tokenizer, not two", c->model);
    return WF_OK;
}

/* A text of which the tokenizer knows nothing has nothing to find again. */
static wf_status check_texts(struct trainer *t, struct masked *d)
{
    const struct wf_corpus *c = &d->sequence.corpus;
    t->train_tokens = wf_masking_ordinary(&d->masking, c->train.ids);
    choose_validation(t, t->config.training.batch * wf_config_shape(&t->config).context);
    if (wf_masked_count(&t->config, t->tokenizer, c->valid.ids, t->valid_limit, &t->valid_tokens, t->error))
        return t->error->code;
    if (t->train_tokens == 0)
        return wf_error_set(t->error, WF_ERR_ARGUMENT,
                            "the training text has no word that the tokenizer knows: its %lld tokens are unknown or special ones; give "
                            "another text or another tokenizer",
                            (long long)c->train.ids.count);
    if (t->valid_tokens == 0)
        return wf_error_set(t->error, WF_ERR_ARGUMENT,
                            "no validation token was masked out of %lld: too few are in the vocabulary, or mask_rate=%g "
                            "is too small for them",
                            (long long)c->valid.ids.count, t->config.training.mask_rate);
    return WF_OK;
}

static wf_status open(struct trainer *t, bool resuming)
{
    const struct wf_train_options *o = t->options;
    struct masked *d = t->data = wf_alloc_zero(1, sizeof *d);
    if (!d)
        return wf_error_set(t->error, WF_ERR_MEMORY, "no memory for a training");
    if (check(t) || sequence_tokenizer(t, &d->sequence, resuming, false)) /* what only the validation text has is unknown */
        return t->error->code;
    if (wf_masking_init(&d->masking, t->tokenizer, t->config.training.mask_rate, o->seed, t->error))
        wf_error_prefix(t->error, "%s", o->tokenizer ? o->tokenizer : o->out);
    if (t->error->code || sequence_encode(t, &d->sequence) || check_texts(t, d))
        return t->error->code;
    if (o->tokenizer) { /* config.json says what is, not what would have been made */
        t->config.tokenizer.kind = wf_tokenizer_kind_of(t->tokenizer);
        t->config.tokenizer.min_frequency = 0;
    }
    wf_config_set_vocab(&t->config, wf_tokenizer_vocab_size(t->tokenizer), 0);
    int32_t **buffer[] = {&d->ids, &d->places, &d->targets};
    for (int i = 0; i < 3; i++)
        if (!(*buffer[i] = wf_alloc(sequence_room(t) * sizeof **buffer[i])))
            return wf_error_set(t->error, WF_ERR_MEMORY, "no memory for a batch");
    return WF_OK;
}

static wf_status tell(struct trainer *t)
{
    return sequence_tell(t, &((struct masked *)t->data)->sequence);
}

/* The ids of a micro-batch and what is hidden in it. */
static int64_t hide(const struct trainer *t, int64_t micro, int64_t *first, int64_t *rows)
{
    struct masked *d = t->data;
    *rows = sequence_rows(t, micro, first);
    wf_crops_fill(&d->sequence.crops, t->step, *first, *rows, d->ids, NULL);
    return wf_masking_hide(&d->masking, t->step, *first, *rows, wf_config_shape(&t->config).context, d->ids, d->places, d->targets);
}

/* How many are chosen is known when all are drawn, and the first part must know; to draw them again takes less than a thousandth of an
 * update. */
static wf_status next(struct trainer *t)
{
    struct masked *d = t->data;
    d->chosen = 0;
    for (int64_t micro = 0, first, rows; micro < t->config.training.accumulate; micro++)
        d->chosen += hide(t, micro, &first, &rows);
    t->step_tokens = d->chosen;
    return WF_OK;
}

static wf_tensor *forward(struct trainer *t, int64_t micro, wf_tensor **plain)
{
    struct masked *d = t->data;
    int64_t first, rows, count = hide(t, micro, &first, &rows);
    wf_tape_reset(t->tape, WF_TRAIN, .seed = t->options->seed, .step = (uint64_t)t->step, .first_row = (uint64_t)first);
    /* A batch without any has a loss of 0, and gradients. */
    return wf_encoder_loss(t->model, wf_ids(t->tape, d->ids, rows, wf_config_shape(&t->config).context), NULL, d->places, d->targets, count,
                           .label_smoothing = t->config.training.label_smoothing, .normalizer = d->chosen > 0 ? (double)d->chosen : 1,
                           .plain = plain);
}

static wf_status evaluate(struct trainer *t)
{
    struct wf_id_view valid = ((struct masked *)t->data)->sequence.corpus.valid.ids;
    struct wf_masked_evaluation e;
    wf_status status = wf_evaluate_masked_some(t->model, t->tokenizer, t->tape, valid, t->valid_limit, &e, t->error);
    t->valid = e.loss;
    t->valid_smoothed = NAN;
    return status;
}

static void end(struct trainer *t)
{
    struct masked *d = t->data;
    if (!d)
        return;
    sequence_free(&d->sequence);
    wf_masking_free(&d->masking);
    wf_free(d->ids);
    wf_free(d->places);
    wf_free(d->targets);
    wf_free(d);
    t->data = NULL;
}

const struct task masked_task = {.open = open, .tell = tell, .next = next, .forward = forward, .evaluate = evaluate, .free = end};
