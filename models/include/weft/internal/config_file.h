/* SPDX-License-Identifier: MIT */
/* config.json with what a training adds to it. */
#ifndef WEFT_INTERNAL_CONFIG_FILE_H
#define WEFT_INTERNAL_CONFIG_FILE_H

#include <jansson.h>

#include <weft/config.h>

/* wf_config_save, with an object (NULL: none) under "trained_on", which stays the caller's. Readers of configurations skip it. */
wf_status wf_config_save_with(const struct wf_config *config, json_t *trained_on, const char *path, wf_error *error) WF_CHECKED;

#endif
