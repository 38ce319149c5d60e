/* SPDX-License-Identifier: MIT */
/* A fast hash of bytes, to compare contents and to detect damage. It does not resist an attacker who looks for collisions. */
#ifndef WEFT_INTERNAL_HASH_H
#define WEFT_INTERNAL_HASH_H

#include <weft/base.h>

/* A 64-bit hash of `bytes` bytes and a seed, computed at some 10 GB/s. It is the same on every machine and in every version, so that
 * files may contain it. A change of one bit of the input or the seed changes about half of the bits. Runs of zeros of different lengths
 * have different hashes. */
uint64_t wf_hash(const void *data, int64_t bytes, uint64_t seed);

/* Returns a random word that nobody can predict, the seed for hash tables whose keys come from foreign files. No result may depend on the
 * word. */
uint64_t wf_hash_key(void);

#endif
