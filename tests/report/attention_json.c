/* SPDX-License-Identifier: MIT */
/* Attention maps as JSON: read back as they were, one head alone, what is refused. */
#include <locale.h>
#include <math.h>

#include <weft/internal/json.h>

#include "page_test.h"

/* Tokens that JSON must escape. */
static void add_nasty(struct wf_attention_map *m)
{
    for (int64_t k = 0; k < m->keys; k++) {
        wf_free(m->key[k]);
        m->key[k] = wf_strdup(nasty_token[k + 4]);
    }
}

START_TEST(gives_back_the_same_floats)
{
    struct wf_attention_maps maps = translation_maps();
    add_nasty(&maps.map[2]);
    use_comma_locale();
    for (int i = 0; i < maps.count; i++) {
        const struct wf_attention_map *m = &maps.map[i];
        wf_error problem = {0};
        const float *w = m->weights;
        ck_ok(wf_attention_save_json(&maps, m, NULL, in_folder("map.json"), error));
        json_t *json = wf_json_load(in_folder("map.json"), 1 << 24, &problem);
        ck_assert_msg(json != NULL, "%s", problem.message);
        ck_assert_uint_eq(json_object_size(json), 4);
        ck_assert_str_eq(json_string_value(json_object_get(json, "kind")), wf_map_kind_name(m->kind));
        json_t *query = json_object_get(json, "query"), *key = json_object_get(json, "key"), *layers = json_object_get(json, "weights");
        ck_assert_int_eq((int64_t)json_array_size(query), m->queries);
        ck_assert_int_eq((int64_t)json_array_size(key), m->keys);
        for (int64_t q = 0; q < m->queries; q++)
            ck_assert_str_eq(json_string_value(json_array_get(query, (size_t)q)), m->query[q]);
        for (int64_t k = 0; k < m->keys; k++)
            ck_assert_str_eq(json_string_value(json_array_get(key, (size_t)k)), m->key[k]);
        ck_assert_int_eq((int64_t)json_array_size(layers), m->layers);
        for (int64_t l = 0; l < m->layers; l++) {
            json_t *heads = json_array_get(layers, (size_t)l);
            ck_assert_int_eq((int64_t)json_array_size(heads), m->heads);
            for (int64_t h = 0; h < m->heads; h++) {
                json_t *rows = json_array_get(heads, (size_t)h);
                ck_assert_int_eq((int64_t)json_array_size(rows), m->queries);
                for (int64_t q = 0; q < m->queries; q++) {
                    json_t *row = json_array_get(rows, (size_t)q);
                    ck_assert_int_eq((int64_t)json_array_size(row), m->keys);
                    for (int64_t k = 0; k < m->keys; k++)
                        ck_assert((float)json_number_value(json_array_get(row, (size_t)k)) == *w++);
                }
            }
        }
        json_decref(json);
    }
    wf_error problem = {0};
    ck_assert_int_eq(wf_attention_save_json(&maps, &maps.map[0], NULL, in_folder("no/such/folder/map.json"), &problem), WF_ERR_IO);
    ck_assert_msg(strstr(problem.message, "no/such/folder"), "%s", problem.message);
    wf_attention_free(&maps);
}
END_TEST

/* Of one head only its rows, and which it is. */
START_TEST(holds_a_head_alone)
{
    struct wf_attention_maps maps = translation_maps();
    wf_error problem = {0};
    const struct wf_attention_map *m = &maps.map[2];
    const struct wf_head head = {2, 3}, wrong[] = {{4, 1}, {1, 9}, {0, 1}, {1, 0}};
    ck_ok(wf_attention_save_json(&maps, m, &head, in_folder("head.json"), error));
    json_t *json = wf_json_load(in_folder("head.json"), 1 << 24, &problem);
    ck_assert_msg(json != NULL, "%s", problem.message);
    ck_assert_uint_eq(json_object_size(json), 6);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "layer")), 2);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "head")), 3);
    json_t *layers = json_object_get(json, "weights"), *heads = json_array_get(layers, 0), *rows = json_array_get(heads, 0);
    ck_assert_uint_eq(json_array_size(layers), 1);
    ck_assert_uint_eq(json_array_size(heads), 1);
    ck_assert_int_eq((int64_t)json_array_size(rows), m->queries);
    for (int64_t q = 0; q < m->queries; q++) {
        ck_assert_int_eq((int64_t)json_array_size(json_array_get(rows, (size_t)q)), m->keys);
        for (int64_t k = 0; k < m->keys; k++)
            ck_assert((float)json_number_value(json_array_get(json_array_get(rows, (size_t)q), (size_t)k)) ==
                      m->weights[((1 * m->heads + 2) * m->queries + q) * m->keys + k]);
    }
    json_decref(json);
    for (int i = 0; i < 4; i++) {
        const char *path = in_folder("wrong.json");
        problem = (wf_error){0};
        ck_assert_int_eq(wf_attention_save_json(&maps, m, &wrong[i], path, &problem), WF_ERR_ARGUMENT);
        ck_assert_msg(strstr(problem.message, "the cross-attention of multi30k has 3 layers of 8 heads"), "%s", problem.message);
        ck_assert(!wf_file_exists(path));
    }
    const char *path = in_folder("wrong.json");
    maps.map[2].key[1][0] = '\xff';
    problem = (wf_error){0};
    ck_assert_int_ne(wf_attention_save_json(&maps, m, NULL, path, &problem), WF_OK);
    assert_message(&problem, WF_ERR_ARGUMENT, "token 2 is not UTF-8");
    ck_assert(!wf_file_exists(path));
    maps.map[2].weights[0] = INFINITY;
    problem = (wf_error){0};
    ck_assert_int_ne(wf_attention_save_json(&maps, m, NULL, path, &problem), WF_OK);
    assert_message(&problem, WF_ERR_NUMERIC, "cross attention, layer 1, head 1");
    ck_assert(!wf_file_exists(path));
    wf_attention_free(&maps);
}
END_TEST

static struct wf_attention_maps memory_maps;
static wf_status save_maps(wf_error *error)
{
    return wf_attention_save_json(&memory_maps, &memory_maps.map[0], NULL, in_folder("memory.json"), error);
}

START_TEST(without_memory)
{
    memory_maps = small_maps();
    ck_assert_int_gt(sweep_allocations(save_maps), 3);
    ck_assert_int_eq(count_names(in_folder("")), 1);
    wf_attention_free(&memory_maps);
}
END_TEST

WF_TEST_MAIN("attention_json", gives_back_the_same_floats, holds_a_head_alone, without_memory)
