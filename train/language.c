/* SPDX-License-Identifier: MIT */
/* Training of language models: random crops of one long sequence of ids. */
#include <math.h>

#include <weft/batches.h>
#include <weft/corpus.h>
#include <weft/memory.h>

#include "trainer.h"

struct language {
    struct wf_text train_text, valid_text;
    struct wf_corpus corpus;
    struct wf_crops crops;
    int32_t *x, *y; /* [batch / accumulate, rounded up, context] */
};

/* FNV-1a over the ids. */
static uint64_t hash_of(const struct wf_tokens *tokens)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (int64_t i = 0; i < tokens->count; i++)
        h = (h ^ (uint32_t)tokens->id[i]) * 0x100000001b3u;
    return h;
}

static wf_status make_tokenizer(struct trainer *t, struct language *l)
{
    int64_t types = t->config.vocab_size;
    if (!l->valid_text.data)
        return tokenizer_make(t, NULL, 0, l->train_text.data, l->train_text.length, types, &t->tokenizer);
    /* Both texts: a character that only the validation text has must not end the run. */
    char *both = wf_format("%s%s", l->train_text.data, l->valid_text.data);
    wf_status status = both ? tokenizer_make(t, NULL, 0, both, l->train_text.length + l->valid_text.length, types, &t->tokenizer)
                            : wf_error_set(t->error, WF_ERR_MEMORY, "no memory for the texts");
    wf_free(both);
    return status;
}

static wf_status open(struct trainer *t, bool resuming)
{
    const struct wf_train_options *o = t->options;
    struct language *l = t->data = wf_alloc_zero(1, sizeof *l);
    if (!l)
        return wf_error_set(t->error, WF_ERR_MEMORY, "no memory for a training");
    if (o->source_tokenizer)
        return wf_error_set(t->error, WF_ERR_ARGUMENT, "%s is a language model: it has one tokenizer, not two", t->config.model);
    bool missing = false;
    wf_status status = wf_text_read(o->train, o->train_files, &l->train_text, t->error);
    if (status == WF_OK && o->valid_files > 0)
        status = wf_text_read(o->valid, o->valid_files, &l->valid_text, t->error);
    if (status == WF_OK)
        status = tokenizers_find(t, resuming, &missing);
    if (status == WF_OK && missing)
        status = make_tokenizer(t, l);
    if (status == WF_OK)
        status = wf_corpus_build(t->tokenizer, &l->train_text, o->valid_files > 0 ? &l->valid_text : NULL, t->config.context, &l->corpus,
                                 t->error);
    /* The ids are all that is needed from here on. */
    wf_text_free(&l->train_text);
    wf_text_free(&l->valid_text);
    if (status == WF_OK)
        status = wf_crops_init(&l->crops, l->corpus.train.id, l->corpus.train.count, t->config.context, o->seed, t->error);
    if (status != WF_OK)
        return status;
    t->train_hash = hash_of(&l->corpus.train);
    t->valid_hash = hash_of(&l->corpus.valid);
    t->train_tokens = l->corpus.train.count;
    t->valid_tokens = l->corpus.valid.count;
    t->validates = true;
    int64_t types = wf_tokenizer_vocab_size(t->tokenizer);
    /* A vocabulary of characters is as large as it is; one of pieces has at most that many. */
    if (t->config.vocab_size > 0 && t->config.vocab_size != types && wf_tokenizer_kind_of(t->tokenizer) == WF_TOKENIZER_CHAR)
        return wf_error_set(t->error, WF_ERR_ARGUMENT, "vocab_size is %lld, but the tokenizer has %lld types: leave vocab_size out",
                            (long long)t->config.vocab_size, (long long)types);
    t->config.vocab_size = types;
    size_t ids = (size_t)((t->config.batch + t->config.accumulate - 1) / t->config.accumulate * t->config.context);
    l->x = wf_alloc(ids * sizeof *l->x);
    l->y = wf_alloc(ids * sizeof *l->y);
    return l->x && l->y ? WF_OK : wf_error_set(t->error, WF_ERR_MEMORY, "no memory for a batch");
}

/* A crop is a function of the step and its row: there is nothing to take. */
static wf_status next(struct trainer *t)
{
    t->step_tokens = t->config.batch * t->config.context;
    return WF_OK;
}

static wf_tensor *forward(struct trainer *t, int64_t micro, wf_tensor **plain)
{
    struct language *l = t->data;
    int64_t batch = t->config.batch, parts = t->config.accumulate, context = t->config.context;
    int64_t first = batch * micro / parts, rows = batch * (micro + 1) / parts - first;
    wf_crops_fill(&l->crops, t->step, first, rows, l->x, l->y);
    wf_tape_reset(t->tape, WF_TRAIN, .seed = t->options->seed, .step = (uint64_t)t->step, .first_row = (uint64_t)first);
    return wf_model_loss(t->model, wf_ids(t->tape, l->x, rows, context), wf_ids(t->tape, l->y, rows, context),
                         .label_smoothing = t->config.label_smoothing, .normalizer = (double)(batch * context), .plain = plain);
}

static wf_status evaluate(struct trainer *t)
{
    struct language *l = t->data;
    int64_t tokens;
    t->valid_smoothed = NAN;
    return wf_model_evaluate(t->model, t->tape, l->corpus.valid.id, l->corpus.valid.count, &t->valid, &tokens, t->error);
}

static void end(struct trainer *t)
{
    struct language *l = t->data;
    if (!l)
        return;
    wf_corpus_free(&l->corpus);
    wf_text_free(&l->train_text);
    wf_text_free(&l->valid_text);
    wf_free(l->x);
    wf_free(l->y);
    wf_free(l);
    t->data = NULL;
}

const struct task language_task = {.open = open, .next = next, .forward = forward, .evaluate = evaluate, .free = end};
