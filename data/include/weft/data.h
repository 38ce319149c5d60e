/* SPDX-License-Identifier: MIT */
/* All of the room data: text in, batches out. */
#ifndef WEFT_DATA_H
#define WEFT_DATA_H
#include <weft/batches.h>
#include <weft/bitext.h>
#include <weft/corpus.h>
#include <weft/detokenize.h>
#include <weft/masking.h>
#include <weft/score.h>
#include <weft/text.h>
#include <weft/tokenizer.h>
#endif
