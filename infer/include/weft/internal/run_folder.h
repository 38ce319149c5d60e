/* SPDX-License-Identifier: MIT */
/* The files of a run's folder, for the code that writes runs and the code that reads them. */
#ifndef WEFT_INTERNAL_RUN_FOLDER_H
#define WEFT_INTERNAL_RUN_FOLDER_H

#include <weft/batches.h>
#include <weft/masking.h>
#include <weft/run.h>
#include <weft/safetensors.h>
#include <weft/tokenizer.h>

/* Returns "FOLDER/NAME", to be freed with wf_free; NULL with *error set. */
char *wf_run_path(const char *folder, const char *name, wf_error *error);
/* wf_run_open without the values of the weights: run->model is declared only. *file becomes the open file of weights, mapped or not, which
 * belongs to the run's tokenizers and which the caller closes. On failure *run is empty and *file NULL. */
wf_status wf_run_open_files(struct wf_run *run, const char *folder, const char *weights, bool map, wf_safetensors **file,
                            wf_error *error) WF_CHECKED;
/* Whether the folder has a file of this name. */
bool wf_run_has(const char *folder, const char *name);
/* Refuses a folder that another program wrote with wf_fit. It has weights but no config.json, and only that program can read it. */
wf_status wf_run_check(const char *folder, wf_error *error) WF_CHECKED;
/* Adds the metadata that every file of weights has: the format, and the hashes of the tokenizers. `source` may be NULL. */
void wf_weights_describe(wf_safetensors_writer *w, const wf_tokenizer *tokenizer, const wf_tokenizer *source);
/* Writes the tokenizer's hash to `text`, as files of weights store it, and returns `text`. */
const char *wf_tokenizer_content(const wf_tokenizer *tokenizer, char text[32]);
enum { WF_CHECKPOINT_NAME = 64 };
/* Writes the name of a step's checkpoint, such as "checkpoints/step-00000100.safetensors", and returns it. */
char *wf_checkpoint_name(int64_t step, char name[WF_CHECKPOINT_NAME]);
/* Lists the steps of a run's checkpoints in ascending order. Free *steps with wf_free. */
wf_status wf_checkpoint_steps(const char *folder, int64_t **steps, int64_t *count, wf_error *error);

/* Writes tokenizer.json, or for separate tokenizers tokenizer.source.json and tokenizer.target.json. */
wf_status wf_tokenizers_save(const char *folder, const struct wf_config *config, const wf_tokenizer *tokenizer, const wf_tokenizer *source,
                             wf_error *error);
/* Checks that the tokenizers have the special tokens that a translation model needs. `name` names the tokenizers in the message. */
wf_status wf_tokenizers_check(const struct wf_config *config, const wf_tokenizer *tokenizer, const wf_tokenizer *source, const char *name,
                              wf_error *error);

/* Returns the length of an encoder's rows in training and evaluation. *text is the number of text tokens in a row; with frame=true it is 2
 * less than the length, because of the start and end tokens. */
int64_t wf_row_length(const struct wf_config *config, int64_t *text);
/* Checks that the tokenizer has the start and end tokens that frame=true puts around rows. */
wf_status wf_frame_check(const struct wf_config *config, const struct wf_masking *masking, wf_error *error);
/* Counts the tokens that wf_evaluate_masked masks. */
wf_status wf_masked_count(const struct wf_config *config, const wf_tokenizer *tokenizer, struct wf_id_view ids, int64_t limit,
                          int64_t *chosen, wf_error *error);

/* --- folders of Hugging Face's libraries: hugging_face.c ----------------------------------------------------------- */
/* Loads tokenizer.json, or if that is missing vocab.txt with the settings in tokenizer_config.json. The vocabulary must have the size of
 * the model's, or be a little smaller if the model's embedding was padded. */
wf_status hf_tokenizer_load(const char *folder, const struct wf_config *config, wf_tokenizer **out, wf_error *error) WF_CHECKED;
/* Whether the config.json of a folder is that of another library. */
bool hf_is_foreign(const char *folder);
/* Sets the end tokens of the run ("eos_token_id" of generation_config.json, or if that has none, of config.json), and the settings of
 * its sampler. *error must have no error yet. */
wf_status hf_generation_load(const char *folder, struct wf_run *run, wf_error *error) WF_CHECKED;
/* Sets the settings of sampling in a configuration by generation_config.json: a temperature of 0 if it does not say "do_sample": true. A
 * run of Weft's own keeps those of its config.json. *error must have no error yet. */
wf_status hf_sampling_load(const char *folder, struct wf_config *config, wf_error *error) WF_CHECKED;
/* Reads from the files of sentence-transformers how sentence vectors are made, and sets max_length to a number above 0. If there is no
 * modules.json, or if the model's family has no .model_type, the options are mean pooling without normalisation, and max_length is 0. */
wf_status hf_embed_options(const char *folder, const struct wf_config *config, struct wf_embedder_options *out, wf_error *error) WF_CHECKED;

/* --- weights of such folders: hugging_face_weights.c --------------------------------------------------------------- */
/* Sets the error of a folder whose weights, `path`, are missing: with advice, which depends on what the folder has. */
wf_status hf_weights_missing(const char *folder, const char *path, wf_error *error);
/* The path of a folder's weights: model.safetensors, or if only that file is there the index of weights in several files. The caller frees
 * it with wf_free. */
char *hf_weights_path(const char *folder, wf_error *error);

/* --- files that a folder keeps: hugging_face_save.c ---------------------------------------------------------------- */
/* The files of a folder that a run which starts from it keeps, because other programs or `weft chat` need them: generation_config.json, the
 * template of conversations, the settings of the tokenizer. The list ends with NULL. */
extern const char *const hf_kept[];
/* Copies these files from one folder to another. If eos_token_id is only in config.json, it is put into generation_config.json, because the
 * config.json of a run does not hold it. */
wf_status hf_keep(const char *from, const char *to, wf_error *error) WF_CHECKED;
/* Copies a file; a missing one is no failure. */
wf_status hf_copy(const char *from, const char *to, const char *name, wf_error *error) WF_CHECKED;
struct json_t; /* of jansson */
/* Sets the ids of the start, end and padding tokens: those in the generation_config.json of `folder`, or else those of the run's tokenizer.
 * An id that does not exist becomes null, because the defaults of transformers are tokens of other models. */
wf_status hf_put_ids(struct json_t *object, const char *folder, const struct wf_run *run, wf_error *error) WF_CHECKED;
/* If the tokenizer.json in `folder`, of a language model that Weft trained, puts an end token behind each text, removes its post-processor:
 * in transformers a prompt would end with that token. */
wf_status hf_prompt_tokenizer(const char *folder, const struct wf_run *run, wf_error *error) WF_CHECKED;
/* Makes generation_config.json in `folder` give the run's settings of sampling and end tokens, and tokenizer_config.json its special tokens
 * if that file is missing. */
wf_status hf_settings_save(const char *folder, const struct wf_run *run, wf_error *error) WF_CHECKED;

/* Writes files of sentence-transformers from which hf_embed_options reads the same options. */
wf_status hf_embed_save(const char *folder, const struct wf_embedder_options *options, wf_error *error) WF_CHECKED;

#endif
