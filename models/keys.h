/* SPDX-License-Identifier: MIT */
/* One key's value in a struct: read from text and JSON, written, checked. config.c works on whole configurations. */
#ifndef WEFT_MODELS_KEYS_H
#define WEFT_MODELS_KEYS_H

#include <jansson.h>

#include <weft/internal/family.h>
#include <weft/internal/optimizers.h>

/* A key of a configuration, and the struct that its member is in. */
struct slot {
    const struct wf_key *key;
    void *values;
    const char *section; /* "training", ..., or the family's name */
};
/* The keys that a configuration's kind of model uses: the family's, then those of the sections. false past the last. */
bool slot_at(const struct wf_config *config, int index, struct slot *out);
bool slot_find(const struct wf_config *config, const char *name, struct slot *out);

/* A configuration of the family's defaults and the settings, with this name. */
wf_status config_make(struct wf_config *config, const struct wf_family *family, const char *name, const char *settings,
                      wf_error *error) WF_CHECKED;

/* The common sections. */
struct section {
    const char *name;
    size_t offset; /* of the struct in wf_config */
    struct wf_keys keys;
};
extern const struct section sections[];
enum { SECTIONS = 4, OPTIMIZER = 2 /* the section of that name */, MOST_KEYS = 128 };

/* optimizers.c */
extern const char *optimizer_names[]; /* the words of the key `optimizer`; ends with NULL */
/* Sets the optimiser by name, with the defaults of its keys if it changes. WF_ERR_ARGUMENT lists the names. */
wf_status optimizer_choose(struct wf_config *config, const char *name, wf_error *error) WF_CHECKED;
const struct wf_keys *optimizer_keys(const struct wf_config *config); /* of its struct, config->optimizer.values */
const struct wf_key *optimizer_key_at(int index);                     /* those of all optimisers; NULL past the last */
wf_status optimizer_check(const struct wf_config *config, wf_error *error) WF_CHECKED;
/* Keeps the name of another program's optimiser, whose keys are unknown here. false: no optimiser can have such a name. */
bool optimizer_keep(struct wf_config *config, const char *name);
/* The name that was kept; NULL if the optimiser is known here. */
const char *optimizer_kept(const struct wf_optimizer_settings *optimizer);
/* True if the name is a key of the kept optimiser. */
bool optimizer_kept_key(const struct wf_config *config, const char *name);
/* Refuses a key of another optimiser. */
wf_status optimizer_refuse(const struct wf_config *config, const char *name, wf_error *error) WF_CHECKED;

/* The error for an unknown key: it names the keys with the same meaning here, or the nearest. (names.c) */
wf_status key_unknown(const struct wf_config *config, const char *name, wf_error *error) WF_CHECKED;

/* wf_config_check for using a model: its optimiser may be unknown here. */
wf_status config_check_model(const struct wf_config *config, wf_error *error) WF_CHECKED;

/* Checks that row `index` of a table describes a member of a struct of `size` bytes, under a new name and with a default in its range.
 * WF_ERR_ARGUMENT, "KIND OWNER: ...". */
wf_status key_describes(const char *kind, const char *owner, const struct wf_keys *keys, int index, size_t size,
                        wf_error *error) WF_CHECKED;

bool key_used(const struct wf_key *key, enum wf_model_kind kind);
double key_number(const struct wf_key *key, const void *values); /* true is 1, a word its index */
/* Text to value. in_file: words that can't be set are taken too. WF_ERR_ARGUMENT, "name: ..."; *values is then as it was. */
wf_status key_parse(const struct wf_key *key, void *values, const char *text, bool in_file, wf_error *error) WF_CHECKED;
void key_text(const struct wf_key *key, const void *values, char *text, size_t size);
wf_status key_check(const struct wf_key *key, const void *values, wf_error *error) WF_CHECKED; /* the range */
/* "1 to 64", "above 0", "post or pre": what --set takes. */
void key_range(const struct wf_key *key, char *text, size_t size);
wf_status key_from_json(const struct wf_key *key, void *values, const json_t *object, const char *path, wf_error *error) WF_CHECKED;
wf_status key_to_json(const struct wf_key *key, const void *values, json_t *object, wf_error *error) WF_CHECKED;

#endif
