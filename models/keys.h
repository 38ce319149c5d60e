/* SPDX-License-Identifier: MIT */
/* What the files of this folder share about configuration keys: the sections of common keys, and functions that find a key in a
 * configuration, that read, write and check the value of a single key, and that handle the keys of optimisers. */
#ifndef WEFT_MODELS_KEYS_H
#define WEFT_MODELS_KEYS_H

#include <jansson.h>

#include <weft/internal/family.h>
#include <weft/internal/optimizers.h>

/* A key of a configuration, and the place of its value. */
struct slot {
    const struct wf_key *key;
    void *values;        /* the struct inside the wf_config that has the key's member */
    const char *section; /* name of a common section, such as "training", or of the family */
};
/* Sets *out to key number `index` of a configuration: first the family's keys, then the common keys that the kind of model uses. False past
 * the last. */
bool slot_at(const struct wf_config *config, int index, struct slot *out);
bool slot_find(const struct wf_config *config, const char *name, struct slot *out);

/* Sets *config to the family's defaults, then applies `settings` ("d_model=384 lr=1e-3"); config->model becomes `name`. */
wf_status config_make(struct wf_config *config, const struct wf_family *family, const char *name, const char *settings,
                      wf_error *error) WF_CHECKED;

/* A section of keys that are common to all families. */
struct section {
    const char *name;
    size_t offset; /* offset of the section's struct in struct wf_config */
    struct wf_keys keys;
};
extern const struct section sections[];
enum { SECTIONS = 4, OPTIMIZER = 2 /* index of the section "optimizer" */, MOST_KEYS = 128 };

/* --- optimizers.c --- */
extern const char *optimizer_names[]; /* the words of the key `optimizer`; ends with NULL */
/* Sets the optimiser by name. If this changes the optimiser, its keys get their defaults. WF_ERR_ARGUMENT: the name is unknown, and the
 * message lists the known ones. */
wf_status optimizer_choose(struct wf_config *config, const char *name, wf_error *error) WF_CHECKED;
/* The keys of the configuration's optimiser. The values of these keys are in the struct config->optimizer.values. */
const struct wf_keys *optimizer_keys(const struct wf_config *config);
/* Key number `index` of all optimisers' keys; NULL past the last. */
const struct wf_key *optimizer_key_at(int index);
wf_status optimizer_check(const struct wf_config *config, wf_error *error) WF_CHECKED;
/* Keeps the name of an optimiser that only another program has registered; its keys are unknown here. False: an optimiser cannot have this
 * name. */
bool optimizer_keep(struct wf_config *config, const char *name);
/* The name that optimizer_keep has kept; NULL if the optimiser is known here. */
const char *optimizer_kept(const struct wf_optimizer_settings *optimizer);
/* True if `name` is NAME.KEY, with the NAME that optimizer_keep has kept. */
bool optimizer_kept_key(const struct wf_config *config, const char *name);
/* WF_ERR_ARGUMENT if the key `name` belongs to another optimiser than the configuration's. */
wf_status optimizer_refuse(const struct wf_config *config, const char *name, wf_error *error) WF_CHECKED;

/* --- names.c --- */
/* Returns WF_ERR_ARGUMENT for an unknown key. The message names the keys with the same meaning, or the key with the nearest name. */
wf_status key_unknown(const struct wf_config *config, const char *name, wf_error *error) WF_CHECKED;

/* Does what wf_config_check does, but accepts an optimiser that is unknown here, because a model can be used without its optimiser. */
wf_status config_check_model(const struct wf_config *config, wf_error *error) WF_CHECKED;

/* Checks row `index` of a table of keys: its member lies inside a struct of `size` bytes, no row before it has the same name, and its
 * default is in its range. WF_ERR_ARGUMENT otherwise; the message begins with the texts `kind` and `owner`. */
wf_status key_describes(const char *kind, const char *owner, const struct wf_keys *keys, int index, size_t size,
                        wf_error *error) WF_CHECKED;

bool key_used(const struct wf_key *key, enum wf_model_kind kind);
/* The value as a number: true is 1, and a word is its index. */
double key_number(const struct wf_key *key, const void *values);
/* Sets the member of *values to the value of `text`. in_file: words that users cannot set are accepted too. WF_ERR_ARGUMENT if the
 * key cannot have this value: the message begins with the key's name, and *values stays unchanged. */
wf_status key_parse(const struct wf_key *key, void *values, const char *text, bool in_file, wf_error *error) WF_CHECKED;
void key_text(const struct wf_key *key, const void *values, char *text, size_t size);
wf_status key_check(const struct wf_key *key, const void *values, wf_error *error) WF_CHECKED; /* checks the range */
/* Writes the values that --set accepts: "1 to 64", "above 0", "post or pre". */
void key_range(const struct wf_key *key, char *text, size_t size);
wf_status key_from_json(const struct wf_key *key, void *values, const json_t *object, const char *path, wf_error *error) WF_CHECKED;
wf_status key_to_json(const struct wf_key *key, const void *values, json_t *object, wf_error *error) WF_CHECKED;

#endif
