/* SPDX-License-Identifier: MIT */
/* Attention's gradients with few heads of keys, which are computed in pieces of queries. */
#include "attention_reference.h"

/* With few heads and many threads a head is cut into pieces of queries. The bits are those of one thread, which computes all pieces. */
START_TEST(pieces_equal_whole)
{
    enum { T = 600, S = 530, E = 24, F = 20, MOST = 4 };
    static const int32_t lengths[] = {400, 529}, q_offsets[] = {0, 300, 600}, k_offsets[] = {0, 0, 530};
    static const struct {
        int items, heads, kv_heads;
        bool twice; /* each operand has another use, whose gradient is there first */
        int bias;   /* its queries; 0: none */
        struct wf_attention_options o;
    } cases[] = {{1, 1, 1, false, 0, {.causal = true}},
                 {1, 4, 1, true, 0, {.causal = true}},
                 {2, 2, 1, false, 0, {.key_lengths = lengths}},
                 {1, 2, 2, true, T, {.window = 70}},
                 {2, 4, 2, false, T, {.dropout = 0.1}},
                 {2, 1, 1, false, 1, {.causal = true, .softcap = 3}},
                 {1, 3, 1, true, 0, {.window = 40, .causal = true, .starts = lengths}},
                 {1, 2, 1, false, 0, {.packed = {q_offsets, 2}, .k_packed = {k_offsets, 2}}}};
    wf_real *data[5] = {normals(2 * T * MOST * E, 1), normals(2 * S * MOST * E, 2), normals(2 * S * MOST * F, 3),
                        normals(2 * T * MOST * F, 4), normals(MOST * T * S, 5)};
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        const int64_t B = cases[n].items,
                      widths[4] = {cases[n].heads * E, cases[n].kv_heads * E, cases[n].kv_heads * F, cases[n].heads * F};
        wf_real *first[4] = {NULL};
        for (int threads = 1; threads <= 5; threads += threads == 1 ? 1 : 3) {
            ck_ok(wf_set_threads(threads, error));
            begin(WF_TRAIN);
            wf_tensor *x[5], *loss = NULL;
            for (int j = 0; j < 4; j++) {
                const int64_t rows = j == 0 || j == 3 ? T : S;
                x[j] = wf_input(tape, data[j], cases[n].o.packed.offsets ? WF_SHAPE(rows, widths[j]) : WF_SHAPE(B, rows, widths[j]), true);
            }
            struct wf_attention_options o = cases[n].o;
            o.heads = cases[n].heads;
            o.kv_heads = cases[n].kv_heads;
            if (cases[n].bias)
                o.bias = x[4] = wf_input(tape, data[4], WF_SHAPE(cases[n].heads, cases[n].bias, S), true);
            loss = wf_sum(wf_mul(wf_attention_with(x[0], x[1], x[2], &o), x[3]));
            for (int j = 0; j < 3 && cases[n].twice; j++)
                loss = wf_add(loss, wf_sum(wf_mul(x[j], x[j])));
            ck_assert_msg(wf_backward(loss) == WF_OK, "case %zu: %s", n, wf_tape_error(tape)->message);
            for (int j = 0; j < (cases[n].bias ? 4 : 3); j++) {
                wf_array g;
                ran(wf_grad(x[j == 3 ? 4 : j], &g));
                const size_t bytes = (size_t)wf_array_count(&g) * sizeof(wf_real);
                if (threads == 1)
                    first[j] = memcpy(malloc(bytes), g.data, bytes);
                else
                    ck_assert_msg(memcmp(first[j], g.data, bytes) == 0, "case %zu, operand %d: other bits on %d threads", n, j, threads);
            }
        }
        for (int j = 0; j < 4; j++)
            free(first[j]);
    }
    for (int j = 0; j < 5; j++)
        free(data[j]);
}
END_TEST

WF_TEST_MAIN("attention_pieces", pieces_equal_whole)
