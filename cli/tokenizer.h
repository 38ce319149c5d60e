/* SPDX-License-Identifier: MIT */
/* The sub-commands of `weft tokenizer`. */
#ifndef WEFT_CLI_TOKENIZER_H
#define WEFT_CLI_TOKENIZER_H

#include <jansson.h>

#include "cli.h"

int run_tokenizer_train(int argc, char **argv);
int run_tokenizer_encode(int argc, char **argv);
int run_tokenizer_decode(int argc, char **argv);
int run_tokenizer_info(int argc, char **argv);
int run_tokenizer_survey(int argc, char **argv);

/* A tokenizer's file as JSON: the library's functions tell no merges. NULL on an error; json_decref. */
json_t *tokenizer_file(const wf_tokenizer *tokenizer, wf_error *error);
int64_t tokenizer_merges(const json_t *file);

#endif
