/* SPDX-License-Identifier: MIT */
/* Vector registers of wf_real for the instruction set for which a file is compiled: 64 bytes (AVX-512), 32 bytes (AVX2) or 16 bytes
 * (base). core/kernels, core/gemm, core/conv, core/copy.c and core/random.c use this header. Arithmetic is the compiler's own on
 * vector_size types; the header adds what these types lack, such as tails, selections, square roots, and reductions in a fixed order. On
 * processors other than x86 the same functions are plain loops.
 *
 * A tail is the end of a row that does not fill a register. v_load_n fills the missing lanes, the arithmetic is that of a whole
 * register, and v_store_n writes n lanes back. So the bits of an element do not depend on its position. For the same reason
 * multiply-adds are written as v_fma wherever the compiler could choose which product to fuse. */
#ifndef WEFT_SIMD_H
#define WEFT_SIMD_H

#include <weft/internal/kernels.h>
#include <weft/internal/minmax.h>

#if defined(WF_ISA_AVX512)
#include <immintrin.h>
#define V_BYTES 64
#define V_PREFIX _mm512
#elif defined(WF_ISA_AVX2)
#include <immintrin.h>
#define V_BYTES 32
#define V_PREFIX _mm256
#else
#if defined(__SSE2__)
#include <emmintrin.h>
#endif
#define V_BYTES 16
#define V_PREFIX _mm
#endif
#if defined(WF_ISA_AVX512) || defined(WF_ISA_AVX2)
#define V_HAS_FMA 1
#endif
#if defined(V_HAS_FMA) || defined(__SSE2__)
#define V_X86 1
#endif

#ifdef WF_DOUBLE
typedef int64_t v_lane;
typedef uint64_t v_ulane;
#define V_LANES (V_BYTES / 8)
#define V_SUFFIX pd
#else
typedef int32_t v_lane;
typedef uint32_t v_ulane;
#define V_LANES (V_BYTES / 4)
#define V_SUFFIX ps
#endif
#define V_N ((int64_t)V_LANES)
#define V_ND ((int64_t)(V_BYTES / 8))

typedef wf_real vr __attribute__((vector_size(V_BYTES)));
typedef wf_real vr_memory __attribute__((vector_size(V_BYTES), aligned(sizeof(wf_real)), may_alias)); /* in memory, at any element */
typedef v_lane vi __attribute__((vector_size(V_BYTES))); /* integers as wide as wf_real; a lane of a mask is 0 or -1 */
typedef v_ulane vu __attribute__((vector_size(V_BYTES)));
typedef double vd __attribute__((vector_size(V_BYTES)));
typedef int64_t vi64 __attribute__((vector_size(V_BYTES)));
typedef uint64_t vu64 __attribute__((vector_size(V_BYTES)));

#define V_PASTE_(a, b, c) a##_##b##_##c
#define V_PASTE(a, b, c) V_PASTE_(a, b, c)
#define V_OP(name) V_PASTE(V_PREFIX, name, V_SUFFIX) /* an intrinsic; for example V_OP(sqrt) is _mm512_sqrt_ps for AVX-512 and float */
#define V_INLINE static inline __attribute__((always_inline, unused))
#define V_NOINLINE static __attribute__((noinline, unused))
#define V_EACH(lane) for (int lane = 0; lane < V_LANES; lane++)

V_INLINE vr v_set(wf_real x)
{
    return x - (vr){0}; /* x - 0 is x, also for -0 and NaN, and compiles to a broadcast */
}

V_INLINE vi v_seti(v_lane x)
{
    return x + (vi){0};
}

V_INLINE vr v_load(const wf_real *p)
{
    return *(const vr_memory *)p;
}

V_INLINE void v_store(wf_real *p, vr x)
{
    *(vr_memory *)p = x;
}

V_INLINE vr v_select(vi mask, vr yes, vr no)
{
#if defined(WF_ISA_AVX2)
    return V_OP(blendv)(no, yes, (vr)mask);
#else
    return (vr)(((vi)yes & mask) | ((vi)no & ~mask));
#endif
}

/* A mask of the first n lanes, 0 <= n <= V_LANES. A loop over rows with tails of one length can make the mask once, before the loop. */
#if defined(WF_ISA_AVX512)
#ifdef WF_DOUBLE
typedef __mmask8 v_mask;
#else
typedef __mmask16 v_mask;
#endif
#define V_FIRST(n) ((v_mask)((1u << (n)) - 1u))
#elif defined(WF_ISA_AVX2)
typedef vi v_mask;
#if V_LANES == 8
#define V_FIRST(n) ((vi){0, 1, 2, 3, 4, 5, 6, 7} < v_seti((v_lane)(n)))
#else
#define V_FIRST(n) ((vi){0, 1, 2, 3} < v_seti((v_lane)(n)))
#endif
#else
typedef int64_t v_mask;
#define V_FIRST(n) ((v_mask)(n))
#endif

/* v_load_mask loads the lanes of the mask and sets the others to 0. v_store_mask stores the lanes of the mask. Memory of other lanes is
 * not accessed. */
V_INLINE vr v_load_mask(const wf_real *p, v_mask mask)
{
#if defined(WF_ISA_AVX512)
    return V_OP(maskz_loadu)(mask, p);
#elif defined(WF_ISA_AVX2)
    return V_OP(maskload)(p, (__m256i)mask);
#else
    vr x = {0};
    V_EACH(i)
    {
        if (i < mask)
            x[i] = p[i];
    }
    return x;
#endif
}

V_INLINE void v_store_mask(wf_real *p, v_mask mask, vr x)
{
#if defined(WF_ISA_AVX512)
    V_OP(mask_storeu)(p, mask, x);
#elif defined(WF_ISA_AVX2)
    V_OP(maskstore)(p, (__m256i)mask, x);
#else
    V_EACH(i)
    {
        if (i < mask)
            p[i] = x[i];
    }
#endif
}

/* Loads the first n lanes (0 < n < V_N) and sets the others to `fill`. */
V_INLINE vr v_load_n(const wf_real *p, int64_t n, wf_real fill)
{
#if defined(WF_ISA_AVX512)
    return V_OP(mask_loadu)(v_set(fill), V_FIRST(n), p);
#elif defined(WF_ISA_AVX2)
    return v_select(V_FIRST(n), v_load_mask(p, V_FIRST(n)), v_set(fill));
#else
    vr x = v_set(fill);
    V_EACH(i) x[i] = i < n ? p[i] : fill;
    return x;
#endif
}

V_INLINE void v_store_n(wf_real *p, vr x, int64_t n)
{
    v_store_mask(p, V_FIRST(n), x);
}

/* Load and store the first n lanes (n >= 0), or a whole register if n >= V_LANES. v_load_at_most sets the other lanes to 0. */
V_INLINE vr v_load_at_most(const wf_real *p, int64_t n)
{
    return n >= V_LANES ? v_load(p) : v_load_n(p, n, 0);
}

V_INLINE void v_store_at_most(wf_real *p, vr x, int64_t n)
{
    if (n >= V_LANES)
        v_store(p, x);
    else
        v_store_n(p, x, n);
}

/* a b + c, with a single rounding if the instruction set has multiply-adds. */
V_INLINE vr v_fma(vr a, vr b, vr c)
{
#if defined(V_HAS_FMA)
    return V_OP(fmadd)(a, b, c);
#else
    return a * b + c;
#endif
}

V_INLINE vr v_fmak(vr a, vr b, wf_real c)
{
    return v_fma(a, b, v_set(c));
}

/* c - a b */
V_INLINE vr v_fnma(vr a, vr b, vr c)
{
#if defined(V_HAS_FMA)
    return V_OP(fnmadd)(a, b, c);
#else
    return c - a * b;
#endif
}

/* v_max is a > b ? a : b, and v_min is a < b ? a : b. Both give b if a or b is NaN. */
V_INLINE vr v_max(vr a, vr b)
{
#if defined(V_X86)
    return V_OP(max)(a, b);
#else
    return v_select(a > b, a, b);
#endif
}

V_INLINE vr v_min(vr a, vr b)
{
#if defined(V_X86)
    return V_OP(min)(a, b);
#else
    return v_select(a < b, a, b);
#endif
}

/* v_if_less is a < b ? yes : no, and v_if_less_equal is the same with <=. Both give `no` if a or b is NaN. */
#if defined(WF_ISA_AVX512)
#ifdef WF_DOUBLE
#define V_COMPARE _mm512_cmp_pd_mask
#else
#define V_COMPARE _mm512_cmp_ps_mask
#endif
#define v_if_less(a, b, yes, no) V_OP(mask_blend)(V_COMPARE(a, b, _CMP_LT_OQ), no, yes)
#define v_if_less_equal(a, b, yes, no) V_OP(mask_blend)(V_COMPARE(a, b, _CMP_LE_OQ), no, yes)
#else
#define v_if_less(a, b, yes, no) v_select((vi)((a) < (b)), yes, no)
#define v_if_less_equal(a, b, yes, no) v_select((vi)((a) <= (b)), yes, no)
#endif

V_INLINE vr v_sqrt(vr x)
{
#if defined(V_X86)
    return V_OP(sqrt)(x);
#else
    V_EACH(i) x[i] = sizeof(wf_real) == 4 ? (wf_real)__builtin_sqrtf((float)x[i]) : (wf_real)__builtin_sqrt(x[i]);
    return x;
#endif
}

#define V_SIGN ((v_lane)((v_ulane)1 << (8 * sizeof(wf_real) - 1)))

V_INLINE vr v_abs(vr x)
{
    return (vr)((vi)x & v_seti(~V_SIGN));
}

/* x, which must not be negative, with the sign of y. */
V_INLINE vr v_with_sign(vr x, vr y)
{
    return (vr)((vi)x | ((vi)y & v_seti(V_SIGN)));
}

/* Whether a bit of the mask is set. */
V_INLINE bool v_any(vi mask)
{
#if defined(WF_ISA_AVX512)
    return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask) != 0;
#elif defined(WF_ISA_AVX2)
    return !_mm256_testz_si256((__m256i)mask, (__m256i)mask);
#elif defined(V_X86)
    return _mm_movemask_epi8((__m128i)mask) != 0;
#else
    v_lane any = 0;
    V_EACH(i) any |= mask[i];
    return any != 0;
#endif
}

/* F(0, k), F(1, k), ... for all lanes: a list of indices for __builtin_shufflevector, which GCC and clang both have. */
#define V_LIST_2(F, k) F(0, k), F(1, k)
#define V_LIST_4(F, k) V_LIST_2(F, k), F(2, k), F(3, k)
#define V_LIST_8(F, k) V_LIST_4(F, k), F(4, k), F(5, k), F(6, k), F(7, k)
#define V_LIST_16(F, k) V_LIST_8(F, k), F(8, k), F(9, k), F(10, k), F(11, k), F(12, k), F(13, k), F(14, k), F(15, k)
#if V_LANES == 16
#define V_LIST V_LIST_16
#elif V_LANES == 8
#define V_LIST V_LIST_8
#elif V_LANES == 4
#define V_LIST V_LIST_4
#else
#define V_LIST V_LIST_2
#endif

/* v_even: lanes 0, 2, 4, ... of a and then of b. v_zip_low and v_zip_high: a[0], b[0], a[1], b[1], ... for the lower and the upper half of
 * the lanes. */
#define V_LANE_EVEN(lane, k) (2 * (lane) + (k))
#define V_LANE_ZIP(lane, k) ((lane) / 2 + (lane) % 2 * V_LANES + (k))

V_INLINE vr v_even(vr a, vr b)
{
    return __builtin_shufflevector(a, b, V_LIST(V_LANE_EVEN, 0));
}

V_INLINE vr v_zip_low(vr a, vr b)
{
    return __builtin_shufflevector(a, b, V_LIST(V_LANE_ZIP, 0));
}

V_INLINE vr v_zip_high(vr a, vr b)
{
    return __builtin_shufflevector(a, b, V_LIST(V_LANE_ZIP, V_LANES / 2));
}

/* Reductions over lanes as a butterfly: the order of operations is fixed, and every lane gets the result. */
#define V_LANE_XOR(lane, k) ((lane) ^ (k))
#define V_XOR(x, k) __builtin_shufflevector(x, x, V_LIST(V_LANE_XOR, k))

V_INLINE vr v_sum(vr x)
{
#if V_LANES >= 16
    x += V_XOR(x, 8);
#endif
#if V_LANES >= 8
    x += V_XOR(x, 4);
#endif
#if V_LANES >= 4
    x += V_XOR(x, 2);
#endif
    return x + V_XOR(x, 1);
}

/* The greatest lane. A NaN may be lost. */
V_INLINE vr v_greatest(vr x)
{
#if V_LANES >= 16
    x = v_max(x, V_XOR(x, 8));
#endif
#if V_LANES >= 8
    x = v_max(x, V_XOR(x, 4));
#endif
#if V_LANES >= 4
    x = v_max(x, V_XOR(x, 2));
#endif
    return v_max(x, V_XOR(x, 1));
}

/* The sum of the lanes of x, which are doubles. The order of the additions is that of v_sum. */
V_INLINE double v_sum_d(vd x)
{
    for (int half = V_BYTES / 16; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            x[i] += x[i + half];
    return x[0];
}

/* v_widen converts the lower (0) or upper (1) half of a register of floats to doubles, and v_narrow converts both halves back. In the
 * double build there is only one half, the whole register. */
#ifdef WF_DOUBLE
#define V_HALVES 1
V_INLINE vd v_widen(vr x, int half)
{
    (void)half;
    return x;
}

V_INLINE vr v_narrow(const vd halves[V_HALVES])
{
    return halves[0];
}
#else
#define V_HALVES 2
V_INLINE vd v_widen(vr x, int half)
{
#if defined(WF_ISA_AVX512)
    return _mm512_cvtps_pd(half ? _mm512_extractf32x8_ps(x, 1) : _mm512_castps512_ps256(x));
#elif defined(WF_ISA_AVX2)
    return _mm256_cvtps_pd(half ? _mm256_extractf128_ps(x, 1) : _mm256_castps256_ps128(x));
#elif defined(V_X86)
    return _mm_cvtps_pd(half ? _mm_movehl_ps(x, x) : (__m128)x);
#else
    return (vd){x[2 * half], x[2 * half + 1]};
#endif
}

V_INLINE vr v_narrow(const vd halves[V_HALVES])
{
#if defined(WF_ISA_AVX512)
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(halves[0])), _mm512_cvtpd_ps(halves[1]), 1);
#elif defined(WF_ISA_AVX2)
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(halves[0])), _mm256_cvtpd_ps(halves[1]), 1);
#elif defined(V_X86)
    return _mm_movelh_ps(_mm_cvtpd_ps(halves[0]), _mm_cvtpd_ps(halves[1]));
#else
    return (vr){(float)halves[0][0], (float)halves[0][1], (float)halves[1][0], (float)halves[1][1]};
#endif
}
#endif

/* Adds each half of x, as doubles, to its own element of sum. */
V_INLINE void v_add_widened(vd sum[V_HALVES], vr x)
{
    for (int half = 0; half < V_HALVES; half++)
        sum[half] += v_widen(x, half);
}

/* Returns sum plus both halves of x. */
V_INLINE vd v_add_halves(vd sum, vr x)
{
    for (int half = 0; half < V_HALVES; half++)
        sum += v_widen(x, half);
    return sum;
}

/* Runs PART(offset, count, ...) over 0 .. n-1: first for whole registers, where count is the constant V_N, then for the tail, with the
 * same code and a smaller count. */
#define V_LOOP(n, PART, ...)                                                                                                               \
    do {                                                                                                                                   \
        int64_t v_at = 0;                                                                                                                  \
        for (; v_at + V_N <= (n); v_at += V_N)                                                                                             \
            PART(v_at, V_N, __VA_ARGS__);                                                                                                  \
        if (v_at < (n))                                                                                                                    \
            PART(v_at, (n)-v_at, __VA_ARGS__);                                                                                             \
    } while (0)

/* Load and store `count` lanes at p, or a whole register if count is the constant V_N. v_get sets missing lanes to 0. */
V_INLINE vr v_get(const wf_real *p, int64_t count)
{
    return __builtin_constant_p(count) && count == V_N ? v_load(p) : v_load_n(p, count, 0);
}

V_INLINE void v_put(wf_real *p, vr x, int64_t count)
{
    if (__builtin_constant_p(count) && count == V_N)
        v_store(p, x);
    else
        v_store_n(p, x, count);
}

/* Defines a kernel c = formula of a and b. Each of a and b is an array of n elements, or one number if its step (sa or sb) is 0. */
#define V_BINARY(name, ...)                                                                                                                \
    V_INLINE vr name##_lanes(vr a, vr b)                                                                                                   \
    {                                                                                                                                      \
        return __VA_ARGS__;                                                                                                                \
    }                                                                                                                                      \
    V_INLINE void name##_both(int64_t i, int64_t count, const wf_real *a, const wf_real *b, wf_real *c)                                    \
    {                                                                                                                                      \
        v_put(c + i, name##_lanes(v_get(a + i, count), v_get(b + i, count)), count);                                                       \
    }                                                                                                                                      \
    V_INLINE void name##_left(int64_t i, int64_t count, const wf_real *a, vr b, wf_real *c)                                                \
    {                                                                                                                                      \
        v_put(c + i, name##_lanes(v_get(a + i, count), b), count);                                                                         \
    }                                                                                                                                      \
    V_INLINE void name##_right(int64_t i, int64_t count, vr a, const wf_real *b, wf_real *c)                                               \
    {                                                                                                                                      \
        v_put(c + i, name##_lanes(a, v_get(b + i, count)), count);                                                                         \
    }                                                                                                                                      \
    void WF_KERNEL(name)(int64_t n, const wf_real *a, int sa, const wf_real *b, int sb, wf_real *c)                                        \
    {                                                                                                                                      \
        if (n < 1)                                                                                                                         \
            return;                                                                                                                        \
        if (sa && sb)                                                                                                                      \
            V_LOOP(n, name##_both, a, b, c);                                                                                               \
        else if (sa)                                                                                                                       \
            V_LOOP(n, name##_left, a, v_set(*b), c);                                                                                       \
        else if (sb)                                                                                                                       \
            V_LOOP(n, name##_right, v_set(*a), b, c);                                                                                      \
        else                                                                                                                               \
            WF_KERNEL(fill)(n, name##_lanes(v_set(*a), v_set(*b))[0], c);                                                                  \
    }

#endif
