/* SPDX-License-Identifier: MIT */
#include "sequence.h"

#include <weft/memory.h>

/* FNV-1a over the ids. */
static uint64_t hash_of(const struct wf_tokens *tokens)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (int64_t i = 0; i < tokens->count; i++)
        h = (h ^ (uint32_t)tokens->id[i]) * 0x100000001b3u;
    return h;
}

static wf_status make_tokenizer(struct trainer *t, const struct sequence *s, bool both)
{
    int64_t types = t->config.vocab_size;
    if (!s->valid_text.data || !both)
        return tokenizer_make(t, NULL, 0, s->train_text.data, s->train_text.length, types, &t->tokenizer);
    char *texts = wf_format("%s%s", s->train_text.data, s->valid_text.data);
    wf_status status = texts ? tokenizer_make(t, NULL, 0, texts, s->train_text.length + s->valid_text.length, types, &t->tokenizer)
                             : wf_error_set(t->error, WF_ERR_MEMORY, "no memory for the texts");
    wf_free(texts);
    return status;
}

wf_status sequence_read(struct trainer *t, struct sequence *s, bool resuming, bool both)
{
    const struct wf_train_options *o = t->options;
    wf_status status = wf_text_read(o->train, o->train_files, &s->train_text, t->error);
    if (status == WF_OK && o->valid_files > 0)
        status = wf_text_read(o->valid, o->valid_files, &s->valid_text, t->error);
    if (status == WF_OK)
        status = tokenizers_find(t, resuming, &s->made);
    return status == WF_OK && s->made ? make_tokenizer(t, s, both) : status;
}

wf_status sequence_encode(struct trainer *t, struct sequence *s)
{
    wf_status status = wf_corpus_build(t->tokenizer, &s->train_text, t->options->valid_files > 0 ? &s->valid_text : NULL, t->config.context,
                                       &s->corpus, t->error);
    wf_text_free(&s->train_text);
    wf_text_free(&s->valid_text);
    if (status == WF_OK)
        status = wf_crops_init(&s->crops, wf_id_view_of(s->corpus.train.id, s->corpus.train.count), t->config.context, t->options->seed,
                               t->error);
    if (status != WF_OK)
        return status;
    t->train_hash = hash_of(&s->corpus.train);
    t->valid_hash = hash_of(&s->corpus.valid);
    t->train_tokens = s->corpus.train.count;
    t->valid_tokens = s->corpus.valid.count;
    t->validates = true;
    return WF_OK;
}

void sequence_free(struct sequence *s)
{
    wf_corpus_free(&s->corpus);
    wf_text_free(&s->train_text);
    wf_text_free(&s->valid_text);
}

int64_t sequence_rows(const struct trainer *t, int64_t micro, int64_t *first)
{
    int64_t batch = t->config.training.batch, parts = t->config.training.accumulate;
    *first = batch * micro / parts;
    return batch * (micro + 1) / parts - *first;
}

size_t sequence_room(const struct trainer *t)
{
    return (size_t)((t->config.training.batch + t->config.training.accumulate - 1) / t->config.training.accumulate * t->config.context);
}
