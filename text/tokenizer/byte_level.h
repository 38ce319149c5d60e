/* SPDX-License-Identifier: MIT */
/* ByteLevel is a pre-tokenizer, a post-processor and a decoder of the same keys. */
#ifndef WEFT_TEXT_TOKENIZER_BYTE_LEVEL_H
#define WEFT_TEXT_TOKENIZER_BYTE_LEVEL_H

#include "internal.h"

struct byte_level {
    struct part part;
    bool add_prefix_space, trim_offsets, use_regex;
};
#define BYTE_LEVEL_KEYS(may_lack)                                                                                                          \
    {                                                                                                                                      \
        {"add_prefix_space", &value_bool, offsetof(struct byte_level, add_prefix_space), .optional = may_lack, .otherwise = true},         \
            {"trim_offsets", &value_bool, offsetof(struct byte_level, trim_offsets), .optional = may_lack, .otherwise = true},             \
            {"use_regex", &value_bool, offsetof(struct byte_level, use_regex), .optional = true, .otherwise = true},                       \
        {                                                                                                                                  \
            0                                                                                                                              \
        }                                                                                                                                  \
    }

#endif
