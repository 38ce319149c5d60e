/* SPDX-License-Identifier: MIT */
/* A configuration as JSON, for rooms that print one. */
#ifndef WEFT_INTERNAL_CONFIG_JSON_H
#define WEFT_INTERNAL_CONFIG_JSON_H

#include <jansson.h>

#include <weft/config.h>

/* Sets a member of `object` for each key of the model, by its type. */
wf_status wf_config_put(const struct wf_config *config, json_t *object, wf_error *error) WF_CHECKED;
/* wf_config_save, with an object (NULL: none) under "trained_on", which stays the caller's. Readers of configurations skip it. */
wf_status wf_config_save_with(const struct wf_config *config, json_t *trained_on, const char *path, wf_error *error) WF_CHECKED;

#endif
