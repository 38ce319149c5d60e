/* SPDX-License-Identifier: MIT */
/* Inside the room: a step that cuts text into words. pre_tokenizer_json.c reads and writes it, pre_tokenizer.c runs it. */
#ifndef WEFT_DATA_TOKENIZER_PRE_TOKENIZER_H
#define WEFT_DATA_TOKENIZER_PRE_TOKENIZER_H

#include "pattern.h"
#include "pipeline.h"
#include "split.h"

struct pre_tokenizer {
    enum pre_type {
        PRE_WHITESPACE,
        PRE_WHITESPACE_SPLIT,
        PRE_METASPACE,
        PRE_BYTE_LEVEL,
        PRE_BERT,
        PRE_PUNCTUATION,
        PRE_DIGITS,
        PRE_DELIMITER,
        PRE_SPLIT,
        PRE_SEQUENCE
    } type;
    const char *mark; /* Metaspace: what stands for a space; a delimiter: what is removed */
    int64_t mark_length;
    enum prepend prepend;
    bool split;                                     /* Metaspace */
    bool add_prefix_space, trim_offsets, use_regex; /* ByteLevel */
    bool individual;                                /* Digits */
    bool invert;                                    /* Split */
    enum behavior behavior;                         /* Split, Punctuation */
    struct pattern *pattern;
    struct pre_tokenizer **step; /* Sequence */
    int64_t steps;
};

/* What these options mean, in the caller's memory: `whole` is what to run, and it points into the rest. */
struct trained_pre_tokenizer {
    struct pre_tokenizer whole, step[3];
    struct pre_tokenizer *steps[3];
    struct pattern line_end;
};
void pre_tokenizer_for(const struct wf_tokenizer_options *options, struct trained_pre_tokenizer *out);

#endif
