/* SPDX-License-Identifier: MIT */
/* Initial values of parameters: by seed and name, initialisers, functions, the rules of a scope. */
#include <math.h>

#include "registry_test.h"

START_TEST(values_depend_on_seed_and_name_alone)
{
    wf_registry *a = new_registry(), *b = new_registry(), *c = new_registry();
    struct wf_linear m;
    wf_linear_init(wf_sub(wf_root(a), "first"), &m, 40, 30);
    wf_linear_init(wf_sub(wf_root(a), "second"), &m, 40, 30);
    wf_parameter(wf_root(b), "another", WF_SHAPE(1000), .init = {WF_INIT_NORMAL, 1});
    wf_linear_init(wf_sub(wf_root(b), "second"), &m, 40, 30);
    wf_linear_init(wf_sub(wf_root(b), "first"), &m, 40, 30);
    wf_linear_init(wf_sub(wf_root(c), "first"), &m, 40, 30);
    ck_ok(wf_set_threads(1, error));
    ck_ok(wf_registry_build(a, 17, error));
    ck_ok(wf_set_threads(3, error));
    ck_ok(wf_registry_build(b, 17, error));
    ck_ok(wf_registry_build(c, 18, error));
    static const char *const names[] = {"first.weight", "first.bias", "second.weight", "second.bias"};
    for (int i = 0; i < 4; i++)
        ck_assert_mem_eq(value_of(a, names[i]), value_of(b, names[i]), (i % 2 ? 30 : 1200) * sizeof(wf_real));
    ck_assert_mem_ne(value_of(a, "first.weight"), value_of(a, "second.weight"), 1200 * sizeof(wf_real));
    ck_assert_mem_ne(value_of(a, "first.weight"), value_of(c, "first.weight"), 1200 * sizeof(wf_real));
    ck_ok(wf_registry_build(c, 17, error)); /* again, with another seed */
    ck_assert_mem_eq(value_of(a, "first.weight"), value_of(c, "first.weight"), 1200 * sizeof(wf_real));
    wf_registry_free(a);
    wf_registry_free(b);
    wf_registry_free(c);
}
END_TEST

struct moments {
    double mean, deviation, kurtosis, most;
};

static struct moments moments_of(const wf_registry *registry, const char *name)
{
    const wf_real *x = value_of(registry, name);
    int64_t n = wf_array_count(&wf_parameter_info(wf_registry_find(registry, name))->value);
    struct moments m = {0};
    for (int64_t i = 0; i < n; i++) {
        m.mean += (double)x[i] / (double)n;
        m.most = fmax(m.most, fabs((double)x[i]));
    }
    double fourth = 0;
    for (int64_t i = 0; i < n; i++) {
        double d = (double)x[i] - m.mean;
        m.deviation += d * d / (double)n;
        fourth += d * d * d * d / (double)n;
    }
    m.kurtosis = fourth / (m.deviation * m.deviation);
    m.deviation = sqrt(m.deviation);
    return m;
}

/* U(-bound, bound), by its bound, deviation and kurtosis (1.8); n = 40,000 or more, so five deviations are within 2 %. */
static void is_uniform(const wf_registry *registry, const char *name, double bound)
{
    struct moments m = moments_of(registry, name);
    ck_assert_msg(m.most <= bound * (1 + 1e-6) && m.most > 0.999 * bound, "%s: reaches %g, not %g", name, m.most, bound);
    ck_assert_msg(fabs(m.mean) < 0.02 * bound, "%s: mean %g", name, m.mean);
    ck_assert_msg(fabs(m.deviation * sqrt(3) / bound - 1) < 0.02, "%s: deviation %g", name, m.deviation);
    ck_assert_msg(fabs(m.kurtosis - 1.8) < 0.05, "%s: kurtosis %g", name, m.kurtosis);
}

static void is_normal(const wf_registry *registry, const char *name, double deviation)
{
    struct moments m = moments_of(registry, name);
    ck_assert_msg(fabs(m.mean) < 0.025 * deviation, "%s: mean %g", name, m.mean);
    ck_assert_msg(fabs(m.deviation / deviation - 1) < 0.02, "%s: deviation %g", name, m.deviation);
    ck_assert_msg(fabs(m.kurtosis - 3) < 0.15, "%s: kurtosis %g", name, m.kurtosis);
}

static void is_constant(const wf_registry *registry, const char *name, double value)
{
    int64_t n = wf_array_count(&wf_parameter_info(wf_registry_find(registry, name))->value);
    for (int64_t i = 0; i < n; i++)
        ck_assert(value_of(registry, name)[i] == (wf_real)value);
}

static void count_up(void *ctx, wf_real *value, const wf_shape *shape, uint64_t seed, const char *name)
{
    (void)ctx, (void)seed, (void)name;
    for (int64_t i = 0; i < wf_shape_count(shape); i++)
        value[i] = (wf_real)i;
}

START_TEST(initialisers)
{
    wf_registry *r = new_registry();
    wf_scope s = wf_root(r);
    wf_parameter(s, "constant", WF_SHAPE(50), .init = {WF_INIT_CONSTANT, 2.5});
    wf_parameter(s, "silent", WF_SHAPE(50), .init = {0});
    wf_parameter(s, "normal", WF_SHAPE(200, 300), .init = {WF_INIT_NORMAL, 0.02});
    wf_parameter(s, "uniform", WF_SHAPE(200, 300), .init = {WF_INIT_UNIFORM, 0.3});
    wf_parameter(s, "fan_in", WF_SHAPE(200, 300), .init = {WF_INIT_FAN_IN});
    wf_parameter(s, "fan_in_given", WF_SHAPE(50000), .init = {WF_INIT_FAN_IN, .fan_in = 64});
    wf_parameter(s, "xavier", WF_SHAPE(200, 300), .init = {WF_INIT_XAVIER_UNIFORM});
    wf_parameter(s, "xavier_of_three", WF_SHAPE(600, 200), .init = {WF_INIT_XAVIER_UNIFORM, .parts = 3});
    wf_parameter(s, "function", WF_SHAPE(5, 7), .init = {WF_INIT_FUNCTION, .fill = count_up});
    ck_ok(wf_registry_build(r, 5, error));
    is_constant(r, "constant", 2.5);
    is_constant(r, "silent", 0);
    is_normal(r, "normal", 0.02);
    is_uniform(r, "uniform", 0.3);
    is_uniform(r, "fan_in", 1 / sqrt(300));
    is_uniform(r, "fan_in_given", 1 / sqrt(64));
    is_uniform(r, "xavier", sqrt(6.0 / 500));
    is_uniform(r, "xavier_of_three", sqrt(6.0 / 400));
    for (int i = 0; i < 35; i++)
        ck_assert(value_of(r, "function")[i] == (wf_real)i);
    wf_registry_free(r);
}
END_TEST

/* Kernels count in both fans, as in torch.nn.init; a fan_in that is given stays. */
START_TEST(convolutions)
{
    wf_registry *r = new_registry();
    struct wf_convolution m;
    const struct wf_initializer xavier = {WF_INIT_XAVIER_UNIFORM};
    wf_conv2d_init(wf_sub(wf_root(r), "square"), &m, 64, 64, 3, .init = xavier);
    wf_conv1d_init(wf_sub(wf_root(r), "groups"), &m, 128, 64, 5, .groups = 4, .init = xavier);
    wf_conv_transpose2d_init(wf_sub(wf_root(r), "transposed"), &m, 96, 32, 4, .init = xavier);
    wf_conv2d_init(wf_sub(wf_root(r), "default"), &m, 64, 64, 3);
    wf_conv2d_init(wf_sub(wf_root(r), "given"), &m, 64, 64, 3, .init = {WF_INIT_FAN_IN, .fan_in = 400});
    ck_ok(wf_registry_build(r, 5, error));
    is_uniform(r, "square.weight", sqrt(6.0 / (64 * 9 + 64 * 9)));
    is_uniform(r, "groups.weight", sqrt(6.0 / (32 * 5 + 64 * 5)));
    is_uniform(r, "transposed.weight", sqrt(6.0 / (32 * 16 + 96 * 16)));
    is_uniform(r, "default.weight", 1 / sqrt(64 * 9));
    is_uniform(r, "given.weight", 1 / sqrt(400));
    wf_registry_free(r);
}
END_TEST

/* As WF_INIT_NORMAL with the deviation that ctx points to. */
static void normal_of(void *ctx, wf_real *value, const wf_shape *shape, uint64_t seed, const char *name)
{
    wf_fill_normal(value, wf_shape_count(shape), 0, *(double *)ctx, seed, wf_stream_of(name));
}

/* A fill function gets the seed and name that our initialisers use, so that its numbers do not depend on the order of declaration. */
START_TEST(fill_functions)
{
    static const char *const names[] = {"a", "b", "c.weight"};
    double deviation = 0.125;
    wf_real first[3][40];
    for (int way = 0; way < 3; way++) { /* another order; another seed */
        wf_registry *r = new_registry();
        for (int i = 0; i < 3; i++)
            wf_parameter(wf_root(r), names[way == 1 ? 2 - i : i], WF_SHAPE(5, 8),
                         .init = {WF_INIT_FUNCTION, .fill = normal_of, .ctx = &deviation});
        wf_parameter(wf_root(r), "table", WF_SHAPE(5, 8), .buffer = true, .init = {WF_INIT_FUNCTION, .fill = normal_of, .ctx = &deviation});
        ck_ok(wf_registry_build(r, way == 2 ? 6 : 5, error));
        wf_real ours[40];
        for (int i = 0; i < 3; i++) {
            wf_fill_normal(ours, 40, 0, 0.125, way == 2 ? 6 : 5, wf_stream_of(names[i]));
            ck_assert_mem_eq(value_of(r, names[i]), ours, sizeof ours);
            ck_assert(i == 0 || memcmp(value_of(r, names[i]), value_of(r, names[0]), sizeof ours) != 0);
            if (way == 0)
                memcpy(first[i], value_of(r, names[i]), sizeof ours);
            ck_assert_int_eq(memcmp(value_of(r, names[i]), first[i], sizeof ours) == 0, way < 2);
        }
        wf_fill_normal(ours, 40, 0, 0.125, 0, wf_stream_of("table"));
        ck_assert_mem_eq(value_of(r, "table"), ours, sizeof ours); /* buffers are filled before there is a seed */
        wf_registry_free(r);
    }
}
END_TEST

/* The defaults are PyTorch's; rules replace them, and an initialiser of a module replaces the rules. */
START_TEST(rules_of_a_scope)
{
    wf_registry *r = new_registry();
    struct wf_linear linear;
    struct wf_embedding embedding;
    struct wf_mha mha;
    struct wf_rms_norm norm;
    struct wf_ffn ffn;
    wf_scope s = wf_sub(wf_root(r), "default");
    wf_linear_init(wf_sub(s, "linear"), &linear, 256, 50000);
    wf_embedding_init(wf_sub(s, "embedding"), &embedding, 500, 100);
    wf_rms_norm_init(wf_sub(s, "norm"), &norm, 100);
    s = wf_with_init(wf_sub(wf_root(r), "ruled"), &(struct wf_init_rules){.weight = {WF_INIT_XAVIER_UNIFORM},
                                                                          .residual = {WF_INIT_NORMAL, 0.01},
                                                                          .bias = {WF_INIT_CONSTANT, 0.25},
                                                                          .embedding = {WF_INIT_NORMAL, 0.125}});
    wf_embedding_init(wf_sub(s, "embedding"), &embedding, 500, 100);
    wf_mha_init(wf_sub(s, "mha"), &mha, 240, 8);
    wf_ffn_init(wf_sub(s, "ffn"), &ffn, 200, 400, 0);
    wf_linear_init(wf_sub(s, "own"), &linear, 200, 300, .init = {WF_INIT_UNIFORM, 0.5});
    ck_ok(wf_registry_build(r, 5, error));
    is_uniform(r, "default.linear.weight", 1.0 / 16);
    is_uniform(r, "default.linear.bias", 1.0 / 16);
    is_normal(r, "default.embedding.weight", 1);
    is_constant(r, "default.norm.weight", 1);
    is_normal(r, "ruled.embedding.weight", 0.125);
    is_uniform(r, "ruled.mha.qkv.weight", sqrt(6.0 / 480)); /* each of q, k, v on its own */
    is_constant(r, "ruled.mha.qkv.bias", 0.25);
    is_normal(r, "ruled.mha.out.weight", 0.01);
    is_uniform(r, "ruled.ffn.up.weight", sqrt(6.0 / 600));
    is_normal(r, "ruled.ffn.down.weight", 0.01);
    is_uniform(r, "ruled.own.weight", 0.5);
    wf_registry_free(r);
}
END_TEST

WF_TEST_MAIN("registry init", values_depend_on_seed_and_name_alone, initialisers, convolutions, fill_functions, rules_of_a_scope)
