/* SPDX-License-Identifier: MIT */
/* The tokenizers of a run: where they come from, and their files. */
#include <stdio.h>
#include <string.h>

#include <weft/file.h>
#include <weft/internal/encode.h>
#include <weft/internal/text.h>
#include <weft/memory.h>

#include "trainer.h"

/* A resume goes on with the run's own tokenizers, whatever became of the files that they were made from; but one that is named again
 * must be the same. */
static wf_status same_as(struct trainer *t, const char *path, const wf_tokenizer *own)
{
    if (!path)
        return WF_OK;
    wf_tokenizer *given = NULL;
    if (!wf_tokenizer_load(path, &given, t->error) && wf_tokenizer_hash(given) != wf_tokenizer_hash(own))
        wf_error_set(t->error, WF_ERR_ARGUMENT, "%s was trained with another tokenizer than %s: leave it out, or choose another --out",
                     t->options->out, path);
    wf_tokenizer_free(given);
    return t->error->code;
}

wf_status tokenizers_find(struct trainer *t, bool resuming, bool *missing)
{
    const struct wf_train_options *o = t->options;
    bool pairs = wf_config_kind(&t->config) == WF_MODEL_PAIRS;
    *missing = !resuming && !o->tokenizer;
    if (resuming) {
        if (!state_tokenizers(t) && !same_as(t, o->tokenizer, t->tokenizer) && pairs)
            same_as(t, o->source_tokenizer, t->source_tokenizer);
    } else if (!(o->tokenizer && wf_tokenizer_load(o->tokenizer, &t->tokenizer, t->error))) {
        if (o->source_tokenizer)
            (void)!wf_tokenizer_load(o->source_tokenizer, &t->source_tokenizer, t->error);
        else if (pairs)
            t->source_tokenizer = t->tokenizer;
    }
    return t->error->code;
}

static bool training_progress(void *ctx, const struct wf_tokenizer_progress *p)
{
    char text[96];
    snprintf(text, sizeof text, "tokenizer: %s", p->phase);
    return report_progress(ctx, text, p->done, p->total);
}

wf_status tokenizer_make(struct trainer *t, const char *const *paths, int64_t count, int64_t vocab_size, wf_tokenizer **out)
{
    const struct wf_config *c = &t->config;
    /* A vocabulary of characters has no size to choose. */
    struct wf_tokenizer_options o = {.kind = c->tokenizer.kind,
                                     .vocab_size = c->tokenizer.kind == WF_TOKENIZER_CHAR ? 0 : vocab_size,
                                     .min_frequency = c->tokenizer.min_frequency,
                                     .progress = training_progress,
                                     .ctx = t};
    /* Language models and encoders read running text; there line ends count. */
    static const char *const of_encoders[] = {"<pad>", "<unk>", "<mask>"}, *const of_language[] = {"<|endoftext|>", "<unk>"},
                             *const of_pairs[] = {"<pad>", "<bos>", "<eos>", "<unk>"};
    enum wf_model_kind kind = wf_config_kind(c);
    if (kind == WF_MODEL_ENCODER) {
        o.specials = of_encoders;
        o.special_count = 3;
    } else if (kind == WF_MODEL_LANGUAGE && o.kind != WF_TOKENIZER_CHAR) {
        o.specials = of_language;
        o.special_count = o.kind == WF_TOKENIZER_BYTE_BPE ? 1 : 2;
    } else if (kind == WF_MODEL_PAIRS && (o.kind == WF_TOKENIZER_CHAR || o.kind == WF_TOKENIZER_WORD)) {
        o.specials = of_pairs;
        o.special_count = 4;
    }
    o.pre_tokenizer = WF_RUNNING_TEXT;
    o.other_pre_tokenizer =
        (kind != WF_MODEL_PAIRS && o.kind == WF_TOKENIZER_BPE) || (kind == WF_MODEL_LANGUAGE && o.kind == WF_TOKENIZER_WORD);
    return wf_tokenizer_train_files_with(paths, count, &o, out, t->error);
}

wf_status tokenizer_tell(struct trainer *t, const char *whose, int64_t asked, const wf_tokenizer *tokenizer)
{
    int64_t types = wf_tokenizer_vocab_size(tokenizer);
    char text[256], has[WF_NUMBER_SIZE], wanted[WF_NUMBER_SIZE];
    if (types >= asked || wf_tokenizer_kind_of(tokenizer) == WF_TOKENIZER_CHAR) /* the characters of the text are all that there are */
        return WF_OK;
    snprintf(text, sizeof text, "the %s has %s entries, not %s: the training text yields no more", whose, wf_text_count(types, has),
             wf_text_count(asked, wanted));
    return report(t, WF_EVENT_WARNING, 0, text);
}

wf_status unknown_tell(struct trainer *t, const char *whose, int64_t unknown, int64_t tokens)
{
    char text[256], some[128];
    if (unknown == 0)
        return WF_OK;
    snprintf(text, sizeof text, "%s: %s", whose, wf_unknown_describe(unknown, tokens, some, sizeof some));
    return report(t, WF_EVENT_WARNING, 0, text);
}
