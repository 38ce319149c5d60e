/* SPDX-License-Identifier: MIT */
#ifndef WEFT_INTERNAL_PATTERN_H
#define WEFT_INTERNAL_PATTERN_H

#include <weft/base.h>

/* Whether the name matches the pattern. Each '*' in the pattern stands for zero or more characters. */
bool wf_pattern_matches(const char *pattern, const char *name);

#endif
