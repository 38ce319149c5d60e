/* SPDX-License-Identifier: MIT */
/* Packed rows through positions and cross-attention, whose keys and values may have been computed before: each sequence has the results
 * that it has alone, also if it has no rows on one side. */
#include <math.h>

#include "nn_test.h"

enum { D = 24, HEADS = 4, SEQUENCES = 5, MOST = 64 };

/* Queries and keys of each sequence: none, few, and more than attention's short way takes. */
static const int32_t q_offsets[SEQUENCES + 1] = {0, 3, 3, 20, 21, 25}, k_offsets[SEQUENCES + 1] = {0, 7, 9, 19, 20, 20};

static wf_real x[MOST * D], memory[MOST * D], r[MOST * D];

struct rig {
    wf_registry *registry;
    wf_tape *tape;
    struct wf_positions positions;
    struct wf_mha cross, self;
};

static struct rig start(void)
{
    struct rig rig = {.registry = new_registry(), .tape = new_tape()};
    wf_scope s = wf_root(rig.registry);
    wf_positions_init(wf_sub(s, "positions"), &rig.positions, 17, D);
    wf_mha_init(wf_sub(s, "cross"), &rig.cross, D, HEADS, .cross = true);
    wf_mha_init(wf_sub(s, "self"), &rig.self, D, HEADS);
    ck_ok(wf_registry_build(rig.registry, 4, error));
    wf_fill_normal(x, MOST * D, 0, 1, 1, 1);
    wf_fill_normal(memory, MOST * D, 0, 1, 1, 2);
    wf_fill_normal(r, MOST * D, 0, 1, 1, 3);
    return rig;
}

static void stop(struct rig *rig)
{
    wf_tape_free(rig->tape);
    wf_registry_free(rig->registry);
}

static void same(const wf_real *have, const wf_real *want, int64_t n, const char *what)
{
    for (int64_t i = 0; i < n; i++)
        ck_assert_msg(have[i] == want[i], "%s: number %lld is %.17g, not %.17g", what, (long long)i, (double)have[i], (double)want[i]);
}

START_TEST(positions)
{
    struct rig g = start();
    wf_real packed[25 * D], alone[17 * D];
    wf_tape_reset(g.tape, WF_INFER);
    ck_read(wf_positions_packed(&g.positions, wf_input(g.tape, x, WF_SHAPE(25, D), false), (struct wf_packed){q_offsets, SEQUENCES}),
            packed, 25 * D);
    for (int i = 0; i < SEQUENCES; i++) {
        int64_t n = q_offsets[i + 1] - q_offsets[i];
        if (n == 0)
            continue;
        ck_read(wf_positions_forward(&g.positions, wf_input(g.tape, x + q_offsets[i] * D, WF_SHAPE(1, n, D), false), NULL), alone, n * D);
        same(packed + q_offsets[i] * D, alone, n * D, "positions");
    }
    static const struct {
        int32_t offsets[3];
        const char *says;
    } bad[] = {{{0, 18, 25}, "positions: sequence 0 has length 18, but the model has 17 positions: shorten it"},
               {{0, 26, 25},
                "positions: packed: offsets[2] = 25 after 26, but offsets of 2 sequences must begin with 0, never fall, and end with"},
               {{1, 9, 25}, "positions: packed: offsets[0] = 1, but offsets of 2 sequences must begin with 0"},
               {{0, 9, 24},
                "positions: packed: offsets[2] = 24 after 9, but offsets of 2 sequences must begin with 0, never fall, and end with the "
                "number of rows, 25"},
               {{0, -3, 25}, "positions: packed: offsets[1] = -3 after 0, but offsets"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_poison(wf_positions_packed(&g.positions, wf_input(g.tape, x, WF_SHAPE(25, D), false), (struct wf_packed){bad[i].offsets, 2}),
                  bad[i].says);
    }
    stop(&g);
}
END_TEST

START_TEST(a_memory_computed_once)
{
    struct rig g = start();
    wf_real packed[25 * D], plain[25 * D], alone[17 * D];
    wf_tape_reset(g.tape, WF_INFER);
    wf_tensor *query = wf_input(g.tape, x, WF_SHAPE(25, D), false), *keys = wf_input(g.tape, memory, WF_SHAPE(20, D), false);
    wf_tensor *kv = wf_mha_memory(&g.cross, keys);
    for (int twice = 0; twice < 2; twice++) {
        ck_read(wf_mha_forward(&g.cross, query, .memory_kv = kv, .packed = {q_offsets, SEQUENCES}, .k_packed = {k_offsets, SEQUENCES}),
                packed, 25 * D);
        ck_read(wf_mha_forward(&g.cross, query, .memory = keys, .packed = {q_offsets, SEQUENCES}, .k_packed = {k_offsets, SEQUENCES}),
                plain, 25 * D);
        same(packed, plain, 25 * D, "the memory itself");
    }
    for (int i = 0; i < SEQUENCES; i++) {
        int64_t n = q_offsets[i + 1] - q_offsets[i], m = k_offsets[i + 1] - k_offsets[i];
        if (n == 0 || m == 0)
            continue;
        wf_tensor *q = wf_input(g.tape, x + q_offsets[i] * D, WF_SHAPE(1, n, D), false);
        wf_tensor *k = wf_input(g.tape, memory + k_offsets[i] * D, WF_SHAPE(1, m, D), false);
        ck_read(wf_mha_forward(&g.cross, q, .memory = k), alone, n * D);
        same(packed + q_offsets[i] * D, alone, n * D, "a sequence alone");
    }
    /* Nothing to attend to: what is left is the output's bias. */
    const wf_real *bias = wf_parameter_info(g.cross.out.bias)->value.data;
    for (int64_t t = q_offsets[4]; t < q_offsets[5]; t++)
        same(packed + t * D, bias, D, "a sequence without keys");
    ck_poison(wf_mha_memory(&g.self, wf_input(g.tape, memory, WF_SHAPE(20, D), false)),
              "attention: wf_mha_memory requires cross-attention (.cross)");
    stop(&g);
}
END_TEST

/* Gradients of the packed call are the sums of those of the sequences. */
START_TEST(gradients)
{
    struct rig g = start();
    const double tolerance = sizeof(wf_real) == 8 ? 1e-13 : 1e-5;
    static double slab[2][16 * D * D];
    int64_t size = wf_registry_slab(g.registry);
    ck_assert_int_le(size, 16 * D * D);
    static wf_real d[2][2][MOST * D];
    for (int apart = 0; apart < 2; apart++) {
        wf_grads_zero(wf_registry_grads(g.registry));
        for (int i = 0; i < (apart ? SEQUENCES : 1); i++) {
            int64_t q0 = apart ? q_offsets[i] : 0, n = apart ? q_offsets[i + 1] - q0 : 25, k0 = apart ? k_offsets[i] : 0,
                    m = apart ? k_offsets[i + 1] - k0 : 20;
            const int32_t both[2][2] = {{0, (int32_t)n}, {0, (int32_t)m}};
            wf_array view;
            if (n == 0)
                continue;
            wf_tape_reset(g.tape, WF_TRAIN);
            wf_tensor *q = wf_input(g.tape, x + q0 * D, WF_SHAPE(n, D), true), *k = wf_input(g.tape, memory + k0 * D, WF_SHAPE(m, D), true);
            wf_tensor *y = wf_mha_forward(&g.cross, q, .memory_kv = wf_mha_memory(&g.cross, k),
                                          .packed = {apart ? both[0] : q_offsets, apart ? 1 : SEQUENCES},
                                          .k_packed = {apart ? both[1] : k_offsets, apart ? 1 : SEQUENCES});
            ck_backward(wf_sum(wf_mul(y, wf_input(g.tape, r + q0 * D, WF_SHAPE(n, D), false))));
            for (int side = 0; side < 2; side++) {
                ck_assert_int_eq(wf_grad(side ? k : q, &view), WF_OK);
                wf_array to = wf_array_contiguous(d[apart][side] + (side ? k0 : q0) * D, WF_REAL, WF_SHAPE(side ? m : n, D));
                wf_array_copy(&to, &view);
            }
        }
        for (int i = 0; i < wf_registry_count(g.registry); i++) {
            const struct wf_parameter_info *info = wf_parameter_info(wf_registry_at(g.registry, i));
            for (int64_t e = 0; strncmp(info->name, "cross", 5) == 0 && e < wf_array_count(&info->value); e++)
                slab[apart][info->offset + e] = (double)wf_grads_at(wf_registry_grads(g.registry), wf_registry_at(g.registry, i))[e];
        }
    }
    double difference = 0, norm = 0;
    for (int64_t e = 0; e < size; e++) {
        difference += pow(slab[0][e] - slab[1][e], 2);
        norm += pow(slab[0][e], 2);
    }
    ck_assert_msg(norm > 1 && sqrt(difference / norm) <= tolerance, "parameters: %g of %g", sqrt(difference), sqrt(norm));
    for (int side = 0; side < 2; side++)
        for (int64_t e = 0; e < (side ? 20 : 25) * D; e++)
            ck_assert(fabs((double)(d[0][side][e] - d[1][side][e])) <= 10 * tolerance);
    for (int64_t e = 7 * D; e < 9 * D; e++)
        ck_assert(d[0][1][e] == 0); /* keys that no query attends to */
    stop(&g);
}
END_TEST

WF_TEST_MAIN("packed", positions, a_memory_computed_once, gradients)
