/* SPDX-License-Identifier: MIT */
/* The hash of bytes (weft/internal/hash.h). */
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include <weft/internal/hash.h>

/* Mixes two words as wyhash (Wang Yi) does: multiplies them and combines the two halves of the product. wf_hash keeps four independent
 * lanes, so that the processor need not wait for one multiplication before it starts the next. */
static inline uint64_t fold(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Odd numbers without a pattern: the first 64 bits of the fractions of the square roots of 2, 3, 5, 7 and 11, with the lowest bit set. */
static const uint64_t key[5] = {0x6A09E667F3BCC909, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1, 0x510E527FADE682D1};

enum { BLOCK = 64 };

static inline void mix(uint64_t lane[4], const unsigned char *block)
{
    uint64_t word[8];
    memcpy(word, block, BLOCK);
    for (int i = 0; i < 4; i++)
        lane[i] = fold(word[2 * i] ^ key[i], word[2 * i + 1] ^ lane[i]);
}

uint64_t wf_hash(const void *data, int64_t bytes, uint64_t seed)
{
    const unsigned char *p = data;
    uint64_t lane[4];
    for (int i = 0; i < 4; i++)
        lane[i] = fold(seed ^ key[i + 1], key[i]) + key[4];
    int64_t left = bytes;
    for (; left >= BLOCK; left -= BLOCK, p += BLOCK)
        mix(lane, p);
    if (left > 0) {
        unsigned char rest[BLOCK] = {0};
        memcpy(rest, p, (size_t)left);
        mix(lane, rest);
    }
    /* The length distinguishes an input from the same input with zeros appended. */
    uint64_t a = fold(lane[0] ^ key[1], lane[1] ^ (uint64_t)bytes), b = fold(lane[2] ^ key[3], lane[3] ^ seed);
    return fold(a ^ key[4], b ^ key[0]);
}

uint64_t wf_hash_key(void)
{
    uint64_t word;
    if (getrandom(&word, sizeof word, GRND_NONBLOCK) == (ssize_t)sizeof word)
        return word;
    /* If the call fails (early in the boot, or because it is forbidden), use the time and the address of the stack. */
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return wf_hash(&now, sizeof now, (uint64_t)(uintptr_t)&word);
}
