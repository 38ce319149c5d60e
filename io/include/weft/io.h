/* SPDX-License-Identifier: MIT */
/* All of the room io that is installed. */
#ifndef WEFT_IO_H
#define WEFT_IO_H
#include <weft/events.h>
#include <weft/file.h>
#include <weft/npy.h>
#include <weft/safetensors.h>
#endif
