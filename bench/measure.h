/* SPDX-License-Identifier: MIT */
/* Options, messages, memory, time and medians for the programs that measure. */
#ifndef WEFT_BENCH_MEASURE_H
#define WEFT_BENCH_MEASURE_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Prints a message and returns the exit code for a failure. */
static inline int fail(const char *message)
{
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, message);
    return 1;
}

/* Returns memory for `count` elements of `size` bytes, all zero. It has one element more, so that it is not NULL for a count of 0. Ends
 * the program if there is no memory. */
static inline void *room(int64_t count, size_t size)
{
    void *block = calloc((size_t)count + 1, size);
    if (!block)
        exit(fail("no memory"));
    return block;
}

/* Reads options, which `letters` describes as for getopt: value['x'] becomes the argument of -x, or "" if -x takes none. Returns false if
 * an option is unknown. */
static inline bool read_options(int argc, char **argv, const char *letters, const char *value[128])
{
    for (int letter; (letter = getopt(argc, argv, letters)) != -1;) {
        if (letter == '?')
            return false;
        value[letter] = optarg ? optarg : "";
    }
    return true;
}

static inline double number_or(const char *text, double otherwise)
{
    return text ? atof(text) : otherwise;
}

/* Seconds of the clock, or of this process's time on processors, which other programs do not lengthen much. */
static inline double seconds_of(bool processor)
{
    struct timespec t;
    clock_gettime(processor ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline double seconds(void)
{
    return seconds_of(false);
}

/* Compares two doubles for qsort. */
static inline int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts x[count] and returns the median. */
static inline double median(double *x, int64_t count)
{
    qsort(x, (size_t)count, sizeof *x, ascending);
    return x[count / 2];
}

#endif
