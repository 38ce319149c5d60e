/* SPDX-License-Identifier: MIT */
/* Includes all public headers for files. */
#ifndef WEFT_IO_H
#define WEFT_IO_H
#include <weft/events.h>
#include <weft/file.h>
#include <weft/npy.h>
#include <weft/safetensors.h>
#endif
