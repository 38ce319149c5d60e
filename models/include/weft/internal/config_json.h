/* SPDX-License-Identifier: MIT */
/* Writes a configuration as JSON: into an object that the caller prints, or into a config.json. */
#ifndef WEFT_INTERNAL_CONFIG_JSON_H
#define WEFT_INTERNAL_CONFIG_JSON_H

#include <jansson.h>

#include <weft/config.h>

/* Adds to `object` a member for each key of the model, as a number, boolean or string. */
wf_status wf_config_put(const struct wf_config *config, json_t *object, wf_error *error) WF_CHECKED;
/* wf_config_save, but also writes the object trained_on as the member "trained_on", which wf_config_load ignores. NULL: no such member. The
 * caller still owns the object. */
wf_status wf_config_save_with(const struct wf_config *config, json_t *trained_on, const char *path, wf_error *error) WF_CHECKED;

#endif
