/* SPDX-License-Identifier: MIT */
/* Finds the longest string of a set that a text begins with. The strings are sorted, so those that agree with the first bytes of the text
 * are neighbours; each further byte narrows their range. The time depends on how many bytes of the text agree with some string, not on how
 * long the strings are. */
#ifndef WEFT_TEXT_TOKENIZER_PREFIXES_H
#define WEFT_TEXT_TOKENIZER_PREFIXES_H

#include <weft/base.h>

struct prefix {
    const char *data;
    int64_t length; /* above 0 */
    int32_t value;
};
struct prefixes {
    struct prefix *prefix; /* sorted; of equal strings the one with the smallest value comes first and is found */
    int64_t count;
    int32_t first[257]; /* strings that begin with byte c have the indices first[c] .. first[c+1]-1 */
};
void prefixes_sort(struct prefixes *set);
/* The longest string of the set that text[0 .. length-1] begins with; NULL: none. length must be above 0. */
const struct prefix *prefixes_find(const struct prefixes *set, const char *text, int64_t length);

#endif
