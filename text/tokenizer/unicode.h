/* SPDX-License-Identifier: MIT */
/* Classes of characters, as the parts of a tokenizer use them. Unicode's properties come from utf8proc. \w, \s and punctuation are those of
 * the package `tokenizers`. */
#ifndef WEFT_TEXT_TOKENIZER_UNICODE_H
#define WEFT_TEXT_TOKENIZER_UNICODE_H

#include <weft/internal/encode.h>

enum char_class {
    CHAR_SPACE = 1,       /* Unicode's White_Space */
    CHAR_WORD = 2,        /* \w of UTS 18: letters (also in circles or squares), marks, decimal and letter numbers, connectors, joiners */
    CHAR_LETTER = 4,      /* categories L* */
    CHAR_NUMBER = 8,      /* categories N* */
    CHAR_PUNCTUATION = 16 /* categories P*, and ASCII's symbols */
};
unsigned unicode_class_of(uint32_t point);
extern const uint8_t unicode_ascii[128];
static inline unsigned unicode_class(uint32_t point)
{
    return point < 0x80 ? unicode_ascii[point] : unicode_class_of(point);
}

/* Characters that BERT's normalizer treats specially. */
bool unicode_is_control(uint32_t point); /* categories Cc, Cf and Co, but not tab and line ends; the normalizer removes these characters */
bool unicode_is_nonspacing(uint32_t point); /* category Mn: the normalizer strips them as accents */
bool unicode_is_ideograph(uint32_t point);  /* ideographs: the normalizer puts spaces around them */
/* Marks (categories M*), which StripAccents removes. */
bool unicode_is_mark(uint32_t point);
/* Whether the mark is newer than Unicode 9. The package's normal forms use Unicode 9, so they treat a newer mark as an ordinary
 * character. */
bool unicode_is_later_mark(uint32_t point);
/* Whether the package's normal forms, which use Unicode 9, decompose the character. */
bool unicode_is_decomposed(uint32_t point);

/* unicode_skip_space returns the end of the white space that begins at text[from]; unicode_skip_space_back returns the start of the white
 * space that ends at text[to-1]. Invalid UTF-8 is no white space. */
int64_t unicode_skip_space(const char *text, int64_t from, int64_t to);
int64_t unicode_skip_space_back(const char *text, int64_t from, int64_t to);

/* GPT-2's character for a byte: the byte itself if it is printable, else a character from U+0100 on. */
uint32_t unicode_of_byte(unsigned char byte); /* encode.h declares its inverse, unicode_to_byte */

#endif
