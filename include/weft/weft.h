/* SPDX-License-Identifier: MIT */
/* All of Weft. Each header may also be included alone. */
#ifndef WEFT_WEFT_H
#define WEFT_WEFT_H

#include <weft/core.h>

#include <weft/op.h>
#include <weft/ops.h>
#include <weft/tape.h>

#endif
