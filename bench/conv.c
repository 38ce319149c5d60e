/* SPDX-License-Identifier: MIT */
/* Times convolutions, forward and backward. conv.py runs the same ones in PyTorch, in turn with these.
 *
 *   conv [-t THREADS] [-s SECONDS] [-n CASE] [-w]      a JSON line for each case, or for one: median milliseconds; -w: waits for a line of
 *                                                      standard input before
 */
#include <string.h>

#include <weft/ops.h>
#include <weft/random.h>
#include <weft/runtime.h>

#include "measure.h"

static const struct {
    const char *name;
    int64_t x[4], filters, kernel[2], stride, padding, groups;
    bool transposed;
} cases[] = {
    {"first layer", {16, 3, 32, 32}, 64, {3, 3}, 1, 1, 1, false},
    {"64 of 32 x 32", {16, 64, 32, 32}, 64, {3, 3}, 1, 1, 1, false},
    {"128 of 16 x 16", {16, 128, 16, 16}, 128, {3, 3}, 1, 1, 1, false},
    {"512 of 4 x 4", {16, 512, 4, 4}, 512, {3, 3}, 1, 1, 1, false},
    {"stride 2", {16, 64, 32, 32}, 128, {3, 3}, 2, 1, 1, false},
    {"one tap", {16, 128, 16, 16}, 256, {1, 1}, 1, 0, 1, false},
    {"7 x 7", {4, 3, 96, 96}, 64, {7, 7}, 2, 3, 1, false},
    {"depthwise", {16, 128, 32, 32}, 128, {3, 3}, 1, 1, 128, false},
    {"depthwise, stride 2", {16, 128, 32, 32}, 128, {3, 3}, 2, 1, 128, false},
    {"depthwise, 512 of 7 x 7", {16, 512, 7, 7}, 512, {3, 3}, 1, 1, 512, false},
    {"depthwise, 7 x 7 taps", {8, 192, 28, 28}, 192, {7, 7}, 1, 3, 192, false},
    {"groups", {16, 128, 16, 16}, 128, {3, 3}, 1, 1, 8, false},
    {"sequence", {16, 256, 1, 256}, 256, {1, 3}, 1, 1, 1, false},
    {"sequence, depthwise", {8, 512, 1, 1024}, 512, {1, 4}, 1, 3, 512, false},
    {"transposed", {16, 128, 16, 16}, 64, {4, 4}, 2, 1, 1, true},
};
enum { CASES = sizeof cases / sizeof *cases, MOST = 1000 };

static wf_tensor *normal(wf_tape *tape, const wf_shape *shape, bool grad)
{
    const int64_t n = wf_shape_count(shape);
    wf_real *x = room(n, sizeof *x);
    wf_fill_normal(x, n, 0, 1, 1, (uint64_t)n);
    wf_tensor *t = wf_input(tape, x, shape, grad);
    free(x);
    return t;
}

static double once(wf_tape *tape, int i)
{
    const int dims = cases[i].x[2] > 1 ? 2 : 1;
    wf_tape_reset(tape, WF_GRADIENTS);
    const wf_shape xs = dims == 2 ? (wf_shape){4, {cases[i].x[0], cases[i].x[1], cases[i].x[2], cases[i].x[3]}}
                                  : (wf_shape){3, {cases[i].x[0], cases[i].x[1], cases[i].x[3]}};
    const int64_t f = cases[i].filters, c = cases[i].x[1], g = cases[i].groups;
    const int64_t rows = cases[i].transposed ? c : f, cols = (cases[i].transposed ? f : c) / g;
    const wf_shape ws =
        dims == 2 ? (wf_shape){4, {rows, cols, cases[i].kernel[0], cases[i].kernel[1]}} : (wf_shape){3, {rows, cols, cases[i].kernel[1]}};
    wf_tensor *x = normal(tape, &xs, true), *w = normal(tape, &ws, true), *b = normal(tape, &(wf_shape){1, {f}}, true);
    const double begin = seconds();
    wf_tensor *y = cases[i].transposed ? wf_conv_transpose(x, w, b, .stride = cases[i].stride, .padding = cases[i].padding, .groups = g)
                                       : wf_conv(x, w, b, .stride = cases[i].stride, .padding = cases[i].padding, .groups = g);
    const wf_shape ys = wf_shape_of(y);
    wf_tensor *dy = wf_zeros(tape, &ys);
    if (wf_backward(y, .gradient = dy) != WF_OK)
        exit(fail(wf_tape_error(tape)->message));
    return seconds() - begin;
}

int main(int argc, char **argv)
{
    const char *value[128] = {0};
    wf_error error = {0};
    if (!read_options(argc, argv, "t:s:n:w", value) || optind != argc)
        return fail("usage: conv [-t THREADS] [-s SECONDS] [-n CASE] [-w]");
    if (wf_init(&error, .threads = (int)number_or(value['t'], 0)) != WF_OK)
        return fail(error.message);
    wf_tape *tape = wf_tape_new(&error);
    if (!tape)
        return fail(error.message);
    char line[16];
    bool found = false;
    for (int i = 0; i < CASES; i++) {
        double time[MOST];
        int count = 0;
        if (value['n'] && strcmp(value['n'], cases[i].name) != 0)
            continue;
        found = true;
        if (value['w'] && !fgets(line, sizeof line, stdin))
            break;
        once(tape, i);
        for (double begin = seconds(); count < 3 || (count < MOST && seconds() - begin < number_or(value['s'], 0.5)); count++)
            time[count] = once(tape, i);
        printf("{\"case\": \"%s\", \"x\": [%lld, %lld, %lld, %lld], \"filters\": %lld, \"kernel\": [%lld, %lld], \"stride\": %lld, "
               "\"padding\": "
               "%lld, \"groups\": %lld, \"transposed\": %s, \"ms\": %.3f}\n",
               cases[i].name, (long long)cases[i].x[0], (long long)cases[i].x[1], (long long)cases[i].x[2], (long long)cases[i].x[3],
               (long long)cases[i].filters, (long long)cases[i].kernel[0], (long long)cases[i].kernel[1], (long long)cases[i].stride,
               (long long)cases[i].padding, (long long)cases[i].groups, cases[i].transposed ? "true" : "false", 1e3 * median(time, count));
        fflush(stdout);
    }
    wf_tape_free(tape);
    return found ? 0 : fail("-n: there is no such case");
}
