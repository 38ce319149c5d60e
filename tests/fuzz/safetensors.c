/* SPDX-License-Identifier: MIT */
/* The reader of safetensors under libFuzzer. Seeds: tests/golden/io.
 *
 *   clang -fsanitize=fuzzer,address,undefined -g -O1 -D_GNU_SOURCE -fopenmp -Icore/include -Iio/include tests/fuzz/safetensors.c \
 *       io/[all but event_records, events].c core/{error,memory,array,convert,copy,parallel,processors...}.c -ljansson -lm -o fuzz                        */
#include "safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    read_everything(data, bytes);
    return 0;
}
