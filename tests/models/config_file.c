/* SPDX-License-Identifier: MIT */
/* config.json: files that are written can be read; other files are refused. */
#include "../data/data_test.h"
#include "models_test.h"

static const char *path;

static void make_folder(void)
{
    path = test_file("config.json", NULL, 0);
}

static void write_text(const char *text)
{
    test_file("config.json", text, strlen(text));
}

START_TEST(round_trip)
{
    make_folder();
    for (int i = 0; wf_preset_at(i); i++) {
        struct wf_config c = preset(wf_preset_at(i)->name), back = {0};
        bool pairs = wf_config_kind(&c) == WF_MODEL_PAIRS, encoder = wf_config_kind(&c) == WF_MODEL_ENCODER;
        struct wf_config_key key;
        set_key(&c, "dropout", 0.1 + 0.2 * (i == 0)); /* a number whose shortest form is long */
        set_key(&c, "vocab_size", 61 + i);
        if (pairs)
            set_key(&c, "source_vocab_size", key_of(&c, "shared") ? 0 : 77);
        else if (!encoder)
            set_key(&c, "kv_heads", 1);
        c.training.patience = 1000000000000;
        ck_ok(wf_config_save(&c, path, error));
        ck_ok(wf_config_load(&back, path, error));
        char *text = wf_file_load(path, 1 << 20, NULL, NULL);
        for (int k = 0; wf_config_key_at(&c, k, &key); k++) {
            char a[64], b[64], *name = wf_format("\"%s\":", key.name);
            ck_assert(wf_config_get(&c, key.name, a, sizeof a) && wf_config_get(&back, key.name, b, sizeof b));
            ck_assert_str_eq(a, b);
            ck_assert_ptr_nonnull(strstr(text, name));
            wf_free(name);
        }
        wf_free(text);
        ck_assert_int_eq(memcmp(&c, &back, sizeof c), 0);
    }
    struct wf_config c = preset("gpt2");
    ck_ok(wf_config_save(&c, path, error));
    char *text = wf_file_load(path, 1 << 20, NULL, NULL);
    ck_assert_ptr_nonnull(strstr(text, "\"weft_version\": \"" WF_VERSION "\""));
    ck_assert_ptr_nonnull(strstr(text, "\"model_type\": \"weft-gpt\""));
    ck_assert_ptr_nonnull(strstr(text, "\"schedule\": \"cosine\""));
    wf_free(text);
}
END_TEST

static char *saved(void)
{
    struct wf_config c = preset("nanogpt-char-small");
    set_key(&c, "vocab_size", 65);
    ck_ok(wf_config_save(&c, path, error));
    char *text = wf_file_load(path, 1 << 20, NULL, NULL);
    ck_assert_ptr_nonnull(text);
    return text;
}

/* The message begins with the file's path, and has these words after it. */
static void refused(const char *what, const char *says)
{
    struct wf_config c, before;
    wf_error problem = {0};
    memset(&c, 0x5a, sizeof c);
    before = c;
    ck_assert_msg(wf_config_load(&c, path, &problem) == WF_ERR_FORMAT, "%s: %s", what, problem.message);
    ck_assert_msg(strncmp(problem.message, path, strlen(path)) == 0, "%s: %s", what, problem.message);
    ck_says(problem.message + strlen(path), says);
    ck_assert_int_eq(memcmp(&c, &before, sizeof c), 0);
}

static const struct {
    const char *from, *to, *says;
} changes[] = {
    {"\"d_model\": 128", "\"d_model\": \"128\"", "d_model"},
    {"\"d_model\": 128", "\"d_model\": 128.5", "d_model"},
    {"\"d_model\": 128", "\"d_model\": 128.0", "d_model"},
    {"\"d_model\": 128", "\"d_model\": null", "d_model"},
    {"\"d_model\": 128", "\"d_model\": 0", "d_model"},
    {"\"d_model\": 128", "\"d_model\": -128", "d_model"},
    {"\"d_model\": 128", "\"d_model\": 1000000000", "d_model"},
    {"\"d_model\": 128", "\"d_model\": 99999999999999999999", ""},
    {"\"d_model\": 128", "\"d_model\": 127", "heads"},
    {"\"d_model\": 128", "\"d_modle\": 128", "d_modle"},
    {"\"d_model\": 128", "\"d_model\": [128]", "d_model"},
    {"\"d_model\": 128", "\"d_model\": {}", "d_model"},
    {"\"d_model\": 128", "\"d_model\": true", "d_model"},
    {"\"d_model\": 128", "\"d_model\": 128, \"n_embd\": 128", "n_embd"},
    {"\"heads\": 4", "\"heads\": 3", "heads"},
    {"\"heads\": 4", "\"heads\": 2048", "heads"},
    {"\"kv_heads\": 0", "\"kv_heads\": 3", "kv_heads"},
    {"\"layers\": 4", "\"layers\": 0", "layers"},
    {"\"layers\": 4", "\"layers\": 04", ""},
    {"\"context\": 64", "\"context\": -1", "context"},
    {"\"vocab_size\": 65", "\"vocab_size\": 16777217", "vocab_size"},
    {"\"dropout\": 0.0", "\"dropout\": 1.0", "dropout"},
    {"\"dropout\": 0.0", "\"dropout\": \"none\"", "dropout"},
    {"\"dropout\": 0.0", "\"dropout\": NaN", ""},
    {"\"dropout\": 0.0", "\"dropout\": 1e999", ""},
    {"\"dropout\": 0.0", "\"dropout\": -0.5", "dropout"},
    {"\"activation\": \"gelu\"", "\"activation\": \"glue\"", "activation"},
    {"\"activation\": \"gelu\"", "\"activation\": 1", "activation"},
    {"\"schedule\": \"cosine\"", "\"schedule\": \"sine\"", "schedule"},
    {"\"schedule\": \"cosine\"", "\"schedule\": null", "schedule"},
    {"\"tied\": true", "\"tied\": 1", "tied"},
    {"\"tied\": true", "\"tied\": \"true\"", "tied"},
    {"\"bias\": false", "\"bias\": 0", "bias"},
    {"\"lr\": 0.001", "\"lr\": 0", "lr"},
    {"\"lr\": 0.001", "\"lr\": 1e-5", "min_lr"},
    {"\"beta1\": 0.9", "\"beta1\": 1", "beta1"},
    {"\"accumulate\": 1", "\"accumulate\": 13", "accumulate"},
    {"\"family\": \"gpt\"", "\"family\": \"rms\"", "model_type"},
    {"\"family\": \"gpt\"", "\"family\": \"\"", "family"},
    {"\"family\": \"gpt\"", "\"family\": \"gpt\\u0000\"", ""},
    {"\"family\": \"gpt\"", "\"family\": \"ggggggggggggggggggggggggggggggggggggggggggggggggggggggggg\"", "family"},
    {"\"family\": \"gpt\"", "\"family\": \"seq2seq\"", "model_type"},
    {"\"model_type\": \"weft-gpt\"", "\"model_type\": \"gpt2\"", "model_type"},
    {"\"context\": 64", "\"context\": 64, \"max_length\": 64", "max_length"}, /* of another family */
    {"\"keep\": 2", "\"keep\": 2, \"beam\": 0", "beam"},
    {"\"model\": \"nanogpt-char-small\"", "\"model\": \"a\\nb\"", "model"},
    {"\"model\": \"nanogpt-char-small\"", "\"model\": \"../x/y\"", "model"},
    {"\"model\": \"nanogpt-char-small\"", "\"model\": 7", "model"},
    {"\"weft_version\": \"" WF_VERSION "\"", "\"weft_version\": 1", "weft_version"},
    {"\"warmup\": 100", "\"warmup\": 100,", ""},
    {"\"warmup\": 100", "\"warmup\": 100 \"x\"", ""},
    {"\"warmup\": 100", "\"warmup\": 1\xff", ""},
};

START_TEST(changed_files_are_refused)
{
    make_folder();
    char *text = saved();
    for (int i = 0; i < (int)(sizeof changes / sizeof *changes); i++) {
        const char *at = strstr(text, changes[i].from);
        ck_assert_msg(at != NULL, "%s is not in the file", changes[i].from);
        char *changed = wf_format("%.*s%s%s", (int)(at - text), text, changes[i].to, at + strlen(changes[i].from));
        write_text(changed);
        refused(changes[i].to, changes[i].says);
        wf_free(changed);
    }
    wf_free(text);
}
END_TEST

/* A run's file without one key, as of an older version: it loads with the family's default. With a key twice it is refused. */
START_TEST(missing_and_repeated_keys)
{
    make_folder();
    char *text = saved(), *end = strrchr(text, '}');
    struct wf_config whole, defaults, back;
    int lines = 0, different = 0;
    ck_ok(wf_config_load(&whole, path, error));
    ck_ok(wf_config_defaults(&defaults, "gpt", error));
    for (char *line = strchr(text, '\n') + 1; line < end; lines++) {
        char *next = strchr(line, '\n') + 1, name[64], a[64], b[64];
        bool last = next >= end;
        ck_assert_int_eq(sscanf(line, " \"%63[^\"]\"", name), 1);
        /* without the comma before it when it is the last */
        char *less = last ? wf_format("%.*s\n%s", (int)(line - text) - 2, text, end) : wf_format("%.*s%s", (int)(line - text), text, next);
        write_text(less);
        ck_ok(wf_config_load(&back, path, error));
        struct wf_config_key key;
        for (int k = 0; wf_config_key_at(&whole, k, &key); k++) {
            const struct wf_config *like = strcmp(key.name, name) == 0 ? &defaults : &whole;
            ck_assert(wf_config_get(like, key.name, a, sizeof a) && wf_config_get(&back, key.name, b, sizeof b));
            ck_assert_str_eq(a, b);
            different += like == &defaults && wf_config_get(&whole, key.name, b, sizeof b) && strcmp(a, b) != 0;
        }
        ck_assert_str_eq(back.model, strcmp(name, "model") == 0 ? "gpt" : "nanogpt-char-small");
        wf_free(less);
        char *more = wf_format("%.*s%.*s%s%s", (int)(line - text), text, (int)(next - line - (last ? 1 : 2)), line, ",\n", line);
        write_text(more);
        refused("a key is there twice", "");
        wf_free(more);
        line = next;
    }
    ck_assert_int_ge(lines, 30);
    ck_assert_int_ge(different, 8);
    wf_free(text);
}
END_TEST

/* Files of a user: some keys over a preset, over a family's defaults, or over a configuration. */
START_TEST(files_of_users)
{
    static const struct {
        const char *text, *model, *family;
        int64_t d_model, layers;
        double lr;
    } good[] = {
        {"{\"model\": \"nanogpt-char\", \"layers\": 3}", "nanogpt-char", "gpt", 384, 3, 1e-3},
        {"{\"layers\": 3, \"lr\": 0.5, \"model\": \"gpt2\", \"family\": \"gpt\"}", "gpt2", "gpt", 768, 3, 0.5},
        {"{\"family\": \"rms\", \"d_model\": 32}", "rms", "rms", 32, 1, 1e-3},
        {"{\"model\": \"mine\", \"family\": \"rms\"}", "mine", "rms", 64, 1, 1e-3},
    };
    struct wf_config c;
    make_folder();
    for (int i = 0; i < (int)(sizeof good / sizeof *good); i++) {
        write_text(good[i].text);
        ck_ok(wf_config_load(&c, path, error));
        ck_assert_str_eq(c.model, good[i].model);
        ck_assert_str_eq(wf_config_family(&c), good[i].family);
        ck_assert(key_of(&c, "d_model") == good[i].d_model && key_of(&c, "layers") == good[i].layers && c.training.lr == good[i].lr);
    }
    static const char *const bad[][2] = {
        {"{\"model\": \"nanogpt-chr\"}", "did you mean nanogpt-char?"},
        {"{\"model\": \"gpt2\", \"family\": \"rms\"}", "gpt2 is of the family gpt, not rms"},
        {"{\"model\": \"gpt2\", \"layer\": 3}", "did you mean layers?"},
        {"{\"model\": \"gpt2\", \"beam\": 3}", "beam: gpt2, a language model, does not use it: set top_k"},
        {"{\"model\": \"gpt2\", \"heads\": 7}", "d_model (768) must be a multiple of heads (7)"},
        {"{\"layers\": 3}", "the key \"model\" is missing"},
    };
    for (int i = 0; i < (int)(sizeof bad / sizeof *bad); i++) {
        write_text(bad[i][0]);
        refused(bad[i][0], bad[i][1]);
    }
    /* a kind of tokenizer that cannot be trained: files have it, --set refuses it */
    c = preset("encoder-attention");
    c.tokenizer.kind = 4;
    ck_ok(wf_config_save(&c, path, error));
    ck_ok(wf_config_load(&c, path, error));
    ck_assert(key_is(&c, "tokenizer", "wordpiece"));
    set_value_fails(&c, "tokenizer", "wordpiece", "is not one of char, word, bpe or byte-bpe");
    c = preset("char-rms");
    write_text("{\"layers\": 3}");
    ck_ok(wf_config_load_over(&c, path, error));
    ck_assert(key_of(&c, "layers") == 3 && c.generation.top_k == 4);
    ck_assert_str_eq(c.model, "char-rms");
    write_text("{\"family\": \"gpt\"}");
    ck_fails(wf_config_load_over(&c, path, error), WF_ERR_FORMAT, "char-rms is of the family rms, not gpt");
}
END_TEST

START_TEST(a_byte_order_mark)
{
    make_folder();
    static const char plain[] = "{\"model\": \"char-rms\", \"layers\": 3}", bad[] = "\xef\xbb\xbf{\"model\" 1}";
    struct wf_config c, marked;
    char text[64];
    write_text(plain);
    ck_ok(wf_config_load(&c, path, error));
    snprintf(text, sizeof text, "\xef\xbb\xbf%s", plain);
    write_text(text);
    ck_ok(wf_config_load(&marked, path, error));
    ck_assert_int_eq(memcmp(&c, &marked, sizeof c), 0);
    ck_assert(key_of(&marked, "layers") == 3);
    ck_ok(wf_config_load_over(&c, path, error));
    write_text(bad); /* the mark does not count as a column */
    ck_fails(wf_config_load(&c, path, error), WF_ERR_FORMAT, "config.json:1:10: ");
    write_text("\xef\xbb\xbf");
    ck_fails(wf_config_load(&c, path, error), WF_ERR_FORMAT, "empty");
    snprintf(text, sizeof text, "\xef\xbb\xbf\xef\xbb\xbf%s", plain);
    write_text(text);
    ck_fails(wf_config_load(&c, path, error), WF_ERR_FORMAT, "config.json:1:1: ");
}
END_TEST

START_TEST(truncated_and_foreign_files)
{
    make_folder();
    char *text = saved();
    size_t length = strrchr(text, '}') - text + 1;
    for (size_t n = 0; n < length; n++) {
        test_file("config.json", text, n);
        refused("cut off", "");
    }
    static const char *const others[] = {"[]", "null", "{}", "\"config\"", "12", "{\"d_model\": 1}", "{}{}", "\xef\xbb\xbf{}"};
    for (int i = 0; i < 8; i++) {
        write_text(others[i]);
        refused(others[i], "");
    }
    char *large = wf_alloc((1 << 20) + 10);
    memset(large, ' ', (1 << 20) + 10);
    memcpy(large, text, length);
    test_file("config.json", large, (1 << 20) + 10);
    refused("too large", "");
    wf_free(large);
    wf_free(text);
    unlink(path);
    struct wf_config c;
    ck_fails(wf_config_load(&c, path, error), WF_ERR_IO, path);
    ck_fails(wf_config_load(&c, test_folder, error), WF_ERR_IO, test_folder);
    c = preset("char-rms");
    ck_fails(wf_config_save(&c, "/nonexistent/folder/config.json", error), WF_ERR_IO, "/nonexistent/folder");
}
END_TEST

static wf_status load(void *path_of_config, wf_error *error)
{
    struct wf_config c;
    return wf_config_load(&c, path_of_config, error);
}

static wf_status save(void *config, wf_error *error)
{
    return wf_config_save(config, path, error);
}

START_TEST(out_of_memory)
{
    make_folder();
    wf_free(saved());
    struct wf_config c = preset("char-rms");
    ck_assert_int_gt(sweep_memory(load, (char *)path), 10);
    ck_assert_int_gt(sweep_memory(save, &c), 10);
}
END_TEST

WF_TEST_MAIN("models/config_file", round_trip, changed_files_are_refused, missing_and_repeated_keys, files_of_users,
             truncated_and_foreign_files, a_byte_order_mark, out_of_memory)
