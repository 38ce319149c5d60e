/* SPDX-License-Identifier: MIT */
#ifndef WEFT_NN_LAYERS_H
#define WEFT_NN_LAYERS_H

#include <weft/nn.h>

/* The first that says something, else the kind given. Either may be NULL. */
struct wf_initializer init_or(const struct wf_initializer *first, const struct wf_initializer *second, enum wf_init_kind kind, double a);
/* Whether p is a probability to drop by; the scope gets the error otherwise. */
bool dropout_valid(wf_scope scope, double p);

#endif
