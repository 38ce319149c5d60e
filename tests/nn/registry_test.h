/* SPDX-License-Identifier: MIT */
/* A model for tests of registries. */
#ifndef TESTS_REGISTRY_TEST_H
#define TESTS_REGISTRY_TEST_H

#include "nn_test.h"

static inline const wf_real *value_of(const wf_registry *registry, const char *name)
{
    return wf_parameter_info(wf_registry_find(registry, name))->value.data;
}

/* A model with most things in it: nested scopes, a tie, a table, a frozen parameter. */
struct model {
    struct wf_embedding embed;
    struct wf_positions positions;
    struct wf_mha attn[2];
    struct wf_layer_norm norm;
    struct wf_linear head;
    wf_tensor *frozen;
};

static inline void declare(wf_scope s, struct model *m)
{
    wf_embedding_init(wf_sub(s, "embed"), &m->embed, 11, 8);
    wf_positions_init(wf_sub(s, "positions"), &m->positions, 20, 8);
    for (int i = 0; i < 2; i++)
        wf_mha_init(wf_sub(wf_sub_at(s, "blocks", i), "attn"), &m->attn[i], 8, 2);
    wf_layer_norm_init(wf_sub(s, "norm"), &m->norm, 8);
    wf_linear_init(wf_sub(s, "head"), &m->head, 8, 11, .tied = m->embed.weight);
    m->frozen = wf_parameter(s, "scale", WF_SHAPE(3), .init = {WF_INIT_CONSTANT, 0.5}, .frozen = true);
}

static const char *const all_names[] = {"embed.weight",
                                        "positions.table",
                                        "blocks.0.attn.qkv.weight",
                                        "blocks.0.attn.qkv.bias",
                                        "blocks.0.attn.out.weight",
                                        "blocks.0.attn.out.bias",
                                        "blocks.1.attn.qkv.weight",
                                        "blocks.1.attn.qkv.bias",
                                        "blocks.1.attn.out.weight",
                                        "blocks.1.attn.out.bias",
                                        "norm.weight",
                                        "norm.bias",
                                        "head.bias",
                                        "scale"};
enum { NAMES = sizeof all_names / sizeof *all_names };

#endif
