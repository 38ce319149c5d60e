/* SPDX-License-Identifier: MIT */
/* Metaspace: a mark stands for a space. The same keys make the pre-tokenizer and the decoder. */
#ifndef WEFT_TEXT_TOKENIZER_METASPACE_H
#define WEFT_TEXT_TOKENIZER_METASPACE_H

#include "internal.h"

enum prepend { PREPEND_ALWAYS, PREPEND_FIRST, PREPEND_NEVER };
struct metaspace {
    struct part part;
    struct text mark;
    int prepend;
    bool split; /* of the pre-tokenizer */
};
extern const struct key metaspace_keys[];
wf_status metaspace_ready(struct reader *r, json_t *object, void *part); /* the old form of prepend_scheme */

#endif
