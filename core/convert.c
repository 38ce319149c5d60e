/* SPDX-License-Identifier: MIT */
/* Conversions between dtypes. Narrowing floats round to nearest, ties to even, through double, which holds every value of
 * the others exactly, so that nothing is rounded twice. */
#include <string.h>

#include <weft/array.h>
#include <weft/internal/parallel.h>

static inline float half_to_float(uint16_t h)
{
    /* Shifted into place the exponent is 112 too small; the product mends it, subnormals included. */
    uint32_t bits = (uint32_t)(h & 0x7fff) << 13, sign = (uint32_t)(h & 0x8000) << 16;
    float value;
    memcpy(&value, &bits, 4);
    value *= 0x1p112f;
    memcpy(&bits, &value, 4);
    if ((h & 0x7c00) == 0x7c00)
        bits |= 0x7f800000;
    bits |= sign;
    memcpy(&value, &bits, 4);
    return value;
}

static inline float bfloat_to_float(uint16_t b)
{
    uint32_t bits = (uint32_t)b << 16;
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

/* A double to a format with `man` bits of mantissa and `exp` bits of exponent, in 1 + exp + man bits. */
static inline uint16_t narrow(double x, int man, int exp)
{
    uint64_t bits;
    memcpy(&bits, &x, 8);
    uint64_t sign = bits >> 63 << (man + exp), infinity = ((UINT64_C(1) << exp) - 1) << man;
    int exponent = (int)(bits >> 52 & 0x7ff);
    uint64_t mantissa = bits & ((UINT64_C(1) << 52) - 1);
    if (exponent == 0x7ff) /* a NaN stays quiet and keeps its upper bits */
        return (uint16_t)(sign | infinity | (mantissa ? UINT64_C(1) << (man - 1) | mantissa >> (52 - man) : 0));
    int target = exponent - 1023 + (1 << (exp - 1)) - 1, drop = 52 - man;
    if (exponent == 0)
        return (uint16_t)sign;
    if (target <= 0) {
        mantissa |= UINT64_C(1) << 52;
        drop += 1 - target;
        if (drop > 53)
            return (uint16_t)sign;
        target = 0;
    }
    uint64_t half = UINT64_C(1) << (drop - 1), rest = mantissa & (2 * half - 1), kept = mantissa >> drop;
    uint64_t value = ((uint64_t)target << man) + kept;
    value += rest > half || (rest == half && (value & 1));
    return (uint16_t)(sign | (value < infinity ? value : infinity));
}

typedef uint16_t half;
typedef uint16_t bfloat;

#define LOOP(to, from, expression)                                                                                                         \
    {                                                                                                                                      \
        to *d = dst;                                                                                                                       \
        const from *s = src;                                                                                                               \
        for (int64_t i = 0; i < n; i++) {                                                                                                  \
            from x = s[i];                                                                                                                 \
            d[i] = (to)(expression);                                                                                                       \
        }                                                                                                                                  \
        return true;                                                                                                                       \
    }

static bool is_integer(wf_dtype t)
{
    return t >= WF_I8 && t <= WF_BOOL;
}

/* Reads and writes integers through 64 bits; values that do not fit wrap, as C's conversions to unsigned do. */
static bool convert_integers(wf_dtype to, void *dst, wf_dtype from, const void *src, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint64_t x;
        switch (from) {
        case WF_I8:
            x = (uint64_t)((const int8_t *)src)[i];
            break;
        case WF_I16:
            x = (uint64_t)((const int16_t *)src)[i];
            break;
        case WF_I32:
            x = (uint64_t)((const int32_t *)src)[i];
            break;
        case WF_U16:
            x = ((const uint16_t *)src)[i];
            break;
        case WF_U32:
            x = ((const uint32_t *)src)[i];
            break;
        case WF_I64:
        case WF_U64:
            x = ((const uint64_t *)src)[i];
            break;
        default:
            x = ((const uint8_t *)src)[i];
            break;
        }
        switch (to) {
        case WF_BOOL:
            ((uint8_t *)dst)[i] = x != 0;
            break;
        case WF_I8:
        case WF_U8:
            ((uint8_t *)dst)[i] = (uint8_t)x;
            break;
        case WF_I16:
        case WF_U16:
            ((uint16_t *)dst)[i] = (uint16_t)x;
            break;
        case WF_I32:
        case WF_U32:
            ((uint32_t *)dst)[i] = (uint32_t)x;
            break;
        default:
            ((uint64_t *)dst)[i] = x;
            break;
        }
    }
    return true;
}

static bool convert(wf_dtype to, void *dst, wf_dtype from, const void *src, int64_t n)
{
    if (is_integer(to) && is_integer(from))
        return convert_integers(to, dst, from, src, n);
    enum { PAIRS = WF_DTYPE_COUNT };
    switch (to * PAIRS + from) {
    case WF_F32 *PAIRS + WF_F64:
        LOOP(float, double, x)
    case WF_F32 *PAIRS + WF_F16:
        LOOP(float, half, half_to_float(x))
    case WF_F32 *PAIRS + WF_BF16:
        LOOP(float, bfloat, bfloat_to_float(x))
    case WF_F64 *PAIRS + WF_F32:
        LOOP(double, float, x)
    case WF_F64 *PAIRS + WF_F16:
        LOOP(double, half, half_to_float(x))
    case WF_F64 *PAIRS + WF_BF16:
        LOOP(double, bfloat, bfloat_to_float(x))
    case WF_F16 *PAIRS + WF_F32:
        LOOP(half, float, narrow((double)x, 10, 5))
    case WF_F16 *PAIRS + WF_F64:
        LOOP(half, double, narrow(x, 10, 5))
    case WF_F16 *PAIRS + WF_BF16:
        LOOP(half, bfloat, narrow((double)bfloat_to_float(x), 10, 5))
    case WF_BF16 *PAIRS + WF_F32:
        LOOP(bfloat, float, narrow((double)x, 7, 8))
    case WF_BF16 *PAIRS + WF_F64:
        LOOP(bfloat, double, narrow(x, 7, 8))
    case WF_BF16 *PAIRS + WF_F16:
        LOOP(bfloat, half, narrow((double)half_to_float(x), 7, 8))
    default:
        return false;
    }
}

struct conversion {
    wf_dtype to, from;
    char *dst;
    const char *src;
};

static void convert_range(void *ctx, int64_t begin, int64_t end)
{
    const struct conversion *c = ctx;
    convert(c->to, c->dst + begin * (int64_t)wf_dtype_size(c->to), c->from, c->src + begin * (int64_t)wf_dtype_size(c->from), end - begin);
}

bool wf_convert(wf_dtype to, void *dst, wf_dtype from, const void *src, int64_t n)
{
    if (to == from) {
        if (n > 0)
            memcpy(dst, src, (size_t)n * wf_dtype_size(to));
        return true;
    }
    if (!convert(to, NULL, from, NULL, 0))
        return false;
    struct conversion c = {to, from, dst, src};
    wf_parallel_ranges(n, 16384, 1.0 * (double)n, convert_range, &c);
    return true;
}
