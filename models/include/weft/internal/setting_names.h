/* SPDX-License-Identifier: MIT */
/* Names of settings in other programs, for messages that say ours. */
#ifndef WEFT_INTERNAL_SETTING_NAMES_H
#define WEFT_INTERNAL_SETTING_NAMES_H

#include <stdbool.h>

/* The key, of any section or family, that has this name or is called so elsewhere: "lr" of "learning-rate". - and _ are the same. NULL:
 * none. */
const char *wf_setting_called(const char *name);
/* Whether a list of words separated by spaces, which may be NULL, has the name; - and _ are the same. */
bool wf_name_in(const char *list, const char *name);

#endif
