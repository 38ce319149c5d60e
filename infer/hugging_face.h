/* SPDX-License-Identifier: MIT */
/* The files of a folder that Hugging Face's libraries wrote. */
#ifndef WEFT_TRAIN_HUGGING_FACE_H
#define WEFT_TRAIN_HUGGING_FACE_H

#include <weft/embed.h>
#include <weft/tokenizer.h>

/* tokenizer.json, or else vocab.txt with what tokenizer_config.json says. It must have as many types as the model, or a few less where the
 * model's embedding was padded. */
wf_status hf_tokenizer_load(const char *folder, const struct wf_config *config, wf_tokenizer **out, wf_error *error) WF_CHECKED;

/* Where there is no model.safetensors: what there is instead, for a message; NULL for nothing that is known. */
const char *hf_other_weights(const char *folder);

/* How sentence vectors are made, by the files of sentence-transformers; without modules.json the mean of the tokens as it is. */
wf_status hf_embed_options(const char *folder, const struct wf_config *config, struct wf_embedder_options *out, wf_error *error) WF_CHECKED;

#endif
