/* SPDX-License-Identifier: MIT */
/* Includes all public headers of core. */
#ifndef WEFT_CORE_H
#define WEFT_CORE_H
#include <weft/array.h>
#include <weft/base.h>
#include <weft/compute.h>
#include <weft/error.h>
#include <weft/memory.h>
#include <weft/packed.h>
#include <weft/pairs.h>
#include <weft/random.h>
#include <weft/runtime.h>
#include <weft/strings.h>
#endif
