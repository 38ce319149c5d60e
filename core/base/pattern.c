/* SPDX-License-Identifier: MIT */
/* Not fnmatch(3): there '[', '?' and '\\' have a meaning, and names of parameters, metrics and modules may hold them. */
#include <weft/internal/pattern.h>

/* After a mismatch the last '*' takes one more character. */
bool wf_pattern_matches(const char *pattern, const char *name)
{
    const char *star = NULL, *from = NULL;
    while (*name)
        if (*pattern == '*') {
            star = pattern++;
            from = name;
        } else if (*pattern == *name) {
            pattern++;
            name++;
        } else if (star) {
            pattern = star + 1;
            name = ++from;
        } else {
            return false;
        }
    while (*pattern == '*')
        pattern++;
    return !*pattern;
}
