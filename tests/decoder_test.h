/* SPDX-License-Identifier: MIT */
/* What decoders of small families from outside have in common. */
#ifndef TESTS_DECODER_TEST_H
#define TESTS_DECODER_TEST_H

#include <weft/family.h>
#include <weft/nn.h>

/* x [N,d], or [R,T,d] with a cache -> [N,d]: plus what its rows attend to in their sources. */
static inline wf_tensor *attend_to_sources(const struct wf_mha *cross, wf_tensor *x, const struct wf_decoding *d)
{
    x = wf_reshape(x, -1, wf_dim(x, -1));
    return wf_mha_forward(cross, x, .memory = d->kv ? NULL : d->memory, .memory_kv = d->kv ? d->kv[0] : NULL, .packed = d->target,
                          .k_packed = d->source, .residual = x);
}

#endif
