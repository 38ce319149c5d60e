/* SPDX-License-Identifier: MIT */
/* Modules on a parameter as input (learned queries): the bits are those of an input with the same numbers. */
#include <weft/internal/minmax.h>

#include "nn_test.h"

enum { D = 8, T = 3, S = 5 };

struct readout {
    wf_registry *registry;
    wf_tensor *queries;
    struct wf_mha attn;
    struct wf_positions positions;
};

static wf_real out[T * D], grad[2][T * D + D * D];

/* A readout of S vectors by T learned queries, which are passed as the parameter or as an input with its numbers. */
static void run(struct readout *r, wf_tape *tape, bool as_input, wf_real *result, wf_real *gradients)
{
    wf_real memory[S * D];
    wf_array queries;
    for (int i = 0; i < S * D; i++)
        memory[i] = (wf_real)(i * 37 % 11) / 11;
    wf_grads_zero(wf_registry_grads(r->registry));
    wf_tape_reset(tape, WF_TRAIN);
    wf_tensor *m = wf_input(tape, memory, WF_SHAPE(1, S, D), false), *q = r->queries;
    if (as_input) {
        ck_assert_int_eq(wf_view(q, &queries), WF_OK);
        q = wf_input(tape, queries.data, WF_SHAPE(1, T, D), true);
    }
    wf_tensor *x = wf_positions_forward(&r->positions, q, NULL);
    wf_tensor *y = wf_mha_forward(&r->attn, x, .memory = m), *z = wf_mha_forward(&r->attn, q, .memory = m);
    ck_assert_msg(!wf_is_poison(y), "%s", wf_tape_error(tape)->message);
    ck_assert(z != r->queries && !wf_is_poison(z));
    wf_keep(y);
    ck_backward(wf_sum(wf_mul(y, z)));
    ck_read(y, result, T * D);
    memcpy(gradients, gradient_of(q), T * D * sizeof *gradients);
    memcpy(gradients + T * D, gradient_of(r->attn.q.weight), D * D * sizeof *gradients);
}

START_TEST(learned_queries)
{
    struct readout r = {.registry = new_registry()};
    wf_scope root = wf_root(r.registry);
    r.queries = wf_parameter(root, "queries", WF_SHAPE(1, T, D), .init = {WF_INIT_NORMAL, 1});
    wf_mha_init(wf_sub(root, "attn"), &r.attn, D, 2, .cross = true);
    wf_positions_init(wf_sub(root, "positions"), &r.positions, T, D, .learned = true);
    ck_ok(wf_registry_build(r.registry, 1, error));
    wf_tape *tape = new_tape();
    wf_real again[T * D];
    run(&r, tape, true, out, grad[0]);
    run(&r, tape, false, again, grad[1]);
    ck_assert_mem_eq(out, again, sizeof out);
    ck_assert_mem_eq(grad[0], grad[1], sizeof grad[0]);
    wf_real most = 0;
    for (int i = T * D; i < T * D + D * D; i++)
        most = WF_MAX(most, grad[0][i]);
    ck_assert(most > 0); /* the attention is trained */
    wf_tape_free(tape);
    wf_registry_free(r.registry);
}
END_TEST

WF_TEST_MAIN("nn/learned", learned_queries)
