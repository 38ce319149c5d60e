/* SPDX-License-Identifier: MIT */
#include "sequence.h"

#include <weft/memory.h>

static bool encode_progress(void *ctx, int64_t done, int64_t total)
{
    return report_progress(ctx, "encoding the text", done, total);
}

static wf_status make_tokenizer(struct trainer *t, bool both)
{
    const struct wf_train_options *o = t->options;
    int64_t count = o->train_files + (both ? o->valid_files : 0);
    const char **paths = wf_alloc((size_t)(count + 1) * sizeof *paths);
    if (!paths)
        return wf_error_set(t->error, WF_ERR_MEMORY, "no memory for %lld files", (long long)count);
    for (int64_t i = 0; i < count; i++)
        paths[i] = i < o->train_files ? o->train[i] : o->valid[i - o->train_files];
    tokenizer_make(t, paths, count, wf_config_shape(&t->config).vocab_size, &t->tokenizer);
    wf_free(paths);
    return t->error->code;
}

wf_status sequence_tokenizer(struct trainer *t, struct sequence *s, bool resuming, bool both)
{
    if (tokenizers_find(t, resuming, &s->made) || (s->made && make_tokenizer(t, both)))
        return t->error->code;
    return WF_OK;
}

wf_status sequence_encode(struct trainer *t, struct sequence *s)
{
    const struct wf_train_options *o = t->options;
    int64_t context = wf_config_shape(&t->config).context;
    const struct wf_corpus_options options = {.tokenizer = t->tokenizer, .cache = o->cache, .progress = encode_progress, .ctx = t};
    if (wf_corpus_open(o->train, o->train_files, o->valid, o->valid_files, context, &options, &s->corpus, t->error) ||
        wf_crops_init(&s->crops, s->corpus.train.ids, context, o->seed, t->error))
        return t->error->code;
    t->train_hash = s->corpus.train.hash;
    t->valid_hash = s->corpus.valid.hash;
    t->train_tokens = s->corpus.train.ids.count;
    t->valid_tokens = s->corpus.valid.ids.count;
    t->validates = true;
    return WF_OK;
}

wf_status sequence_tell(struct trainer *t, const struct sequence *s)
{
    const struct wf_text_ids *train = &s->corpus.train, *valid = &s->corpus.valid;
    if ((s->made && tokenizer_tell(t, "tokenizer", wf_config_shape(&t->options->config).vocab_size, t->tokenizer)) ||
        unknown_tell(t, "training text", train->unknown, train->ids.count))
        return t->error->code;
    return unknown_tell(t, "validation text", valid->unknown, valid->ids.count);
}

void sequence_free(struct sequence *s)
{
    wf_corpus_close(&s->corpus);
}

int64_t sequence_rows(const struct trainer *t, int64_t micro, int64_t *first)
{
    int64_t batch = t->config.training.batch, parts = t->config.training.accumulate;
    *first = batch * micro / parts;
    return batch * (micro + 1) / parts - *first;
}

size_t sequence_room(const struct trainer *t)
{
    return (size_t)((t->config.training.batch + t->config.training.accumulate - 1) / t->config.training.accumulate *
                    wf_config_shape(&t->config).context);
}
