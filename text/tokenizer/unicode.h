/* SPDX-License-Identifier: MIT */
/* Classes of characters as the parts of a tokenizer mean them: Unicode's properties, from utf8proc, where \w, \s and "punctuation" are
 * those of the package `tokenizers`. */
#ifndef WEFT_DATA_TOKENIZER_UNICODE_H
#define WEFT_DATA_TOKENIZER_UNICODE_H

#include <weft/internal/encode.h>

enum char_class {
    CHAR_SPACE = 1,       /* White_Space */
    CHAR_WORD = 2,        /* \w by UTS 18: letters, marks, decimal digits, connectors, joiners */
    CHAR_LETTER = 4,      /* L* */
    CHAR_NUMBER = 8,      /* N* */
    CHAR_PUNCTUATION = 16 /* P* and ASCII's signs */
};
unsigned unicode_class_of(uint32_t point);
extern const uint8_t unicode_ascii[128];
static inline unsigned unicode_class(uint32_t point)
{
    return point < 0x80 ? unicode_ascii[point] : unicode_class_of(point);
}

/* Characters that BERT's normalizer drops, turns into a space, or strips as an accent. */
bool unicode_is_control(uint32_t point);    /* Cc, Cf, Co but tab and line ends */
bool unicode_is_nonspacing(uint32_t point); /* Mn */
bool unicode_is_ideograph(uint32_t point);  /* what it puts spaces around */
/* M*: what StripAccents drops. */
bool unicode_is_mark(uint32_t point);
/* Whether it came after the Unicode 9 of the package's normal forms, to which it is a character that nothing joins. */
bool unicode_is_later_mark(uint32_t point);
/* Whether the package decomposes it, whose tables are of Unicode 9. */
bool unicode_is_decomposed(uint32_t point);

/* The end of the white space at text[from], and the start of the white space that ends at text[to-1]. Invalid UTF-8 is no white space. */
int64_t unicode_skip_space(const char *text, int64_t from, int64_t to);
int64_t unicode_skip_space_back(const char *text, int64_t from, int64_t to);

/* GPT-2's 256 characters for bytes: itself where it is printable, else 256 and on. */
uint32_t unicode_of_byte(unsigned char byte); /* unicode_to_byte of encode.h is its inverse */

#endif
