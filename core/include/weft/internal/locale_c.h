/* SPDX-License-Identifier: MIT */
/* Between locale_c_enter and locale_c_leave the calling thread uses the C locale, so that printf, strtod and jansson use no decimal
 * comma. */
#ifndef WEFT_IO_LOCALE_C_H
#define WEFT_IO_LOCALE_C_H

#include <locale.h>

/* newlocale returns the C locale as a constant object: the call neither allocates nor fails, and the object need not be freed. */
static inline locale_t locale_c_enter(void)
{
    return uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
}

static inline void locale_c_leave(locale_t before)
{
    uselocale(before);
}

#endif
