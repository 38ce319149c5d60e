/* SPDX-License-Identifier: MIT */
/* Philox for one counter, the generator wf_rng, and fills of whole arrays (weft/random.h). */
#include <math.h>

#include <weft/compute.h>
#include <weft/random.h>

#include "philox.h"

void wf_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    for (int i = 0; i < 4; i++)
        out[i] = counter[i];
    philox_rounds((uint64_t)key[1] << 32 | key[0], out);
}

/* Computes block `index` of a stream: the words 4 index .. 4 index + 3 of the stream. */
static void block_of(uint64_t seed, uint64_t stream, uint64_t index, uint32_t out[4])
{
    out[0] = (uint32_t)index;
    out[1] = (uint32_t)(index >> 32);
    out[2] = (uint32_t)stream;
    out[3] = (uint32_t)(stream >> 32);
    philox_rounds(seed, out);
}

wf_rng wf_rng_new(uint64_t seed, uint64_t stream)
{
    return (wf_rng){.seed = seed, .stream = stream};
}

uint32_t wf_rng_next(wf_rng *rng)
{
    uint32_t out[4];
    block_of(rng->seed, rng->stream, rng->position >> 2, out);
    return out[rng->position++ & 3];
}

static uint64_t next64(wf_rng *rng)
{
    uint64_t low = wf_rng_next(rng);
    return (uint64_t)wf_rng_next(rng) << 32 | low;
}

/* Lemire, "Fast random integer generation in an interval" (2019). The result is the high half of random * n. The low half identifies the
 * few products that would make some results too frequent; these are rejected. */
uint64_t wf_rng_below(wf_rng *rng, uint64_t n)
{
    if (n <= UINT32_MAX) {
        uint32_t m = (uint32_t)n, reject = -m % m;
        for (;;) {
            uint64_t product = (uint64_t)wf_rng_next(rng) * m;
            if ((uint32_t)product >= reject)
                return product >> 32;
        }
    }
    uint64_t reject = -n % n;
    for (;;) {
        unsigned __int128 product = (unsigned __int128)next64(rng) * n;
        if ((uint64_t)product >= reject)
            return (uint64_t)(product >> 64);
    }
}

static double unit(uint32_t low, uint32_t high)
{
    return (double)(((uint64_t)high << 32 | low) >> 11) * 0x1p-53;
}

double wf_rng_uniform(wf_rng *rng)
{
    uint32_t low = wf_rng_next(rng);
    return unit(low, wf_rng_next(rng));
}

/* Box and Muller (1958). u is a multiple of 2^-53 in [0, 1), so that 1 - u is exact and never 0. */
static void normal_pair(double u, double v, double out[2])
{
    double radius = sqrt(-2 * log(1 - u)), angle = 2 * M_PI * v;
    double sine, cosine;
    sincos(angle, &sine, &cosine);
    out[0] = radius * cosine;
    out[1] = radius * sine;
}

double wf_rng_normal(wf_rng *rng)
{
    double u = wf_rng_uniform(rng), v = wf_rng_uniform(rng), pair[2];
    normal_pair(u, v, pair);
    return pair[0];
}

uint64_t wf_stream_of(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 0x100000001b3;
    return hash;
}

/* The uniform and the normal fill compute element i from block i / 2 of the stream, in double, so that the float and the double library
 * start from the same numbers. */
struct fill {
    wf_real *x;
    bool normal;
    double a; /* low, or the mean */
    double b; /* high - low, or the deviation */
    uint64_t seed, stream;
};

enum { FILL_GRAIN = 4096 }; /* even, so that both elements of a pair are in one range */

static void fill(void *ctx, int64_t begin, int64_t end)
{
    const struct fill *f = ctx;
    for (int64_t i = begin; i < end; i += 2) {
        uint32_t r[4];
        block_of(f->seed, f->stream, (uint64_t)i / 2, r);
        double pair[2] = {unit(r[0], r[1]), unit(r[2], r[3])};
        if (f->normal)
            normal_pair(pair[0], pair[1], pair);
        f->x[i] = (wf_real)(f->a + f->b * pair[0]);
        if (i + 1 < end)
            f->x[i + 1] = (wf_real)(f->a + f->b * pair[1]);
    }
}

void wf_fill_uniform(wf_real *x, int64_t n, double low, double high, uint64_t seed, uint64_t stream)
{
    struct fill f = {x, false, low, high - low, seed, stream};
    wf_parallel_ranges(n, FILL_GRAIN, 8.0 * (double)n, fill, &f);
}

void wf_fill_normal(wf_real *x, int64_t n, double mean, double deviation, uint64_t seed, uint64_t stream)
{
    struct fill f = {x, true, mean, deviation, seed, stream};
    wf_parallel_ranges(n, FILL_GRAIN, 25.0 * (double)n, fill, &f);
}
