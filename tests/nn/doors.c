/* SPDX-License-Identifier: MIT */
/* Registries, files of weights, caches and modules with wrong arguments: a message of one line, and no memory outside is touched. */
#include "nn_test.h"

/* A wrong declaration in a new registry r. */
/* clang-format off */
#define WRONG(part, ...) do { wf_registry *r = new_registry(); __VA_ARGS__; declared_wrong(r, part); } while (0)
/* clang-format on */

/* --- registries ---------------------------------------------------------------------------------------------------- */

START_TEST(names_and_shapes_of_parameters)
{
    WRONG("block.NULL: a name of a scope or a parameter is NULL",
          ck_assert_ptr_nonnull(wf_parameter(wf_sub(wf_root(r), "block"), NULL, WF_SHAPE(2))));
    WRONG("NULL.: a name", wf_parameter(wf_sub(wf_root(r), NULL), "w", WF_SHAPE(2)));
    WRONG("NULL.3.: a name", wf_parameter(wf_sub_at(wf_root(r), NULL, 3), "w", WF_SHAPE(2)));
    WRONG("w: the shape NULL is invalid", ck_assert_ptr_nonnull(wf_parameter(wf_root(r), "w", NULL)));
    for (int ndim = -1; ndim <= 1000; ndim += 1001)
        WRONG("is invalid for a parameter", wf_parameter(wf_root(r), "w", &((wf_shape){ndim, {2, 2, 2, 2, 2, 2}})));
    WRONG("w: the initialiser has no fill function", wf_parameter(wf_root(r), "w", WF_SHAPE(2), .init = {.kind = WF_INIT_FUNCTION}));
    WRONG("w: the initialiser has an unknown kind", wf_parameter(wf_root(r), "w", WF_SHAPE(2), .init = {.kind = (enum wf_init_kind)99}));
    wf_registry *r = new_registry();
    wf_parameter(wf_with_init(wf_root(r), NULL), "w", WF_SHAPE(2));
    ck_ok(wf_registry_build(r, 1, error));
    wf_registry_free(r);
}
END_TEST

START_TEST(indices_of_registries)
{
    static const int outside[] = {-1, 1, INT32_MIN, INT32_MAX};
    wf_registry *r = new_registry(), *other = new_registry();
    wf_parameter(wf_root(r), "table", WF_SHAPE(2), .buffer = true);
    wf_tensor *theirs = wf_parameter(wf_root(other), "w", WF_SHAPE(2));
    for (int i = 0; i < 4; i++) {
        ck_assert(!wf_registry_is_buffer(r, outside[i]));
        ck_assert_ptr_null(wf_registry_at(r, outside[i]));
    }
    ck_assert(wf_registry_is_buffer(r, 0));
    ck_assert_ptr_null(wf_registry_find(r, NULL));
    wf_registry_freeze(r, theirs, true);
    declared_wrong(r, "wf_registry_freeze: 'w' is not a parameter of this registry");
    wf_registry_freeze(other, NULL, true);
    declared_wrong(other, "wf_registry_freeze: 'NULL' is not");
}
END_TEST

/* A model that was never built is not written as an empty file. */
START_TEST(saved_before_it_is_built)
{
    char folder[] = "/tmp/weft-doors-XXXXXX", path[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/w.safetensors", folder);
    wf_registry *r = new_registry();
    wf_parameter(wf_root(r), "w", WF_SHAPE(2));
    wf_safetensors_writer *w = wf_safetensors_writer_new();
    wf_registry_save(r, w, "");
    ck_fails(wf_safetensors_commit(w, path, error), WF_ERR_ARGUMENT, "w");
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert_int_eq(rmdir(folder), 0);
    wf_registry_free(r);
}
END_TEST

START_TEST(rules_without_sources)
{
    wf_real v[2] = {1, 2};
    const wf_array a = wf_array_contiguous(v, WF_REAL, WF_SHAPE(2));
    wf_safetensors_writer *w = wf_safetensors_writer_new();
    wf_safetensors_put(w, "w", &a);
    wf_safetensors *file = written(w);
    wf_registry *r = new_registry();
    wf_parameter(wf_root(r), "w", WF_SHAPE(2));

    static const struct wf_load_rule no_source[] = {{"v", {"w"}}, {"w", {NULL}}}, no_parameter[] = {{NULL, {"w"}}};
    const struct {
        struct wf_load_options o;
        const char *message;
    } bad[] = {{{.rule = no_source, .rules = 2}, "wf_registry_load_with: rule 1, of \"w\", names no source"},
               {{.rule = no_parameter, .rules = 1}, "rule 0, of \"\", names no parameter"},
               {{.rules = 3}, "3 rules, but the list of rules is NULL"},
               {{.rule = no_source, .rules = -1}, "-1 rules"}};
    for (int i = 0; i < 4; i++) {
        ck_fails(wf_registry_load_with(r, file, &bad[i].o, error), WF_ERR_ARGUMENT, bad[i].message);
        ck_assert_ptr_null(wf_registry_values(r));
    }
    ck_fails(wf_registry_load(r, wf_safetensors_open("/nowhere/at.all", NULL), "", error), WF_ERR_ARGUMENT, "the file is NULL");
    ck_ok(wf_registry_load_with(r, file, NULL, error));
    ck_assert(wf_registry_values(r)[1] == 2);
    wf_safetensors_close(file);
    wf_registry_free(r);
}
END_TEST

/* --- caches -------------------------------------------------------------------------------------------------------- */

enum { D = 8, ROWS = 3, CAPACITY = 6 };

/* After a wrong call each use of the cache reports that call; lengths stay. */
static void cache_refuses(struct wf_cache *cache, const char *part)
{
    wf_registry *r = new_registry();
    struct wf_mha attn;
    struct wf_positions positions;
    wf_mha_init(wf_sub(wf_root(r), "attn"), &attn, D, 2);
    wf_positions_init(wf_sub(wf_root(r), "positions"), &positions, CAPACITY, D);
    ck_ok(wf_registry_build(r, 1, error));
    wf_tape *tape = new_tape();
    for (int64_t b = 0; b < ROWS; b++)
        ck_assert_int_eq(cache->length[b], 2);
    ck_poison(wf_mha_forward(&attn, wf_zeros(tape, WF_SHAPE(ROWS, 1, D)), .causal = true, .cache = &cache->layer[0]), part);
    wf_tensor *x = wf_positions_forward(&positions, wf_zeros(tape, WF_SHAPE(ROWS, 1, D)), cache);
    ck_assert_int_eq(wf_tape_error(tape)->code, WF_ERR_ARGUMENT);
    ck_poison(x, part);
    ck_fails(wf_cache_select(cache, (int32_t[]){0, 1, 2}, ROWS, error), WF_ERR_ARGUMENT, part);
    wf_cache_free(cache);
    wf_tape_free(tape);
    wf_registry_free(r);
}

static void fill(struct wf_cache *cache)
{
    ck_ok(wf_cache_init(cache, 1, ROWS, CAPACITY, D, D, error));
    wf_cache_advance(cache, 2);
}

START_TEST(rows_that_a_cache_does_not_have)
{
    static const struct {
        int64_t row;
        int32_t length;
    } bad[] = {{-1, 0}, {ROWS, 0}, {(int64_t)1 << 40, 0}, {INT64_MIN / 8, 1}, {0, -1}, {2, INT32_MIN}};
    struct wf_cache cache;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fill(&cache);
        wf_cache_rewind(&cache, bad[i].row, bad[i].length);
        cache_refuses(&cache, "wf_cache_rewind: row ");
    }
    fill(&cache);
    ck_ok(wf_cache_select(&cache, (int32_t[]){0, 1}, 2, error));
    cache.length[2] = 2;
    wf_cache_rewind(&cache, 2, 0); /* that row was dropped */
    ck_assert_int_eq(cache.length[2], 2);
    ck_assert_int_eq(cache.error.code, WF_ERR_ARGUMENT);
    ck_says(cache.error.message, "wf_cache_rewind: row 2 to 0 tokens is out of range: the cache has 2 rows");
    wf_cache_free(&cache);
}
END_TEST

START_TEST(tokens_that_a_cache_has_no_room_for)
{
    static const int64_t bad[] = {-1, CAPACITY - 1, INT64_MAX, INT64_MIN, (int64_t)1 << 32};
    struct wf_cache cache;
    for (int i = 0; i < 5; i++) {
        fill(&cache);
        wf_cache_advance(&cache, bad[i]);
        cache_refuses(&cache, "wf_cache_advance: ");
    }
    fill(&cache);
    wf_cache_advance(&cache, CAPACITY - 2);
    ck_assert_int_eq(cache.error.code, WF_OK);
    ck_assert_int_eq(cache.length[ROWS - 1], CAPACITY);
    ck_fails(wf_cache_select(&cache, NULL, 2, error), WF_ERR_ARGUMENT, "wf_cache_select: the list of 2 rows is NULL");
    wf_cache_free(&cache);
}
END_TEST

START_TEST(a_cache_that_was_not_made)
{
    struct wf_cache cache;
    ck_assert_int_eq(wf_cache_init(&cache, 1, 5, -1, D, D, NULL), WF_ERR_ARGUMENT);
    wf_cache_advance(&cache, 1);
    wf_cache_rewind(&cache, 0, 0);
    ck_assert_int_eq(wf_cache_select(&cache, (int32_t[]){0}, 1, NULL), WF_ERR_ARGUMENT);
    wf_cache_free(&cache);
    wf_registry *r = new_registry();
    struct wf_mha attn;
    wf_mha_init(wf_root(r), &attn, D, 2);
    ck_ok(wf_registry_build(r, 1, error));
    wf_tape *tape = new_tape();
    ck_poison(wf_mha_forward(&attn, wf_zeros(tape, WF_SHAPE(1, 1, D)), .cache = &(struct wf_kv){0}),
              "attention: the cache was not made with wf_cache_init");
    wf_tape_free(tape);
    wf_registry_free(r);
}
END_TEST

/* --- modules ------------------------------------------------------------------------------------------------------- */

START_TEST(options_of_modules)
{
    static const struct wf_mha_options mha[] = {
        {.kv_heads = -2}, {.d_key = -3}, {.d_value = -1}, {.d_memory = -8, .cross = true}, {.d_key = INT64_MAX}};
    for (int i = 0; i < 5; i++)
        WRONG("attn: the width 8, kv_heads = ", wf_mha_init_with(wf_sub(wf_root(r), "attn"), &(struct wf_mha){0}, D, 2, &mha[i]));
    WRONG("norm: eps = -1e-05 must be a number of at least 0",
          wf_layer_norm_init(wf_sub(wf_root(r), "norm"), &(struct wf_layer_norm){0}, D, .eps = -1e-5));
    WRONG("norm: eps = ", wf_rms_norm_init(wf_sub(wf_root(r), "norm"), &(struct wf_rms_norm){0}, D, .eps = (double)__builtin_nanf("")));
    WRONG("ffn: the activation 99 is unknown",
          wf_ffn_init(wf_sub(wf_root(r), "ffn"), &(struct wf_ffn){0}, D, D, .activation = (enum wf_activation)99));
}
END_TEST

START_TEST(no_options)
{
    wf_registry *r = new_registry();
    wf_scope s = wf_root(r);
    struct wf_linear linear;
    struct wf_embedding embedding;
    struct wf_layer_norm layer;
    struct wf_rms_norm rms;
    struct wf_ffn ffn;
    struct wf_positions positions;
    struct wf_mha mha;
    wf_linear_init_with(wf_sub(s, "linear"), &linear, D, D, NULL);
    wf_embedding_init_with(wf_sub(s, "embedding"), &embedding, 5, D, NULL);
    wf_layer_norm_init_with(wf_sub(s, "layer"), &layer, D, NULL);
    wf_rms_norm_init_with(wf_sub(s, "rms"), &rms, D, NULL);
    wf_ffn_init_with(wf_sub(s, "ffn"), &ffn, D, D, NULL);
    wf_positions_init_with(wf_sub(s, "positions"), &positions, 4, D, NULL);
    wf_mha_init_with(wf_sub(s, "mha"), &mha, D, 2, NULL);
    ck_ok(wf_registry_build(r, 1, error));
    wf_tape *tape = new_tape();
    wf_tensor *x = wf_embedding_forward(&embedding, wf_ids(tape, (int32_t[]){1, 2, 3}, 1, 3));
    x = wf_positions_forward(&positions, wf_layer_norm_forward(&layer, wf_linear_forward(&linear, x)), NULL);
    x = wf_mha_forward_with(&mha, wf_ffn_forward(&ffn, wf_rms_norm_forward(&rms, x)), NULL);
    wf_real out[3 * D];
    ck_read(x, out, 3 * D);
    wf_tape_free(tape);
    wf_registry_free(r);
}
END_TEST

START_TEST(operands_of_modules)
{
    wf_registry *r = new_registry();
    struct wf_positions positions;
    struct wf_mha alone, cross;
    wf_positions_init(wf_sub(wf_root(r), "positions"), &positions, 4, D);
    wf_mha_init(wf_sub(wf_root(r), "alone"), &alone, D, 2);
    wf_mha_init(wf_sub(wf_root(r), "cross"), &cross, D, 2, .cross = true);
    struct wf_cache cache;
    ck_ok(wf_cache_init(&cache, 1, 1, 8, D, D, error));
    ck_ok(wf_registry_build(r, 1, error));
    wf_tape *tape = new_tape();
    static const int32_t offsets[] = {0, 3};
#define REFUSED(call, words) (x = wf_zeros(tape, WF_SHAPE(1, 3, D)), ck_poison(call, words))
    wf_tensor *x;
    REFUSED(wf_mha_forward(&alone, x, .memory = x), ".memory and .memory_kv require cross-attention");
    REFUSED(wf_mha_forward(&alone, x, .memory_kv = x), ".memory and .memory_kv require cross-attention");
    REFUSED(wf_mha_forward(&cross, x, .memory = x, .memory_kv = wf_mha_memory(&cross, x)), "either .memory or .memory_kv");
    REFUSED(wf_mha_forward(&cross, x, .memory_kv = wf_zeros(tape, WF_SHAPE(1, 3, 3 * D))), "'zeros' has width 24");
    REFUSED(wf_positions_forward(&positions, wf_zeros(tape, WF_SHAPE(1, 3, 1)), NULL), "'zeros' has width 1, but");
    REFUSED(wf_positions_packed(&positions, wf_zeros(tape, WF_SHAPE(3, 1)), (struct wf_packed){offsets, 1}), "is not [N,8]");
    REFUSED(wf_positions_packed(&positions, wf_zeros(tape, WF_SHAPE(3, D)), (struct wf_packed){NULL, 1}),
            "positions: packed: the offsets of 1 sequences are NULL");
    REFUSED(wf_mha_forward(&cross, x, .memory = x, .cache = &cache.layer[0]), "a cache is for self-attention");
    wf_cache_free(&cache);
    wf_tape_free(tape);
    wf_registry_free(r);
}
END_TEST

WF_TEST_MAIN("doors", names_and_shapes_of_parameters, indices_of_registries, saved_before_it_is_built, rules_without_sources,
             rows_that_a_cache_does_not_have, tokens_that_a_cache_has_no_room_for, a_cache_that_was_not_made, options_of_modules,
             no_options, operands_of_modules)
