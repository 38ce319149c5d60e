/* SPDX-License-Identifier: MIT */
#ifndef WEFT_MODELS_CONFIG_BERT_H
#define WEFT_MODELS_CONFIG_BERT_H

#include <jansson.h>

#include <weft/config.h>

/* The configuration of a config.json whose "model_type" is "bert". WF_ERR_FORMAT with file and key. */
wf_status config_bert_take(const json_t *object, const char *path, struct wf_config *config, wf_error *error) WF_CHECKED;

#endif
