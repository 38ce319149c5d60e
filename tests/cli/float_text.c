/* SPDX-License-Identifier: MIT */
/* Floats as text: they read back as they were, and no shorter text does. */
#include "../../cli/float_text.h"

#include <math.h>

#include "../check_weft.h"

static void is(float value, const char *want)
{
    char text[FLOAT_TEXT + 1];
    text[float_text(value, text)] = 0;
    ck_assert_msg(strcmp(text, want) == 0, "%.9g gives %s, not %s", (double)value, text, want);
}

START_TEST(texts)
{
    is(0, "0");
    is(-0.0f, "-0");
    is(1, "1");
    is(-12.5f, "-12.5");
    is(0.1f, "0.1");
    is(100, "100");
    is(16777216, "16777216");
    is(999999.9f, "999999.9");
    is(1e9f, "1000000000");
    is(1e10f, "1e+10");
    is(1e-5f, "0.00001");
    is(9.9999e-6f, "9.9999e-06");
    is(0.03458f, "0.03458");
    is(0x1p-149f, "1e-45");
    is(0x1.fffffep127f, "3.4028235e+38");
    is(-0x1p-126f, "-1.1754944e-38");
    is(0.99999994f, "0.99999994");
    is(9999999.0f, "9999999");
}
END_TEST

/* Against printf: the first of its precisions that reads back. */
static void as_printf(float value)
{
    char text[FLOAT_TEXT + 1], want[40];
    int n = 1, digits = 0;
    int length = float_text(value, text);
    ck_assert_int_le(length, FLOAT_TEXT);
    text[length] = 0;
    float back = strtof(text, NULL);
    ck_assert_msg(memcmp(&back, &value, sizeof back) == 0, "%a gives %s", (double)value, text);
    do
        snprintf(want, sizeof want, "%.*e", n - 1, (double)value);
    while (strtof(want, NULL) != value && ++n < 10);
    /* from the first digit that is none of the zeros before it to the last that is none of those behind */
    const char *first = strpbrk(text, "123456789"), *last = first;
    for (const char *c = first; c && *c && *c != 'e'; c++)
        last = *c >= '1' && *c <= '9' ? c : last;
    for (const char *c = first; c && c <= last; c++)
        digits += *c != '.';
    ck_assert_msg(value == 0 || digits == n, "%s has %d digits, %d are enough: %s", text, digits, n, want);
}

START_TEST(they_read_back)
{
    uint64_t s = 88172645463325252u;
    for (int i = 0; i < 50000; i++) {
        s ^= s << 13;
        s ^= s >> 7;
        s ^= s << 17;
        uint32_t bits = (uint32_t)(s >> 20);
        float value;
        memcpy(&value, &bits, sizeof value);
        if (isfinite(value))
            as_printf(value);
        as_printf((float)((double)(int32_t)bits * 0x1p-31 * (i % 3 ? 0.1 : 1)));
        as_printf((float)(bits % 100000) / (i % 2 ? 1000.0f : 1e6f));
    }
    for (float value = 1e-44f; value < 1e38f; value *= 10) { /* powers of ten and their neighbours */
        as_printf(value);
        as_printf(nextafterf(value, 0));
        as_printf(nextafterf(value, INFINITY));
    }
}
END_TEST

WF_TEST_MAIN("float_text", texts, they_read_back)
