/* SPDX-License-Identifier: MIT */
/* All of the room data: texts in, batches out. */
#ifndef WEFT_DATA_H
#define WEFT_DATA_H
#include <weft/batches.h>
#include <weft/bitext.h>
#include <weft/corpus.h>
#include <weft/masking.h>
#endif
