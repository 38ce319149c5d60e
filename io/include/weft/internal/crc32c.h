/* SPDX-License-Identifier: MIT */
/* CRC-32C (Castagnoli; RFC 3720, appendix B.4): polynomial 0x1edc6f41, bits reflected. */
#ifndef WEFT_INTERNAL_CRC32C_H
#define WEFT_INTERNAL_CRC32C_H

#include <weft/base.h>

uint32_t wf_crc32c(const void *data, int64_t bytes);

#endif
