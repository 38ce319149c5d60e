/* SPDX-License-Identifier: MIT */
/* Times the selective scan and the block of Mamba, forward and backward: milliseconds, the median of passes. bench/torch_ssm.py times
 * PyTorch beside it.
 *
 *   ssm [-t threads] [-f] [-c] [-s CASE] [-j]
 *
 * -f: the forward alone, in WF_INFER; -c: processor time in place of the clock, for a busy machine; -s: one case, by its number from 0; -j:
 * one JSON object in place of a table */
#include <weft/random.h>
#include <weft/runtime.h>
#include <weft/ssm.h>

#include "measure.h"

static const struct {
    const char *name;
    int64_t B, T, E, N;
    int passes;
    bool block; /* the block of width E / 2, not the scan alone */
} cases[] = {
    {"scan 4 x 256 x 256 x 16", 4, 256, 256, 16, 61, false},
    {"block 4 x 256 x 256 x 16", 4, 256, 256, 16, 41, true},
    {"block 1 x 1 x 512 x 16", 1, 1, 512, 16, 201, true},
};

static double time_of(int at, bool forward, bool processor)
{
    wf_error error = {0};
    struct wf_ssm m;
    wf_registry *registry = wf_registry_new(&error);
    wf_tape *tape = wf_tape_new(&error);
    const int64_t B = cases[at].B, T = cases[at].T, E = cases[at].E, N = cases[at].N;
    wf_real *x = room(B * T * E, sizeof *x), *dt = room(B * T * E, sizeof *dt), *bc = room(2 * B * T * N, sizeof *bc),
            *a = room(E * N, sizeof *a);
    double ms[256];
    wf_ssm_init(wf_root(registry), &m, E / 2, .states = N);
    if (!registry || !tape || wf_registry_build(registry, 1, &error) != WF_OK)
        exit(fail(error.message));
    wf_fill_normal(x, B * T * E, 0, 1, 1, 2);
    wf_fill_normal(dt, B * T * E, -3, 1, 1, 3);
    wf_fill_normal(bc, 2 * B * T * N, 0, 1, 1, 4);
    for (int64_t i = 0; i < E * N; i++)
        a[i] = -1 - (wf_real)(i % N);
    for (int i = -2; i < cases[at].passes; i++) {
        wf_registry_zero_grads(registry);
        wf_tape_reset(tape, forward ? WF_INFER : WF_GRADIENTS);
        wf_tensor *in[5] = {wf_input(tape, x, WF_SHAPE(B, T, cases[at].block ? E / 2 : E), !forward)}, *y;
        if (!cases[at].block) {
            in[1] = wf_input(tape, dt, WF_SHAPE(B, T, E), !forward);
            in[2] = wf_input(tape, a, WF_SHAPE(E, N), !forward);
            in[3] = wf_input(tape, bc, WF_SHAPE(B, T, N), !forward);
            in[4] = wf_input(tape, bc + B * T * N, WF_SHAPE(B, T, N), !forward);
        }
        const double start = seconds_of(processor);
        y = cases[at].block ? wf_ssm_forward(&m, in[0]) : wf_selective_scan(in[0], in[1], in[2], in[3], in[4], .d = m.d, .softplus = true);
        if (!forward && wf_backward(wf_sum(y)) != WF_OK)
            exit(fail(wf_tape_error(tape)->message));
        if (i >= 0)
            ms[i] = 1e3 * (seconds_of(processor) - start);
    }
    wf_tape_free(tape);
    wf_registry_free(registry);
    free(x);
    free(dt);
    free(bc);
    free(a);
    return median(ms, cases[at].passes);
}

int main(int argc, char **argv)
{
    const char *value[128] = {NULL};
    wf_error error = {0};
    if (!read_options(argc, argv, "t:fcs:j", value))
        return 2;
    if (wf_init(&error, .threads = (int)number_or(value['t'], 2)) != WF_OK)
        return fail(error.message);
    const int count = (int)(sizeof cases / sizeof *cases), one = (int)number_or(value['s'], -1);
    const char *before = value['j'] ? "{" : "";
    for (int i = 0; i < count; i++) {
        if (one >= 0 && i != one)
            continue;
        printf(value['j'] ? "%s\"%s\": %.4f" : "%s%-26s %10.3f ms\n", before, cases[i].name, time_of(i, value['f'], value['c']));
        before = value['j'] ? ", " : "";
    }
    if (value['j'])
        printf("}\n");
    return 0;
}
