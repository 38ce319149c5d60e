/* SPDX-License-Identifier: MIT */
/* The parts around the model. Each reads itself from the file (NULL or JSON null: absent), writes itself, and runs. Reading refuses by name
 * what is not known. What runs gives WF_ERR_MEMORY, or WF_ERR_FORMAT when a pattern gave up (scratch.fault says where). */
#ifndef WEFT_DATA_TOKENIZER_PIPELINE_H
#define WEFT_DATA_TOKENIZER_PIPELINE_H

#include "internal.h"
#include "json_write.h"
#include "scratch.h"

wf_status normalizer_read(wf_tokenizer *tokenizer, json_t *value, const char *where, struct normalizer **out, wf_error *error);
void normalizer_write(const struct normalizer *normalizer, const char *key, struct json_writer *w);
/* Replaces *text, which may then lie in the scratch until the next run. */
wf_status normalizer_run(const struct normalizer *normalizer, struct scratch *s, struct view *text);

bool normalizer_has_bytes(const struct normalizer *normalizer); /* ByteLevel is in it */

enum prepend { PREPEND_ALWAYS, PREPEND_FIRST, PREPEND_NEVER };
wf_status prepend_read(json_t *value, const char *where, enum prepend *out, wf_error *error); /* of a Metaspace, old forms too */
extern const char *const prepend_names[];

wf_status pre_tokenizer_read(wf_tokenizer *tokenizer, json_t *value, const char *where, struct pre_tokenizer **out, wf_error *error);
void pre_tokenizer_write(const struct pre_tokenizer *pre, const char *key, struct json_writer *w);
/* Splits s->words further. */
wf_status pre_tokenizer_run(const struct pre_tokenizer *pre, struct scratch *s);
/* Those that trained tokenizers have; NULL without memory. */
struct pre_tokenizer *pre_tokenizer_of(wf_tokenizer *tokenizer, const struct wf_tokenizer_options *options);
struct pre_tokenizer *pre_tokenizer_of_characters(wf_tokenizer *tokenizer);
bool pre_tokenizer_is_characters(const struct pre_tokenizer *pre); /* Split at [\s\S], Isolated */
bool pre_tokenizer_has_bytes(const struct pre_tokenizer *pre);     /* ByteLevel is in it */
bool pre_tokenizer_needs_origin(const struct pre_tokenizer *pre);  /* a Metaspace that marks the text's first word only */
bool pre_tokenizer_has_steps(const struct pre_tokenizer *pre);     /* one may rewrite the text before another */

wf_status template_read(wf_tokenizer *tokenizer, json_t *value, const char *where, struct template **out, wf_error *error);
void template_write(const struct template *template, const char *key, struct json_writer *w);
/* Puts specials around out->id[begin ..]; NULL leaves them alone. False without memory. */
bool template_run(const struct template *template, struct wf_tokens *out, int64_t begin);
int64_t template_specials(const struct template *template); /* how many it adds */
/* BOS ... EOS, where an id is not -1. */
struct template *template_of(wf_tokenizer *tokenizer, int32_t bos, int32_t eos);

wf_status decoder_read(wf_tokenizer *tokenizer, json_t *value, const char *where, struct decoder **out, wf_error *error);
void decoder_write(const struct decoder *decoder, const char *key, struct json_writer *w);
/* That of trained tokenizers: NULL where words are joined by spaces. False without memory. */
bool decoder_of(wf_tokenizer *tokenizer, const struct wf_tokenizer_options *options, struct decoder **out);
struct decoder *decoder_of_characters(wf_tokenizer *tokenizer);
bool decoder_is_fuse(const struct decoder *decoder);

wf_status added_tokens_read(wf_tokenizer *tokenizer, json_t *value, const char *where, wf_error *error);
void added_tokens_write(const wf_tokenizer *tokenizer, struct json_writer *w);
/* Finds what they match as, after the normalizer is known, and sorts them for the search. */
wf_status added_tokens_index(wf_tokenizer *tokenizer, const char *where, wf_error *error);
/* The next one at data[from ..] of those in `set`: [*begin, *end) and the token, NULL for none. `from` is where the last one ended. */
const struct added_token *added_tokens_next(const struct added_set *set, const char *data, int64_t length, int64_t *search, int64_t from,
                                            int64_t *begin, int64_t *end);

/* The place of the part's "type" among `count` names; another one is refused. */
wf_status part_type(json_t *value, const char *part, const char *where, const char *const *names, int count, int *out, wf_error *error);
/* "x.json: it asks for normalizer "Nmt", which this version does not have" */
wf_status part_refuse(const char *part, const char *type, const char *where, wf_error *error);
/* A required string, kept. */
wf_status part_text(wf_tokenizer *tokenizer, json_t *value, const char *key, const char *where, const char **out, int64_t *length,
                    wf_error *error);
/* The same where the package has a character: exactly one. */
wf_status part_character(wf_tokenizer *tokenizer, json_t *value, const char *key, const char *where, const char **out, int64_t *length,
                         wf_error *error);
wf_status part_no_memory(const char *where, wf_error *error);

#endif
