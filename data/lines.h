/* SPDX-License-Identifier: MIT */
#include <weft/internal/lines.h>
