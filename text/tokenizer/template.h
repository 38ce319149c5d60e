/* SPDX-License-Identifier: MIT */
/* Inside the room: post-processors. template_json.c reads and writes them, template.c runs them. */
#ifndef WEFT_DATA_TOKENIZER_TEMPLATE_H
#define WEFT_DATA_TOKENIZER_TEMPLATE_H

#include "pipeline.h"

struct item {
    bool sequence;
    const char *id; /* "A" or "B", or a special token's name */
    int64_t type_id;
    const struct special *special;
};
struct items {
    struct item *item;
    int64_t count;
};
struct special {
    const char *id, **token;
    int64_t *ids;
    int64_t count;
};

struct template
{
    enum template_type { TEMPLATE, TEMPLATE_BERT, TEMPLATE_ROBERTA, TEMPLATE_BYTE_LEVEL, TEMPLATE_SEQUENCE } type;
    struct items single, pair;
    struct special *special; /* by name */
    int64_t specials;
    struct {
        const char *token;
        int64_t id;
    } sep, cls;                                     /* BERT, RoBERTa */
    bool trim_offsets, add_prefix_space, use_regex; /* of ByteLevel and RoBERTa: they move offsets, not ids */
    struct template **step;
    int64_t steps;
};

/* Orders specials, for qsort and bsearch. */
int template_by_name(const void *a, const void *b);

#endif
