/* SPDX-License-Identifier: MIT */
/* Times the modules LSTM and GRU, forward and backward: milliseconds, the median of passes. bench/torch_recurrent.py times PyTorch's
 * nn.LSTM and nn.GRU beside it.
 *
 *   recurrent [-t threads] [-f] [-c] [-s T] [-j]
 *
 * -f: the forward alone, in WF_INFER; -c: processor time in place of the clock, for a busy machine; -s: at most T steps; -j: one JSON
 * object in place of a table */
#include <weft/lstm.h>
#include <weft/random.h>
#include <weft/runtime.h>

#include "measure.h"

static const struct {
    const char *name;
    int64_t B, T, H;
    int passes;
    bool gru;
} cases[] = {
    {"LSTM 16 x 64 x 128", 16, 64, 128, 41, false},  {"GRU 16 x 64 x 128", 16, 64, 128, 41, true},
    {"LSTM 64 x 256 x 512", 64, 256, 512, 5, false}, {"GRU 64 x 256 x 512", 64, 256, 512, 5, true},
    {"LSTM 1 x 1 x 512", 1, 1, 512, 201, false},
};

static double time_of(int at, bool forward, bool processor, int64_t most)
{
    wf_error error = {0};
    struct wf_recurrent m;
    wf_registry *registry = wf_registry_new(&error);
    wf_tape *tape = wf_tape_new(&error);
    const int64_t B = cases[at].B, T = cases[at].T < most ? cases[at].T : most, H = cases[at].H;
    wf_real *x = room(B * T * H, sizeof *x);
    double ms[256];
    (cases[at].gru ? wf_gru_init_with : wf_lstm_init_with)(wf_root(registry), &m, H, H, NULL);
    if (!registry || !tape || wf_registry_build(registry, 1, &error) != WF_OK)
        exit(fail(error.message));
    wf_fill_normal(x, B * T * H, 0, 1, 1, 2);
    for (int i = -2; i < cases[at].passes; i++) {
        wf_registry_zero_grads(registry);
        wf_tape_reset(tape, forward ? WF_INFER : WF_GRADIENTS);
        wf_tensor *in = wf_input(tape, x, WF_SHAPE(B, T, H), !forward);
        const double start = seconds_of(processor);
        wf_tensor *y = wf_recurrent_forward(&m, in);
        if (!forward && wf_backward(wf_sum(y)) != WF_OK)
            exit(fail(wf_tape_error(tape)->message));
        if (i >= 0)
            ms[i] = 1e3 * (seconds_of(processor) - start);
    }
    wf_tape_free(tape);
    wf_registry_free(registry);
    free(x);
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
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++)
        printf(value['j'] ? "%s\"%s\": %.4f" : "%s%-22s %10.3f ms\n",
               !value['j'] ? ""
               : i         ? ", "
                           : "{",
               cases[i].name, time_of(i, value['f'], value['c'], (int64_t)number_or(value['s'], 1e9)));
    if (value['j'])
        printf("}\n");
    return 0;
}
