/* SPDX-License-Identifier: MIT */
/* The reader of NumPy's arrays under libFuzzer. */
#include "npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    read_array(data, bytes);
    return 0;
}
