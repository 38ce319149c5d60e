/* SPDX-License-Identifier: MIT */
/* Evaluations and translations that several processes share. All of them call these with the same model, text and options. Each computes
 * a part, all get the result of a single process to the bit, and an error of one is returned by all. dist NULL, or of one process: like
 * the public functions, which never share, so that a program may call those on one process only. */
#ifndef WEFT_INTERNAL_SEVERAL_H
#define WEFT_INTERNAL_SEVERAL_H

#include <weft/internal/dist.h>
#include <weft/run.h>

/* Progress of an evaluation: tell(ctx, done, total) after each batch. NULL: not wanted. */
struct wf_progress {
    void (*tell)(void *ctx, int64_t done, int64_t total);
    void *ctx;
};
wf_status wf_model_evaluate_on(wf_dist *dist, const wf_model *model, wf_tape *tape, struct wf_id_view ids, int64_t limit,
                               const struct wf_progress *progress, struct wf_evaluation *out, wf_error *error) WF_CHECKED;
wf_status wf_evaluate_pairs_on(wf_dist *dist, const wf_model *model, wf_tape *tape, wf_bitext *bitext, double label_smoothing,
                               int64_t limit, const struct wf_progress *progress, struct wf_evaluation *out, wf_error *error) WF_CHECKED;
wf_status wf_evaluate_masked_on(wf_dist *dist, const wf_model *model, const wf_tokenizer *tokenizer, wf_tape *tape, struct wf_id_view ids,
                                int64_t limit, const struct wf_progress *progress, struct wf_evaluation *out, wf_error *error) WF_CHECKED;
/* The numbers of lines that `progress` gets on a process are a guess from its part. */
wf_status wf_evaluate_translation_on(wf_dist *dist, const struct wf_run *run, const char *source, const char *target,
                                     const struct wf_translator_options *options, bool (*progress)(void *ctx, int64_t done, int64_t total),
                                     void *ctx, struct wf_translation_scores *out, wf_error *error) WF_CHECKED;
wf_status wf_translate_on(wf_dist *dist, const wf_model *model, wf_tape *tape, const int32_t *ids, const int32_t *offsets, int64_t count,
                          int32_t bos, int32_t eos, const struct wf_translate_options *options, struct wf_translations *out,
                          wf_error *error) WF_CHECKED;
/* From now on wf_translator_lines shares: all processes give it the same lines. */
void wf_translator_share(wf_translator *translator, wf_dist *dist);

/* Words for wf_dist_compare, a blank behind each: of program and machine; of a model with its tokenizers. */
void wf_program_words(const wf_dist *dist, struct wf_string *words);
void wf_run_words(const struct wf_run *run, struct wf_string *words);
void wf_config_words(const struct wf_config *config, struct wf_string *words); /* of all settings */
uint64_t wf_registry_hash(const wf_registry *registry, uint64_t seed);

#endif
