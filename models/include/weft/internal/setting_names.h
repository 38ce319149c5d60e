/* SPDX-License-Identifier: MIT */
/* Finds the key for the name that a setting has in another program, so that a message can suggest the key. */
#ifndef WEFT_INTERNAL_SETTING_NAMES_H
#define WEFT_INTERNAL_SETTING_NAMES_H

#include <stdbool.h>

/* Returns the key, of any section or family, that has this name here or in another program: "lr" for "learning-rate". The characters - and
 * _ are equivalent. NULL: no key has the name. */
const char *wf_setting_called(const char *name);
/* Whether the name is one of the words of `list`, which are separated by spaces. The characters - and _ are equivalent. `list` may be
 * NULL. */
bool wf_name_in(const char *list, const char *name);

#endif
