/* SPDX-License-Identifier: MIT */
/* Between enter and leave the calling thread is in the C locale: printf, strtod and jansson then know no decimal comma. */
#ifndef WEFT_IO_LOCALE_C_H
#define WEFT_IO_LOCALE_C_H

#include <locale.h>

/* newlocale gives the C locale as a constant object: it neither allocates nor fails, and need not be freed. */
static inline locale_t locale_c_enter(void)
{
    return uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
}

static inline void locale_c_leave(locale_t before)
{
    uselocale(before);
}

#endif
