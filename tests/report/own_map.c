/* SPDX-License-Identifier: MIT */
/* A map that a caller filled for a model without a run: every function that draws or writes it names a missing member. */
#include <weft/attention_map.h>

#include "../io/io_test.h"

enum { TOKENS = 2 };
static char *names[TOKENS] = {"<b>", "me"};
static float weights[TOKENS * TOKENS] = {0.25f, 0.75f, 1, 0};

static struct wf_attention_maps own(void)
{
    struct wf_attention_map map = {.kind = WF_MAP_ENCODER, .layers = 1, .heads = 1, .queries = TOKENS, .keys = TOKENS};
    map.query = map.key = map.query_label = map.key_label = names;
    map.weights = weights;
    return (struct wf_attention_maps){.map = {map}, .count = 1, .model = "my own"};
}

static const char *const file[] = {"own.svg", "own.json", "own.html"};

static wf_status save(const struct wf_attention_maps *maps, int as, wf_error *error)
{
    const char *path = in_folder(file[as]);
    return as == 0   ? wf_attention_draw(maps, &maps->map[0], NULL, 0, path, error)
           : as == 1 ? wf_attention_save_json(maps, &maps->map[0], NULL, path, error)
                     : wf_attention_save_html(maps, NULL, path, error);
}

/* Each with the same complaint, and no file. */
static void refused(const struct wf_attention_maps *maps, const char *words)
{
    for (int i = 0; i < 3; i++) {
        ck_fails(save(maps, i, error), WF_ERR_ARGUMENT, words);
        ck_assert(!wf_file_exists(in_folder(file[i])));
    }
}

START_TEST(what_is_missing)
{
    static char *hole[TOKENS] = {"<b>", NULL};
    struct wf_attention_maps maps = own();
    maps.map[0].weights = NULL;
    refused(&maps, "the encoder's attention map is empty");
    for (int i = 0; i < 4; i++) {
        maps = own();
        struct wf_attention_map *m = &maps.map[0];
        char ***list[] = {&m->query, &m->key, &m->query_label, &m->key_label};
        static const char *const words[] = {"no query 1", "no key 1", "no query_label 1", "no key_label 1"};
        static const char *const second[] = {"no query 2", "no key 2", "no query_label 2", "no key_label 2"};
        *list[i] = NULL;
        refused(&maps, words[i]);
        *list[i] = hole;
        refused(&maps, second[i]);
    }
}
END_TEST

START_TEST(what_is_no_kind)
{
    struct wf_attention_maps maps = own();
    maps.map[0].kind = (enum wf_map_kind)7;
    refused(&maps, "an attention map of kind 7");
    maps = own();
    maps.map[maps.count++] = maps.map[0];
    ck_fails(save(&maps, 2, error), WF_ERR_ARGUMENT, "two maps of the kind encoder");
    maps.count = 4;
    ck_fails(save(&maps, 2, error), WF_ERR_ARGUMENT, "4 attention maps: a page has at most 3");
    ck_assert(!wf_file_exists(in_folder(file[2])));
}
END_TEST

START_TEST(as_it_is)
{
    struct wf_attention_maps maps = own();
    for (int i = 0; i < 3; i++)
        ck_ok(save(&maps, i, error));
}
END_TEST

WF_TEST_MAIN("own_map", what_is_missing, what_is_no_kind, as_it_is)
