/* SPDX-License-Identifier: MIT */
/* The longest of many strings that a text begins with: the sorted strings that agree with the text so far are a stretch, which each byte
 * narrows. It takes as many steps as the text agrees with any of them, however long others are. */
#ifndef WEFT_TEXT_TOKENIZER_PREFIXES_H
#define WEFT_TEXT_TOKENIZER_PREFIXES_H

#include <weft/base.h>

struct prefix {
    const char *data;
    int64_t length; /* > 0 */
    int32_t value;
};
struct prefixes {
    struct prefix *prefix; /* sorted; of equal ones that with the smallest value comes first and counts */
    int64_t count;
    int32_t first[257]; /* those that begin with byte c are first[c] .. first[c+1]-1 */
};
void prefixes_sort(struct prefixes *set);
/* NULL: none of them. length > 0. */
const struct prefix *prefixes_find(const struct prefixes *set, const char *text, int64_t length);

#endif
