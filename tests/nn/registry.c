/* SPDX-License-Identifier: MIT */
/* Registries: names, ties, initialisation, strict state dicts, memory. */
#include <math.h>
#include <unistd.h>

#include <weft/nn.h>

#include "check_weft.h"

#define ck_refused(call, wanted, text)                                                                                                     \
    do {                                                                                                                                   \
        wf_error ck_error = {0};                                                                                                           \
        wf_error *error = &ck_error;                                                                                                       \
        ck_assert_int_eq((call), wanted);                                                                                                  \
        ck_assert_str_eq(ck_error.message, text);                                                                                          \
    } while (0)

static wf_registry *new_registry(void)
{
    wf_error error = {0};
    wf_registry *registry = wf_registry_new(&error);
    ck_assert_msg(registry != NULL, "%s", error.message);
    return registry;
}

static const char *name_at(const wf_registry *registry, int i)
{
    return wf_parameter_info(wf_registry_at(registry, i))->name;
}

static const wf_real *value_of(const wf_registry *registry, const char *name)
{
    return wf_parameter_info(wf_registry_find(registry, name))->value.data;
}

/* A model with most things in it: nested scopes, a tie, a table, a frozen parameter. */
struct model {
    struct wf_embedding embed;
    struct wf_positions positions;
    struct wf_mha attn[2];
    struct wf_layer_norm norm;
    struct wf_linear head;
    wf_tensor *frozen;
};

static void declare(wf_scope s, struct model *m)
{
    wf_embedding_init(wf_sub(s, "embed"), &m->embed, 11, 8);
    wf_positions_init(wf_sub(s, "positions"), &m->positions, 20, 8);
    for (int i = 0; i < 2; i++)
        wf_mha_init(wf_sub(wf_sub_at(s, "blocks", i), "attn"), &m->attn[i], 8, 2);
    wf_layer_norm_init(wf_sub(s, "norm"), &m->norm, 8);
    wf_linear_init(wf_sub(s, "head"), &m->head, 8, 11, .tied = m->embed.weight);
    m->frozen = wf_parameter(s, "scale", WF_SHAPE(3), .init = {WF_INIT_CONSTANT, 0.5}, .frozen = true);
}

static const char *const all_names[] = {"embed.weight",
                                        "positions.table",
                                        "blocks.0.attn.qkv.weight",
                                        "blocks.0.attn.qkv.bias",
                                        "blocks.0.attn.out.weight",
                                        "blocks.0.attn.out.bias",
                                        "blocks.1.attn.qkv.weight",
                                        "blocks.1.attn.qkv.bias",
                                        "blocks.1.attn.out.weight",
                                        "blocks.1.attn.out.bias",
                                        "norm.weight",
                                        "norm.bias",
                                        "head.bias",
                                        "scale"};
enum { NAMES = sizeof all_names / sizeof *all_names };

START_TEST(names_and_counts)
{
    wf_registry *registry = new_registry();
    struct model m;
    declare(wf_root(registry), &m);
    ck_assert_int_eq(wf_registry_count(registry), NAMES);
    for (int i = 0; i < NAMES; i++) {
        ck_assert_str_eq(name_at(registry, i), all_names[i]);
        ck_assert_ptr_eq(wf_registry_find(registry, all_names[i]), wf_registry_at(registry, i));
        ck_assert_int_eq(wf_registry_is_buffer(registry, i), i == 1);
    }
    ck_assert_ptr_null(wf_registry_find(registry, "head.weight"));
    ck_assert_ptr_null(wf_registry_at(registry, NAMES));
    ck_assert_ptr_null(wf_registry_at(registry, -1));
    /* Counted without memory; the tie once, the table not. */
    ck_assert_int_eq(wf_registry_parameters(registry), 11 * 8 + 2 * (24 * 8 + 24 + 8 * 8 + 8) + 16 + 11 + 3);
    ck_assert_ptr_null(wf_registry_values(registry));
    ck_assert_ptr_null(wf_registry_grads(registry));
    ck_assert_ptr_eq(m.head.weight, m.embed.weight);
    ck_ok(wf_registry_build(registry, 1, error));
    ck_assert_ptr_nonnull(wf_registry_grads(registry));
    for (int i = 0; i < NAMES; i++) {
        const struct wf_parameter_info *info = wf_parameter_info(wf_registry_at(registry, i));
        ck_assert_int_eq(info->index, i);
        ck_assert_int_eq(info->offset % 16, 0);
        ck_assert_ptr_eq(info->value.data, wf_registry_values(registry) + info->offset);
        ck_assert_int_le(info->offset + wf_array_count(&info->value), wf_registry_slab(registry));
        ck_assert_int_eq(info->frozen, i == 1 || i == NAMES - 1);
    }
    wf_registry_free(registry);
    wf_registry_free(NULL);
}
END_TEST

/* Both uses of a tied weight add to one gradient, and a frozen one gets none. */
START_TEST(ties_share_a_gradient)
{
    wf_registry *registry = new_registry();
    wf_error e = {0};
    struct model m;
    declare(wf_root(registry), &m);
    ck_ok(wf_registry_build(registry, 1, error));
    wf_tape *tape = wf_tape_new(&e);
    const int32_t id[] = {4, 4, 7};
    double squares[3] = {0};
    wf_real *sum = NULL;
    for (int use = 0; use < 3; use++) { /* the first, the second, both */
        wf_array g;
        wf_tape_reset(tape, WF_GRADIENTS);
        wf_grads_zero(wf_registry_grads(registry));
        wf_tensor *x = wf_embedding_forward(&m.embed, wf_ids(tape, id, 1, 3)), *y;
        if (use == 0)
            y = wf_mul(x, wf_detach(x));
        else
            y = wf_linear_forward(&m.head, wf_detach(x));
        if (use == 2)
            y = wf_add(wf_sum(y), wf_sum(wf_mul(x, wf_detach(x))));
        ck_assert_msg(wf_backward(wf_sum(y)) == WF_OK, "%s", wf_tape_error(tape)->message);
        ck_assert_int_eq(wf_grad(m.embed.weight, &g), WF_OK);
        if (!sum)
            sum = calloc(88, sizeof *sum);
        for (int i = 0; i < 88; i++) {
            wf_real v = ((wf_real *)g.data)[i];
            sum[i] += use < 2 ? v : -v;
            squares[use] += (double)v * v;
        }
    }
    double left = 0;
    for (int i = 0; i < 88; i++)
        left += (double)sum[i] * sum[i];
    ck_assert(squares[0] > 0 && squares[1] > 0 && squares[2] > squares[0]);
    ck_assert(left < 1e-10 * squares[2]);
    ck_assert(!wf_registry_grads(registry)->valid[NAMES - 1]);
    free(sum);
    wf_tape_free(tape);
    wf_registry_free(registry);
}
END_TEST

START_TEST(freezing)
{
    wf_registry *registry = new_registry();
    wf_error e = {0};
    struct wf_linear m;
    wf_linear_init(wf_root(registry), &m, 4, 3);
    ck_ok(wf_registry_build(registry, 1, error));
    wf_tape *tape = wf_tape_new(&e);
    for (int frozen = 1; frozen >= 0; frozen--) {
        wf_registry_freeze(registry, m.weight, frozen);
        wf_grads_zero(wf_registry_grads(registry));
        wf_tape_reset(tape, WF_GRADIENTS);
        wf_tensor *x = wf_input(tape, (wf_real[]){1, 2, 3, 4}, WF_SHAPE(1, 4), false);
        ck_assert_int_eq(wf_backward(wf_sum(wf_linear_forward(&m, x))), WF_OK);
        ck_assert_int_eq(wf_registry_grads(registry)->valid[wf_parameter_info(m.weight)->index], !frozen);
        ck_assert(wf_registry_grads(registry)->valid[wf_parameter_info(m.bias)->index]);
    }
    wf_tape_free(tape);
    wf_registry_free(registry);
}
END_TEST

static bool at_the_second(void *asked)
{
    return ++*(int *)asked == 2;
}

/* The embeddings of a large model alone take a second: Ctrl-C came through after all of them. */
START_TEST(building_can_be_cancelled)
{
    wf_registry *registry = new_registry();
    struct wf_linear m;
    int asked = 0;
    wf_error e = {0};
    wf_linear_init(wf_root(registry), &m, 4, 3);
    wf_registry_cancel(registry, at_the_second, &asked);
    ck_assert_int_eq(wf_registry_build(registry, 1, &e), WF_ERR_CANCELLED);
    ck_assert_int_eq(asked, 2);
    wf_registry_cancel(registry, NULL, NULL);
    ck_ok(wf_registry_build(registry, 1, error));
    wf_registry_free(registry);
}
END_TEST

/* --- initialisation ------------------------------------------------------------------------------------------------ */

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
        ck_assert_int_eq(memcmp(value_of(a, names[i]), value_of(b, names[i]), (i % 2 ? 30 : 1200) * sizeof(wf_real)), 0);
    ck_assert_int_ne(memcmp(value_of(a, "first.weight"), value_of(a, "second.weight"), 1200 * sizeof(wf_real)), 0);
    ck_assert_int_ne(memcmp(value_of(a, "first.weight"), value_of(c, "first.weight"), 1200 * sizeof(wf_real)), 0);
    ck_ok(wf_registry_build(c, 17, error)); /* again, with another seed */
    ck_assert_int_eq(memcmp(value_of(a, "first.weight"), value_of(c, "first.weight"), 1200 * sizeof(wf_real)), 0);
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

/* As WF_INIT_NORMAL with the deviation that ctx points to. */
static void normal_of(void *ctx, wf_real *value, const wf_shape *shape, uint64_t seed, const char *name)
{
    wf_fill_normal(value, wf_shape_count(shape), 0, *(double *)ctx, seed, wf_stream_of(name));
}

/* A fill function is told what ours are told, so that its numbers too depend on seed and name, not on the order of declaration. */
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

/* Without rules PyTorch's defaults; with rules, those, where no module says otherwise. */
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

/* --- what is refused ----------------------------------------------------------------------------------------------- */

START_TEST(errors_of_declaring)
{
    wf_registry *r = new_registry();
    wf_parameter(wf_sub(wf_root(r), "a"), "w", WF_SHAPE(3), .init = {0});
    wf_parameter(wf_sub(wf_root(r), "a"), "w", WF_SHAPE(4), .init = {0});
    wf_parameter(wf_root(r), "z", WF_SHAPE(0), .init = {0}); /* the first error wins */
    ck_assert_str_eq(wf_registry_error(r)->message, "a.w: declared twice");
    ck_refused(wf_registry_build(r, 1, error), WF_ERR_ARGUMENT, "a.w: declared twice");
    wf_registry_free(r);

    static const struct {
        wf_shape shape;
        const char *message;
    } bad[] = {{{2, {3, 0}}, "w: the shape [3,0] is invalid for a parameter: a size is below 1, or the product is too large"},
               {{1, {-2}}, "w: the shape [-2] is invalid for a parameter: a size is below 1, or the product is too large"},
               {{2, {1LL << 40, 1LL << 40}},
                "w: the shape [1099511627776,1099511627776] is invalid for a parameter: a size is below 1, or the product is too large"}};
    for (int i = 0; i < 3; i++) {
        r = new_registry();
        wf_tensor *p = wf_parameter(wf_root(r), "w", &bad[i].shape, .init = {0});
        ck_assert_ptr_nonnull(p);
        ck_refused(wf_registry_build(r, 1, error), WF_ERR_ARGUMENT, bad[i].message);
        wf_registry_free(r);
    }

    r = new_registry();
    struct wf_embedding e;
    struct wf_linear m;
    wf_embedding_init(wf_sub(wf_root(r), "embed"), &e, 11, 8);
    wf_linear_init(wf_sub(wf_root(r), "head"), &m, 8, 12, .tied = e.weight);
    ck_refused(wf_registry_build(r, 1, error), WF_ERR_SHAPE, "head: the tied weight is not [12,8]");
    wf_registry_free(r);

    r = new_registry();
    wf_parameter(wf_root(r), "w", WF_SHAPE(3), .init = {0});
    ck_ok(wf_registry_build(r, 1, error));
    wf_parameter(wf_root(r), "late", WF_SHAPE(3), .init = {0});
    ck_refused(wf_registry_build(r, 1, error), WF_ERR_STATE, "late: declared after the registry was built");
    wf_registry_free(r);

    wf_error error = {0};
    ck_assert_ptr_null(wf_registry_new_abi(WF_ABI ^ 12, &error)); /* the other precision */
    ck_assert_int_eq(error.code, WF_ERR_ARGUMENT);
}
END_TEST

/* --- state dicts --------------------------------------------------------------------------------------------------- */

static char path[64];

static void temporary(void)
{
    snprintf(path, sizeof path, "/tmp/weft-registry-XXXXXX");
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

static wf_safetensors *open_file(void)
{
    wf_error error = {0};
    wf_safetensors *file = wf_safetensors_open(path, &error);
    ck_assert_msg(file != NULL, "%s", error.message);
    return file;
}

static void save(const wf_registry *registry, const char *prefix)
{
    wf_safetensors_writer *w = wf_safetensors_writer_new();
    wf_registry_save(registry, w, prefix);
    ck_ok(wf_safetensors_commit(w, path, error));
}

START_TEST(saved_and_loaded)
{
    wf_registry *a = new_registry(), *b = new_registry();
    struct model m, n;
    temporary();
    declare(wf_root(a), &m);
    declare(wf_root(b), &n);
    ck_ok(wf_registry_build(a, 1, error));
    for (int prefixed = 0; prefixed < 2; prefixed++) {
        const char *prefix = prefixed ? "model." : NULL;
        save(a, prefix);
        wf_safetensors *file = open_file();
        ck_assert_int_eq(wf_safetensors_count(file), NAMES - 1); /* no table, the tied weight once */
        ck_assert_ptr_nonnull(wf_safetensors_find(file, prefixed ? "model.embed.weight" : "embed.weight"));
        ck_ok(wf_registry_load(b, file, prefix, error));
        wf_safetensors_close(file);
        ck_assert_ptr_null(wf_registry_grads(b)); /* to use, not to train */
        ck_assert_int_eq(memcmp(wf_registry_values(a), wf_registry_values(b), (size_t)wf_registry_slab(a) * sizeof(wf_real)), 0);
        if (!prefixed)
            memset((void *)value_of(b, "norm.weight"), 0, 8 * sizeof(wf_real)); /* so that the second load shows */
    }
    ck_ok(wf_registry_gradients(b, error));
    ck_assert_ptr_nonnull(wf_registry_grads(b));
    wf_registry_free(a);
    wf_registry_free(b);
    unlink(path);
}
END_TEST

START_TEST(loading_is_strict)
{
    wf_registry *a = new_registry(), *b = new_registry();
    temporary();
    wf_parameter(wf_root(a), "same", WF_SHAPE(3), .init = {WF_INIT_CONSTANT, 1});
    wf_parameter(wf_root(a), "extra", WF_SHAPE(3), .init = {0});
    wf_parameter(wf_root(a), "extra.more", WF_SHAPE(3), .init = {0});
    wf_parameter(wf_root(a), "turned", WF_SHAPE(3, 2), .init = {0});
    ck_ok(wf_registry_build(a, 1, error));
    wf_parameter(wf_root(b), "same", WF_SHAPE(3), .init = {WF_INIT_CONSTANT, 7});
    wf_parameter(wf_root(b), "turned", WF_SHAPE(2, 3), .init = {0});
    wf_parameter(wf_root(b), "absent.weight", WF_SHAPE(3), .init = {0});
    ck_ok(wf_registry_build(b, 1, error));
    save(a, "");
    wf_safetensors *file = open_file();
    wf_error e = {0};
    ck_assert_int_eq(wf_registry_load(b, file, NULL, &e), WF_ERR_FORMAT);
    ck_assert_msg(strstr(e.message, "1 missing: absent.weight") && strstr(e.message, "2 unexpected: extra, extra.more") &&
                      strstr(e.message, "1 with another shape: turned") && strstr(e.message, "[3,2]") && strstr(e.message, "[2,3]"),
                  "%s", e.message);
    ck_assert(value_of(b, "same")[0] == 7); /* nothing was touched */
    e = (wf_error){0};
    ck_assert_int_eq(wf_registry_load(b, file, "model.", &e), WF_ERR_FORMAT);
    ck_assert_msg(strstr(e.message, "3 missing: model.same, model.turned, model.absent.weight") && !strstr(e.message, "unexpected"), "%s",
                  e.message);
    wf_safetensors_close(file);
    wf_registry_free(a);
    wf_registry_free(b);
    unlink(path);
}
END_TEST

/* A long list is cut, and its count is not. */
START_TEST(long_lists_are_counted)
{
    wf_registry *a = new_registry(), *b = new_registry();
    temporary();
    wf_parameter(wf_root(a), "other", WF_SHAPE(1), .init = {0});
    ck_ok(wf_registry_build(a, 1, error));
    for (int i = 0; i < 500; i++)
        wf_parameter(wf_sub_at(wf_root(b), "a_long_name_for_a_layer", i), "weight", WF_SHAPE(1), .init = {0});
    save(a, "");
    wf_safetensors *file = open_file();
    wf_error e = {0};
    ck_assert_int_eq(wf_registry_load(b, file, NULL, &e), WF_ERR_FORMAT);
    ck_assert_msg(strstr(e.message, "500 missing: a_long_name_for_a_layer.0.weight, ") && strstr(e.message, "1 unexpected: other"), "%s",
                  e.message);
    wf_safetensors_close(file);
    wf_registry_free(a);
    wf_registry_free(b);
    unlink(path);
}
END_TEST

/* Files in another precision are converted. */
START_TEST(other_dtypes)
{
    wf_registry *r = new_registry();
    temporary();
    wf_parameter(wf_root(r), "w", WF_SHAPE(2, 2), .init = {0});
    float single[] = {1, -2.5f, 0.125f, 3};
    double wide[] = {1, -2.5, 0.125, 3};
    uint16_t half[] = {0x3c00, 0xc100, 0x3000, 0x4200}, brain[] = {0x3f80, 0xc020, 0x3e00, 0x4040};
    wf_shape shape = {2, {2, 2}};
    const wf_array in[] = {wf_array_contiguous(single, WF_F32, &shape), wf_array_contiguous(wide, WF_F64, &shape),
                           wf_array_contiguous(half, WF_F16, &shape), wf_array_contiguous(brain, WF_BF16, &shape)};
    for (int i = 0; i < 4; i++) {
        wf_safetensors_writer *w = wf_safetensors_writer_new();
        wf_safetensors_put(w, "w", &in[i]);
        ck_ok(wf_safetensors_commit(w, path, error));
        wf_safetensors *file = open_file();
        ck_ok(wf_registry_load(r, file, NULL, error));
        for (int k = 0; k < 4; k++)
            ck_assert(value_of(r, "w")[k] == (wf_real)wide[k]);
        memset(wf_registry_values(r), 0, 4 * sizeof(wf_real));
        wf_safetensors_close(file);
    }
    wf_registry_free(r);
    unlink(path);
}
END_TEST

/* --- memory -------------------------------------------------------------------------------------------------------- */

/* Whichever allocation fails: an error of memory, nothing lost, and the next try succeeds. */
START_TEST(without_memory)
{
    wf_error warm = {0};
    wf_registry_free(wf_registry_new(&warm)); /* what is made once */
    int64_t live = wf_alloc_live(), n;
    for (n = 0;; n++) {
        wf_error e = {0};
        struct model m;
        wf_alloc_fail_after(n);
        wf_registry *r = wf_registry_new(&e);
        wf_status status = r ? WF_OK : e.code;
        if (r) {
            declare(wf_root(r), &m);
            for (int i = 0; i < 100; i++) /* so that the table of parameters grows, and the names' arena with it */
                wf_parameter(wf_sub_at(wf_root(r), "many", i), "weight", WF_SHAPE(30000), .init = {0});
            status = wf_registry_build(r, 1, &e);
        }
        wf_alloc_fail_after(-1);
        wf_registry_free(r);
        ck_assert_int_eq(wf_alloc_live(), live);
        if (status == WF_OK)
            break;
        ck_assert_int_eq(status, WF_ERR_MEMORY);
        ck_assert_int_eq(e.code, WF_ERR_MEMORY);
        ck_assert_int_lt(n, 1000);
    }
    ck_assert_int_ge(n, 6);
}
END_TEST

START_TEST(loading_without_memory)
{
    wf_registry *a = new_registry();
    struct model m;
    temporary();
    declare(wf_root(a), &m);
    ck_ok(wf_registry_build(a, 1, error));
    save(a, "");
    wf_safetensors *file = open_file();
    wf_registry *b = new_registry();
    declare(wf_root(b), &m);
    for (int n = 0;; n++) {
        wf_error e = {0};
        wf_alloc_fail_after(n);
        wf_status status = wf_registry_load(b, file, NULL, &e);
        if (status == WF_OK)
            status = wf_registry_gradients(b, &e);
        wf_alloc_fail_after(-1);
        if (status == WF_OK)
            break;
        ck_assert_int_eq(status, WF_ERR_MEMORY);
        ck_assert_int_lt(n, 100);
    }
    ck_assert_int_eq(memcmp(wf_registry_values(a), wf_registry_values(b), (size_t)wf_registry_slab(a) * sizeof(wf_real)), 0);
    wf_safetensors_close(file);
    wf_registry_free(a);
    wf_registry_free(b);
    unlink(path);
}
END_TEST

/* A gradient slab of another thread's: the registry's own stays as it is. */
START_TEST(separate_gradients)
{
    wf_registry *r = new_registry();
    wf_error e = {0};
    struct wf_linear m;
    wf_linear_init(wf_root(r), &m, 4, 3);
    ck_ok(wf_registry_build(r, 1, error));
    wf_grads *own = wf_grads_new(r, &e);
    wf_tape *tape = wf_tape_new(&e);
    ck_assert(own && tape);
    wf_tape_reset(tape, WF_GRADIENTS, .grads = own);
    wf_tensor *x = wf_input(tape, (wf_real[]){1, 2, 3, 4}, WF_SHAPE(1, 4), false);
    ck_assert_int_eq(wf_backward(wf_sum(wf_linear_forward(&m, x))), WF_OK);
    ck_assert(own->valid[0] && own->valid[1]);
    ck_assert(!wf_registry_grads(r)->valid[0] && !wf_registry_grads(r)->valid[1]);
    for (int i = 0; i < 12; i++)
        ck_assert(wf_grads_at(own, m.weight)[i] == (wf_real)(i % 4 + 1));
    wf_tape_free(tape);
    wf_grads_free(own);
    wf_registry_free(r);
}
END_TEST

WF_TEST_MAIN("registry", names_and_counts, ties_share_a_gradient, freezing, building_can_be_cancelled, values_depend_on_seed_and_name_alone,
             fill_functions, initialisers, rules_of_a_scope, errors_of_declaring, saved_and_loaded, loading_is_strict,
             long_lists_are_counted, other_dtypes, without_memory, loading_without_memory, separate_gradients)
