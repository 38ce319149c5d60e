/* SPDX-License-Identifier: MIT */
#include <locale.h>
#include <math.h>

#include "io_test.h"
#include <weft/internal/json.h>

START_TEST(round_trip)
{
    static const char text[] = "{\n"
                               "  \"name\": \"gr\xc3\xbc\xc3\x9f \\\"x\\\" \\\\ \\n\\t\\u0001\",\n"
                               "  \"zero\": 0,\n"
                               "  \"big\": -9223372036854775808,\n"
                               "  \"lr\": 0.001,\n"
                               "  \"whole\": 2.0,\n"
                               "  \"third\": 0.3333333333333333,\n"
                               "  \"flags\": [\n"
                               "    true,\n"
                               "    false,\n"
                               "    null\n"
                               "  ],\n"
                               "  \"none\": {},\n"
                               "  \"empty\": [],\n"
                               "  \"inner\": {\n"
                               "    \"b\": 1,\n"
                               "    \"a\": 2\n"
                               "  }\n"
                               "}\n";
    const char *path = in_folder("config.json");
    write_text(path, text);
    for (int i = 0; i < 3; i++) {
        json_t *value = ck_makes(wf_json_load(path, 10000, error));
        ck_ok(wf_json_save(path, value, 2, error));
        json_decref(value);
        assert_text_is(path, text);
    }
    json_t *value = ck_makes(wf_json_parse(text, (int64_t)strlen(text), "text", error));
    int64_t bytes;
    char *line = ck_makes(wf_json_text(value, 0, &bytes, error));
    ck_assert_str_eq(line,
                     "{\"name\":\"gr\xc3\xbc\xc3\x9f \\\"x\\\" \\\\ \\n\\t\\u0001\",\"zero\":0,\"big\":-9223372036854775808,\"lr\":0.001,"
                     "\"whole\":2.0,\"third\":0.3333333333333333,\"flags\":[true,false,null],\"none\":{},\"empty\":[],"
                     "\"inner\":{\"b\":1,\"a\":2}}");
    ck_assert_int_eq(bytes, (int64_t)strlen(line));
    wf_free(line);
    json_decref(value);
    ck_assert_int_eq(wf_alloc_live(), 0);
}
END_TEST

START_TEST(no_locale_in_files)
{
    use_comma_locale();
    json_t *value = ck_makes(wf_json_parse("[0.5,1e-7]", 10, "text", error));
    ck_assert(json_real_value(json_array_get(value, 0)) == 0.5);
    char *line = ck_makes(wf_json_text(value, 0, NULL, error));
    ck_assert_str_eq(line, "[0.5,1e-07]");
    wf_free(line);
    json_decref(value);
}
END_TEST

START_TEST(errors_have_a_place)
{
    char deep[2 * WF_JSON_MAX_DEPTH + 3];
    memset(deep, '[', WF_JSON_MAX_DEPTH + 1);
    memset(deep + WF_JSON_MAX_DEPTH + 1, ']', WF_JSON_MAX_DEPTH + 1);
    deep[sizeof deep - 1] = 0;
    const struct {
        const char *text, *message;
    } cases[] = {
        {"", "f.json:1:1: empty; JSON is expected"},
        {" \n ", "empty; JSON is expected"},
        {"{\"a\": 1", "f.json:1:7: "},
        {"{\n  \"a\": 1,\n}", "f.json:3:1: "},
        {"{\"\xc3\xa9\xc3\xa9\": x}", "f.json:1:8: "}, /* the column counts characters */
        {"{\"a\": 1, \"a\": 2}", "duplicate object key"},
        {"[1] 2", "f.json:1:5: end of file expected"},
        {"[1e999]", "real number overflow"},
        {"[99999999999999999999]", "too big integer"},
        {"[NaN]", "f.json:1:4: "},
        {"[01]", "f.json:1:2: "},
        {"[\"a\nb\"]", "unexpected newline"},
        {"[\"\\ud800\"]", "f.json:1:"},
        {"[\"\xff\"]", "f.json:1:"},
        {"['a']", "f.json:1:2: "},
        {"[1,]", "f.json:1:4: "},
        {"// x\n[1]", "f.json:1:1: "},
        {"\xef\xbb\xbf\xef\xbb\xbf[1]", "f.json:1:1: "}, /* one byte order mark is skipped */
        {"[\"\\u0000\"]", "NUL"},
        {deep, "f.json:1:129: nested more than 128 deep"},
        {"[\"[[[\\\"[[[\"", "f.json:1:11: "},
    };
    const char *path = in_folder("f.json");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wf_error bad = {0};
        write_text(path, cases[i].text);
        ck_assert_msg(wf_json_load(path, 10000, &bad) == NULL, "%s", cases[i].text);
        assert_message(&bad, WF_ERR_FORMAT, cases[i].message);
        ck_assert_ptr_eq(strstr(bad.message, path), bad.message);
    }
    deep[WF_JSON_MAX_DEPTH] = ']'; /* one less is fine, going in and coming out */
    deep[2 * WF_JSON_MAX_DEPTH] = 0;
    json_t *value = ck_makes(wf_json_parse(deep, 2 * WF_JSON_MAX_DEPTH, "deep", error));
    char *line = ck_makes(wf_json_text(value, 0, NULL, error));
    ck_assert_str_eq(line, deep);
    wf_free(line);
    json_t *outer = json_pack("[[o]]", value);
    ck_fails_null(wf_json_text(outer, 0, NULL, error), WF_ERR_ARGUMENT, "nested");
    json_decref(outer);
    ck_fails_null(wf_json_load(in_folder("none.json"), 10000, error), WF_ERR_IO, "No such file");
    ck_assert_int_eq(wf_alloc_live(), 0);
}
END_TEST

START_TEST(getters_check)
{
    static const char text[] = "{\"i\":5,\"d\":0.25,\"t\":true,\"s\":\"text\",\"o\":{},\"a\":[],\"n\":null,\"e\":1.5}";
    json_t *o = ck_makes(wf_json_parse(text, sizeof text - 1, "text", error)), *part = NULL;
    int64_t i = 1;
    double d = 1;
    bool t = false;
    const char *s = NULL;
    ck_ok(wf_json_get_int(o, "c", "i", WF_JSON_REQUIRED, 5, 5, &i, error));
    ck_ok(wf_json_get_double(o, "c", "d", WF_JSON_REQUIRED, 0.25, 1, &d, error));
    ck_ok(wf_json_get_bool(o, "c", "t", WF_JSON_REQUIRED, &t, error));
    ck_ok(wf_json_get_string(o, "c", "s", WF_JSON_REQUIRED, &s, error));
    ck_assert(i == 5 && d == 0.25 && t);
    ck_assert_str_eq(s, "text");
    ck_ok(wf_json_get_double(o, "c", "i", WF_JSON_REQUIRED, 0, 9, &d, error)); /* an integer is a number */
    ck_assert(d == 5);
    ck_ok(wf_json_get_object(o, "c", "o", WF_JSON_REQUIRED, &part, error));
    ck_assert(json_is_object(part));
    ck_ok(wf_json_get_array(o, "c", "a", WF_JSON_REQUIRED, &part, error));
    ck_assert(json_is_array(part));
    ck_ok(wf_json_get_int(o, "c", "missing", WF_JSON_OPTIONAL, 0, 0, &i, error)); /* the default stays */
    ck_ok(wf_json_get_int(o, "c", "n", WF_JSON_OPTIONAL, 0, 0, &i, error));
    ck_assert_int_eq(i, 5);
    ck_fails(wf_json_get_int(o, "c.json", "i", WF_JSON_REQUIRED, 6, 9, &i, error), WF_ERR_FORMAT,
             "c.json: key \"i\": 5 is out of range, 6 to 9");
    ck_fails(wf_json_get_int(o, "c.json", "i", WF_JSON_OPTIONAL, 0, 4, &i, error), WF_ERR_FORMAT,
             "c.json: key \"i\": 5 is out of range, 0 to 4");
    ck_fails(wf_json_get_int(o, "c.json", "x", WF_JSON_REQUIRED, 6, 9, &i, error), WF_ERR_FORMAT, "c.json: the key \"x\" is missing");
    ck_fails(wf_json_get_int(o, "c.json", "n", WF_JSON_REQUIRED, 6, 9, &i, error), WF_ERR_FORMAT,
             "key \"n\": an integer is expected, not null");
    ck_fails(wf_json_get_int(o, "c.json", "e", WF_JSON_OPTIONAL, 0, 9, &i, error), WF_ERR_FORMAT, "an integer is expected, not a number");
    ck_fails(wf_json_get_double(o, "c.json", "d", WF_JSON_REQUIRED, 0.5, 1, &d, error), WF_ERR_FORMAT, "0.25 is out of range, 0.5 to 1.0");
    ck_fails(wf_json_get_double(o, "c.json", "s", WF_JSON_REQUIRED, 0.5, 1, &d, error), WF_ERR_FORMAT,
             "a number is expected, not a string");
    ck_fails(wf_json_get_bool(o, "c.json", "i", WF_JSON_REQUIRED, &t, error), WF_ERR_FORMAT, "true or false is expected, not an integer");
    ck_fails(wf_json_get_string(o, "c.json", "t", WF_JSON_OPTIONAL, &s, error), WF_ERR_FORMAT, "a string is expected, not true");
    ck_fails(wf_json_get_object(o, "c.json", "a", WF_JSON_REQUIRED, &part, error), WF_ERR_FORMAT, "an object is expected, not an array");
    ck_fails(wf_json_get_array(o, "c.json", "o", WF_JSON_REQUIRED, &part, error), WF_ERR_FORMAT, "an array is expected, not an object");
    ck_fails(wf_json_get_int(json_object_get(o, "a"), "c.json", "i", WF_JSON_OPTIONAL, 0, 9, &i, error), WF_ERR_FORMAT,
             "c.json: an object is expected, not an array");
    ck_fails(wf_json_get_int(NULL, "c.json", "i", WF_JSON_OPTIONAL, 0, 9, &i, error), WF_ERR_FORMAT,
             "c.json: an object is expected, not nothing");
    ck_assert(i == 5 && d == 5 && t);
    static const char *const all[] = {"i", "d", "t", "s", "o", "a", "n", "e", NULL}, *const some[] = {"i", "d", "t", "s",
                                                                                                      "o", "a", "n", NULL};
    ck_ok(wf_json_only_keys(o, "c", all, error));
    ck_fails(wf_json_only_keys(o, "c.json", some, error), WF_ERR_FORMAT, "c.json: unknown key \"e\"");
    json_decref(o);
}
END_TEST

START_TEST(setters_check)
{
    wf_json_init();
    json_t *o = json_object();
    ck_ok(wf_json_set_int(o, "i", INT64_MIN, error));
    ck_ok(wf_json_set_double(o, "d", 0.1, error));
    ck_ok(wf_json_set_bool(o, "b", true, error));
    ck_ok(wf_json_set_string(o, "s", "x\n", error));
    ck_ok(wf_json_set_new(o, "a", json_array(), error));
    ck_ok(wf_json_set_int(o, "i", 1, error)); /* keeps its place */
    ck_fails(wf_json_set_double(o, "loss", NAN, error), WF_ERR_NUMERIC, "the JSON key \"loss\" cannot have the value NaN");
    ck_fails(wf_json_set_double(o, "loss", -INFINITY, error), WF_ERR_NUMERIC, "value infinity");
    ck_fails(wf_json_set_string(o, "s", "\xff", error), WF_ERR_ARGUMENT, "is not UTF-8");
    ck_fails(wf_json_set_int(o, "\xff", 1, error), WF_ERR_ARGUMENT, "is not UTF-8");
    ck_fails(wf_json_set_new(o, "x", NULL, error), WF_ERR_MEMORY, "no memory");
    char *line = ck_makes(wf_json_text(o, 0, NULL, error));
    ck_assert_str_eq(line, "{\"i\":1,\"d\":0.1,\"b\":true,\"s\":\"x\\n\",\"a\":[]}");
    wf_free(line);
    json_decref(o);
    ck_assert_int_eq(wf_alloc_live(), 0);
}
END_TEST

WF_TEST_MAIN("json", round_trip, no_locale_in_files, errors_have_a_place, getters_check, setters_check)
