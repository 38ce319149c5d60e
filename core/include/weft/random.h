/* SPDX-License-Identifier: MIT */
/* Random numbers by Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011). A random number is a function of a
 * key and a counter, so it does not depend on threads or on the order of calls. */
#ifndef WEFT_RANDOM_H
#define WEFT_RANDOM_H

#include <weft/base.h>

WF_BEGIN_DECLS

/* out = Philox4x32-10(counter, key). Test vectors: Random123's kat_vectors. */
WF_API void wf_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* A position in the random stream that `seed` and `stream` select. The struct is a plain value: copy it to save the position. */
typedef struct wf_rng {
    uint64_t seed, stream;
    uint64_t position; /* number of the next 32-bit word */
} wf_rng;

WF_API wf_rng wf_rng_new(uint64_t seed, uint64_t stream); /* at position 0 */
WF_API uint32_t wf_rng_next(wf_rng *rng);
WF_API uint64_t wf_rng_below(wf_rng *rng, uint64_t n); /* uniform in 0 .. n-1, without bias; n > 0 */
WF_API double wf_rng_uniform(wf_rng *rng);             /* uniform in [0, 1), a multiple of 2^-53 */
WF_API double wf_rng_normal(wf_rng *rng);              /* normal with mean 0 and variance 1, by Box and Muller's method */
/* The number of a stream, from a name (FNV-1a, 64 bits). Each parameter is initialised from the stream of its name. */
WF_API uint64_t wf_stream_of(const char *name);

/* Fills x[n] with numbers from [low, high), or from N(mean, deviation^2). Each number depends only on seed, stream and its index. */
WF_API void wf_fill_uniform(wf_real *x, int64_t n, double low, double high, uint64_t seed, uint64_t stream);
WF_API void wf_fill_normal(wf_real *x, int64_t n, double mean, double deviation, uint64_t seed, uint64_t stream);

WF_END_DECLS

#endif
