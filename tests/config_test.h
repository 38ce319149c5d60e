/* SPDX-License-Identifier: MIT */
/* A configuration's keys as numbers, for tests. */
#ifndef TESTS_CONFIG_TEST_H
#define TESTS_CONFIG_TEST_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "check_weft.h"
#include <weft/config.h>
#include <weft/internal/text.h>

static inline void set_keys(struct wf_config *c, const char *settings)
{
    ck_ok(wf_config_set_all(c, settings, error));
}

/* Words as their enums count them; NULL for keys that are numbers. */
static inline const char *const *words_of_key(const char *key)
{
    static const char *const activations[] = {"relu", "gelu", "gelu_tanh", "silu", "swiglu", "geglu_tanh", NULL}, *const norms[] = {
                                                                                                                      "post", "pre", NULL};
    return strcmp(key, "activation") == 0 ? activations : strcmp(key, "norm") == 0 ? norms : NULL;
}

/* A number, 0 or 1 of a bool, an enum. Returns it. */
static inline double set_key(struct wf_config *c, const char *key, double value)
{
    const char *const *words = words_of_key(key);
    char text[64];
    snprintf(text, sizeof text, value == floor(value) && fabs(value) < 1e15 ? "%.0f" : "%.17g", value);
    ck_ok(wf_config_set(c, key, words ? words[(int)value] : text, error));
    return value;
}

static inline double real_key(const struct wf_config *c, const char *key)
{
    const char *const *words = words_of_key(key);
    char text[64];
    ck_assert_msg(wf_config_get(c, key, text, sizeof text), "%s has no key %s", c->model, key);
    for (int i = 0; words && words[i]; i++)
        if (strcmp(words[i], text) == 0)
            return i;
    double value = strcmp(text, "true") == 0; /* false: no number */
    wf_text_to_double(text, &value);
    return value;
}

static inline int64_t key_of(const struct wf_config *c, const char *key)
{
    return (int64_t)real_key(c, key);
}

static inline bool key_is(const struct wf_config *c, const char *key, const char *value)
{
    char text[64];
    return wf_config_get(c, key, text, sizeof text) && strcmp(text, value) == 0;
}

#endif
