/* SPDX-License-Identifier: MIT */
/* Gets the tokenizers of a training: from the state, from given files, or by training them on the texts. */
#include <stdio.h>
#include <string.h>

#include <weft/corpus.h>
#include <weft/file.h>
#include <weft/internal/encode.h>
#include <weft/internal/family.h>
#include <weft/internal/text.h>
#include <weft/memory.h>

#include "trainer.h"

/* Checks a tokenizer file that is given to a resume: it must equal the run's own tokenizer, which the resume uses. path NULL: no file is
 * given. */
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

static bool training_progress(void *ctx, const struct wf_tokenizer_progress *p)
{
    char text[96];
    snprintf(text, sizeof text, "tokenizer: %s", p->phase);
    return report_progress(ctx, text, p->done, p->total);
}

static wf_status make(struct trainer *t, const char *const *paths, int64_t count, int64_t vocab_size, wf_tokenizer **out)
{
    const struct wf_config *c = &t->config;
    /* A character tokenizer takes all characters of the text: it has no size to choose. */
    struct wf_tokenizer_options o = {.kind = c->tokenizer.kind,
                                     .vocab_size = c->tokenizer.kind == WF_TOKENIZER_CHAR ? 0 : vocab_size,
                                     .min_frequency = c->tokenizer.min_frequency,
                                     .progress = training_progress,
                                     .ctx = t,
                                     .long_words = &t->long_words};
    /* Special tokens and pre-tokenizer of each kind of model. WF_RUNNING_TEXT keeps line ends as tokens. It replaces the default
     * pre-tokenizer where other_pre_tokenizer is true: for BPE tokenizers of models that read running text instead of single lines, and for
     * word tokenizers of language models. */
    static const char *const of_encoders[] = {"<pad>", "<unk>", "<mask>", "<s>", "</s>"}, *const of_language[] = {"<|endoftext|>", "<unk>"},
                             *const of_pairs[] = {"<pad>", "<bos>", "<eos>", "<unk>"};
    enum wf_model_kind kind = wf_config_kind(c);
    if (kind == WF_MODEL_ENCODER) {
        o.specials = of_encoders;
        o.special_count = c->training.frame ? 5 : 3;
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
    return wf_tokenizer_train_cached(paths, count, &o, t->options->cache, t->scans, out, t->error);
}

static wf_status make_all(struct trainer *t)
{
    const struct wf_train_options *o = t->options;
    struct wf_model_shape shape = wf_config_shape(&t->config);
    enum wf_model_kind kind = wf_config_kind(&t->config);
    if (kind == WF_MODEL_PAIRS && !shape.shared_tokenizer) {
        if (make(t, o->train, 1, shape.source_vocab_size, &t->source_tokenizer))
            return t->error->code;
        return make(t, o->train + 1, 1, shape.vocab_size, &t->tokenizer);
    }
    /* A language model's tokenizer is trained on the validation text too, because a character that only this text has could otherwise be an
     * error. For the other kinds of models such a character is an unknown token. */
    int64_t count = o->train_files + (kind == WF_MODEL_LANGUAGE ? o->valid_files : 0);
    const char **paths = wf_alloc((size_t)count * sizeof *paths);
    if (!paths)
        return wf_error_set(t->error, WF_ERR_MEMORY, "no memory for %lld files", (long long)count);
    for (int64_t i = 0; i < count; i++)
        paths[i] = i < o->train_files ? o->train[i] : o->valid[i - o->train_files];
    wf_status status = make(t, paths, count, shape.vocab_size, &t->tokenizer);
    wf_free(paths);
    return status;
}

static wf_status load(struct trainer *t)
{
    const struct wf_train_options *o = t->options;
    if (!o->tokenizer)
        return origin_tokenizers(t);
    if (wf_tokenizer_load(o->tokenizer, &t->tokenizer, t->error))
        return t->error->code;
    return o->source_tokenizer ? wf_tokenizer_load(o->source_tokenizer, &t->source_tokenizer, t->error) : WF_OK;
}

wf_status tokenizers_open(struct trainer *t, bool resuming)
{
    const struct wf_train_options *o = t->options;
    bool pairs = wf_config_kind(&t->config) == WF_MODEL_PAIRS;
    const char *given = o->tokenizer ? o->tokenizer : t->from.folder;
    t->made = !resuming && !given;
    if (resuming ? state_tokenizers(t) : t->made ? make_all(t) : load(t))
        return t->error->code;
    if (pairs && !t->source_tokenizer)
        t->source_tokenizer = t->tokenizer;
    if ((resuming && (same_as(t, o->tokenizer, t->tokenizer) || same_as(t, o->source_tokenizer, t->source_tokenizer))) ||
        (pairs && given && wf_tokenizers_check(&t->config, t->tokenizer, t->source_tokenizer, given, t->error)))
        return t->error->code;
    if (!resuming && o->tokenizer && t->from.folder && t->config.family->model_type &&
        !wf_config_takes(&t->config, wf_tokenizer_vocab_size(t->tokenizer)))
        return wf_error_set(
            t->error, WF_ERR_ARGUMENT,
            "vocabulary size mismatch: %s has %lld tokens, the model in %s %lld: give the tokenizer that it was trained with", o->tokenizer,
            (long long)wf_tokenizer_vocab_size(t->tokenizer), t->from.folder, (long long)wf_config_shape(&t->config).vocab_size);
    if (!resuming && o->new_tokens && grow_tokenizer(t))
        return t->error->code;
    struct wf_config was;
    if (resuming && o->from && !o->tokenizer) { /* the tokenizers came with the weights, so the given settings of tokenizers don't count */
        if (wf_train_config(o->out, &was, NULL, t->error))
            return t->error->code;
        t->config.tokenizer = was.tokenizer;
    }
    if (given) { /* config.json must describe the given tokenizer; the settings for training one had no effect */
        t->config.tokenizer.kind = wf_tokenizer_kind_of(t->tokenizer);
        t->config.tokenizer.min_frequency = 0;
    }
    bool two = pairs && !wf_config_shape(&t->config).shared_tokenizer, trained = resuming || t->from.weights;
    /* The vocabulary size of trained weights may be padded: it stays if the tokenizer fits. */
    if (!trained || !wf_config_fits(&t->config, wf_tokenizer_vocab_size(t->tokenizer)))
        wf_config_set_vocab(&t->config, wf_tokenizer_vocab_size(t->tokenizer), two ? wf_tokenizer_vocab_size(t->source_tokenizer) : 0);
    return WF_OK;
}

static wf_status tell(struct trainer *t, const char *whose, int64_t asked, const wf_tokenizer *tokenizer)
{
    int64_t entries = wf_tokenizer_vocab_size(tokenizer);
    char text[256], has[WF_NUMBER_SIZE], wanted[WF_NUMBER_SIZE];
    /* A character tokenizer always has all characters of the text; nobody asked for a size. */
    if (entries >= asked || wf_tokenizer_kind_of(tokenizer) == WF_TOKENIZER_CHAR)
        return WF_OK;
    snprintf(text, sizeof text, "the %s has %s entries, not %s: the training text yields no more", whose, wf_text_count(entries, has),
             wf_text_count(asked, wanted));
    return report(&t->fit, WF_EVENT_WARNING, text);
}

wf_status tokenizers_tell(struct trainer *t)
{
    struct wf_model_shape asked = wf_config_shape(&t->options->config);
    bool two = t->source_tokenizer && t->source_tokenizer != t->tokenizer;
    char text[256], count[WF_NUMBER_SIZE];
    snprintf(text, sizeof text, "the tokenizer was trained on text with %s place%s without a space for 2 MiB or more, which were %s",
             wf_text_count(t->long_words, count), t->long_words == 1 ? "" : "s",
             t->config.tokenizer.kind == WF_TOKENIZER_WORD ? "left out" : "cut into pieces of that size");
    if (t->long_words > 0 && report(&t->fit, WF_EVENT_WARNING, text))
        return t->error->code;
    if (!t->made || tell(t, two ? "target's tokenizer" : "tokenizer", asked.vocab_size, t->tokenizer))
        return t->error->code;
    return two ? tell(t, "source's tokenizer", asked.source_vocab_size, t->source_tokenizer) : WF_OK;
}

wf_status unknown_tell(struct trainer *t, const char *whose, int64_t unknown, int64_t tokens)
{
    char text[256], some[128];
    if (unknown == 0)
        return WF_OK;
    snprintf(text, sizeof text, "%s: %s", whose, wf_unknown_describe(unknown, tokens, some, sizeof some));
    return report(&t->fit, WF_EVENT_WARNING, text);
}
