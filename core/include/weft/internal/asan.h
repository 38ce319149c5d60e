/* SPDX-License-Identifier: MIT */
/* Marks memory as inaccessible for AddressSanitizer. In other builds the macros cost nothing. */
#ifndef WEFT_INTERNAL_ASAN_H
#define WEFT_INTERNAL_ASAN_H

#if defined __has_feature /* clang has __has_feature instead of __SANITIZE_ADDRESS__ */
#if __has_feature(address_sanitizer) && !defined __SANITIZE_ADDRESS__
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

#if defined __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define WF_POISON(p, n) __asan_poison_memory_region(p, n)
#define WF_UNPOISON(p, n) __asan_unpoison_memory_region(p, n)
#else
#define WF_POISON(p, n) ((void)(p), (void)(n))
#define WF_UNPOISON(p, n) ((void)(p), (void)(n))
#endif

#endif
