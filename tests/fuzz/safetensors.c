/* SPDX-License-Identifier: MIT */
/* The reader of safetensors under libFuzzer. */
#include "safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    read_everything(data, bytes);
    return 0;
}
