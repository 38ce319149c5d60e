/* SPDX-License-Identifier: MIT */
/* A fast hash of bytes: to tell contents apart and to find damage, not against people who look for collisions. */
#ifndef WEFT_INTERNAL_HASH_H
#define WEFT_INTERNAL_HASH_H

#include <weft/base.h>

/* 64 bits of `bytes` bytes and a seed; the same on every machine and in every version, so that files may hold it. Some 10 GB/s.
 * Every bit of input and seed moves about half of the bits; a run of zeros hashes by its length. */
uint64_t wf_hash(const void *data, int64_t bytes, uint64_t seed);

/* A word that nobody can predict, for tables with keys from foreign files. No result may depend on the word. */
uint64_t wf_hash_key(void);

#endif
