# SPDX-License-Identifier: MIT
"""Golden values of wf_epochs_item: the permutation written a second time, from the description in data/include/weft/epochs.h, in Python's
whole numbers. usage: python3 make_epochs.py            writes tests/golden/data/epochs.txt; needs Python 3.8 alone
A line: items, seed, epoch, then up to 16 places and the items there."""
import pathlib, random

MASK64 = (1 << 64) - 1


def philox4x32(counter, key):
    # Salmon et al. 2011, section 3.3
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [b >> 32 ^ c[1] ^ k[0], b & 0xFFFFFFFF, a >> 32 ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


# Random123's kat_vectors
assert philox4x32([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


def mix(x, bits):
    x &= MASK64
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK64
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK64
    return (x ^ x >> 31) >> (64 - bits)


def item(items, seed, epoch, place):
    bits = max(8, (items - 1).bit_length())
    wide, narrow = bits - bits // 2, bits // 2
    keys = []
    for i in range(4):
        w = philox4x32([epoch & 0xFFFFFFFF, epoch >> 32, i, int.from_bytes(b'epch', 'little')], [seed & 0xFFFFFFFF, seed >> 32])
        keys += [w[1] << 32 | w[0], w[3] << 32 | w[2]]
    x = place
    while True:
        high, low = x >> wide, x & (1 << wide) - 1
        for i in range(0, 8, 2):
            high ^= mix(low + keys[i], narrow)
            low ^= mix(high + keys[i + 1], wide)
        x = high << wide | low
        if x < items:
            return x


lines = []
random.seed(1)
for items in (1, 2, 3, 10, 100, 255, 256, 257, 1000, 60000, 1 << 20, (1 << 31) + 7, (1 << 40) + 1, (1 << 63) - 1):
    for seed, epoch in ((0, 0), (1, 0), (1, 1), (0xFEDCBA9876543210, 3), (MASK64, (1 << 33) + 5)):
        places = range(items) if items <= 16 else sorted({0, items - 1} | {random.randrange(items) for _ in range(14)})
        lines.append(f'{items} {seed} {epoch} ' + ' '.join(f'{p}:{item(items, seed, epoch, p)}' for p in places))
out = pathlib.Path(__file__).parent / 'data' / 'epochs.txt'
out.write_text('\n'.join(lines) + '\n')
print(len(lines), 'lines')
