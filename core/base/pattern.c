/* SPDX-License-Identifier: MIT */
/* Matches names with patterns in which only '*' has a meaning (weft/internal/pattern.h). fnmatch(3) is not used, because it also gives '[',
 * '?' and '\\' a meaning, and names of parameters, metrics and modules may contain these characters. */
#include <weft/internal/pattern.h>

/* After a mismatch, lets the last '*' match one more character and tries again. */
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
