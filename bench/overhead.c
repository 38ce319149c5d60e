/* SPDX-License-Identifier: MIT */
/* Measures what an op costs in addition to its arithmetic, by a chain of additions of 16 numbers, forward and backward, on one thread;
 * and what it costs to distribute work, by an empty job (a call of wf_parallel with an empty function) on all threads.
 *
 *   overhead        prints the nanoseconds of an addition and of a job: minimum and median of 200 passes, each with
 *                   1,000 additions or jobs */
#include <weft/compute.h>
#include <weft/ops.h>
#include <weft/runtime.h>

#include "measure.h"

enum { CHAIN = 1000, WIDTH = 16, PASSES = 200 };

static void nothing(void *ctx, int64_t block)
{
    (void)ctx, (void)block;
}

static void time_jobs(int threads)
{
    double ns[PASSES];
    for (int pass = -3; pass < PASSES; pass++) {
        double begin = seconds();
        for (int i = 0; i < CHAIN; i++)
            wf_parallel(threads, 1e9, nothing, NULL);
        if (pass >= 0)
            ns[pass] = (seconds() - begin) * 1e9 / CHAIN;
    }
    const double middle = median(ns, PASSES);
    printf("%.0f ns a job on %d threads (median %.0f)\n", ns[0], threads, middle);
}

int main(void)
{
    wf_error error = {0};
    wf_tape *tape = wf_init(&error, .threads = 1) == WF_OK ? wf_tape_new(&error) : NULL;
    if (!tape)
        return fail(error.message);
    wf_real data[WIDTH];
    for (int i = 0; i < WIDTH; i++)
        data[i] = (wf_real)(i + 1) / WIDTH;
    double ns[PASSES];
    for (int pass = -3; pass < PASSES; pass++) { /* the first three passes only warm up */
        double begin = seconds();
        wf_tape_reset(tape, WF_TRAIN);
        wf_tensor *x = wf_input(tape, data, &(wf_shape){1, {WIDTH}}, true), *y = x;
        for (int i = 0; i < CHAIN; i++)
            y = wf_add(y, x);
        wf_array gradient;
        if (wf_backward(wf_sum(y)) != WF_OK || wf_grad(x, &gradient) != WF_OK || *(wf_real *)gradient.data != CHAIN + 1)
            return fail(wf_tape_error(tape)->message);
        if (pass >= 0)
            ns[pass] = (seconds() - begin) * 1e9 / CHAIN;
    }
    const double middle = median(ns, PASSES);
    printf("%.0f ns an addition (median %.0f), %.0f KiB of tape\n", ns[0], middle, wf_tape_stats(tape).peak / 1024.0);
    wf_tape_free(tape);
    if (wf_set_threads(wf_processors(), &error) == WF_OK && wf_processors() > 1)
        time_jobs(wf_processors());
    return 0;
}
