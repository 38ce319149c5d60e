/* SPDX-License-Identifier: MIT */
/* Convolutions against PyTorch (tests/golden/make_conv.py); edges; and bits that depend neither on threads nor on other pictures. */
#include <weft/random.h>
#include <weft/runtime.h>

#include "../golden/golden.h"
#include "nn_test.h"

#define AXES(...)                                                                                                                          \
    .axes = (const struct wf_conv_axis[])                                                                                                  \
    {                                                                                                                                      \
        __VA_ARGS__                                                                                                                        \
    }
#define GOLDEN(name, init, channels, filters, size, x, ...)                                                                                \
    do {                                                                                                                                   \
        struct rig r = rig_open("conv", name);                                                                                             \
        struct wf_convolution m;                                                                                                           \
        init(wf_root(r.registry), &m, channels, filters, size, __VA_ARGS__);                                                               \
        rig_start(&r, WF_GRADIENTS, 0.5);                                                                                                  \
        rig_check(&r, wf_convolution_forward(&m, rig_input(&r, "x", x, 1)));                                                               \
    } while (0)

START_TEST(is_pytorch)
{
    GOLDEN("plain", wf_conv2d_init, 3, 5, 3, WF_SHAPE(2, 3, 9, 7), .no_bias = false);
    GOLDEN("padded", wf_conv2d_init, 3, 4, 3, WF_SHAPE(2, 3, 8, 8), .stride = 2, .padding = 1);
    GOLDEN("uneven", wf_conv2d_init, 4, 6, 0, WF_SHAPE(1, 4, 9, 6), .no_bias = true, .kernel = (const int64_t[]){5, 2},
           AXES({3, 2, 2, 1}, {1, 1, 1, 2}));
    GOLDEN("pointwise", wf_conv2d_init, 8, 6, 1, WF_SHAPE(3, 8, 5, 4), .no_bias = false);
    GOLDEN("groups", wf_conv2d_init, 6, 9, 3, WF_SHAPE(2, 6, 7, 7), .padding = 1, .groups = 3);
    GOLDEN("depthwise", wf_conv2d_init, 5, 10, 3, WF_SHAPE(2, 5, 8, 9), .groups = 5, AXES({2, 1, 1, 1}, {1, 1, 1, 1}));
    GOLDEN("wide", wf_conv2d_init, 20, 9, 3, WF_SHAPE(1, 20, 4, 19), .padding = 4);
    GOLDEN("sequence", wf_conv1d_init, 4, 5, 4, WF_SHAPE(2, 4, 19), .stride = 2, .padding = 3, .dilation = 2);
    GOLDEN("sequence_depthwise", wf_conv1d_init, 6, 6, 4, WF_SHAPE(2, 6, 15), .padding = 3, .groups = 6);
}
END_TEST

START_TEST(transposed_is_pytorch)
{
    GOLDEN("transposed", wf_conv_transpose2d_init, 5, 3, 3, WF_SHAPE(2, 5, 4, 6), .no_bias = false);
    GOLDEN("transposed_stride", wf_conv_transpose2d_init, 4, 3, 4, WF_SHAPE(2, 4, 5, 3), .stride = 2, .padding = 1);
    GOLDEN("transposed_uneven", wf_conv_transpose2d_init, 6, 4, 0, WF_SHAPE(1, 6, 4, 5), .groups = 2, .kernel = (const int64_t[]){3, 2},
           AXES({2, 1, 0, 2}, {3, 0, -2, 1}));
    GOLDEN("transposed_sequence", wf_conv_transpose1d_init, 4, 3, 5, WF_SHAPE(2, 4, 7), .no_bias = true, .stride = 3, .padding = 2,
           .output_padding = 1);
    GOLDEN("transposed_depthwise", wf_conv_transpose2d_init, 4, 4, 3, WF_SHAPE(2, 4, 5, 5), .stride = 2, .padding = 1, .output_padding = 1,
           .groups = 4);
}
END_TEST

#define OP(name, shape, ...)                                                                                                               \
    do {                                                                                                                                   \
        struct rig r = rig_open("conv", name);                                                                                             \
        rig_start(&r, WF_GRADIENTS, 0.5);                                                                                                  \
        wf_tensor *x = rig_input(&r, "x", shape, 1);                                                                                       \
        rig_check(&r, __VA_ARGS__);                                                                                                        \
    } while (0)
#define POOL_AXES(...)                                                                                                                     \
    .axes = (const struct wf_pool_axis[])                                                                                                  \
    {                                                                                                                                      \
        __VA_ARGS__                                                                                                                        \
    }

START_TEST(pooling_is_pytorch)
{
    OP("max", WF_SHAPE(2, 3, 7, 8), wf_max_pool(x, 3, .stride = 2, .padding = 1));
    OP("max_sequence", WF_SHAPE(2, 3, 11), wf_max_pool(x, 4));
    OP("mean", WF_SHAPE(2, 3, 7, 8), wf_avg_pool(x, 0, POOL_AXES({3, 2, 1, 1}, {2, 3, 0, 0})));
    OP("mean_inside", WF_SHAPE(2, 3, 7, 6), wf_avg_pool(x, 3, .stride = 2, .padding = 1, .skip_padding = true));
    OP("mean_sequence", WF_SHAPE(2, 3, 10), wf_avg_pool(x, 3, .stride = 1, .padding = 1));
    OP("adaptive", WF_SHAPE(2, 3, 7, 5), wf_adaptive_avg_pool(x, 3, 4));
    OP("adaptive_sequence", WF_SHAPE(2, 3, 7), wf_adaptive_avg_pool(x, 1, 2));
    OP("nearest", WF_SHAPE(2, 3, 4, 5), wf_resize(x, 8, 7, WF_RESIZE_NEAREST));
    OP("bilinear", WF_SHAPE(2, 3, 4, 5), wf_resize(x, 8, 3, WF_RESIZE_LINEAR));
    OP("corners", WF_SHAPE(2, 3, 4, 5), wf_resize(x, 7, 9, WF_RESIZE_LINEAR_CORNERS));
    OP("linear", WF_SHAPE(2, 3, 6), wf_resize(x, 0, 9, WF_RESIZE_LINEAR));
}
END_TEST

START_TEST(group_norm_is_pytorch)
{
    struct wf_group_norm m;
    struct rig r = rig_open("conv", "group_norm");
    wf_group_norm_init(wf_root(r.registry), &m, 3, 6);
    rig_start(&r, WF_GRADIENTS, 0.5);
    rig_check(&r, wf_group_norm_forward(&m, rig_input(&r, "x", WF_SHAPE(2, 6, 5, 3), 1)));
    r = rig_open("conv", "group_norm_sequence");
    wf_group_norm_init(wf_root(r.registry), &m, 1, 4, .no_bias = true);
    rig_start(&r, WF_GRADIENTS, 0.5);
    rig_check(&r, wf_group_norm_forward(&m, rig_input(&r, "x", WF_SHAPE(3, 4, 7), 1)));
    wf_registry *wrong = new_registry();
    wf_group_norm_init(wf_root(wrong), &m, 4, 6);
    declared_wrong(wrong, "group norm: 4 groups do not divide 6 channels");
    wf_registry *right = new_registry();
    wf_tape *tape = new_tape();
    wf_group_norm_init(wf_root(right), &m, 2, 6);
    ck_ok(wf_registry_build(right, 1, error));
    wf_tape_reset(tape, WF_INFER);
    ck_poison(wf_group_norm_forward(&m, wf_zeros(tape, WF_SHAPE(2, 4, 5))), "is not [N,6], [B,6,T] or [B,6,H,W]");
    ck_assert(!wf_is_poison(wf_group_norm_forward(&m, wf_zeros(tape, WF_SHAPE(2, 6)))));
    wf_tape_free(tape);
    wf_registry_free(right);
}
END_TEST

/* As in PyTorch: a NaN wins in max_pool, and of equal elements the first gets the gradient. */
START_TEST(pooling_edges)
{
    wf_tape *tape = new_tape();
    const wf_real v[] = {1, NAN, 3, 2, 2, 2, -INFINITY, -INFINITY};
    wf_real y[4];
    wf_tape_reset(tape, WF_GRADIENTS);
    wf_tensor *x = wf_input(tape, v, WF_SHAPE(1, 1, 8), true), *most = wf_max_pool(x, 2);
    ck_read(most, y, 4);
    ck_assert(isnan(y[0]) && y[1] == 3 && y[2] == 2 && y[3] == -INFINITY);
    ck_backward(wf_sum(most));
    static const wf_real want[] = {0, 1, 1, 0, 1, 0, 1, 0};
    ck_assert_mem_eq(gradient_of(x), want, sizeof want);
    ck_poison(wf_max_pool(wf_zeros(tape, WF_SHAPE(2, 3)), 2), "x must be [B,C,T] or [B,C,H,W]");
    ck_poison(wf_max_pool(wf_zeros(tape, WF_SHAPE(1, 2, 3)), 4), "the window of 4 is larger than the 3 elements");
    ck_poison(wf_avg_pool(wf_zeros(tape, WF_SHAPE(1, 2, 3)), 2, .padding = 2), "the padding must be less than the window of 2");
    ck_poison(wf_max_pool(wf_zeros(tape, WF_SHAPE(1, 2, 3)), 0), "a window of 0");
    ck_poison(wf_max_pool(wf_zeros(tape, WF_SHAPE(1, 2, 3)), (int64_t)1 << 62, .padding = (int64_t)1 << 61), "a window of 46116860184");
    static const wf_real ones[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    const int64_t far = (int64_t)1 << 32; /* the elements of the window are 0 in 64 bits */
    ck_read(wf_avg_pool(wf_input(tape, ones, WF_SHAPE(1, 1, 4, 4), false), far, .padding = far / 2), y, 1);
    ck_assert(y[0] == (wf_real)(16 / ((double)far * (double)far)));
    ck_poison(wf_adaptive_avg_pool(wf_zeros(tape, WF_SHAPE(1, 2, 3, 3)), 0, 2), "3 elements cannot become 0");
    ck_poison(wf_resize(wf_zeros(tape, WF_SHAPE(1, 2, 3, 3)), 2, 0, WF_RESIZE_NEAREST), "3 elements cannot become 0");
    ck_poison(wf_adaptive_avg_pool(wf_zeros(tape, WF_SHAPE(2, 3, 16)), 4, 1), "of one row, but 4 rows were asked for: give 1 row");
    ck_poison(wf_resize(wf_zeros(tape, WF_SHAPE(2, 3, 16)), 32, 1, WF_RESIZE_LINEAR), "of one row, but 32 rows were asked for");
    wf_tape_free(tape);
}
END_TEST

static wf_tensor *normal(wf_tape *tape, const wf_shape *shape, const char *name)
{
    const int64_t n = wf_shape_count(shape);
    wf_real *x = malloc((size_t)(n + 1) * sizeof *x);
    wf_fill_normal(x, n, 0, 1, 3, wf_stream_of(name));
    wf_tensor *t = wf_input(tape, x, shape, true);
    free(x);
    return t;
}

/* The result and the gradients of one case, end to end. */
static int64_t everything(int threads, int64_t pictures, int64_t groups, bool transposed, int64_t stride, wf_mode mode, wf_real *out)
{
    enum { C = 32, F = 24, H = 11, W = 20 }; /* wide enough for products that pack no patches, in k several cache blocks */
    ck_ok(wf_set_threads(threads, error));
    wf_tape *tape = new_tape();
    wf_tape_reset(tape, mode);
    wf_tensor *x = normal(tape, WF_SHAPE(pictures, C, H, W), "x");
    wf_tensor *w = normal(tape, transposed ? WF_SHAPE(C, F / groups, 3, 3) : WF_SHAPE(F, C / groups, 3, 3), "w");
    wf_tensor *b = normal(tape, WF_SHAPE(F), "b");
    wf_tensor *y = transposed ? wf_conv_transpose(x, w, b, .stride = stride, .padding = 1, .groups = groups)
                              : wf_conv(x, w, b, .stride = stride, .padding = 1, .groups = groups);
    const wf_shape shape = wf_shape_of(y);
    int64_t n = wf_shape_count(&shape);
    ck_read(y, out, n);
    wf_tensor *const of[] = {x, w, b};
    if (mode != WF_INFER) {
        ck_backward(wf_sum(wf_mul(y, normal(tape, &shape, "r"))));
        for (int i = 0; i < 3; i++) {
            const wf_shape s = wf_shape_of(of[i]);
            memcpy(out + n, gradient_of(of[i]), (size_t)wf_shape_count(&s) * sizeof *out);
            n += wf_shape_count(&s);
        }
    }
    wf_tape_free(tape);
    return n;
}

/* The bits of one thread, of others, and of a picture alone. */
static void check_bits(int64_t groups, bool transposed, int64_t stride)
{
    enum { MOST = 1 << 18 };
    static wf_real one[MOST], other[MOST];
    const int64_t n = everything(1, 7, groups, transposed, stride, WF_GRADIENTS, one);
    ck_assert_int_le(n, MOST);
    for (int threads = 2; threads <= 5; threads += 3) {
        ck_assert_int_eq(everything(threads, 7, groups, transposed, stride, WF_GRADIENTS, other), n);
        ck_assert_msg(memcmp(one, other, (size_t)n * sizeof *one) == 0, "%d threads, %lld groups, stride %lld: other bits", threads,
                      (long long)groups, (long long)stride);
    }
    const int64_t all = everything(2, 7, groups, transposed, stride, WF_INFER, one),
                  alone = everything(2, 1, groups, transposed, stride, WF_INFER, other);
    ck_assert_int_eq(all, 7 * alone);
    ck_assert_msg(memcmp(one, other, (size_t)alone * sizeof *one) == 0, "%lld groups, stride %lld: a picture alone has other bits",
                  (long long)groups, (long long)stride);
}

START_TEST(the_same_bits)
{
    for (int transposed = 0; transposed < 2; transposed++)
        for (int64_t groups = 1; groups <= 4; groups *= 2)
            for (int64_t stride = 1; stride <= 2; stride++)
                check_bits(groups, transposed, stride);
}
END_TEST

START_TEST(nan_and_infinity)
{
    wf_tape *tape = new_tape();
    wf_real x[] = {1, NAN, 2, INFINITY, 3, 4}, w[] = {1, 2}, y[5];
    wf_tape_reset(tape, WF_INFER);
    ck_read(wf_conv(wf_input(tape, x, WF_SHAPE(1, 1, 6), false), wf_input(tape, w, WF_SHAPE(1, 1, 2), false), NULL), y, 5);
    ck_assert(isnan(y[0]) && isnan(y[1]) && isinf(y[2]) && isinf(y[3]) && y[4] == 11);
    wf_tape_free(tape);
}
END_TEST

START_TEST(refused)
{
    wf_tape *tape = new_tape();
    wf_tape_reset(tape, WF_INFER);
#define X(...) wf_zeros(tape, WF_SHAPE(__VA_ARGS__))
    wf_tape_use(tape);
    ck_poison(wf_conv(X(3, 4), X(2, 3, 3), NULL), "x must be [B,C,T] and the weight [F,C/groups,K], or");
    ck_poison(wf_conv(X(1, 3, 8, 8), X(2, 3, 3), NULL), "x must be");
    ck_poison(wf_conv(X(1, 3, 8, 8), X(2, 4, 3, 3), NULL), "x has 3 channels in 1 groups, but the weight is for 4 in each group");
    ck_poison(wf_conv(X(1, 3, 8, 8), X(2, 3, 3, 3), NULL, .groups = 2), "2 groups do not divide the 3 channels");
    ck_poison(wf_conv(X(1, 3, 2, 8), X(2, 3, 3, 3), NULL),
              "axis 0: the kernel reaches over 3 elements, more than the 2 of x with its padding");
    ck_poison(wf_conv(X(1, 3, 8), X(2, 3, 3), NULL, .dilation = 4), "axis 0: the kernel reaches over 9 elements");
    ck_poison(wf_conv(X(1, 3, 8), X(2, 3, 3), X(3)), "the bias");
    ck_poison(wf_conv(X(1, 3, 8), X(2, 3, 3), NULL, .stride = -1), "axis 0: the stride is -1");
    ck_poison(wf_conv(X(1, 3, 8), X(2, 3, 3), NULL, .padding = -1), "axis 0: the padding is -1 and -1");
    ck_poison(wf_conv(X(1, 3, 8), X(2, 3, 3), NULL, .padding = 1, AXES({1, 1, 1, 1})), "give .axes, or .stride");
    ck_poison(wf_conv_transpose(X(1, 3, 8), X(4, 3, 3), NULL), "x has 3 channels in 1 groups, but the weight is for 4");
    ck_poison(wf_conv_transpose(X(1, 3, 8), X(3, 2, 3), NULL, .stride = 2, .output_padding = 2),
              "must be at least 0, and below the stride");
    ck_poison(wf_conv_transpose(X(1, 3, 8), X(3, 2, 3), NULL, .stride = 2, .padding = 2, .output_padding = 3), "the output padding must");
    ck_poison(wf_conv_transpose(X(1, 3, 1), X(3, 2, 2), NULL, .padding = 1), "axis 0: the result would have 0 elements");
    const int64_t many = ((int64_t)1 << 24) + 1, step = (int64_t)1 << 40; /* many - 1 steps are 0 elements in 64 bits */
    const wf_real one = 1;
    wf_tensor *lots = wf_expand(wf_input(tape, &one, WF_SHAPE(1, 1, 1), false), 1, 1, many);
    ck_poison(wf_conv_transpose(lots, X(1, 1, 1), NULL, .stride = step),
              "axis 0: with a stride of 1099511627776 and a dilation of 1 there are more elements");
    lots = wf_expand(wf_input(tape, &one, WF_SHAPE(1, 1, 1), false), 1, 1, many);
    ck_poison(wf_conv(X(1, 1, 1), lots, NULL, .dilation = step), "there are more elements than 1e15");
    const int64_t far = ((int64_t)1 << 32) - 1; /* (far + 1)^2 padded elements are 0 in 64 bits */
    ck_poison(wf_conv(X(1, 1, 1, 1), X(1, 1, 2, 2), NULL, AXES({1, far, 0, far}, {1, far, 0, far})), "no memory to pack its operands");
    wf_tape_free(tape);
    struct wf_convolution m;
    wf_registry *r = new_registry();
    wf_conv2d_init(wf_sub(wf_root(r), "c"), &m, 4, 6, 3, .groups = 4);
    declared_wrong(r, "c: convolution: 4 groups do not divide 4 channels and 6 filters");
    r = new_registry();
    wf_conv1d_init(wf_root(r), &m, 4, 6, 3, .output_padding = 1);
    declared_wrong(r, ".output_padding is for transposed");
    r = new_registry();
    wf_conv_transpose1d_init(wf_root(r), &m, 4, 6, 3, .padding = 2, .output_padding = 1);
    declared_wrong(r, ".output_padding is 1: it must be at least 0, and below the stride or the dilation");
}
END_TEST

/* As in PyTorch: U(+-1/sqrt(fan_in)) for weight and bias. */
START_TEST(initialised)
{
    struct wf_convolution m;
    wf_registry *r = new_registry();
    wf_conv2d_init(wf_root(r), &m, 6, 8, 3, .groups = 2);
    ck_ok(wf_registry_build(r, 1, error));
    double most[2] = {0};
    wf_tensor *const of[] = {m.weight, m.bias};
    for (int i = 0; i < 2; i++) {
        const wf_array a = wf_parameter_info(of[i])->value;
        for (int64_t k = 0; k < wf_array_count(&a); k++)
            most[i] = fmax(most[i], fabs((double)((const wf_real *)a.data)[k]));
    }
    const double bound = 1 / sqrt(3 * 9.0);
    ck_assert(most[0] <= bound && most[0] > 0.95 * bound && most[1] <= bound && most[1] > 0.4 * bound);
    wf_registry_free(r);
}
END_TEST

WF_TEST_MAIN("convolution", is_pytorch, transposed_is_pytorch, pooling_is_pytorch, pooling_edges, group_norm_is_pytorch, the_same_bits,
             nan_and_infinity, refused, initialised)
