/* SPDX-License-Identifier: MIT */
#ifndef WEFT_INTERNAL_PATTERN_H
#define WEFT_INTERNAL_PATTERN_H

#include <weft/base.h>

/* Whether a name fits a pattern, in which each '*' stands for any characters, also none. */
bool wf_pattern_matches(const char *pattern, const char *name);

#endif
