/* SPDX-License-Identifier: MIT */
/* Which tensors of a file make up a parameter in a load (sources.c). */
#ifndef WEFT_NN_SOURCES_H
#define WEFT_NN_SOURCES_H

#include <weft/internal/sources.h>

#include "internal.h"

/* Finds rules by the names of their parameters. It is a table, because a model may have a rule for each of thousands of parameters. */
struct rule_table {
    const struct wf_load_rule *rule;
    /* gives, for a name as it stands in a rule's .parameter (with its '*', if it has one), the number of the first rule for that name */
    struct wf_name_table names;
    int *next; /* [rules]: the next rule of the same name; 0: there is none */
};

/* One load. */
struct reading {
    const wf_safetensors *file;
    const struct wf_load_options *options;
    struct rule_table rules;
    bool *left_out; /* [parameters]: the file has no tensor of the parameter, and .allow_missing permits that */
};

/* Writes the name of a parameter with the prefix before it, and returns it. */
const char *sources_full_name(const struct entry *e, const char *prefix, char text[WF_SOURCE_NAME]);
wf_status sources_table_make(struct rule_table *t, const struct wf_load_options *o, wf_error *error) WF_CHECKED;
void sources_table_free(struct rule_table *t);
/* Finds the names of the tensors that make up a parameter: by the first rule whose first tensor is in the file (any file, if there is none
 * to look into), or else by the first rule.
 * A parameter without a rule has one tensor of its own name. */
void sources_find(const struct entry *e, const struct reading *r, struct wf_sources *out);
/* Whether the sources, all of which are in the file, stack to the parameter. */
bool sources_fit(const struct entry *e, const wf_safetensors *file, const struct wf_sources *s);
/* The shape that the tensor of source i should have, for the message about sources that do not fit: an equal share of the parameter, or if
 * the rows have no equal shares, the rows that the sources before it leave. */
wf_shape sources_wanted_shape(const struct entry *e, const wf_safetensors *file, const struct wf_sources *s, int i);

#endif
