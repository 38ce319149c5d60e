/* SPDX-License-Identifier: MIT */
/* Checks, quotes and numbers in text (weft/internal/text.h). */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/internal/locale_c.h>
#include <weft/internal/minmax.h>
#include <weft/internal/text.h>
#include <weft/internal/utf8.h>

int64_t wf_utf8_check(const char *text, int64_t bytes)
{
    int64_t i = 0;
    while (i < bytes) {
        uint32_t point;
        uint64_t eight;
        if (bytes - i >= 8 && (memcpy(&eight, text + i, 8), !(eight & 0x8080808080808080u))) {
            i += 8;
            continue;
        }
        int length = wf_utf8_decode(text + i, bytes - i, &point);
        if (!length)
            return i;
        i += length;
    }
    return -1;
}

char *wf_text_quote(const char *text, char out[WF_QUOTE_SIZE])
{
    const unsigned char *s = (const unsigned char *)text;
    int64_t bytes = (int64_t)strlen(text);
    int used = 0;
    out[used++] = '"';
    uint32_t point;
    for (int64_t i = 0; i < bytes;) {
        int length = wf_utf8_decode(text + i, bytes - i, &point);
        /* The control characters U+0080 to U+009F and the line separators U+2028 and U+2029 are not printable either. */
        bool plain = length > 0 && s[i] >= 0x20 && s[i] != 0x7f && s[i] != '"' && s[i] != '\\' && !(s[i] == 0xc2 && s[i + 1] < 0xa0) &&
                     !(s[i] == 0xe2 && s[i + 1] == 0x80 && (s[i + 2] == 0xa8 || s[i + 2] == 0xa9));
        int width = plain ? length : 4;
        if (used + width + (int)sizeof "...\"" > WF_QUOTE_SIZE) {
            memcpy(out + used, "...", 3);
            used += 3;
            break;
        }
        if (plain) {
            memcpy(out + used, s + i, (size_t)length);
            i += length;
        } else {
            snprintf(out + used, 5, "\\x%02x", s[i]);
            i++;
        }
        used += width;
    }
    out[used++] = '"';
    out[used] = 0;
    return out;
}

char *wf_text_double(double value, char out[WF_NUMBER_SIZE])
{
    locale_t before = locale_c_enter();
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, WF_NUMBER_SIZE, "%.*g", digits, value);
        if (strtod(out, NULL) == value)
            break;
    }
    locale_c_leave(before);
    if (!strpbrk(out, ".en"))
        strcat(out, ".0"); /* so that the text is read as a floating-point number; nan and inf, which contain "n", get no ".0" */
    return out;
}

bool wf_text_to_double(const char *text, double *value)
{
    /* strtod would also accept leading blanks, hexadecimal numbers and names such as "nan", which no file format of Weft allows. */
    if (!*text || strspn(text, "+-.0123456789eE") != strlen(text))
        return false;
    locale_t before = locale_c_enter();
    char *end;
    double x = strtod(text, &end);
    locale_c_leave(before);
    if (*end || !isfinite(x))
        return false;
    *value = x;
    return true;
}

char *wf_text_count(int64_t count, char out[WF_NUMBER_SIZE])
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRId64, count), used = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0 && digits[i - 1] != '-')
            out[used++] = ',';
        out[used++] = digits[i];
    }
    out[used] = 0;
    return out;
}

char *wf_text_bytes(int64_t bytes, char out[WF_NUMBER_SIZE])
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    int unit = 0;
    for (; value >= 999.5 && unit < 6; unit++)
        value /= 1024;
    const int places = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    const long long ten = places == 2 ? 100 : places == 1 ? 10 : 1, digits = llround(value * (double)ten);
    if (places > 0)
        snprintf(out, WF_NUMBER_SIZE, "%lld.%0*lld %s", digits / ten, places, digits % ten, units[unit]);
    else
        snprintf(out, WF_NUMBER_SIZE, "%lld %s", digits, units[unit]);
    return out;
}

enum { MOST_DAYS = 10000 };

/* Reads a number of at most 10 digits at *at, and moves *at past it. *count becomes the number of digits. Returns -1 if there is no
 * digit, or if there are more than 10. */
static int64_t digits(const char **at, size_t *count)
{
    int64_t value = 0;
    *count = strspn(*at, "0123456789");
    if (*count == 0 || *count > 10)
        return -1;
    for (size_t i = 0; i < *count; i++)
        value = 10 * value + *(*at)++ - '0';
    return value;
}

bool wf_text_to_seconds(const char *text, int64_t *seconds)
{
    const bool days = strchr(text, '-') != NULL;
    size_t length;
    int64_t sum = digits(&text, &length), part;
    int parts = 1;
    if (sum < 0 || (days && *text != '-'))
        return false;
    for (; *text && parts < 4; parts++) {
        const bool hours = days && parts == 1;
        if (*text++ != (hours ? '-' : ':') || (part = digits(&text, &length)) < 0 || length != 2 || part > (hours ? 23 : 59))
            return false;
        sum = sum * (hours ? 24 : 60) + part;
    }
    if (*text || (days ? parts != 4 : parts > 3) || sum > (int64_t)MOST_DAYS * 24 * 3600)
        return false;
    *seconds = sum;
    return true;
}

char *wf_text_seconds(double seconds, char out[WF_NUMBER_SIZE])
{
    const double most = (double)MOST_DAYS * 24 * 3600;
    const int whole = (int)ceil(seconds > 0 ? WF_MIN(seconds, most) : 0), hours = whole / 3600;
    if (hours >= 24)
        snprintf(out, WF_NUMBER_SIZE, "%d-%02d:%02d:%02d", hours / 24, hours % 24, whole / 60 % 60, whole % 60);
    else if (hours > 0)
        snprintf(out, WF_NUMBER_SIZE, "%d:%02d:%02d", hours, whole / 60 % 60, whole % 60);
    else
        snprintf(out, WF_NUMBER_SIZE, "%d:%02d", whole / 60, whole % 60);
    return out;
}
