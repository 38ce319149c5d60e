/* SPDX-License-Identifier: MIT */
/* The page of attention maps as a file: its markup, its policy, what is in it. tests/report/browser.c opens it. */
#include <jansson.h>
#include <sys/stat.h>

#include "page_test.h"
#include <weft/internal/files.h>

static char *page;

static char *save(const struct wf_attention_maps *maps)
{
    ck_ok(wf_attention_save_html(maps, NULL, in_folder("page.html"), error));
    int64_t bytes;
    page = load_file(in_folder("page.html"), &bytes);
    ck_assert_int_eq((int64_t)strlen(page), bytes);
    return page;
}

/* Goes through the elements; each that is opened is closed in its order. Returns how many roots there are. */
static int check_markup(const char *text)
{
    static const char *const empty[] = {"meta", "link", NULL}, *const raw[] = {"script", "style", "title", NULL};
    static char opened[64][16];
    int depth = 0, roots = 0;
    ck_assert(!strncmp(text, "<!DOCTYPE html>\n", 16));
    text += 16;
    while ((text = strchr(text, '<'))) {
        char name[16] = "";
        bool closes = text[1] == '/';
        memcpy(name, text + 1 + closes, strspn(text + 1 + closes, "abcdefghijklmnopqrstuvwxyz0123456789") % sizeof name);
        ck_assert_msg(name[0], "no element: %.40s", text);
        text = strchr(text, '>');
        ck_assert_ptr_nonnull(text);
        if (closes) {
            ck_assert_msg(depth > 0 && !strcmp(opened[depth - 1], name), "</%s> closes <%s>", name, depth ? opened[depth - 1] : "");
            depth--;
            continue;
        }
        roots += depth == 0;
        bool is_empty = false;
        for (int i = 0; empty[i]; i++)
            is_empty = is_empty || !strcmp(name, empty[i]);
        if (is_empty)
            continue;
        ck_assert_int_lt(depth, 64);
        strcpy(opened[depth++], name);
        for (int i = 0; raw[i]; i++)
            if (!strcmp(name, raw[i])) {
                char end[20];
                snprintf(end, sizeof end, "</%s", name);
                const char *close = strcasestr(text, end), *comment = strstr(text, "<!--");
                ck_assert_msg(close && (!comment || comment > close), "a comment opens in <%s>", name);
                text = close - 1;
            }
    }
    ck_assert_int_eq(depth, 0);
    return roots;
}

/* The text of the element with this id, to be freed. */
static char *element(const char *id)
{
    char *start = wf_format("id=\"%s\">", id), *at = strstr(page, start);
    ck_assert_msg(at != NULL, "no element %s", id);
    at += strlen(start);
    char *text = wf_format("%.*s", (int)(strchr(at, '<') - at), at);
    wf_free(start);
    return text;
}

/* Decodes base64 in place, white space left out; the number of bytes. */
static int64_t decode(char *text)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned bits = 0;
    int have = 0;
    int64_t bytes = 0;
    for (const char *c = text; *c && *c != '='; c++) {
        if (*c == '\n')
            continue;
        const char *digit = strchr(digits, *c);
        if (!digit)
            ck_abort_msg("no base64: %d", *c);
        bits = bits << 6 | (unsigned)(digit - digits);
        if ((have += 6) >= 8)
            text[bytes++] = (char)(bits >> (have -= 8));
    }
    return bytes;
}

/* The tokens and the weights in the page are those of the maps, to half of a step of 1/65535. */
static void check_data(const struct wf_attention_maps *maps)
{
    char *text = element("data");
    json_t *data = json_loads(text, 0, NULL);
    ck_assert_ptr_nonnull(data);
    ck_assert_str_eq(json_string_value(json_object_get(data, "model")), maps->model);
    ck_assert_int_eq(json_integer_value(json_object_get(data, "one")), 65535);
    json_t *list = json_object_get(data, "maps");
    ck_assert_uint_eq(json_array_size(list), (size_t)maps->count);
    for (int k = 0; k < maps->count; k++) {
        const struct wf_attention_map *m = &maps->map[k];
        json_t *one = json_array_get(list, (size_t)k);
        ck_assert_str_eq(json_string_value(json_object_get(one, "kind")), wf_map_kind_name(m->kind));
        ck_assert_int_eq(json_integer_value(json_object_get(one, "layers")), m->layers);
        ck_assert_int_eq(json_integer_value(json_object_get(one, "heads")), m->heads);
        static const char *const lists[] = {"query", "key", "query_token", "key_token"};
        char **const expected[] = {m->query_label, m->key_label, m->query, m->key};
        for (int l = 0; l < 4; l++) {
            json_t *tokens = json_object_get(one, lists[l]);
            ck_assert_int_eq((int64_t)json_array_size(tokens), l % 2 ? m->keys : m->queries);
            for (size_t i = 0; i < json_array_size(tokens); i++)
                ck_assert_str_eq(json_string_value(json_array_get(tokens, i)), expected[l][i]);
        }
        char *id = wf_format("weights-%s", wf_map_kind_name(m->kind)), *base64 = element(id);
        int64_t count = m->layers * m->heads * m->queries * m->keys;
        ck_assert_int_eq(decode(base64), 2 * count);
        double most = 0; /* the largest difference */
        for (int64_t i = 0; i < count; i++) {
            unsigned value = (unsigned char)base64[2 * i] | (unsigned)(unsigned char)base64[2 * i + 1] << 8;
            most = fmax(most, fabs(value / 65535.0 - m->weights[i]));
        }
        ck_assert_double_le(most, 0.5001 / 65535);
        wf_free(base64);
        wf_free(id);
    }
    json_decref(data);
    wf_free(text);
}

START_TEST(holds_the_maps)
{
    struct wf_attention_maps all[] = {small_maps(), translation_maps(), large_maps()};
    for (int i = 0; i < 3; i++) {
        save(&all[i]);
        ck_assert_int_eq(check_markup(page), 1);
        check_data(&all[i]);
        wf_free(page);
        wf_attention_free(&all[i]);
    }
}
END_TEST

/* The last group of base64 is of one, two or three weights. */
START_TEST(holds_any_number_of_weights)
{
    static const char *const token[] = {"a", "b", "c", "d", "e", "f", "g"};
    for (int queries = 1; queries <= 7; queries++) {
        struct wf_attention_maps maps = {.model = "m"};
        add_map(&maps, WF_MAP_CROSS, 1, 1, token, queries, token, 1);
        save(&maps);
        check_data(&maps);
        wf_free(page);
        wf_attention_free(&maps);
    }
}
END_TEST

/* The policy names the SHA-256 of the one style and of the one script that are in the page; any other browsers refuse. */
static void check_hash(const char *policy, const char *open, const char *close)
{
    const char *hash = strstr(page, policy), *from = strstr(page, open), *end;
    ck_assert(hash && from && (end = strstr(from, close)));
    from += strlen(open);
    write_file(in_folder("part"), from, (size_t)(end - from));
    char *command = wf_format("sha256sum '%s'", in_folder("part")), wanted[65] = "", text[60] = "", is[65] = "";
    FILE *f = popen(command, "r");
    ck_assert(f && fscanf(f, "%64s", wanted) == 1);
    pclose(f);
    snprintf(text, sizeof text, "%.*s", (int)strcspn(hash + strlen(policy), "'"), hash + strlen(policy));
    ck_assert_uint_eq(strlen(text), 44);
    ck_assert_int_eq(decode(text), 32);
    for (int i = 0; i < 32; i++)
        sprintf(is + 2 * i, "%02x", (unsigned)(unsigned char)text[i]);
    ck_assert_str_eq(is, wanted);
    wf_free(command);
}

START_TEST(needs_nothing_else)
{
    struct wf_attention_maps maps = small_maps();
    save(&maps);
    const char *policy = strstr(page, "http-equiv=\"Content-Security-Policy\"");
    ck_assert_ptr_nonnull(policy);
    ck_assert(strstr(policy, "default-src 'none'; script-src 'sha256-") == strstr(page, "default-src"));
    ck_assert_ptr_null(strstr(page, "unsafe-"));
    check_hash("style-src 'sha256-", "<style>", "</style>");
    check_hash("script-src 'sha256-", "<script>", "</script>");
    ck_assert(strstr(page, "<meta charset=\"utf-8\">") && strstr(page, "<html lang=\"en\">"));
    static const char *const outside[] = {"http:", "https:", "//cdn",          "url(",      "@import",
                                          " src=", "fetch(", "XMLHttpRequest", "innerHTML", "eval("};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        ck_assert_msg(!strcasestr(page, outside[i]), "the page has %s", outside[i]);
    ck_assert_int_eq(occurrences(page, "href="), 1);
    ck_assert_int_eq(occurrences(page, "href=\"data:,\""), 1);
    ck_assert_ptr_nonnull(strstr(page, "<title>Attention of encoder-attention: encoder</title>"));
    /* nothing of the template is left */
    static const char *const mark[] = {"@TITLE@", "@DATA@", "@STYLE@", "@SCRIPT@", "@STYLE_HASH@", "@SCRIPT_HASH@"};
    for (size_t i = 0; i < sizeof mark / sizeof *mark; i++)
        ck_assert_msg(!strstr(page, mark[i]), "%s is left", mark[i]);
    wf_free(page);
    wf_attention_free(&maps);
}
END_TEST

static void opens_at(const struct wf_attention_maps *maps, const struct wf_attention_opening *opening, const char *wanted)
{
    ck_ok(wf_attention_save_html(maps, opening, in_folder("page.html"), error));
    char *text = load_file(in_folder("page.html"), NULL);
    ck_assert_msg(strstr(text, wanted) != NULL, "no %s", wanted);
    wf_free(text);
}

START_TEST(opens_where_it_is_told_to)
{
    struct wf_attention_maps maps = translation_maps(), small = small_maps();
    opens_at(&small, NULL, "\"opening\": {\"kind\": \"encoder\", \"layer\": 1, \"head\": 1}");
    opens_at(&maps, NULL, "\"opening\": {\"kind\": \"cross\", \"layer\": 1, \"head\": 1}");
    struct wf_attention_opening opening = {.map = &maps.map[1]};
    opens_at(&maps, &opening, "\"opening\": {\"kind\": \"decoder\", \"layer\": 1, \"head\": 1}");
    opening.head = (struct wf_head){3, 8};
    opens_at(&maps, &opening, "\"opening\": {\"kind\": \"decoder\", \"layer\": 3, \"head\": 8}");
    const struct {
        struct wf_attention_opening opening;
        const char *part;
    } wrong[] = {{{.head = {4, 1}}, "no layer 4: the cross-attention of multi30k has 3 layers of 8 heads"},
                 {{.head = {1, 9}}, "no head 9"},
                 {{.head = {1, 0}}, "no head 0"},
                 {{.head = {0, 1}}, "no layer 0"},
                 {{.map = &small.map[0]}, "not among those given"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *path = in_folder("wrong.html");
        ck_fails(wf_attention_save_html(&maps, &wrong[i].opening, path, error), WF_ERR_ARGUMENT, wrong[i].part);
        ck_assert(!wf_file_exists(path));
    }
    wf_attention_free(&maps);
    wf_attention_free(&small);
}
END_TEST

START_TEST(writes_hostile_tokens_as_text)
{
    struct wf_attention_maps maps = {.model = "<i>&\"'"};
    add_map(&maps, WF_MAP_ENCODER, 1, 1, nasty_token, NASTY, nasty_token, NASTY);
    struct wf_attention_maps plain = small_maps();
    save(&plain);
    int scripts = occurrences(page, "<script"), ends = occurrences(page, "</script"), titles = occurrences(page, "<i>");
    wf_free(page);
    save(&maps);
    ck_assert_int_eq(check_markup(page), 1);
    check_data(&maps);
    ck_assert_int_eq(occurrences(page, "<script"), scripts);
    ck_assert_int_eq(occurrences(page, "</script"), ends);
    ck_assert_int_eq(occurrences(page, "<i>"), titles);
    ck_assert_int_eq(occurrences(page, "<!--") + occurrences(page, "<img") + occurrences(page, "]]>"), 0);
    ck_assert_ptr_nonnull(strstr(page, "<title>Attention of &#60;i&#62;&#38;&#34;': encoder</title>"));
    wf_free(page);
    wf_attention_free(&maps);
    wf_attention_free(&plain);
}
END_TEST

/* Bytes that are no UTF-8, also at a string's end, become U+FFFD: one for each byte. */
START_TEST(stays_utf8)
{
    static const char *const token[] = {("a\xff\xfe"
                                         "b"),
                                        "\xe2\x80",
                                        "\xf0\x9f\x98",
                                        "\xc3",
                                        "\xc0\x80",
                                        "\xed\xa0\x80",
                                        "ok"};
    static const char *const shown[] = {
        "a\uFFFD\uFFFDb", "\uFFFD\uFFFD", "\uFFFD\uFFFD\uFFFD", "\uFFFD", "\uFFFD\uFFFD", "\uFFFD\uFFFD\uFFFD", "ok"};
    struct wf_attention_maps maps = {.model = "cut\xe2\x82"};
    add_map(&maps, WF_MAP_CROSS, 1, 1, token, 7, token, 7);
    save(&maps);
    ck_assert_ptr_nonnull(strstr(page, "<title>Attention of cut\uFFFD\uFFFD: cross</title>"));
    char *text = element("data");
    json_t *data = json_loads(text, 0, NULL); /* refuses what is not UTF-8 */
    ck_assert_ptr_nonnull(data);
    json_t *query = json_object_get(json_array_get(json_object_get(data, "maps"), 0), "query");
    for (size_t i = 0; i < 7; i++)
        ck_assert_str_eq(json_string_value(json_array_get(query, i)), shown[i]);
    json_decref(data);
    wf_free(text);
    wf_free(page);
    wf_attention_free(&maps);
}
END_TEST

START_TEST(writes_the_same_bytes_again)
{
    struct wf_attention_maps first = translation_maps(), second = translation_maps();
    char *one = save(&first), *two = save(&second);
    ck_assert_str_eq(one, two);
    wf_free(one);
    wf_free(two);
    wf_attention_free(&first);
    wf_attention_free(&second);
}
END_TEST

static void check_refused(const struct wf_attention_maps *maps, const char *path, wf_status status, const char *words)
{
    ck_fails(wf_attention_save_html(maps, NULL, path, error), status, words);
    ck_assert_msg(!wf_file_exists(path), "%s was left", path);
}

START_TEST(refuses)
{
    struct wf_attention_maps maps = small_maps(), none = {.model = "m"};
    check_refused(&maps, in_folder("no/such/folder/page.html"), WF_ERR_IO, "no/such/folder");
    check_refused(&none, in_folder("none.html"), WF_ERR_ARGUMENT, "no attention maps");
    maps.map[0].weights[144 * 5 + 7] = NAN;
    check_refused(&maps, in_folder("nan.html"), WF_ERR_NUMERIC, "encoder attention, layer 2, head 2");
    wf_attention_free(&maps);
    ck_assert_int_eq(count_names(folder_of_test), 0);
}
END_TEST

START_TEST(survives_a_full_disk)
{
    struct wf_attention_maps maps = small_maps();
    ck_fails(wf_attention_save_html(&maps, NULL, "/dev/full", error), WF_ERR_IO, "/dev/full");
    wf_attention_free(&maps);
}
END_TEST

static struct wf_attention_maps swept;
static wf_status save_swept(wf_error *error)
{
    wf_status status = wf_attention_save_html(&swept, NULL, in_folder("memory.html"), error);
    ck_assert(wf_file_exists(in_folder("memory.html")) == (status == WF_OK));
    return status;
}

START_TEST(survives_want_of_memory)
{
    swept = small_maps();
    ck_assert_int_gt(sweep_allocations(save_swept), 0);
    wf_attention_free(&swept);
}
END_TEST

WF_TEST_MAIN("html", holds_the_maps, holds_any_number_of_weights, needs_nothing_else, opens_where_it_is_told_to,
             writes_hostile_tokens_as_text, stays_utf8, writes_the_same_bytes_again, refuses, survives_a_full_disk, survives_want_of_memory)
