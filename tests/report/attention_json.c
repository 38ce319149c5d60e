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

/* Element i of an array that must have this length. */
static json_t *element(json_t *list, int64_t i, int64_t length)
{
    ck_assert_int_eq((int64_t)json_array_size(list), length);
    return json_array_get(list, (size_t)i);
}

static void check_tokens(json_t *list, char *const *token, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        ck_assert_str_eq(json_string_value(element(list, i, count)), token[i]);
}

/* Saves the map, or one head of it, and compares the file with it. */
static void check_file(const struct wf_attention_maps *maps, const struct wf_attention_map *m, const struct wf_head *head)
{
    const int64_t layers = head ? 1 : m->layers, heads = head ? 1 : m->heads;
    const float *w = m->weights + (head ? ((head->layer - 1) * m->heads + head->head - 1) * m->queries * m->keys : 0);
    ck_ok(wf_attention_save_json(maps, m, head, in_folder("map.json"), error));
    json_t *json = ck_makes(wf_json_load(in_folder("map.json"), 1 << 24, error)), *weights = json_object_get(json, "weights");
    ck_assert_uint_eq(json_object_size(json), head ? 6 : 4);
    ck_assert_str_eq(json_string_value(json_object_get(json, "kind")), wf_map_kind_name(m->kind));
    ck_assert_int_eq(json_integer_value(json_object_get(json, "layer")), head ? head->layer : 0);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "head")), head ? head->head : 0);
    check_tokens(json_object_get(json, "query"), m->query, m->queries);
    check_tokens(json_object_get(json, "key"), m->key, m->keys);
    for (int64_t l = 0; l < layers; l++)
        for (int64_t h = 0; h < heads; h++)
            for (int64_t q = 0; q < m->queries; q++) {
                json_t *row = element(element(element(weights, l, layers), h, heads), q, m->queries);
                for (int64_t k = 0; k < m->keys; k++)
                    ck_assert((float)json_number_value(element(row, k, m->keys)) == *w++);
            }
    json_decref(json);
}

START_TEST(gives_back_the_same_floats)
{
    struct wf_attention_maps maps = translation_maps();
    add_nasty(&maps.map[2]);
    use_comma_locale();
    for (int i = 0; i < maps.count; i++)
        check_file(&maps, &maps.map[i], NULL);
    check_file(&maps, &maps.map[2], &(struct wf_head){2, 3});
    wf_attention_free(&maps);
}
END_TEST

static void refused(const struct wf_attention_maps *maps, const struct wf_head *head, wf_status status, const char *words)
{
    const char *path = in_folder("wrong.json");
    ck_fails(wf_attention_save_json(maps, &maps->map[2], head, path, error), status, words);
    ck_assert(!wf_file_exists(path));
}

START_TEST(refuses)
{
    struct wf_attention_maps maps = translation_maps();
    const struct wf_head wrong[] = {{4, 1}, {1, 9}, {0, 1}, {1, 0}};
    ck_fails(wf_attention_save_json(&maps, &maps.map[0], NULL, in_folder("no/such/folder/map.json"), error), WF_ERR_IO, "no/such/folder");
    for (int i = 0; i < 4; i++)
        refused(&maps, &wrong[i], WF_ERR_ARGUMENT, "the cross-attention of multi30k has 3 layers of 8 heads");
    maps.map[2].key[1][0] = '\xff';
    refused(&maps, NULL, WF_ERR_ARGUMENT, "token 2 is not UTF-8");
    maps.map[2].weights[0] = INFINITY;
    refused(&maps, NULL, WF_ERR_NUMERIC, "cross attention, layer 1, head 1");
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

WF_TEST_MAIN("attention_json", gives_back_the_same_floats, refuses, without_memory)
