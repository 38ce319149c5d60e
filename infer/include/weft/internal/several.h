/* SPDX-License-Identifier: MIT */
/* Evaluations and translations that several processes share. All processes call a function with the same model, text and options. Each one
 * computes a share of the work, and all get the same result, with the bits that a single process would give. An error of one process is
 * returned by all. If dist is NULL or has one process, the functions do the same as the public functions without _on. The public functions
 * never share their work, so a program may call them on one process only. */
#ifndef WEFT_INTERNAL_SEVERAL_H
#define WEFT_INTERNAL_SEVERAL_H

#include <weft/choices.h>
#include <weft/internal/dist.h>
#include <weft/run.h>

/* Receives the progress of an evaluation: tell(ctx, done, total) is called after each batch. The next functions
 * take a pointer to this struct; NULL: no progress is wanted. */
struct wf_progress {
    void (*tell)(void *ctx, int64_t done, int64_t total);
    void *ctx;
};
wf_status wf_model_evaluate_on(wf_dist *dist, const wf_model *model, wf_tape *tape, struct wf_id_view ids, int64_t limit,
                               const struct wf_progress *progress, struct wf_evaluation *out, wf_error *error) WF_CHECKED;
wf_status wf_evaluate_windows_on(wf_dist *dist, const wf_model *model, wf_tape *tape, struct wf_id_view ids,
                                 const struct wf_window_options *options, const struct wf_progress *progress, struct wf_evaluation *out,
                                 wf_error *error) WF_CHECKED;
wf_status wf_evaluate_pairs_on(wf_dist *dist, const wf_model *model, wf_tape *tape, wf_bitext *bitext, double label_smoothing,
                               int64_t limit, const struct wf_progress *progress, struct wf_evaluation *out, wf_error *error) WF_CHECKED;
wf_status wf_evaluate_masked_on(wf_dist *dist, const wf_model *model, const wf_tokenizer *tokenizer, wf_tape *tape, struct wf_id_view ids,
                                int64_t limit, const struct wf_progress *progress, struct wf_evaluation *out, wf_error *error) WF_CHECKED;
wf_status wf_evaluate_choices_on(wf_dist *dist, const wf_model *model, const wf_tokenizer *tokenizer, wf_tape *tape,
                                 const struct wf_question *questions, int64_t count, const struct wf_choice_options *options,
                                 const struct wf_progress *progress, struct wf_choice_scores *out, wf_error *error) WF_CHECKED;
/* With several processes, `progress` gets an estimate of the translated lines, made from the process's own share. */
wf_status wf_evaluate_translation_on(wf_dist *dist, const struct wf_run *run, const char *source, const char *target,
                                     const struct wf_translator_options *options, bool (*progress)(void *ctx, int64_t done, int64_t total),
                                     void *ctx, struct wf_translation_scores *out, wf_error *error) WF_CHECKED;
wf_status wf_translate_on(wf_dist *dist, const wf_model *model, wf_tape *tape, const int32_t *ids, const int32_t *offsets, int64_t count,
                          int32_t bos, int32_t eos, const struct wf_translate_options *options, struct wf_translations *out,
                          wf_error *error) WF_CHECKED;
/* Makes wf_translator_lines share its work from now on: all processes must then call it with the same lines. */
void wf_translator_share(wf_translator *translator, wf_dist *dist);

/* The following functions append words for wf_dist_compare, with a blank after each word. */
/* Words about the program and the machine: everything there that can change the bits of a result. */
void wf_program_words(const wf_dist *dist, struct wf_string *words);
/* Words about a model: its settings, weights and tokenizers. */
void wf_run_words(const struct wf_run *run, struct wf_string *words);
/* Words with all settings. */
void wf_config_words(const struct wf_config *config, struct wf_string *words);
/* A hash of all parameters; `seed` is 0, or an earlier hash that this one continues. */
uint64_t wf_registry_hash(const wf_registry *registry, uint64_t seed);

#endif
