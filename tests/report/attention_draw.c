/* SPDX-License-Identifier: MIT */
/* Heat maps: where the labels of an SVG stand, what is drawn, and what is refused. */
#include <weft/internal/minmax.h>

#include "page_test.h"
#include "svg_test.h"

/* Token number i; all differ. */
static const char *word(int64_t i)
{
    static char text[32];
    static const char *const stem[] = {"▁word", "ing", "▁Größe", "日本語", "▁a", "WWWWWW"};
    snprintf(text, sizeof text, "%s%lld", stem[i % 6], (long long)i);
    return text;
}

/* As it is drawn. */
static const char *drawn(const char *label)
{
    static char text[64];
    bool bar = strncmp(label, "▁", 3) == 0;
    snprintf(text, sizeof text, "%s%s", bar ? "_" : "", bar ? label + 3 : label);
    return text;
}

static struct wf_attention_maps maps_of(enum wf_map_kind kind, int64_t layers, int64_t heads, int64_t queries, int64_t keys)
{
    struct wf_attention_maps maps = {.model = "model"};
    const int64_t tokens = WF_MAX(queries, keys);
    char *token[1100];
    for (int64_t i = 0; i < tokens; i++)
        token[i] = strdup(word(i));
    add_map(&maps, kind, layers, heads, (const char *const *)token, queries, (const char *const *)token, keys);
    for (int64_t i = 0; i < tokens; i++)
        free(token[i]);
    return maps;
}

static void draw(const struct wf_attention_maps *maps, const struct wf_head *heads, int64_t count, const char *name)
{
    ck_ok(wf_attention_draw(maps, &maps->map[0], heads, count, in_folder(name), error));
    if (strstr(name, ".svg"))
        read_svg(in_folder(name));
}

static void draw_head(const struct wf_attention_maps *maps, int layer, int head)
{
    draw(maps, &(struct wf_head){layer, head}, 1, "head.svg");
}

/* The labels of a panel's rows or columns: of every `every`-th token one, in order, further apart than the letters are high, and inside
 * the picture. */
static void labels_in_order(bool columns, int64_t tokens, int64_t every)
{
    double before = -1;
    for (int64_t i = 0; i < tokens; i += every) {
        int found = 0;
        for (int k = 0; k < text_count; k++)
            if (strcmp(texts[k].words, drawn(word(i))) == 0 &&
                (columns ? texts[k].turned : !texts[k].turned && strcmp(texts[k].anchor, "end") == 0)) {
                double at = columns ? texts[k].x : texts[k].y;
                found++;
                ck_assert_msg(before < 0 || at - before >= 1.1 * texts[k].size, "token %lld: %g after %g", (long long)i, at, before);
                before = at;
                ck_assert(texts[k].size >= 9 && texts[k].x > 0 && texts[k].x < width && texts[k].y < height);
            }
        ck_assert_msg(found == 1, "token %lld is there %d times", (long long)i, found);
    }
}

START_TEST(labels_of_30_tokens)
{
    static const int64_t lengths[][3] = {{30, 30, 1}, {3, 30, 1},    {30, 2, 1},   {48, 20, 1},
                                         {60, 61, 1}, {100, 100, 1}, {160, 40, 1}, {400, 400, 3}};
    for (int i = 0; i < (int)(sizeof lengths / sizeof *lengths); i++) {
        struct wf_attention_maps maps = maps_of(WF_MAP_CROSS, 2, 2, lengths[i][0], lengths[i][1]);
        draw_head(&maps, 2, 1);
        for (int axis = 0; axis < 2; axis++)
            labels_in_order(axis, lengths[i][axis], lengths[i][2]);
        for (int64_t k = 0; k < WF_MAX(lengths[i][0], lengths[i][1]); k++)
            ck_assert_msg(k % lengths[i][2] == 0 || count_of(drawn(word(k))) == 0, "token %lld is one label too many", (long long)k);
        ck_assert_int_eq(count_of("model · cross-attention · layer 2, head 1"), 1);
        ck_assert_int_eq(count_of("attention weight"), 1);
        wf_attention_free(&maps);
    }
}
END_TEST

/* The maps in the file: x, y, width, height each. */
static int images(double (*at)[4], int most)
{
    int count = 0;
    for (const char *found = svg; count < most && (found = strstr(found, "<image ")); found++) {
        const char *x = strstr(found, " x='");
        ck_assert(x &&
                  sscanf(x, " x='%lf' y='%lf' width='%lf' height='%lf'", &at[count][0], &at[count][1], &at[count][2], &at[count][3]) == 4);
        ck_assert_msg(strncmp(found, "<image style='image-rendering:", 30) == 0, "%.80s", found);
        count++;
    }
    return count;
}

START_TEST(a_grid_of_all_heads)
{
    struct wf_attention_maps maps = maps_of(WF_MAP_DECODER, 3, 4, 30, 30);
    double at[20][4];
    draw(&maps, NULL, 0, "grid.svg");
    ck_assert_int_eq(images(at, 20), 12);
    for (int i = 0; i < 12; i++) {
        if (i % 4 > 0)
            ck_assert(at[i][0] >= at[i - 1][0] + at[i - 1][2] && at[i][1] == at[i - 1][1]);
        if (i >= 4)
            ck_assert(at[i][1] >= at[i - 4][1] + at[i - 4][3] && at[i][0] == at[i - 4][0]);
        ck_assert(at[i][0] + at[i][2] < width && at[i][1] + at[i][3] < height);
    }
    /* tokens at the outer edges only: above each column, before each row */
    ck_assert_int_eq(count_of("ing1"), 4 + 3);
    for (int h = 1; h <= 4; h++) {
        char name[32];
        snprintf(name, sizeof name, "head %d", h);
        ck_assert_int_eq(count_of(name), 1);
    }
    ck_assert_int_eq(count_of("layer 3"), 1);
    ck_assert_int_eq(count_of("model · decoder-attention"), 1);
    wf_attention_free(&maps);

    /* title and note have room */
    maps = maps_of(WF_MAP_DECODER, 1, 1, 1, 1);
    draw_head(&maps, 1, 1);
    ck_assert_double_gt(width, 15 * 0.5 * (double)strlen("model - decoder-attention - layer 1, head 1"));
    wf_attention_free(&maps);
    maps = maps_of(WF_MAP_ENCODER, 1, 20, 130, 1);
    draw(&maps, NULL, 0, "note.svg");
    const char note[] = "130 tokens from top to bottom, 1 from left to right: too many to name them here";
    ck_assert(count_of(note) == 0 || width > 12 * 0.5 * (double)strlen(note));
    wf_attention_free(&maps);

    /* where tokens would not be legible there are none, and a line says so */
    maps = maps_of(WF_MAP_ENCODER, 6, 8, 100, 90);
    draw(&maps, NULL, 0, "grid.svg");
    ck_assert_int_eq(count_of("ing1"), 0);
    ck_assert_int_eq(count_of("100 tokens from top to bottom, 90 from left to right: too many to name them here"), 1);
    ck_assert(width < 1700 && height < 1700);
    wf_attention_free(&maps);
}
END_TEST

START_TEST(chosen_heads_side_by_side)
{
    struct wf_attention_maps maps = maps_of(WF_MAP_CROSS, 3, 4, 12, 14);
    const struct wf_head heads[] = {{3, 4}, {1, 1}, {2, 3}};
    double at[4][4];
    draw(&maps, heads, 3, "pick.svg");
    ck_assert_int_eq(images(at, 4), 3);
    ck_assert(at[1][0] > at[0][0] + at[0][2] && at[2][0] > at[1][0] + at[1][2] && at[0][1] == at[2][1]);
    ck_assert_int_eq(count_of("ing1"), 2 * 3);
    const char *const names[] = {"layer 3, head 4", "layer 1, head 1", "layer 2, head 3"};
    for (int i = 0; i < 3; i++) {
        int found = -1;
        for (int k = 0; k < text_count; k++)
            if (strcmp(texts[k].words, names[i]) == 0)
                found = k;
        ck_assert_msg(found >= 0 && texts[found].x >= at[i][0] - 1 && texts[found].x < at[i][0] + at[i][2], "%s is not above its map",
                      names[i]);
    }
    wf_attention_free(&maps);
}
END_TEST

/* A row and a column alone are drawn as boxes, whose colours can be read: darker for more, in the order of the tokens. */
static void boxes(int64_t queries, int64_t keys)
{
    struct wf_attention_maps maps = maps_of(WF_MAP_CROSS, 1, 1, queries, keys);
    for (int i = 0; i < 4; i++)
        maps.map[0].weights[i] = 0.1f * (float)(i + 1);
    draw_head(&maps, 1, 1);
    double before = -1;
    int red = 256, count = 0;
    for (const char *at = svg; count < 4 && (at = strstr(at, "<polygon fill = 'rgb(")); at++) {
        int r;
        double x, y;
        ck_assert_int_eq(sscanf(at, "<polygon fill = 'rgb(%d", &r), 1);
        ck_assert_int_eq(sscanf(strstr(at, "points = '"), "points = '%lf,%lf", &x, &y), 2);
        double place = keys > 1 ? x : y;
        ck_assert_msg(r < red && place > before, "box %d: colour %d at %g", count, r, place);
        red = r;
        before = place;
        count++;
    }
    ck_assert_int_eq(count, 4);
    wf_attention_free(&maps);
}

START_TEST(the_first_token_is_first)
{
    boxes(1, 4);
    boxes(4, 1);
    boxes(4, 1);
}
END_TEST

/* Each head's picture is of that head. */
START_TEST(heads_are_those_asked_for)
{
    struct wf_attention_maps maps = maps_of(WF_MAP_CROSS, 2, 3, 1, 2);
    int red = 256;
    for (int i = 0; i < 6; i++) {
        maps.map[0].weights[2 * i] = 0.15f * (float)(i + 1);
        maps.map[0].weights[2 * i + 1] = 1;
    }
    for (int i = 0; i < 6; i++) {
        int r;
        draw_head(&maps, 1 + i / 3, 1 + i % 3);
        const char *box = strstr(svg, "<polygon fill = 'rgb(");
        ck_assert(box && sscanf(box, "<polygon fill = 'rgb(%d", &r) == 1);
        ck_assert_msg(r < red, "head %d of all: colour %d after %d", i, r, red);
        red = r;
    }
    wf_attention_free(&maps);
}
END_TEST

/* The colour bar ends with a number at or above the largest weight. In a long causal map, whose first rows have the largest weights, it
 * ends at the largest of the other rows, and says so. */
START_TEST(the_scale_fits)
{
    struct wf_attention_maps maps = maps_of(WF_MAP_CROSS, 1, 1, 4, 10);
    float *w = maps.map[0].weights;
    for (int i = 0; i < 40; i++)
        w[i] = 0.1f;
    w[0] = 0.19f;
    draw_head(&maps, 1, 1);
    ck_assert_int_eq(count_of("0.2"), 1);
    ck_assert_int_eq(count_of("0.25") + count_of("≥ 0.2"), 0);
    w[0] = 0.83f;
    w[11] = 0.7f;
    draw_head(&maps, 1, 1);
    ck_assert_int_eq(count_of("1"), 1);
    wf_attention_free(&maps);
    maps = maps_of(WF_MAP_DECODER, 1, 1, 100, 100);
    w = maps.map[0].weights;
    for (int q = 0; q < 100; q++)
        for (int k = 0; k < 100; k++)
            w[q * 100 + k] = k <= q ? 1.0f / (float)(q + 1) : 0;
    draw_head(&maps, 1, 1);
    ck_assert_int_eq(count_of("≥ 0.1"), 1); /* the tenth row has tenths */
    ck_assert_int_eq(count_of("0.1") + count_of("1"), 0);
    wf_attention_free(&maps);
}
END_TEST

/* The pixels of the only map, as the file has them. */
static char *pixels(const struct wf_attention_maps *maps)
{
    draw_head(maps, 1, 1);
    const char *data = strstr(svg, "base64,");
    ck_assert_ptr_nonnull(data);
    return strndup(data, strcspn(data, "'"));
}

/* A masked key of a causal map looks different from a tiny weight, and has a sample beside the colour bar, whose scale leaves out the first
 * row. */
START_TEST(masked_keys)
{
    static const enum wf_map_kind kinds[] = {WF_MAP_DECODER, WF_MAP_ENCODER, WF_MAP_CROSS};
    static const char sample[] = "rgb(228, 223, 214)";
    for (int i = 0; i < 3; i++) {
        bool causal = kinds[i] == WF_MAP_DECODER;
        struct wf_attention_maps maps = maps_of(kinds[i], 1, 1, 4, 4);
        float *w = maps.map[0].weights;
        for (int k = 0; k < 16; k++)
            w[k] = k % 4 > k / 4 ? 0 : 1.0f / (float)(k / 4 + 1);
        char *masked = pixels(&maps);
        ck_assert_int_eq(count_of("masked"), causal);
        ck_assert((strstr(svg, sample) != NULL) == causal);
        ck_assert_int_eq(count_of("≥ 0.5"), causal); /* the first row alone is larger */
        ck_assert_int_eq(count_of("1"), !causal);
        w[2] = 1e-30f;
        char *small = pixels(&maps);
        ck_assert((strcmp(masked, small) != 0) == causal);
        free(masked);
        free(small);
        wf_attention_free(&maps);
    }
    /* one query of a decoder that keeps its keys sees all */
    struct wf_attention_maps maps = maps_of(WF_MAP_DECODER, 1, 1, 2, 5);
    for (int k = 0; k < 10; k++)
        maps.map[0].weights[k] = k == 0 || k == 6 ? 0 : 0.25f;
    maps.map[0].weights[4] = 0;
    char *before = pixels(&maps);
    maps.map[0].weights[0] = maps.map[0].weights[6] = 1e-30f; /* seen: 0 is a weight there */
    char *after = pixels(&maps);
    ck_assert_str_eq(before, after);
    maps.map[0].weights[4] = 1e-30f; /* the last key of the first query is masked */
    free(after);
    after = pixels(&maps);
    ck_assert_str_ne(before, after);
    free(before);
    free(after);
    wf_attention_free(&maps);
}
END_TEST

START_TEST(texts_stay_texts)
{
    struct wf_attention_maps maps = {.model = "a <b>"};
    static const char *const token[] = {"<image x='1'/>",
                                        "%d%s%.2g",
                                        "\"quoted\"",
                                        "back\\slash\\",
                                        "`date`",
                                        "$HOME",
                                        "{/:Bold x}_a^b",
                                        "it's &amp;",
                                        "Donaudampfschifffahrtsgesellschaftskapitän",
                                        "x"};
    int64_t count = (int64_t)(sizeof token / sizeof *token);
    add_map(&maps, WF_MAP_ENCODER, 1, 2, token, count, token, count);
    draw_head(&maps, 1, 2);
    for (int64_t i = 0; i < 8; i++)
        ck_assert_msg(count_of(token[i]) == 2, "%s is there %d times", token[i], count_of(token[i]));
    ck_assert_int_eq(count_of("a <b> · encoder-attention · layer 1, head 2"), 1);
    int shortened = 0;
    for (int k = 0; k < text_count; k++)
        shortened += strncmp(texts[k].words, "Donaudampf", 10) == 0 && strlen(texts[k].words) < 30 && strstr(texts[k].words, "…");
    ck_assert_int_eq(shortened, 2);
    double at[4][4];
    ck_assert_int_eq(images(at, 4), 1);
    draw(&maps, NULL, 0, "hostile.png");
    wf_attention_free(&maps);
}
END_TEST

START_TEST(png_too)
{
    struct wf_attention_maps maps = maps_of(WF_MAP_ENCODER, 2, 2, 5, 5);
    int64_t bytes;
    draw(&maps, NULL, 0, "grid.png");
    char *png = load_file(in_folder("grid.png"), &bytes);
    ck_assert(bytes > 1000 && memcmp(png, "\x89PNG\r\n\x1a\n", 8) == 0);
    wf_free(png);
    wf_attention_free(&maps);
}
END_TEST

static void refused(const struct wf_attention_maps *maps, int layer, int head, const char *name, wf_status code, const char *first,
                    const char *second)
{
    wf_error problem = {0};
    const char *path = in_folder(name);
    ck_assert_int_eq(wf_attention_draw(maps, &maps->map[0], &(struct wf_head){layer, head}, 1, path, &problem), code);
    assert_message(&problem, code, first);
    ck_says(problem.message, second);
    ck_assert(!wf_file_exists(path));
}

START_TEST(what_can_not_be)
{
    struct wf_attention_maps maps = maps_of(WF_MAP_ENCODER, 2, 3, 5, 5);
    refused(&maps, 3, 1, "x.svg", WF_ERR_ARGUMENT, "no layer 3", "2 layers of 3 heads");
    refused(&maps, 1, 4, "x.svg", WF_ERR_ARGUMENT, "no head 4", "2 layers of 3 heads");
    refused(&maps, 0, 1, "x.svg", WF_ERR_ARGUMENT, "no layer 0", "counted from 1");
    refused(&maps, 1, -1, "x.png", WF_ERR_ARGUMENT, "no head -1", "counted from 1");
    refused(&maps, 1, 1, "x.jpg", WF_ERR_ARGUMENT, "x.jpg", ".svg");
    refused(&maps, 1, 1, "no/folder/x.svg", WF_ERR_IO, "no/folder", "");
    char *path = strdup(getenv("PATH"));
    setenv("PATH", folder_of_test, 1);
    refused(&maps, 1, 1, "x.svg", WF_ERR_STATE, "gnuplot", "install the package gnuplot");
    setenv("PATH", path, 1);
    free(path);
    wf_attention_free(&maps);
}
END_TEST

/* Maps that a caller filled wrongly, and pictures too large for a PNG. */
START_TEST(what_can_not_be_drawn)
{
    struct wf_attention_maps maps = maps_of(WF_MAP_ENCODER, 2, 3, 160, 160), empty = {.model = "m", .count = 1};
    struct wf_head many[10];
    for (int i = 0; i < 10; i++)
        many[i] = (struct wf_head){1 + i % 2, 1 + i % 3};
    for (int i = 0; i < 2; i++)
        ck_fails(wf_attention_draw(&maps, &maps.map[0], many, 10, in_folder("x.png"), error), WF_ERR_ARGUMENT,
                 i ? "a PNG of 10 heads with 160 tokens" : "at most 32767");
    ck_ok(wf_attention_draw(&maps, &maps.map[0], many, 2, in_folder("two.png"), error));
    maps.map[0].weights[160 * 160 * 4 + 3] = NAN;
    refused(&maps, 1, 1, "x.svg", WF_ERR_NUMERIC, "encoder attention, layer 2, head 2", "not a number");
    refused(&empty, 1, 1, "x.svg", WF_ERR_ARGUMENT, "empty", "");
    ck_fails(wf_attention_draw(&empty, &empty.map[0], NULL, 0, in_folder("x.svg"), error), WF_ERR_ARGUMENT, "empty");
    wf_attention_free(&maps);
}
END_TEST

static struct wf_attention_maps swept;
static wf_status draw_swept(wf_error *error)
{
    return wf_attention_draw(&swept, &swept.map[0], NULL, 0, in_folder("memory.svg"), error);
}

START_TEST(without_memory)
{
    swept = maps_of(WF_MAP_ENCODER, 1, 2, 3, 3);
    ck_assert_int_gt(sweep_allocations(draw_swept), 10);
    wf_attention_free(&swept);
}
END_TEST

WF_TEST_MAIN("attention_draw", labels_of_30_tokens, a_grid_of_all_heads, chosen_heads_side_by_side, the_first_token_is_first,
             heads_are_those_asked_for, the_scale_fits, masked_keys, texts_stay_texts, png_too, what_can_not_be, what_can_not_be_drawn,
             without_memory)
