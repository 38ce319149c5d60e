/* SPDX-License-Identifier: MIT */
/* The files of a run's folder, for the rooms that write runs and those that read them. */
#ifndef WEFT_INTERNAL_RUN_FOLDER_H
#define WEFT_INTERNAL_RUN_FOLDER_H

#include <weft/batches.h>
#include <weft/masking.h>
#include <weft/run.h>
#include <weft/safetensors.h>
#include <weft/tokenizer.h>

char *wf_run_path(const char *folder, const char *name, wf_error *error); /* wf_free */
bool wf_run_has(const char *folder, const char *name);                    /* whether the file is there */
/* Refuses a folder of another program's wf_fit, which only that program reads: it has weights and no config.json. */
wf_status wf_run_check(const char *folder, wf_error *error) WF_CHECKED;
/* Metadata of every file of weights: the format, and the tokenizers that it was trained with. */
void wf_weights_describe(wf_safetensors_writer *w, const wf_tokenizer *tokenizer, const wf_tokenizer *source);
const char *wf_tokenizer_content(const wf_tokenizer *tokenizer, char text[32]); /* as it says it; returns text */
enum { WF_CHECKPOINT_NAME = 64 };
char *wf_checkpoint_name(int64_t step, char name[WF_CHECKPOINT_NAME]); /* checkpoints/step-00000100.safetensors; returns name */
/* The steps of a run's checkpoints, ascending; wf_free. */
wf_status wf_checkpoint_steps(const char *folder, int64_t **steps, int64_t *count, wf_error *error);

wf_status wf_tokenizers_save(const char *folder, const struct wf_config *config, const wf_tokenizer *tokenizer, const wf_tokenizer *source,
                             wf_error *error);
/* Whether they have the special tokens that a translation model needs; `name` stands for them in the message. */
wf_status wf_tokenizers_check(const struct wf_config *config, const wf_tokenizer *tokenizer, const wf_tokenizer *source, const char *name,
                              wf_error *error);

/* The length of an encoder's rows in training and evaluation, and of the text's part of them, which is 2 less with frame=true. */
int64_t wf_row_length(const struct wf_config *config, int64_t *text);
/* Whether the tokenizer has what frame=true puts around rows. */
wf_status wf_frame_check(const struct wf_config *config, const struct wf_masking *masking, wf_error *error);
/* The number of tokens that wf_evaluate_masked masks. */
wf_status wf_masked_count(const struct wf_config *config, const wf_tokenizer *tokenizer, struct wf_id_view ids, int64_t limit,
                          int64_t *chosen, wf_error *error);

/* --- folders of Hugging Face's libraries: hugging_face.c ----------------------------------------------------------- */
/* tokenizer.json, or else vocab.txt with what tokenizer_config.json says. Its vocabulary is as large as the model's, or a bit smaller where
 * the model's embedding was padded. */
wf_status hf_tokenizer_load(const char *folder, const struct wf_config *config, wf_tokenizer **out, wf_error *error) WF_CHECKED;
/* If there is no model.safetensors: the known file that is there instead, for a message; NULL: none. */
const char *hf_other_weights(const char *folder);
/* How sentence vectors are made, by the files of sentence-transformers; without modules.json the mean of the tokens as it is,
 * with a max_length of 0, which is above 0 where there is one. */
wf_status hf_embed_options(const char *folder, const struct wf_config *config, struct wf_embedder_options *out, wf_error *error) WF_CHECKED;
/* Writes these files, which hf_embed_options reads as the same options. */
wf_status hf_embed_save(const char *folder, const struct wf_embedder_options *options, wf_error *error) WF_CHECKED;

#endif
