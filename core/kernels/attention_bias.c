/* SPDX-License-Identifier: MIT */
/* Adds a bias to the attention scores of a tile, and adds the gradients of the scores to the gradient of the bias. */
#include "attention_pack.h"

void attention_bias(const struct wf_attention *a, int64_t head, int64_t q0, int64_t rows, int64_t k0, int64_t keys, wf_real *room,
                    wf_real *s)
{
    const wf_real *bias = a->bias + head * a->bias_step.head + q0 * a->bias_step.query + k0 * a->bias_step.key;
    if (a->bias_step.query == 0) {
        for (int64_t i = 0; i < keys; i++) {
            const vr b = v_set(bias[i * a->bias_step.key]);
            for (int64_t j = 0; j < QUERIES; j += V_LANES)
                v_store(s + i * QUERIES + j, biased(v_load(s + i * QUERIES + j), b));
        }
        return;
    }
    if (a->bias_step.key == 1) {
        (void)pack_queries(rows, keys, bias, a->bias_step.query, 1, room);
    } else {
        memset(room, 0, (size_t)(keys * QUERIES) * sizeof *room);
        for (int64_t t = 0; t < rows; t++)
            for (int64_t i = 0; i < keys; i++)
                room[i * QUERIES + t] = bias[t * a->bias_step.query + i * a->bias_step.key];
    }
    for (int64_t i = 0; i < keys * QUERIES; i += V_LANES)
        if (i % QUERIES < rows)
            v_store(s + i, biased(v_load(s + i), v_load(room + i)));
}

void attention_bias_grad(const struct wf_attention *a, int64_t head, int64_t q0, int64_t rows, int64_t k0, int64_t keys, const wf_real *ds)
{
    wf_real *to = a->dbias + head * a->dbias_step.head + q0 * a->dbias_step.query + k0 * a->dbias_step.key;
    if (a->dbias_step.query != 0 && a->dbias_step.key == 1) {
        unpack_queries(rows, keys, ds, to, a->dbias_step.query, true);
        return;
    }
    for (int64_t i = 0; i < keys; i++)
        for (int64_t t = 0; t < rows; t++)
            to[t * a->dbias_step.query + i * a->dbias_step.key] += ds[i * QUERIES + t];
}
