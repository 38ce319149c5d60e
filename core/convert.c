/* SPDX-License-Identifier: MIT */
/* Conversions between dtypes. A float is narrowed (to nearest, ties to even) from double, which holds every value of the other float
 * dtypes exactly, so that no value is rounded twice. */
#include <string.h>

#include <weft/array.h>
#include <weft/compute.h>
#include <weft/internal/minmax.h>

static inline float half_to_float(uint16_t h)
{
    /* After the shift the exponent is 112 too small: F16 stores it with an offset of 15, F32 with 127. The multiplication corrects it, also
     * for subnormal numbers. */
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

/* Converts a double to a float format of 1 + exp + man bits, with `man` bits of mantissa and `exp` bits of exponent. */
static inline uint16_t narrow(double x, int man, int exp)
{
    uint64_t bits;
    memcpy(&bits, &x, 8);
    uint64_t sign = bits >> 63 << (man + exp), infinity = ((UINT64_C(1) << exp) - 1) << man;
    int exponent = (int)(bits >> 52 & 0x7ff);
    uint64_t mantissa = bits & ((UINT64_C(1) << 52) - 1);
    if (exponent == 0x7ff) /* a NaN becomes a quiet NaN that keeps the upper bits of its mantissa */
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
    return (uint16_t)(sign | WF_MIN(value, infinity));
}

static bool is_integer(wf_dtype t)
{
    return t >= WF_I8 && t <= WF_BOOL;
}

/* Expands to DO(dtype, C type) for each integer dtype except U8 and BOOL, which the users of this macro treat separately: both are stored
 * as a byte, but they are converted differently. */
#define INTEGERS(DO) DO(I8, int8_t) DO(I16, int16_t) DO(I32, int32_t) DO(I64, int64_t) DO(U16, uint16_t) DO(U32, uint32_t) DO(U64, uint64_t)
#define READ(from, from_type)                                                                                                              \
    case WF_##from:                                                                                                                        \
        x = (uint64_t)((const from_type *)src)[i];                                                                                         \
        break;
#define WRITE(to, to_type)                                                                                                                 \
    case WF_##to:                                                                                                                          \
        ((to_type *)dst)[i] = (to_type)x;                                                                                                  \
        break;

/* Converts integers through 64 bits. A value that does not fit wraps, as in C's conversions to unsigned types. */
static bool convert_integers(wf_dtype to, void *dst, wf_dtype from, const void *src, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint64_t x;
        switch (from) {
            INTEGERS(READ)
        default: /* U8 and BOOL, which are both one byte */
            x = ((const uint8_t *)src)[i];
        }
        switch (to) {
            INTEGERS(WRITE)
        default:
            ((uint8_t *)dst)[i] = to == WF_BOOL ? x != 0 : (uint8_t)x;
        }
    }
    return true;
}

/* Each conversion between two float dtypes, and each from an integer dtype to F32 or F64, has a loop of its own. WIDE gives the value of
 * an element of `from`, and NARROW makes it an element of `to`. */
#define WIDE_F32(x) (x)
#define WIDE_F64(x) (x)
#define WIDE_F16(x) half_to_float(x)
#define WIDE_BF16(x) bfloat_to_float(x)
#define NARROW_F32(x) ((float)(x))
#define NARROW_F64(x) ((double)(x))
#define NARROW_F16(x) narrow((double)(x), 10, 5)
#define NARROW_BF16(x) narrow((double)(x), 7, 8)
#define WIDE_INTEGER(x) (x)
#define WIDE_BOOL(x) ((x) != 0)
#define PAIR_BY(to, to_type, from, from_type, WIDE)                                                                                        \
    case WF_##to *WF_DTYPE_COUNT + WF_##from:                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                                                                    \
            ((to_type *)dst)[i] = NARROW_##to(WIDE(((const from_type *)src)[i]));                                                          \
        return true;
#define PAIR(to, to_type, from, from_type) PAIR_BY(to, to_type, from, from_type, WIDE_##from)
#define TO_FLOATS_BY(from, from_type, WIDE)                                                                                                \
    PAIR_BY(F32, float, from, from_type, WIDE)                                                                                             \
    PAIR_BY(F64, double, from, from_type, WIDE)
#define TO_FLOATS(from, from_type) TO_FLOATS_BY(from, from_type, WIDE_INTEGER)

static bool convert(wf_dtype to, void *dst, wf_dtype from, const void *src, int64_t n)
{
    if (is_integer(to) && is_integer(from))
        return convert_integers(to, dst, from, src, n);
    switch (to * WF_DTYPE_COUNT + from) {
        PAIR(F32, float, F64, double)
        PAIR(F32, float, F16, uint16_t)
        PAIR(F32, float, BF16, uint16_t)
        PAIR(F64, double, F32, float)
        PAIR(F64, double, F16, uint16_t)
        PAIR(F64, double, BF16, uint16_t)
        PAIR(F16, uint16_t, F32, float)
        PAIR(F16, uint16_t, F64, double)
        PAIR(F16, uint16_t, BF16, uint16_t)
        PAIR(BF16, uint16_t, F32, float)
        PAIR(BF16, uint16_t, F64, double)
        PAIR(BF16, uint16_t, F16, uint16_t)
        INTEGERS(TO_FLOATS)
        TO_FLOATS(U8, uint8_t)
        TO_FLOATS_BY(BOOL, uint8_t, WIDE_BOOL)
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
    if ((unsigned)to >= WF_DTYPE_COUNT || (unsigned)from >= WF_DTYPE_COUNT)
        return false;
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
