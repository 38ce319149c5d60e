/* SPDX-License-Identifier: MIT */
/* Valid files with random damage, the same on every run: the reader accepts or refuses, and does nothing worse. An accepted file must be
 * consistent and readable to the end. tests/fuzz/safetensors.c searches without end. */
#include <time.h>

#include "../fuzz/safetensors.h"
#include "io_test.h"

enum { MUTANTS = 4000, SECONDS = 4, LARGEST = 4096 };

static uint64_t state;

static uint64_t draw(uint64_t below)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return below ? (state * 0x2545f4914f6cdd1du >> 11) % below : 0;
}

/* Pieces of headers that lead further than random bytes do. */
static const char *const words[] = {"0",
                                    "-1",
                                    "9223372036854775807",
                                    "18446744073709551616",
                                    "4294967296",
                                    "\"F64\"",
                                    "\"BOOL\"",
                                    "\"U8\"",
                                    "[",
                                    "]",
                                    "{",
                                    "}",
                                    ",",
                                    ":",
                                    "\"",
                                    "\\",
                                    "\\u0000",
                                    "null",
                                    "1.5",
                                    "1e999",
                                    "[]",
                                    "{}",
                                    "[[[[",
                                    "__metadata__",
                                    "shape",
                                    "dtype",
                                    "data_offsets",
                                    "\xff",
                                    "\xc3\xa9",
                                    " ",
                                    "\n",
                                    "[0,0]",
                                    "[0,4]"};

static int mutate(unsigned char *data, int bytes)
{
    for (uint64_t times = 1 + draw(4); times > 0; times--) {
        int at = (int)draw((uint64_t)bytes + 1), length = (int)draw(12);
        const char *word = words[draw(sizeof words / sizeof *words)];
        int room = (int)strlen(word);
        switch (draw(7)) {
        case 0: /* a bit */
            if (at < bytes)
                data[at] ^= (unsigned char)(1u << draw(8));
            break;
        case 1: /* a byte */
            if (at < bytes)
                data[at] = (unsigned char)draw(256);
            break;
        case 2: /* cut off */
            bytes = at;
            break;
        case 3: /* taken out */
            if (at + length <= bytes) {
                memmove(data + at, data + at + length, (size_t)(bytes - at - length));
                bytes -= length;
            }
            break;
        case 4: /* put in, the header's length corrected every other time */
            if (bytes + room <= LARGEST) {
                memmove(data + at + room, data + at, (size_t)(bytes - at));
                memcpy(data + at, word, (size_t)room);
                bytes += room;
                if (draw(2) && bytes >= 8)
                    data[0] = (unsigned char)(data[0] + room), data[1] = (unsigned char)(data[1] + (data[0] < room));
            }
            break;
        case 5: /* written over */
            if (at + room <= bytes)
                memcpy(data + at, word, (size_t)room);
            break;
        case 6: /* a digit */
            while (at < bytes && !(data[at] >= '0' && data[at] <= '9'))
                at++;
            if (at < bytes)
                data[at] = (unsigned char)('0' + draw(10));
            break;
        }
    }
    return bytes;
}

START_TEST(damaged_files_do_no_harm)
{
    static const char *const names[] = {"dtypes.safetensors", "floats.safetensors", "names.safetensors", "odd.safetensors"};
    int accepted = 0, tried = 0;
    time_t start = time(NULL);
    for (int f = 0; f < 4; f++) {
        int64_t bytes;
        char *seed = load_file(golden(names[f]), &bytes);
        ck_assert(read_everything((const unsigned char *)seed, (size_t)bytes));
        state = 88172645463325252u + (uint64_t)f;
        for (int m = 0; m < MUTANTS && time(NULL) - start <= SECONDS; m++, tried++) {
            unsigned char work[LARGEST];
            memcpy(work, seed, (size_t)bytes);
            int length = mutate(work, (int)bytes);
            unsigned char *exact = malloc((size_t)length + !length); /* so that a read past the end is seen */
            memcpy(exact, work, (size_t)length);
            accepted += read_everything(exact, (size_t)length);
            free(exact);
            ck_assert_int_eq(wf_alloc_live(), 1); /* the seed */
        }
        wf_free(seed);
    }
    ck_assert_msg(accepted > 0 && accepted < tried, "%d of %d accepted: the mutations are too weak or too strong", accepted, tried);
}
END_TEST

WF_TEST_MAIN("safetensors_mutate", damaged_files_do_no_harm)
