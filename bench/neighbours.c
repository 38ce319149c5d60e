/* SPDX-License-Identifier: MIT */
/* What other programs on the same processors cost: a training step's worth of short parallel regions, alone, beside programs that only
 * count, and beside another program like this one; with and without heed of stalls (core/parallel.c).
 *
 *   neighbours [-t threads]        prints milliseconds a step: median, and the longest */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weft/compute.h>
#include <weft/internal/testing.h>
#include <weft/runtime.h>

#include "measure.h"

/* A step of a small model: its regions, and what one block of a region takes. */
enum { STEPS = 100, REGIONS = 300, BLOCKS = 8, TURNS = 4000 };

static void one_block(void *ctx, int64_t block)
{
    double *sums = ctx, sum = (double)block;
    for (int i = 0; i < TURNS; i++)
        sum = sum * 0.999 + 1; /* a chain: some nanoseconds a turn on any processor */
    sums[block * 8] = sum;
}

static void step(double cost)
{
    static double sums[BLOCKS * 8];
    for (int i = 0; i < REGIONS; i++)
        wf_parallel(BLOCKS, cost, one_block, sums);
}

/* In nanoseconds of one thread, as wf_parallel wants it. */
static double cost_of_region(void)
{
    double least = 1e9, sums[BLOCKS * 8];
    for (int i = 0; i < 50; i++) {
        const double begin = seconds();
        one_block(sums, i % BLOCKS);
        const double took = (seconds() - begin) * 1e9 * BLOCKS;
        least = took < least ? took : least;
    }
    return least;
}

static void measure(const char *what, double cost)
{
    for (int heed = 1; heed >= 0; heed--) {
        double ms[STEPS], begin = seconds();
        int steps = 0;
        wf_stalls_heed(heed);
        while (steps < STEPS && seconds() - begin < 10) {
            double from = seconds();
            step(cost);
            ms[steps++] = (seconds() - from) * 1e3;
        }
        qsort(ms, (size_t)steps, sizeof *ms, ascending);
        printf("%-38s %-16s %8.1f ms (longest %.1f)\n", what, heed ? "stalls heeded" : "stalls ignored", ms[steps / 2], ms[steps - 1]);
    }
}

/* A program that counts for ever, or one that steps as this does. Before the library has started threads. */
static pid_t start(int threads)
{
    const pid_t child = fork();
    if (child != 0)
        return child;
    wf_error error = {0};
    if (threads > 0 && wf_init(&error, .threads = threads) != WF_OK)
        _exit(1);
    for (volatile unsigned long i = 0;; i++)
        if (threads > 0)
            step(1e5);
}

/* Each case in a process of its own: children begin before its threads do. */
static bool one_case(const char *what, int programs, int stepping, int threads)
{
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        pid_t others[64];
        int count = 0;
        for (; count < programs + stepping && count < 64; count++)
            if ((others[count] = start(count < programs ? 0 : threads)) < 0)
                break;
        wf_error error = {0};
        const bool good = wf_init(&error, .threads = threads) == WF_OK;
        if (good)
            measure(what, cost_of_region());
        else
            fprintf(stderr, "neighbours: %s\n", error.message);
        for (int i = 0; i < count; i++) {
            kill(others[i], SIGKILL);
            waitpid(others[i], NULL, 0);
        }
        fflush(stdout);
        _exit(good ? 0 : 1);
    }
    int status = 1;
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int main(int argc, char **argv)
{
    int threads = 0, letter;
    while ((letter = getopt(argc, argv, "t:")) != -1) {
        if (letter != 't')
            return 2;
        threads = atoi(optarg);
    }
    const int here = wf_processors();
    threads = threads > 0 ? threads : here;
    printf("%d threads on %d processors, steps of %d regions\n", threads, here, REGIONS);
    return one_case("alone", 0, 0, threads) && one_case("beside a program that counts", 1, 0, threads) &&
                   one_case("beside one for each processor", here, 0, threads) && one_case("beside a program like this", 0, 1, threads)
               ? 0
               : 1;
}
