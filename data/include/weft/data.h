/* SPDX-License-Identifier: MIT */
/* All headers of data/, which turns texts and arrays into batches. */
#ifndef WEFT_DATA_H
#define WEFT_DATA_H
#include <weft/batches.h>
#include <weft/bitext.h>
#include <weft/corpus.h>
#include <weft/epochs.h>
#include <weft/masking.h>
#include <weft/scans.h>
#include <weft/text_lines.h>
#endif
