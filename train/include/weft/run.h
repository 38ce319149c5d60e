/* SPDX-License-Identifier: MIT */
/* Run folders: what a training leaves behind and what generation, evaluation and resuming read. The layout is Hugging Face's
 * of a model (config.json, model.safetensors, tokenizer.json), and beside it best.safetensors,
 * checkpoints/step-00000100.safetensors, state.safetensors, metrics.jsonl. */
#ifndef WEFT_RUN_H
#define WEFT_RUN_H

#include <weft/models.h>
#include <weft/tokenizer.h>

WF_BEGIN_DECLS

/* A model that was trained, to use. */
struct wf_run {
    struct wf_config config;
    wf_tokenizer *tokenizer;        /* of translations: the target's */
    wf_tokenizer *source_tokenizer; /* of translations: the source's, the same pointer where both share one; else NULL */
    wf_model *model;
};
/* Reads a run's configuration, tokenizer and weights. weights: NULL for model.safetensors, "best" for best.safetensors, else a
 * file. What is missing or does not fit together is named. Freed with wf_run_close. */
WF_API wf_status wf_run_open(struct wf_run *run, const char *folder, const char *weights, wf_error *error) WF_CHECKED;
WF_API void wf_run_close(struct wf_run *run);

WF_END_DECLS

#endif
