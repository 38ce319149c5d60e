/* SPDX-License-Identifier: MIT */
/* Optimisers that a program registers for the setting `optimizer`, as a stranger writes them: from <weft/weft.h> alone. */
#include <weft/weft.h>

#include "../data/data_test.h"
#include "models_test.h"

struct rprop {
    int64_t window;
    double up;
    bool careful;
    int sign;
};
static const char *const signs[] = {"same", "other", NULL};
static const struct wf_key keys[] = {
    WF_NUMBER_KEY(struct rprop, window, "5", 1, 100, "updates that are looked back on"),
    WF_NUMBER_KEY(struct rprop, up, "1.2", 1, 10, "factor of growth", .above = true, .resumable = true),
    WF_BOOL_KEY(struct rprop, careful, "true", "whether it is careful"),
    WF_WORD_KEY(struct rprop, sign, "other", signs, "a sign to go by"),
};
static void step(void *ctx, const struct wf_update *u)
{
    (void)ctx, (void)u;
}
static const struct wf_optimizer_rule rule = {WF_OPTIMIZER_RULE_ABI, .name = "rprop", .step = step},
                                      second = {WF_OPTIMIZER_RULE_ABI, .name = "second", .step = step};
static wf_status check(const void *config, wf_error *error)
{
    const struct rprop *o = config;
    return o->careful && o->window > 50 ? wf_error_set(error, WF_ERR_ARGUMENT, "rprop.careful needs a short window") : WF_OK;
}
static const struct wf_optimizer_kind rprop = {WF_OPTIMIZER_KIND_ABI, .rule = &rule, .config_size = sizeof(struct rprop),
                                               .keys = WF_ROWS(keys), .check = check};

static int names(void)
{
    int count = 0;
    while (wf_optimizer_name_at(count))
        count++;
    return count;
}

START_TEST(registered_optimizers_have_a_name_and_keys)
{
    struct wf_config c = preset("char-rms");
    struct wf_config_key key;
    ck_assert_int_eq(names(), 5);
    ck_assert_str_eq(wf_optimizer_name_at(WF_OPTIMIZER_ADAMW), "adamw");
    ck_assert_str_eq(wf_optimizer_name_at(WF_OPTIMIZER_SGD), "sgd");
    ck_assert_ptr_null(wf_optimizer_name_at(-1));
    set_value_fails(
        &c, "optimizer", "rprop",
        "optimizer: \"rprop\" is not one of adamw, sgd, lion, adafactor or muon: choose one of them, or use the program that registers it");
    set_value_fails(&c, "rprop.up", "2", "unknown key \"rprop.up\"");
    ck_ok(wf_optimizer_register(&rprop, error));
    ck_ok(wf_optimizer_register(&rprop, error)); /* once */
    ck_assert_int_eq(names(), 6);
    ck_assert_str_eq(wf_optimizer_name_at(5), "rprop");
    set_value_fails(&c, "optimizer", "rpr", "\"rpr\" is not one of adamw, sgd, lion, adafactor, muon or rprop");
    set_value_fails(&c, "rprop.up", "2", "rprop.up is a key of optimizer=rprop, and optimizer is adamw: set optimizer=rprop first");

    set_value(&c, "optimizer", "rprop");
    const struct rprop *o = (const void *)c.optimizer.values;
    ck_assert(o->window == 5 && o->up == 1.2 && o->careful && o->sign == 1);
    set_value(&c, "rprop.window", "60");
    set_value(&c, "rprop.sign", "same");
    set_value(&c, "optimizer", "rprop"); /* as it is: its keys stay */
    ck_assert(o->window == 60 && o->sign == 0);
    ck_conflict(&c, "rprop.careful needs a short window");
    set_value(&c, "rprop.careful", "false");
    ck_ok(wf_config_check(&c, error));
    set_value_fails(&c, "rprop.up", "1", "rprop.up: 1 is out of range: above 1 and at most 10");
    set_value_fails(&c, "eps", "1e-6", "eps is AdamW's, and optimizer is rprop: leave it out");
    set_value_fails(&c, "sgd.momentum", "0.5", "sgd.momentum is a key of optimizer=sgd");
    set_value_fails(&c, "up", "2", "unknown key \"up\": did you mean rprop.up?");
    struct wf_config bad = c;
    bad.optimizer.kind = 6;
    ck_conflict(&bad, "optimizer: 6 is not the index of one of 6 values");
    bad = c, ((struct rprop *)bad.optimizer.values)->up = 0;
    ck_conflict(&bad, "rprop.up: 0 is out of range");

    /* The lists of keys: of the configuration, and of all optimisers. */
    int found = 0, listed = 0;
    for (int i = 0; wf_config_key_at(&c, i, &key); i++)
        if (strncmp(key.name, "rprop.", 6) == 0) {
            ck_assert_str_eq(key.section, "optimizer");
            ck_assert_int_eq(key.resumable, strcmp(key.name, "rprop.up") == 0);
            found++;
        }
    ck_assert_int_eq(found, 4);
    while (wf_config_section_key("optimizer", listed, &key))
        listed++;
    ck_assert_int_eq(listed, 1 + 2 + 2 + 4 + 8 + 4);
    ck_assert(wf_config_section_key("optimizer", 0, &key) && strcmp(key.name, "optimizer") == 0 && !key.resumable);
    ck_assert_str_eq(key.values, "adamw, sgd, lion, adafactor, muon or rprop");
    ck_assert(wf_config_section_key("optimizer", listed - 1, &key) && strcmp(key.name, "rprop.sign") == 0);
    /* A family may not take the name. */
    struct wf_key own = {.name = "optimizer", .meaning = "its own", .value = "0"};
    struct wf_family f = *wf_family_find("gpt", NULL);
    f.keys = (struct wf_keys){&own, 1};
    ck_fails(wf_family_check(&f, error), WF_ERR_ARGUMENT, "the section optimizer already has a key optimizer");
}
END_TEST

/* Configurations are saved and loaded, also with keys before the name. Keys of another optimiser and unknown optimisers are refused by
 * name. */
START_TEST(files_hold_the_optimizer)
{
    const char *path = test_file("config.json", NULL, 0);
    struct wf_config c = preset("char-rms"), read;
    ck_ok(wf_optimizer_register(&rprop, error));
    ck_ok(wf_config_set_all(&c, "optimizer=rprop rprop.window=7 rprop.careful=no", error));
    ck_ok(wf_config_save(&c, path, error));
    ck_ok(wf_config_load(&read, path, error));
    ck_assert_int_eq(memcmp(&read, &c, sizeof c), 0);
    static const struct {
        const char *text, *message;
    } files[] = {
        {"{\"rprop.window\": 9, \"model\": \"char-rms\", \"optimizer\": \"rprop\"}", NULL},
        {"{\"model\": \"char-rms\"}", NULL},
        {"{\"model\": \"char-rms\", \"sgd.momentum\": 0.5}", "sgd.momentum is a key of optimizer=sgd"},
        {"{\"model\": \"char-rms\", \"optimizer\": \"second\"}", "\"second\" is not one of adamw, sgd, lion, adafactor, muon or rprop"},
        {"{\"model\": \"char-rms\", \"optimizer\": 2}", "key \"optimizer\""},
        {"{\"model\": \"char-rms\", \"optimizer\": \"rprop\", \"rprop.window\": \"9\"}", "key \"rprop.window\""}};
    for (int i = 0; i < (int)(sizeof files / sizeof *files); i++) {
        test_file("config.json", files[i].text, strlen(files[i].text));
        if (files[i].message)
            ck_fails(wf_config_load(&read, path, error), WF_ERR_FORMAT, files[i].message);
        else
            ck_ok(wf_config_load(&read, path, error));
        if (i < 2)
            ck_assert(read.optimizer.kind == (i == 0 ? 5 : WF_OPTIMIZER_ADAMW) && read.optimizer.values[0] == (i == 0 ? 9 : 0));
    }
}
END_TEST

/* A run with an optimiser of another program: its model can be used, but not trained or saved. */
START_TEST(runs_of_other_programs)
{
#define RUN                                                                                                                                \
    "{\"weft_version\": \"1\", \"family\": \"rms\", \"rprop.up\": 2, \"optimizer\": \"rprop\", \"d_model\": 16, \"heads\": 2, "            \
    "\"vocab_size\": 20"
    static const char run[] = RUN "}", wrong[] = RUN ", \"lion.beta1\": 0.5}";
    const char *path = test_file("config.json", run, strlen(run));
    struct wf_config read;
    ck_ok(wf_config_load(&read, path, error));
    ck_assert_int_eq(read.optimizer.kind, WF_OPTIMIZER_ELSEWHERE);
    ck_keys(&read, "optimizer=rprop d_model=16");
    wf_model_free(bare_model(&read));
    static const char *const says =
        "optimizer: \"rprop\" is not one of adamw, sgd, lion, adafactor or muon: choose one of them, or use the program that registers it";
    ck_conflict(&read, says);
    set_value_fails(&read, "rprop.up", "3", says);
    ck_fails(wf_config_save(&read, path, error), WF_ERR_ARGUMENT, "the optimizer rprop of another program");
    struct wf_config over = preset("char-rms");
    ck_ok(wf_config_load_over(&over, path, error));
    ck_conflict(&over, says);
    set_value(&over, "optimizer", "sgd"); /* another one, with its defaults */
    ck_ok(wf_config_check(&over, error));
    ck_assert_int_eq(over.optimizer.values[0], 0);
    /* Keys of no optimiser are errors still. */
    test_file("config.json", wrong, strlen(wrong));
    ck_fails(wf_config_load(&read, path, error), WF_ERR_FORMAT, "unknown key \"lion.beta1\"");
}
END_TEST

static void refused(const struct wf_optimizer_kind *kind, const char *says)
{
    ck_fails(wf_optimizer_register(kind, error), WF_ERR_ARGUMENT, says);
}

START_TEST(kinds_are_checked)
{
    struct wf_key own[WF_OPTIMIZER_KEYS + 1];
    struct wf_optimizer_kind k = rprop;
    struct wf_optimizer_rule r = rule;
    const int before = names(); /* other tests register some too, if they run in one process */
    for (int i = 0; i <= WF_OPTIMIZER_KEYS; i++)
        own[i] = keys[0];
    k.abi = 0;
    refused(&k, "compiled for another version of Weft");
    k = rprop, k.rule = NULL;
    refused(&k, "the optimizer has no rule");
    k = rprop, k.rule = &r, r.step = NULL;
    refused(&k, "the optimiser rule rprop has no function step");
    for (int i = 0; i < 2; i++) {
        r = rule, r.name = i == 0 ? "adam" : "sgd";
        refused(&k, i == 0 ? "the state of a run has this name" : "another optimizer has");
    }
    k = rprop, k.config_size = WF_OPTIMIZER_SPACE + 8;
    refused(&k, "more than the maximum of 128 and 16");
    k = rprop, k.keys = (struct wf_keys){own, WF_OPTIMIZER_KEYS + 1};
    refused(&k, "and 17 keys, more than");
    k.keys.count = 2;
    refused(&k, "optimizer rprop: two keys are named window");
    own[1].name = NULL;
    refused(&k, "optimizer rprop: key 1 lacks a name");
    own[1] = keys[1], own[1].name = "a_name_that_is_too_long_for_a_setting_of_the_command_line_or_a_state";
    refused(&k, "optimizer rprop: key 1 lacks a name");
    own[1] = keys[1], own[1].value = "0";
    refused(&k, "optimizer rprop: default of: up: 0 is out of range");
    k.config_size = 8;
    refused(&k, "the offset of key up is outside its struct or misaligned");
    ck_assert_int_eq(names(), before); /* none was registered */

    /* The maximum number of optimisers. */
    static struct wf_optimizer_rule many[WF_OPTIMIZERS_MOST];
    static struct wf_optimizer_kind kinds[WF_OPTIMIZERS_MOST];
    static char name[WF_OPTIMIZERS_MOST][16];
    for (int i = before - WF_OPTIMIZER_MUON - 1; i < WF_OPTIMIZERS_MOST; i++) {
        snprintf(name[i], sizeof name[i], "many%d", i);
        many[i] = rule, many[i].name = name[i];
        kinds[i] = rprop, kinds[i].rule = &many[i];
        ck_ok(wf_optimizer_register(&kinds[i], error));
    }
    k = rprop, k.rule = &second;
    refused(&k, "16 optimizers are registered already");
    struct wf_config c = preset("char-rms");
    ck_ok(wf_config_set_all(&c, "optimizer=many15 many15.up=2", error));
    ck_assert_double_eq(((struct rprop *)c.optimizer.values)->up, 2);
}
END_TEST

/* In this order, if they run in one process: the first test needs that nothing is registered. */
WF_TEST_MAIN("optimizers", runs_of_other_programs, registered_optimizers_have_a_name_and_keys, files_hold_the_optimizer, kinds_are_checked)
