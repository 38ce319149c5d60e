/* SPDX-License-Identifier: MIT */
/* Inside the room: a step that rewrites text. normalizer_json.c reads and writes it, normalizer.c runs it. */
#ifndef WEFT_DATA_TOKENIZER_NORMALIZER_H
#define WEFT_DATA_TOKENIZER_NORMALIZER_H

#include "pattern.h"
#include "pipeline.h"

struct normalizer {
    enum normalizer_type {
        NORM_NFC,
        NORM_NFD,
        NORM_NFKC,
        NORM_NFKD,
        NORM_LOWERCASE,
        NORM_STRIP_ACCENTS,
        NORM_STRIP,
        NORM_REPLACE,
        NORM_PREPEND,
        NORM_BERT,
        NORM_BYTE_LEVEL,
        NORM_SEQUENCE
    } type;
    const char *text; /* Prepend, and what Replace puts */
    int64_t length;
    struct pattern *pattern;                                  /* Replace */
    bool left, right;                                         /* Strip */
    bool clean, ideographs, lowercase, accents, accents_null; /* BERT; accents_null: as lowercase */
    struct normalizer **step;
    int64_t steps;
};

#endif
