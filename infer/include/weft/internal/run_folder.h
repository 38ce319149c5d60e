/* SPDX-License-Identifier: MIT */
/* The files of a run's folder, for the rooms that write runs and those that read them. */
#ifndef WEFT_INTERNAL_RUN_FOLDER_H
#define WEFT_INTERNAL_RUN_FOLDER_H

#include <weft/batches.h>
#include <weft/run.h>
#include <weft/safetensors.h>
#include <weft/tokenizer.h>

char *wf_run_path(const char *folder, const char *name, wf_error *error); /* wf_free */
/* What every file of weights says about itself: the format, and the tokenizers that it was trained with. */
void wf_weights_describe(wf_safetensors_writer *w, const wf_tokenizer *tokenizer, const wf_tokenizer *source);
/* The steps of a run's checkpoints, ascending; wf_free. */
wf_status wf_checkpoint_steps(const char *folder, int64_t **steps, int64_t *count, wf_error *error);

wf_status wf_tokenizers_save(const char *folder, const struct wf_config *config, const wf_tokenizer *tokenizer, const wf_tokenizer *source,
                             wf_error *error);
/* The same files, read. For language models *source is NULL; for translation it may be the same pointer. */
wf_status wf_tokenizers_load(const char *folder, const struct wf_config *config, wf_tokenizer **tokenizer, wf_tokenizer **source,
                             wf_error *error);
/* Whether they have the special tokens that a translation model needs; `name` stands for them in the message. */
wf_status wf_tokenizers_check(const struct wf_config *config, const wf_tokenizer *tokenizer, const wf_tokenizer *source, const char *name,
                              wf_error *error);

/* The number of tokens that wf_evaluate_masked masks. */
wf_status wf_masked_count(const struct wf_config *config, const wf_tokenizer *tokenizer, struct wf_id_view ids, int64_t limit,
                          int64_t *chosen, wf_error *error);

#endif
