/* SPDX-License-Identifier: MIT */
#include "check_weft.h"
#include <weft/internal/hash.h>

static int bits(uint64_t x)
{
    return __builtin_popcountll(x);
}

/* Files hold these values: they must never change. */
START_TEST(known_values)
{
    unsigned char data[256];
    for (int i = 0; i < 256; i++)
        data[i] = (unsigned char)(i * 7 + 3);
    static const struct {
        int64_t bytes;
        uint64_t seed, hash;
    } known[] = {
        {0, 0, 0x43C5F9C51BE6971B},  {1, 0, 0x6F2CC6C2A0257C44},  {63, 0, 0x78E1175380BCFA40},
        {64, 0, 0x38D53C5EF15FF5A7}, {65, 0, 0x2F6F7DBB2D017F7E}, {256, 1, 0xAD27FFCFCA5B4B11},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        ck_assert_msg(wf_hash(data, known[i].bytes, known[i].seed) == known[i].hash, "%d bytes: 0x%016llX", (int)known[i].bytes,
                      (unsigned long long)wf_hash(data, known[i].bytes, known[i].seed));
}
END_TEST

/* Each bit of the input, and each of the seed, moves half of the result; by place, nowhere far from it. */
START_TEST(every_bit_counts)
{
    for (int bytes = 1; bytes <= 200; bytes += bytes < 20 ? 1 : 29) {
        unsigned char data[200];
        for (int i = 0; i < bytes; i++)
            data[i] = (unsigned char)(i * i + 11);
        uint64_t base = wf_hash(data, bytes, 5);
        int64_t sum = 0, flips = 0;
        for (int bit = 0; bit < 8 * bytes; bit++) {
            data[bit / 8] ^= (unsigned char)(1 << bit % 8);
            int moved = bits(base ^ wf_hash(data, bytes, 5));
            ck_assert_msg(moved >= 8 && moved <= 56, "%d bytes, bit %d: %d bits move", bytes, bit, moved);
            sum += moved;
            flips++;
            data[bit / 8] ^= (unsigned char)(1 << bit % 8);
        }
        for (int bit = 0; bit < 64; bit++) {
            int moved = bits(base ^ wf_hash(data, bytes, 5 ^ (uint64_t)1 << bit));
            ck_assert_msg(moved >= 8 && moved <= 56, "%d bytes, bit %d of the seed: %d bits move", bytes, bit, moved);
            sum += moved;
            flips++;
        }
        double mean = (double)sum / (double)flips;
        ck_assert_msg(mean > 30 && mean < 34, "%d bytes: %g bits move on average", bytes, mean);
    }
}
END_TEST

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Zeros of every length, and texts that differ in an order of words, do not collide. */
START_TEST(alike_inputs_differ)
{
    enum { N = 20000 };
    static unsigned char zeros[N];
    static uint64_t hash[2 * N];
    for (int i = 0; i < N; i++) {
        char text[64];
        int length = snprintf(text, sizeof text, "%d %d", i % 141, i / 141);
        hash[i] = wf_hash(zeros, i, 0);
        hash[N + i] = wf_hash(text, length, 0);
    }
    qsort(hash, 2 * N, sizeof *hash, compare);
    for (int i = 1; i < 2 * N; i++)
        ck_assert(hash[i] != hash[i - 1]);
}
END_TEST

/* The hash is of the bytes alone: their address and their neighbours do not matter. */
START_TEST(depends_on_the_bytes_alone)
{
    unsigned char data[400];
    memset(data, 0xA5, sizeof data);
    for (int bytes = 0; bytes < 150; bytes++) {
        uint64_t first = 0;
        for (int at = 0; at < 70; at++) {
            memset(data, at, sizeof data);
            for (int i = 0; i < bytes; i++)
                data[at + i] = (unsigned char)(i + 1);
            uint64_t hash = wf_hash(data + at, bytes, 0);
            ck_assert(at == 0 || hash == first);
            first = hash;
        }
    }
}
END_TEST

WF_TEST_MAIN("hash", known_values, every_bit_counts, alike_inputs_differ, depends_on_the_bytes_alone)
