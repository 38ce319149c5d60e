/* SPDX-License-Identifier: MIT */
/* Parameters that are stored as bf16: a model computes with them what it computes with the same values as floats. */
#include <weft/weft.h>

#include "nn_test.h"

#ifdef WF_DOUBLE
START_TEST(refused)
{
    wf_registry *r = new_registry();
    wf_parameter(wf_root(r), "w", WF_SHAPE(2, 3), .stored = WF_BF16, .frozen = true);
    declared_wrong(r, "w: .stored is BF16, but a parameter of this library is stored as F64");
    r = new_registry();
    wf_tensor *w = wf_parameter(wf_root(r), "w", WF_SHAPE(1), .storable = true);
    wf_real number = 1;
    const wf_array value = wf_array_contiguous(&number, WF_REAL, WF_SHAPE(1));
    wf_safetensors_writer *writer = wf_safetensors_writer_new();
    wf_safetensors_put(writer, "w", &value);
    wf_safetensors *file = written(writer);
    ck_fails(wf_registry_load_with(r, file, &(struct wf_load_options){.stored = WF_STORED_BF16}, error), WF_ERR_ARGUMENT,
             "bf16, which is for libweft, the library of floats; this is libweft-f64");
    ck_ok(wf_registry_load_with(r, file, &(struct wf_load_options){.stored = WF_STORED_AS_FILE}, error));
    ck_assert_int_eq(wf_dtype_of(w), WF_REAL);
    wf_safetensors_close(file);
    wf_registry_free(r);
}
END_TEST

WF_TEST_MAIN("stored", refused)
#else

enum { V = 37, D = 24, HIDDEN = 40, B = 2, T = 5 };

/* An embedding that is also the output layer, a norm, and two linear maps with adapters. */
struct net {
    wf_registry *registry;
    struct wf_embedding embedding;
    struct wf_layer_norm norm;
    struct wf_linear up, down, head;
};

static struct net declare(void)
{
    struct net n = {.registry = new_registry()};
    const wf_scope root = wf_root(n.registry);
    const struct wf_lora lora = {.rank = 2};
    wf_embedding_init(wf_sub(root, "embedding"), &n.embedding, V, D);
    wf_layer_norm_init(wf_sub(root, "norm"), &n.norm, D);
    wf_linear_init(wf_sub(root, "up"), &n.up, D, HIDDEN, .lora = lora);
    wf_linear_init(wf_sub(root, "down"), &n.down, HIDDEN, D, .lora = lora);
    wf_linear_init(wf_sub(root, "head"), &n.head, D, V, .tied = n.embedding.weight, .no_bias = true);
    return n;
}

static wf_tensor *loss_of(const struct net *n, wf_tape *tape)
{
    static const int32_t ids[B * T] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 36}, next[B * T] = {1, 4, 1, 5, 9, 2, 6, 5, 36, 0};
    wf_tensor *x = wf_embedding_forward(&n->embedding, wf_ids(tape, ids, B, T));
    wf_tensor *y = wf_linear_forward(&n->down, wf_gelu(wf_linear_forward(&n->up, wf_layer_norm_forward(&n->norm, x))));
    wf_tensor *logits = wf_linear_forward(&n->head, wf_add(x, y));
    wf_tensor *other = wf_matmul(wf_add(x, y), wf_transpose(n->head.weight, 0, 1));
    return wf_add(wf_add(wf_cross_entropy(logits, wf_ids(tape, next, B, T)), wf_mean(other)),
                  wf_linear_cross_entropy(y, n->head.weight, NULL, wf_ids(tape, next, B, T)));
}

/* The file of a net: weights in bf16 or in float, with the same values after rounding. */
static wf_safetensors *a_file(bool bf16)
{
    struct net n = declare();
    ck_ok(wf_registry_build(n.registry, 5, error));
    wf_safetensors_writer *w = wf_safetensors_writer_new();
    static uint16_t memory[16][V * D + D * HIDDEN];
    for (int i = 0; i < wf_registry_count(n.registry); i++) {
        const struct wf_parameter_info *info = wf_parameter_info(wf_registry_at(n.registry, i));
        wf_array value = info->value;
        if (bf16) {
            const wf_shape shape = wf_array_shape(&value);
            ck_assert(wf_convert(WF_BF16, memory[i], WF_F32, value.data, wf_array_count(&value)));
            value = wf_array_contiguous(memory[i], WF_BF16, &shape);
        }
        wf_safetensors_put(w, info->name, &value);
    }
    wf_safetensors *file = written(w);
    wf_registry_free(n.registry);
    return file;
}

static struct net load(const wf_safetensors *file, enum wf_stored stored)
{
    struct net n = declare();
    ck_ok(wf_registry_load_with(n.registry, file, &(struct wf_load_options){.stored = stored}, error));
    return n;
}

/* Loss, and the gradients of the parameters that are not frozen. */
static wf_real trained(const struct net *n, enum wf_precision precision, wf_real *gradient)
{
    wf_tape *tape = new_tape();
    wf_registry_zero_grads(n->registry);
    wf_tape_reset(tape, WF_TRAIN, .precision = precision);
    wf_tensor *loss = loss_of(n, tape);
    ck_assert_msg(!wf_is_poison(loss), "%s", wf_tape_error(tape)->message);
    ck_backward(loss);
    double value;
    ck_assert_int_eq(wf_item(loss, &value), WF_OK);
    wf_tensor *const adapters[] = {n->up.lora_a, n->up.lora_b, n->down.lora_a, n->down.lora_b};
    for (int i = 0; i < 4; i++) {
        const int64_t count = wf_array_count(&wf_parameter_info(adapters[i])->value);
        memcpy(gradient, gradient_of(adapters[i]), (size_t)count * sizeof *gradient);
        gradient += count;
    }
    wf_tape_free(tape);
    return (wf_real)value;
}

START_TEST(the_same_bits)
{
    enum { GRADIENT = 2 * 2 * (D + HIDDEN) };
    wf_safetensors *file = a_file(true);
    struct net wide = load(file, WF_STORED_REAL), narrow = load(file, WF_STORED_AS_FILE);
    ck_ok(wf_registry_freeze_matching(wide.registry, "*", true, error));
    ck_ok(wf_registry_freeze_matching(narrow.registry, "*", true, error));
    struct net *const nets[] = {&wide, &narrow};
    for (int i = 0; i < 2; i++) {
        wf_real b[80];
        wf_fill_normal(b, 80, 0, 1, 3, 1);
        ck_ok(wf_parameter_set(nets[i]->up.lora_b, b, 2 * HIDDEN, error));
        ck_ok(wf_registry_freeze_matching(nets[i]->registry, "*.lora_*", false, error));
        ck_ok(wf_registry_gradients(nets[i]->registry, error));
    }
    ck_assert_int_eq(wf_dtype_of(wide.up.weight), WF_F32);
    ck_assert_int_eq(wf_dtype_of(narrow.up.weight), WF_BF16);
    ck_assert_int_eq(wf_dtype_of(narrow.embedding.weight), WF_BF16);
    ck_assert_int_eq(wf_dtype_of(narrow.up.bias), WF_F32);
    ck_assert_int_eq(wf_dtype_of(narrow.norm.weight), WF_F32);
    ck_assert(wf_registry_slab(narrow.registry) + V * D + 2 * D * HIDDEN <= wf_registry_slab(wide.registry));
    wf_real losses[2], first[GRADIENT], second[GRADIENT];
    for (int p = WF_PRECISION_REAL; p <= WF_PRECISION_BF16; p++) {
        losses[p] = trained(&wide, (enum wf_precision)p, first);
        const wf_real loss = trained(&narrow, (enum wf_precision)p, second);
        ck_assert_mem_eq(&loss, &losses[p], sizeof loss);
        ck_assert_mem_eq(first, second, sizeof first);
    }
    ck_assert(losses[0] != losses[1]);
    wf_registry_free(wide.registry);
    wf_registry_free(narrow.registry);
    wf_safetensors_close(file);
}
END_TEST

/* WF_STORED_BF16 rounds what a file has as floats; WF_STORED_AS_FILE leaves that as it is. */
START_TEST(rounded)
{
    wf_safetensors *floats = a_file(false), *numbers = a_file(true);
    struct net n[] = {load(floats, WF_STORED_AS_FILE), load(floats, WF_STORED_BF16), load(numbers, WF_STORED_AS_FILE)};
    static wf_real value[3][D * HIDDEN];
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(wf_dtype_of(n[i].up.weight), i == 0 ? WF_F32 : WF_BF16);
        ck_assert(wf_dtype_of(n[i].up.lora_a) == WF_F32);
        ck_read(n[i].up.weight, value[i], D * HIDDEN);
    }
    ck_assert_mem_eq(value[1], value[2], sizeof value[1]);
    ck_assert(memcmp(value[0], value[1], sizeof value[0]) != 0);
    /* saved, the file has BF16 */
    wf_safetensors_writer *w = wf_safetensors_writer_new();
    wf_registry_save(n[1].registry, w, "");
    wf_safetensors *again = written(w);
    ck_assert_int_eq(wf_safetensors_find(again, "up.weight")->dtype, WF_BF16);
    ck_assert_int_eq(wf_safetensors_find(again, "up.bias")->dtype, WF_F32);
    struct net back = load(again, WF_STORED_AS_FILE);
    ck_read(back.up.weight, value[0], D * HIDDEN);
    ck_assert_mem_eq(value[0], value[1], sizeof value[0]);
    /* set: rounded to nearest even */
    value[0][0] = 1 + 0x1p-8f, value[0][1] = 1 + 0x1p-7f + 0x1p-8f, value[0][2] = 1 + 0x1p-8f + 0x1p-12f;
    ck_ok(wf_parameter_set(back.up.weight, value[0], D * HIDDEN, error));
    ck_read(back.up.weight, value[1], D * HIDDEN);
    ck_assert(value[1][0] == 1 && value[1][1] == 1 + 0x1p-6f && value[1][2] == 1 + 0x1p-7f);
    for (int i = 0; i < 3; i++)
        wf_registry_free(n[i].registry);
    wf_registry_free(back.registry);
    wf_safetensors_close(again);
    wf_safetensors_close(floats);
    wf_safetensors_close(numbers);
}
END_TEST

/* A program's own parameter, built from a seed: the rounded values of the same parameter as floats. */
START_TEST(declared)
{
    wf_registry *r[2] = {new_registry(), new_registry()};
    wf_tensor *w[2];
    wf_real value[2][6 * 5];
    const struct wf_initializer init = {.kind = WF_INIT_NORMAL, .a = 1};
    for (int i = 0; i < 2; i++) {
        wf_parameter(wf_root(r[i]), "before", WF_SHAPE(3), .init = init);
        w[i] = wf_parameter(wf_root(r[i]), "w", WF_SHAPE(6, 5), .init = init, .frozen = true, .stored = i ? WF_BF16 : WF_F32);
        wf_parameter(wf_root(r[i]), "after", WF_SHAPE(3), .init = init);
        ck_ok(wf_registry_build(r[i], 9, error));
        ck_read(w[i], value[i], 30);
    }
    uint16_t narrow[30];
    ck_assert(wf_convert(WF_BF16, narrow, WF_F32, value[0], 30) && wf_convert(WF_F32, value[0], WF_BF16, narrow, 30));
    ck_assert_mem_eq(value[0], value[1], sizeof value[0]);
    ck_assert_int_eq(wf_registry_parameters(r[1]), 36);
    wf_tape *tape = new_tape();
    wf_tape_reset(tape, WF_INFER);
    wf_tape_use(tape);
    ck_poison(wf_exp(w[1]), "dtype BF16, but F32 is required: declare or load this weight as floats (WF_STORED_REAL)");
    wf_tape_use(tape);
    ck_poison(wf_matmul(w[1], wf_transpose(w[0], 0, 1)), "dtype BF16, but F32 is required");
    wf_tape_free(tape);
    wf_registry_free(r[0]);
    wf_registry_free(r[1]);
}
END_TEST

/* wf_tape_check_finite names a stored weight that holds a NaN or an infinity. */
START_TEST(not_finite)
{
    static const double dirt[] = {NAN, INFINITY};
    static const char *const said[] = {"the parameter w [3,4] has nan at [1,2], and linear(",
                                       "the parameter w [3,4] has inf at [1,2], and linear("};
    for (int i = 0; i < 2; i++) {
        wf_registry *r = new_registry();
        wf_tensor *w = wf_parameter(wf_root(r), "w", WF_SHAPE(3, 4), .frozen = true, .stored = WF_BF16);
        ck_ok(wf_registry_build(r, 1, error));
        wf_real values[12] = {1, 2, 3};
        values[6] = dirt[i];
        ck_ok(wf_parameter_set(w, values, 12, error));
        wf_tape *tape = new_tape();
        wf_tape_check_finite(tape, true);
        wf_tape_reset(tape, WF_INFER);
        wf_tape_use(tape);
        ck_poison(wf_linear(wf_input(tape, (const wf_real[]){1, 1, 1, 1}, WF_SHAPE(1, 4), false), w, NULL), said[i]);
        wf_tape_free(tape);
        wf_registry_free(r);
    }
}
END_TEST

START_TEST(refused)
{
    wf_registry *r = new_registry();
    wf_parameter(wf_root(r), "w", WF_SHAPE(2, 3), .stored = WF_BF16);
    declared_wrong(r, "w: a parameter that is stored as BF16 has no gradient: give .frozen = true");
    r = new_registry();
    wf_parameter(wf_root(r), "w", WF_SHAPE(2, 3), .stored = WF_F16, .frozen = true);
    declared_wrong(r, "w: .stored is F16, but a parameter of this library is stored as F32 or BF16");
    r = new_registry();
    wf_parameter(wf_root(r), "w", WF_SHAPE(2, 3), .stored = WF_BF16, .buffer = true);
    declared_wrong(r, "w: a buffer cannot be stored as BF16");
    wf_safetensors *file = a_file(true);
    struct net n = load(file, WF_STORED_AS_FILE);
    wf_tape *tape = new_tape();
    ck_fails(wf_linear_merge(&n.up, tape, error), WF_ERR_ARGUMENT, "is stored as BF16: load the model without .stored");
    ck_fails(wf_registry_freeze_matching(n.registry, "up.*", false, error), WF_ERR_ARGUMENT, "'up.weight' is stored as BF16");
    ck_ok(wf_registry_freeze_matching(n.registry, "norm.*", false, error));
    wf_registry_freeze(n.registry, n.up.weight, false);
    ck_fails(wf_registry_gradients(n.registry, error), WF_ERR_ARGUMENT, "'up.weight' is stored as BF16, and so has no gradient");
    wf_tape_free(tape);
    wf_registry_free(n.registry);
    n = load(file, WF_STORED_REAL);
    ck_fails(wf_registry_load_with(n.registry, file, &(struct wf_load_options){.stored = WF_STORED_BF16}, error), WF_ERR_STATE,
             "'embedding.weight' has its values as F32 already");
    wf_registry_free(n.registry);
    n = declare();
    ck_fails(wf_registry_load_with(n.registry, file, &(struct wf_load_options){.stored = (enum wf_stored)3}, error), WF_ERR_ARGUMENT,
             "unknown");
    wf_registry_free(n.registry);
    wf_safetensors_close(file);
}
END_TEST

WF_TEST_MAIN("stored", the_same_bits, rounded, declared, not_finite, refused)
#endif
