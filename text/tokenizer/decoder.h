/* SPDX-License-Identifier: MIT */
/* Inside the room: a step from pieces to text. decoder_json.c reads and writes it, decoder.c runs it. */
#ifndef WEFT_DATA_TOKENIZER_DECODER_H
#define WEFT_DATA_TOKENIZER_DECODER_H

#include "pattern.h"
#include "pipeline.h"

struct decoder {
    enum decoder_type {
        DECODE_METASPACE,
        DECODE_BYTE_LEVEL,
        DECODE_BYTE_FALLBACK,
        DECODE_FUSE,
        DECODE_REPLACE,
        DECODE_STRIP,
        DECODE_WORDPIECE,
        DECODE_BPE,
        DECODE_SEQUENCE
    } type;
    const char *text; /* Metaspace: the mark; Replace, Strip: content; WordPiece: the prefix; BPE: the suffix */
    int64_t text_length;
    enum prepend prepend;                           /* Metaspace */
    bool split;                                     /* Metaspace, kept for writing */
    bool add_prefix_space, trim_offsets, use_regex; /* ByteLevel, kept for writing */
    bool cleanup;                                   /* WordPiece */
    int64_t start, stop;                            /* Strip */
    struct pattern *pattern;                        /* Replace */
    struct decoder **step;                          /* Sequence */
    int64_t steps;
};

#endif
