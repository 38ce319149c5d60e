/* SPDX-License-Identifier: MIT */
/* Attention maps made by hand, for the tests of the page. */
#ifndef TESTS_PAGE_TEST_H
#define TESTS_PAGE_TEST_H

#include <math.h>

#include "../io/io_test.h"
#include <weft/attention_map.h>

/* Heads that differ as those of real models do: near the diagonal, the token before, the first token, scattered. Rows sum to 1. */
static inline float raw_weight(int64_t layer, int64_t head, int64_t i, int64_t j)
{
    uint32_t h = (uint32_t)(layer * 7919 + head * 104729 + i * 1299709 + j * 15485863) * 2654435761u;
    float noise = (float)(h >> 8) / (1 << 24), d = (float)(i - j);
    switch ((layer + head) % 4) {
    case 0:
        return expf(-d * d / 2) + 0.02f * noise;
    case 1:
        return (j == i - 1 ? 1 : 0) + 0.05f * noise * noise;
    case 2:
        return (j == 0 ? 0.6f : 0) + 0.05f * noise;
    default:
        return powf(noise, 12) + 1e-4f;
    }
}

static inline char **copies(const char *const *token, int64_t count)
{
    char **list = wf_alloc(sizeof(char *) * (size_t)count);
    ck_assert_ptr_nonnull(list);
    for (int64_t i = 0; i < count; i++)
        ck_assert_ptr_nonnull(list[i] = wf_strdup(token[i]));
    return list;
}

static inline struct wf_attention_map *add_map(struct wf_attention_maps *maps, enum wf_map_kind kind, int64_t layers, int64_t heads,
                                               const char *const *query, int64_t queries, const char *const *key, int64_t keys)
{
    struct wf_attention_map *m = &maps->map[maps->count++];
    *m = (struct wf_attention_map){kind, layers, heads, queries, keys};
    m->query = copies(query, queries);
    m->query_label = copies(query, queries);
    m->key = copies(key, keys);
    m->key_label = copies(key, keys);
    ck_assert_ptr_nonnull(m->weights = wf_alloc_zero((size_t)(layers * heads), sizeof(float) * (size_t)(queries * keys)));
    float *row = m->weights;
    for (int64_t layer = 0; layer < layers; layer++)
        for (int64_t head = 0; head < heads; head++)
            for (int64_t i = 0; i < queries; i++, row += keys) {
                int64_t seen = kind == WF_MAP_DECODER ? i + 1 : keys;
                float sum = 0;
                for (int64_t j = 0; j < seen; j++)
                    sum += row[j] = raw_weight(layer, head, i, j);
                for (int64_t j = 0; j < seen; j++)
                    row[j] /= sum;
            }
    return m;
}

/* Layer and head from 0. */
static inline double weight_at(const struct wf_attention_map *m, int64_t layer, int64_t head, int64_t query, int64_t key)
{
    return m->weights[((layer * m->heads + head) * m->queries + query) * m->keys + key];
}

/* Two layers of four heads, 12 tokens. */
static inline struct wf_attention_maps small_maps(void)
{
    static const char *const token[] = {"[CLS]", "The", "cat", "sat", "on", "the", "mat", ",", "pur", "##ring", ".", "[SEP]"};
    struct wf_attention_maps maps = {.model = "encoder-attention"};
    add_map(&maps, WF_MAP_ENCODER, 2, 4, token, 12, token, 12);
    return maps;
}

/* A translation model's three kinds; the source has 10 tokens, the target 9. */
static inline struct wf_attention_maps translation_maps(void)
{
    static const char *const source[] = {"▁Ein", "▁Mann", "▁mit", "▁Hut", "▁schaut", "▁etwas", "▁an", ".", "▁Größe", "</s>"};
    static const char *const target[] = {"<s>", "▁A", "▁man", "▁in", "▁a", "▁hat", "▁stares", "▁at", "."};
    struct wf_attention_maps maps = {.model = "multi30k"};
    add_map(&maps, WF_MAP_ENCODER, 3, 8, source, 10, source, 10);
    add_map(&maps, WF_MAP_DECODER, 3, 8, target, 9, target, 9);
    add_map(&maps, WF_MAP_CROSS, 3, 8, target, 9, source, 10);
    return maps;
}

/* Tokens that a page must show as plain text. */
static const char *const nasty_token[] = {"</script><script>document.title='hacked'</script>",
                                          "<!--",
                                          "<script>",
                                          "]]>",
                                          "\"quoted\"",
                                          "it's",
                                          "back\\slash\\",
                                          "&lt;&amp;",
                                          "<img src=x onerror=document.title='hacked'>",
                                          "\xe2\x80\xa8",
                                          "\xe2\x80\xa9",
                                          ("\xe2\x80\xae"
                                           "evil"),
                                          "\xcc\x81",
                                          "\n\t\x01\x7f",
                                          "${title}`",
                                          "@TITLE@@DATA@",
                                          ""};
enum { NASTY = sizeof nasty_token / sizeof *nasty_token };

/* 200 tokens of many scripts, six layers of eight heads. */
static inline struct wf_attention_maps large_maps(void)
{
    static const char *const words[] = {"The",       "sun",
                                        "الشمس",     "تشرق",
                                        "सूरज",       "निकलता",
                                        "है",         "太陽",
                                        "出來",      "了",
                                        "🌞",         "👩‍👩‍👧",
                                        "été",       "Größe",
                                        "שמש",       "солнце",
                                        "встаёт",    "ηλιος",
                                        "태양",      "ดวง",
                                        "अक्षर",      "extraordinarily-long-token",
                                        "e\xcc\x81", "ing",
                                        "ﷺ",         "🇫🇷",
                                        ".",         ","};
    const char *token[200];
    for (int i = 0; i < 200; i++)
        token[i] = i < NASTY ? nasty_token[i] : words[(i - NASTY) % (int)(sizeof words / sizeof *words)];
    struct wf_attention_maps maps = {.model = "scripts & <b>more</b>"};
    add_map(&maps, WF_MAP_ENCODER, 6, 8, token, 200, token, 200);
    return maps;
}

#endif
