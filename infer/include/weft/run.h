/* SPDX-License-Identifier: MIT */
/* Run folders: what a training leaves behind and what generation, translation, evaluation and resuming read. The layout is
 * Hugging Face's of a model (config.json, model.safetensors, tokenizer.json), and beside it best.safetensors,
 * checkpoints/step-00000100.safetensors, state.safetensors, metrics.jsonl, events.out.tfevents.*.weft (TensorBoard). A translation
 * model that does not share its embeddings has tokenizer.source.json and tokenizer.target.json instead of tokenizer.json. */
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

/* A model that was trained, to use. */
struct wf_run {
    struct wf_config config;
    wf_tokenizer *tokenizer;        /* of translations: the target's */
    wf_tokenizer *source_tokenizer; /* of translations: the source's, the same pointer where both share one; else NULL */
    wf_model *model;
    /* How its sentence vectors are made, for wf_embedder_new: what a folder of sentence-transformers says (modules.json and what it names,
     * sentence_bert_config.json), else the mean of the tokens as it is. */
    struct wf_embedder_options embed;
};
/* Reads a run's configuration, tokenizer and weights; also a folder of Hugging Face's with a BERT in it (tokenizer.json, or vocab.txt
 * with tokenizer_config.json). weights: NULL for model.safetensors, "best" for best.safetensors, else a
 * file. What is missing or does not fit together is named: a tokenizer of another size, one of a translation model that has no marks
 * of beginning and end, one that is not the one the weights were trained with (they hold its wf_tokenizer_hash as
 * "tokenizer_content"; weights that do not, older or from elsewhere, are taken as they are). Freed with wf_run_close. */
WF_API wf_status wf_run_open(struct wf_run *run, const char *folder, const char *weights, wf_error *error) WF_CHECKED;
WF_API void wf_run_close(struct wf_run *run);

/* The parallel text of two files as the run's translation model takes it: its tokenizers, marks and max_length. cache: a folder for
 * surveys, or NULL. The run must outlive it. WF_ERR_ARGUMENT on a language model. */
WF_API wf_status wf_run_bitext(const struct wf_run *run, const char *source, const char *target, const char *cache, wf_bitext **out,
                               wf_error *error) WF_CHECKED;

/* Mean loss in nats over every target of a sequence of ids, in windows of the context side by side (wf_windows). The tape is
 * reset. *tokens: targets. */
WF_API wf_status wf_model_evaluate(const wf_model *model, wf_tape *tape, struct wf_id_view ids, double *loss, int64_t *tokens,
                                   wf_error *error) WF_CHECKED;

struct wf_pairs_evaluation {
    double loss;     /* nats per target token (with EOS), without smoothing */
    double smoothed; /* with label_smoothing; the same as loss when that is 0 */
    int64_t tokens, pairs;
};
/* The loss of a translation model over all used pairs of a text. The tape is reset. */
WF_API wf_status wf_evaluate_pairs(const wf_model *model, wf_tape *tape, wf_bitext *bitext, double label_smoothing,
                                   struct wf_pairs_evaluation *out, wf_error *error) WF_CHECKED;

struct wf_masked_evaluation {
    double loss;    /* nats per masked token */
    int64_t tokens; /* that were masked, and so predicted */
};
/* How well an encoder that was trained here finds hidden tokens of a text again: windows of the context side by side, in which mask_rate of
 * the ordinary tokens are chosen and replaced as in training (weft/masking.h), by random numbers that are the same in every call and for
 * every seed. The tape is reset. WF_ERR_ARGUMENT for another model, for a tokenizer of another size, and where no token was chosen;
 * WF_ERR_FORMAT for a tokenizer without a mask token. */
WF_API wf_status wf_evaluate_masked(const wf_model *model, const wf_tokenizer *tokenizer, wf_tape *tape, struct wf_id_view ids,
                                    struct wf_masked_evaluation *out, wf_error *error) WF_CHECKED;

struct wf_translation_scores {
    struct wf_bleu_score bleu; /* tokenizer 13a, cased */
    struct wf_chrf_score chrf;
    struct wf_translator_counts counts;
};
/* Translates every line of `source` and scores the translations against the lines of `target` as they stand in the file. options: NULL for
 * the model's beam and length penalty; too long a line is cut where .truncate says so, else an error. progress (may be NULL): lines;
 * false ends with WF_ERR_CANCELLED. The files must have the same number of lines: WF_ERR_FORMAT with both. */
WF_API wf_status wf_evaluate_translation(const struct wf_run *run, const char *source, const char *target,
                                         const struct wf_translator_options *options,
                                         bool (*progress)(void *ctx, int64_t done, int64_t total), void *ctx,
                                         struct wf_translation_scores *out, wf_error *error) WF_CHECKED;

WF_END_DECLS

#endif
