/* SPDX-License-Identifier: MIT */
/* Numbers that the tests and tests/golden/torch_reference.py make alike, so that weights and inputs need no files: a hash of
 * (name, index), and nothing of the library. All are representable in float. */
#ifndef TESTS_GOLDEN_FORMULA_H
#define TESTS_GOLDEN_FORMULA_H

#include <stdint.h>

/* FNV-1a of name, over 64 bits; a second part may follow. */
static inline uint64_t formula_name(const char *first, const char *second)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (const char *p = first; *p; p++)
        h = (h ^ (uint8_t)*p) * 0x100000001b3u;
    for (const char *p = second; p && *p; p++)
        h = (h ^ (uint8_t)*p) * 0x100000001b3u;
    return h;
}

/* SplitMix64 (Steele, Lea and Flood 2014) at place i of the stream that a name begins. */
static inline uint64_t formula_hash(uint64_t name, int64_t i)
{
    uint64_t z = name + ((uint64_t)i + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* In [-scale, scale). */
static inline double formula_real(uint64_t name, int64_t i, double scale)
{
    double u = ((double)(formula_hash(name, i) >> 40) - 8388608.0) / 8388608.0;
    return (double)(float)(u * scale);
}

static inline int32_t formula_id(uint64_t name, int64_t i, int32_t n)
{
    return (int32_t)((formula_hash(name, i) >> 33) % (uint64_t)n);
}

/* +1 or -1: the signs of projection j = 0 .. 31. */
static inline double formula_sign(uint64_t hash, int j)
{
    return (hash >> j & 1) ? 1.0 : -1.0;
}

#endif
