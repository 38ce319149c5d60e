/* SPDX-License-Identifier: MIT */
/* Random arguments, often wrong ones, for tests that call the library as a faulty program could. They check that a call returns, that a
 * failed call has a message, and that a pass after it computes as ever. */
#ifndef TESTS_ANY_H
#define TESTS_ANY_H

#include <math.h>
#include <sys/resource.h>

#include <weft/nn.h>
#include <weft/random.h>

#include "check_weft.h"

static wf_rng any_rng;

/* Read by AddressSanitizer where the program has it: an allocation that is too large fails, as it does without it. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1:max_allocation_size_mb=2048";
}

/* Shapes of gibibytes fail for want of memory; else a long run would take what the machine has. */
__attribute__((constructor)) static void limit_memory(void)
{
#ifndef __SANITIZE_ADDRESS__ /* which reserves terabytes of addresses */
    (void)setrlimit(RLIMIT_AS, &(struct rlimit){(rlim_t)4 << 30, (rlim_t)4 << 30});
#endif
}

static inline int64_t below(int64_t n)
{
    return (int64_t)wf_rng_below(&any_rng, (uint64_t)n);
}

/* Mostly false. */
static inline bool seldom(int64_t n)
{
    return below(n) == 0;
}

static inline int64_t any_size(void)
{
    static const int64_t often[] = {1, 2, 2, 3, 4, 6},
                         rare[] = {0, -1, -7, 5, 17, (int64_t)1 << 31, (int64_t)1 << 40, INT64_MAX, INT64_MIN};
    return below(100) ? often[below(6)] : rare[below(9)];
}

static inline wf_shape any_shape(void)
{
    static const wf_shape usual[] = {{2, {4, 6}}, {1, {6}}, {3, {2, 4, 6}}, {2, {6, 6}}, {3, {2, 3, 6}}, {2, {2, 4}}, {0}};
    if (below(8))
        return usual[below(7)];
    wf_shape s = {.ndim = below(100) ? (int)below(4) + (int)below(2) : (int)below(12) - 3};
    for (int d = 0; d < WF_MAX_DIMS; d++)
        s.dim[d] = any_size();
    return s;
}

static inline int any_dim(void)
{
    return below(100) ? (int)below(4) - 2 : below(2) ? INT32_MAX : INT32_MIN;
}

/* Mostly `usual`. */
static inline double any_number(double usual)
{
    static const double rare[] = {0, -1, 1, 2, 1e-300, 1e300, -1e300, INFINITY, -INFINITY, NAN};
    return below(60) ? usual : rare[below(10)];
}

/* Mostly 0 .. n-1. */
static inline int any_count(int n)
{
    static const int rare[] = {-1, 1000, INT32_MAX, INT32_MIN, 255};
    return below(150) ? (int)below(n) : rare[below(5)];
}

/* Values for all shapes of any_shape that are not refused; calls with larger shapes have to be refused without reading them. */
static const wf_real any_data[6 * 6 * 6 * 6 * 6];

static inline bool has_data(const wf_shape *s)
{
    return wf_shape_count(s) <= (int64_t)(sizeof any_data / sizeof *any_data);
}

static inline void check_message(const wf_error *e, const char *what)
{
    ck_assert_msg(*e->message && !strchr(e->message, '\n'), "%s: error %d, but its message is '%s'", what, (int)e->code, e->message);
}

/* A status with its error; true for success. */
static inline bool check_outcome(wf_status status, const wf_error *e, const char *what)
{
    ck_assert_msg(status == e->code, "%s: returned %d, but the error is %d: %s", what, (int)status, (int)e->code, e->message);
    if (status != WF_OK)
        check_message(e, what);
    return status == WF_OK;
}

/* A right pass after calls that failed: sum(w x x) and its gradients. w [3] is a parameter with the values 2. */
static inline void check_right_pass(wf_tape *tape, wf_tensor *w)
{
    const wf_real numbers[] = {1, 2, 3};
    double value = 0;
    wf_array dx, dw;
    wf_tape_cancel(tape, NULL, NULL);
    wf_tape_check_finite(tape, true);
    wf_tape_reset(tape, WF_GRADIENTS);
    wf_grads_zero(wf_parameter_info(w)->grads);
    wf_tensor *x = wf_input(tape, numbers, WF_SHAPE(3), true), *loss = wf_sum(wf_mul(wf_mul(w, x), x));
    ck_assert_msg(wf_item(loss, &value) == WF_OK && wf_backward(loss) == WF_OK && wf_grad(x, &dx) == WF_OK && wf_grad(w, &dw) == WF_OK,
                  "a right pass: %s", wf_tape_error(tape)->message);
    ck_assert_msg(value == 28, "a right pass gives %g", value);
    for (int i = 0; i < 3; i++) {
        ck_assert_double_eq(((wf_real *)dx.data)[i * dx.stride[0]], 4 * numbers[i]);
        ck_assert_double_eq(((wf_real *)dw.data)[i * dw.stride[0]], numbers[i] * numbers[i]);
    }
    wf_tape_check_finite(tape, false);
}

#endif
