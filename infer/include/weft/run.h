/* SPDX-License-Identifier: MIT */
/* Run folders: written by training, read by generation, translation, evaluation and resume. A run folder has the files of a Hugging Face
 * model (config.json, model.safetensors, tokenizer.json), and also best.safetensors, checkpoints/step-00000100.safetensors,
 * state.safetensors, metrics.jsonl and events.out.tfevents.*.weft (TensorBoard). A translation model with two tokenizers has
 * tokenizer.source.json and tokenizer.target.json instead of tokenizer.json. */
#ifndef WEFT_RUN_H
#define WEFT_RUN_H

#include <weft/batches.h>
#include <weft/bitext.h>
#include <weft/embed.h>
#include <weft/models.h>
#include <weft/score.h>
#include <weft/tokenizer.h>
#include <weft/translate.h>

WF_BEGIN_DECLS

/* A trained model. */
struct wf_run {
    struct wf_config config;
    wf_tokenizer *tokenizer;        /* translation models: of the target */
    wf_tokenizer *source_tokenizer; /* translation models: of the source, the same pointer if shared; other models: NULL */
    wf_model *model;
    /* Options for wf_embedder_new: those of a sentence-transformers model, or of a run that started from one (modules.json with the files
     * that it names, sentence_bert_config.json), else mean pooling without normalisation. */
    struct wf_embedder_options embed;
};
/* Opens a run: configuration, tokenizer and weights. A Hugging Face folder with a BERT model (tokenizer.json, or vocab.txt with
 * tokenizer_config.json) can be opened too. weights: NULL for model.safetensors, "best" for best.safetensors, "ema" for ema.safetensors,
 * else the path of a file. It is an error if a file is missing, if the vocabulary sizes of tokenizer and model differ, if the tokenizer of
 * a translation model lacks BOS or EOS, or if the weights were trained with another tokenizer: they store its wf_tokenizer_hash as
 * "tokenizer_content", and weights without one are accepted. Close with wf_run_close. */
WF_API wf_status wf_run_open(struct wf_run *run, const char *folder, const char *weights, wf_error *error) WF_CHECKED;
WF_API void wf_run_close(struct wf_run *run); /* leaves it empty; a zeroed struct is allowed */

/* Opens parallel text with the tokenizers, special tokens and max_length of the run's translation model. cache: a folder for surveys, or
 * NULL. The run must outlive the bitext. WF_ERR_ARGUMENT for another kind of model. */
WF_API wf_status wf_run_bitext(const struct wf_run *run, const char *source, const char *target, const char *cache, wf_bitext **out,
                               wf_error *error) WF_CHECKED;

struct wf_evaluation {
    double loss;     /* nats per predicted token, without label smoothing; NaN after a failure */
    double smoothed; /* pairs: with label smoothing; equals loss if label_smoothing is 0. Else NaN */
    int64_t tokens;  /* predicted tokens: of pairs those of the target, EOS included; of encoders the masked ones */
    int64_t pairs;   /* sentence pairs; 0 for other models */
};
/* The loss of a trained model over a text, or over about `limit` tokens of it, which are spread evenly and are the same in every call;
 * 0: all. Counted are targets; for an encoder all tokens, of which a fraction of mask_rate is predicted. The tape is reset.
 * A language model: all targets of a sequence of ids, in adjacent windows of one context each (wf_windows). */
WF_API wf_status wf_model_evaluate(const wf_model *model, wf_tape *tape, struct wf_id_view ids, int64_t limit, struct wf_evaluation *out,
                                   wf_error *error) WF_CHECKED;
/* A translation model: all used pairs of a bitext. */
WF_API wf_status wf_evaluate_pairs(const wf_model *model, wf_tape *tape, wf_bitext *bitext, double label_smoothing, int64_t limit,
                                   struct wf_evaluation *out, wf_error *error) WF_CHECKED;
/* An encoder trained by Weft: its masked-language-modelling loss, in adjacent windows of one context each, or of `crop` tokens where the
 * configuration sets it. Tokens are masked with
 * probability mask_rate as in training (<weft/masking.h>); the masks are the same in every call. WF_ERR_ARGUMENT:
 * another kind of model, a tokenizer with another vocabulary size, no token was masked. WF_ERR_FORMAT: a tokenizer without a mask token. */
WF_API wf_status wf_evaluate_masked(const wf_model *model, const wf_tokenizer *tokenizer, wf_tape *tape, struct wf_id_view ids,
                                    int64_t limit, struct wf_evaluation *out, wf_error *error) WF_CHECKED;

struct wf_translation_scores {
    struct wf_bleu_score bleu; /* tokenizer 13a, cased */
    struct wf_chrf_score chrf;
    struct wf_translator_counts counts;
};
/* Translates every line of `source` and scores the translations against the unprocessed lines of `target`. options: NULL for the model's
 * beam width and length penalty; a line that is too long is truncated if .truncate is set, otherwise an error. progress (may be NULL) is
 * called with numbers of lines; it returns false to stop with WF_ERR_CANCELLED. Files with different numbers of lines are WF_ERR_FORMAT. */
WF_API wf_status wf_evaluate_translation(const struct wf_run *run, const char *source, const char *target,
                                         const struct wf_translator_options *options,
                                         bool (*progress)(void *ctx, int64_t done, int64_t total), void *ctx,
                                         struct wf_translation_scores *out, wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
