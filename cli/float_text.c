/* SPDX-License-Identifier: MIT */
#include "float_text.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DIGITS = 9 }; /* always enough for a float */

static const double power[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};

/* a = 0.d1d2... with the first digit at 10^exponent; the nearest number of so many digits, and whether it reads back as a. Exact, though in
 * double: digits and powers are whole numbers below 2^53, so the quotient is rounded once; rounding it to float once more can go another
 * way than rounding the decimal itself only where it lies in the middle of two floats, which *unsure says. */
static bool reads_back(double a, int exponent, int count, int64_t *digits, bool *unsure)
{
    int shift = count - 1 - exponent; /* -8 to 13 */
    double scaled = shift >= 0 ? a * power[shift] : a / power[-shift];
    *digits = llrint(scaled);
    double back = shift >= 0 ? (double)*digits / power[shift] : (double)*digits * power[-shift];
    uint64_t bits;
    memcpy(&bits, &back, sizeof bits);
    *unsure |= (bits & 0x1FFFFFFF) == 0x10000000;
    return (double)(float)back == a;
}

static bool find_fast(float value, int *exponent, int *count, int64_t *digits)
{
    double a = value;
    bool unsure = false;
    if (!(a >= 1e-5 && a < 1e9))
        return false;
    *exponent = (int)floor(log10(a));
    if (a >= (*exponent >= -1 ? power[*exponent + 1] : 1 / power[-*exponent - 1])) /* where the logarithm was rounded */
        ++*exponent;
    int n = 6; /* most have more, some few */
    if (reads_back(a, *exponent, n, digits, &unsure))
        n = 1;
    while (n < MOST_DIGITS && !reads_back(a, *exponent, n, digits, &unsure))
        n++;
    *count = n;
    bool found = reads_back(a, *exponent, n, digits, &unsure);
    int64_t least = 1;
    for (int i = 1; i < n; i++)
        least *= 10;
    return found && !unsure && *digits >= least && *digits < 10 * least;
}

static void find_slowly(float value, int *exponent, int *count, int64_t *digits)
{
    char text[32];
    int n = 1;
    do
        snprintf(text, sizeof text, "%.*e", n - 1, (double)value);
    while (strtof(text, NULL) != value && ++n <= MOST_DIGITS);
    *exponent = atoi(strchr(text, 'e') + 1);
    *count = 0;
    *digits = 0;
    for (const char *c = text; *c != 'e'; c++)
        if (*c >= '0' && *c <= '9') {
            *digits = *digits * 10 + (*c - '0');
            ++*count;
        }
}

/* digits 1234, exponent 1: 12.34 */
static char *print_plain(const char *digit, int count, int exponent, char *out)
{
    if (exponent < 0) {
        *out++ = '0';
        *out++ = '.';
        for (int i = -1; i > exponent; i--)
            *out++ = '0';
    }
    for (int i = 0; i < count; i++) {
        *out++ = digit[i];
        if (i == exponent && i + 1 < count)
            *out++ = '.';
    }
    for (int i = count; i <= exponent; i++)
        *out++ = '0';
    return out;
}

int float_text(float value, char text[FLOAT_TEXT])
{
    char digit[MOST_DIGITS + 1], *out = text;
    int exponent, count;
    int64_t digits;
    if (signbit(value))
        *out++ = '-';
    if (value == 0) {
        *out++ = '0';
        return (int)(out - text);
    }
    if (!find_fast(fabsf(value), &exponent, &count, &digits))
        find_slowly(fabsf(value), &exponent, &count, &digits);
    for (int i = count - 1; i >= 0; i--, digits /= 10)
        digit[i] = (char)('0' + digits % 10);
    if (exponent >= -5 && exponent < 10)
        return (int)(print_plain(digit, count, exponent, out) - text);
    out = print_plain(digit, count, 0, out);
    return (int)(out - text) + sprintf(out, "e%+03d", exponent);
}
