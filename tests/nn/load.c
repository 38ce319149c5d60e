/* SPDX-License-Identifier: MIT */
/* Weights of another layout: rules that say which tensors make which parameters. */
#include "nn_test.h"

/* layer.N.{q,k,v} of [2,3] stacked in qkv [6,3], a norm with two spellings, and a name of our own. */
static const struct wf_load_rule rules[] = {
    {"blocks.*.qkv.weight", {"x.layer.*.q", "x.layer.*.k", "x.layer.*.v"}},
    {"norm.weight", {"x.norm.w"}},
    {"norm.weight", {"x.norm.gamma"}},
};
static const char *const ignored[] = {"head.*", "table", NULL};
static const struct wf_load_options options = {.prefix = "m.", .rule = rules, .rules = sizeof rules / sizeof *rules, .ignored = ignored};

static wf_registry *declare(void)
{
    wf_registry *r = new_registry();
    for (int i = 9; i < 11; i++)
        wf_parameter(wf_sub(wf_sub_at(wf_root(r), "blocks", i), "qkv"), "weight", WF_SHAPE(6, 3));
    wf_parameter(wf_sub(wf_root(r), "norm"), "weight", WF_SHAPE(3));
    wf_parameter(wf_root(r), "own", WF_SHAPE(2));
    wf_parameter(wf_root(r), "positions", WF_SHAPE(4), .buffer = true);
    return r;
}

struct tensor {
    const char *name;
    int64_t rows, columns; /* columns 0: [rows] */
    float first;           /* then first + 1, ... */
};

static wf_status load_by(wf_registry *r, const struct wf_load_options *by, const struct tensor *tensor, int count, wf_error *error)
{
    float data[16][32];
    wf_safetensors_writer *w = wf_safetensors_writer_new();
    for (int i = 0; i < count; i++) {
        const struct tensor *t = &tensor[i];
        for (int j = 0; j < 32; j++)
            data[i][j] = t->first + (float)j;
        wf_array a = wf_array_contiguous(data[i], WF_F32, t->columns ? WF_SHAPE(t->rows, t->columns) : WF_SHAPE(t->rows));
        wf_safetensors_put(w, t->name, &a);
    }
    wf_safetensors *file = written(w);
    wf_status status = wf_registry_load_with(r, file, by, error);
    wf_safetensors_close(file);
    return status;
}

static wf_status load(wf_registry *r, const struct tensor *tensor, int count, wf_error *error)
{
    return load_by(r, &options, tensor, count, error);
}

static const struct tensor good[] = {
    {"m.x.layer.10.v", 2, 3, 40}, {"m.x.layer.9.q", 2, 3, 0}, {"m.x.layer.9.k", 2, 3, 6}, {"m.x.layer.9.v", 2, 3, 12},
    {"m.x.layer.10.k", 2, 3, 34}, {"m.own", 2, 0, 7},         {"m.x.norm.w", 3, 0, 50},   {"m.x.layer.10.q", 2, 3, 28},
    {"m.head.anything", 5, 0, 0}, {"m.table", 1, 0, 0},       {"elsewhere", 1, 0, 0},
};
enum { GOOD = sizeof good / sizeof *good };

static void ck_values(const wf_registry *r, const char *name, int count, double first)
{
    const wf_real *x = wf_parameter_info(wf_registry_find(r, name))->value.data;
    for (int i = 0; i < count; i++)
        ck_assert_msg(x[i] == first + i, "%s[%d] is %g", name, i, (double)x[i]);
}

START_TEST(tensors_are_stacked)
{
    struct tensor other[GOOD];
    memcpy(other, good, sizeof good);
    other[6].name = "m.x.norm.gamma"; /* the second rule of that parameter */
    for (int which = 0; which < 2; which++) {
        wf_registry *r = declare();
        ck_ok(load(r, which ? other : good, GOOD, error));
        ck_values(r, "blocks.9.qkv.weight", 18, 0);
        ck_values(r, "blocks.10.qkv.weight", 18, 28);
        ck_values(r, "norm.weight", 3, 50);
        ck_values(r, "own", 2, 7);
        wf_registry_free(r);
    }
}
END_TEST

START_TEST(mismatches_are_listed)
{
    static const struct {
        int at; /* of good[], which becomes: */
        struct tensor tensor;
        const char *message;
    } bad[] = {
        {2, {"m.x.layer.9.other", 2, 3, 0}, "1 missing: m.x.layer.9.k; 1 unexpected: m.x.layer.9.other"},
        {2, {"m.x.layer.9.k", 3, 3, 0}, "1 with another shape: m.x.layer.9.k [3,3] instead of [2,3]"},
        {2, {"m.x.layer.9.k", 6, 0, 0}, "m.x.layer.9.k [6] instead of [2,3]"},
        {6, {"m.x.norm.beta", 3, 0, 0}, "1 missing: m.x.norm.w; 1 unexpected: m.x.norm.beta"},
        {5, {"own", 2, 0, 0}, "1 missing: m.own"},
        {8, {"m.heads", 2, 0, 0}, "1 unexpected: m.heads"},
        {8, {"m.x.norm.gamma", 3, 0, 0}, "1 unexpected: m.x.norm.gamma"}, /* both spellings: one of them belongs to no parameter */
        {9, {"m.tables", 2, 0, 0}, "1 unexpected: m.tables"},
        {9, {"m.positions", 4, 0, 0}, "1 unexpected: m.positions"}, /* buffers are in no file */
        {9, {"m.x.layer.11.q", 2, 3, 0}, "1 unexpected: m.x.layer.11.q"},
        {1, {"m.x.layer.09.q", 2, 3, 0}, "1 missing: m.x.layer.9.q; 1 unexpected: m.x.layer.09.q"},
        {9, {"m.blocks.9.qkv.weight", 6, 3, 0}, "1 unexpected: m.blocks.9.qkv.weight"}, /* our name is not theirs */
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct tensor tensor[GOOD];
        wf_registry *r = declare();
        memcpy(tensor, good, sizeof good);
        tensor[bad[i].at] = bad[i].tensor;
        ck_fails(load(r, tensor, GOOD, error), WF_ERR_FORMAT, bad[i].message);
        ck_assert_ptr_null(wf_registry_values(r));
        wf_registry_free(r);
    }
}
END_TEST

/* A source with '/' lies outside the prefix. No other tensor there is read. */
START_TEST(a_source_outside_the_prefix)
{
    static const struct wf_load_rule outside[] = {{"own", {"/head.*.bias"}}, {"own", {"/head.bias"}}};
    static const struct wf_load_options by = {.prefix = "m.", .rule = outside, .rules = 2};
    static const struct tensor tensor[] = {{"head.bias", 2, 0, 7}, {"head.weight", 3, 0, 0}}, within[] = {{"m.head.bias", 2, 0, 7}},
                               wide[] = {{"head.bias", 3, 0, 7}};
    wf_registry *r = new_registry();
    wf_parameter(wf_root(r), "own", WF_SHAPE(2));
    ck_fails(load_by(r, &by, within, 1, error), WF_ERR_FORMAT, "1 unexpected: m.head.bias");
    ck_fails(load_by(r, &by, wide, 1, error), WF_ERR_FORMAT, "head.bias [3] instead of [2]");
    ck_ok(load_by(r, &by, tensor, 2, error));
    ck_values(r, "own", 2, 7);
    wf_registry_free(r);
}
END_TEST

/* A stack that its parts do not divide: each tensor is reported. */
START_TEST(an_uneven_stack)
{
    wf_registry *r = new_registry();
    wf_parameter(wf_sub(wf_sub_at(wf_root(r), "blocks", 9), "qkv"), "weight", WF_SHAPE(7, 3));
    static const struct tensor three[] = {{"m.x.layer.9.q", 2, 3, 0}, {"m.x.layer.9.k", 2, 3, 0}, {"m.x.layer.9.v", 3, 3, 0}};
    ck_fails(load(r, three, 3, error), WF_ERR_FORMAT, "3 with another shape");
    wf_registry_free(r);
}
END_TEST

/* Fewer heads of keys and values than of queries; and matrices that a file has transposed. */
START_TEST(uneven_and_transposed)
{
    static const struct wf_load_rule shared[] = {{"w", {"q", "k", "v"}, .uneven = true},
                                                 {"t", {"a", "b"}, .uneven = true, .transposed = true}};
    static const struct wf_load_options by = {.rule = shared, .rules = 2};
    static const struct tensor tensor[] = {{"q", 4, 3, 0}, {"k", 1, 3, 12}, {"v", 1, 3, 15}, {"a", 2, 3, 0}, {"b", 2, 1, 20}};
    static const struct {
        int at;
        struct tensor tensor;
        const char *message;
    } bad[] = {{1, {"k", 2, 3, 0}, "2 with another shape: q [4,3] instead of [2,3], v [1,3] instead of [2,3]"},
               {1, {"k", 1, 4, 0}, "k [1,4] instead of [2,3]"},
               {4, {"b", 1, 2, 0}, "b [1,2] instead of [2,2]"},
               {2, {"u", 1, 3, 0}, "1 missing: v; 1 unexpected: u"}};
    for (int which = -1; which < (int)(sizeof bad / sizeof *bad); which++) {
        struct tensor given[5];
        memcpy(given, tensor, sizeof given);
        wf_registry *r = new_registry();
        wf_parameter(wf_root(r), "w", WF_SHAPE(6, 3));
        wf_parameter(wf_root(r), "t", WF_SHAPE(4, 2));
        if (which >= 0) {
            given[bad[which].at] = bad[which].tensor;
            ck_fails(load_by(r, &by, given, 5, error), WF_ERR_FORMAT, bad[which].message);
        } else {
            const wf_real expected[] = {0, 3, 1, 4, 2, 5, 20, 21};
            wf_real value[8];
            ck_ok(load_by(r, &by, given, 5, error));
            ck_values(r, "w", 18, 0);
            ck_read(wf_registry_find(r, "t"), value, 8);
            ck_assert_mem_eq(value, expected, sizeof expected);
        }
        wf_registry_free(r);
    }
}
END_TEST

/* The first rule whose tensor is in the file counts, with or without a '*' at any place. If there is none, the first rule's tensor is
 * reported as missing. */
START_TEST(the_first_rule_counts)
{
    static const struct wf_load_rule mixed[] = {
        {"l.*.w2", {"a.*"}}, {"l.12.w2", {"b"}}, {"l.12.w*", {"c.*"}},      {"l.1*.w2", {"d.*"}},
        {"l.*.w2", {"e.*"}}, {"l.12.w2", {"f"}}, {"l.12*.w2", {"never.*"}}, {"*.w2", {"never.*"}},
    };
    const struct wf_load_options by = {.rule = mixed, .rules = sizeof mixed / sizeof *mixed};
    static const struct tensor file[] = {{"a.12", 1, 0, 1}, {"b", 1, 0, 2},    {"c.2", 1, 0, 3},
                                         {"d.2", 1, 0, 4},  {"e.12", 1, 0, 5}, {"f", 1, 0, 6}};
    for (int i = 0; i < 6; i++) {
        wf_registry *r = new_registry();
        wf_parameter(wf_root(r), "l.12.w2", WF_SHAPE(1));
        if (i == 0)
            ck_fails(load_by(r, &by, file, 0, error), WF_ERR_FORMAT, "1 missing: a.12");
        if (i < 5) { /* of two that are there, the later belongs to no parameter */
            char words[32];
            snprintf(words, sizeof words, "1 unexpected: %s", file[i + 1].name);
            ck_fails(load_by(r, &by, &file[i], 2, error), WF_ERR_FORMAT, words);
        }
        ck_ok(load_by(r, &by, &file[i], 1, error));
        ck_values(r, "l.12.w2", 1, i + 1);
        wf_registry_free(r);
    }
}
END_TEST

/* Two parameters from the halves of one tensor. */
START_TEST(parts_of_a_tensor)
{
    static const struct wf_load_rule halves[] = {{"up.*.w", {"joined.*"}, .part = 1, .parts = 2}, {"gate.*.w", {"joined.*"}, .parts = 2}};
    static const struct wf_load_options by = {.rule = halves, .rules = 2};
    static const struct {
        struct tensor tensor;
        const char *message;
    } file[] = {{{"joined.3", 4, 3, 5}, NULL},
                {{"joined.3", 6, 3, 5}, "the model: 1 with another shape: joined.3 [6,3] instead of [4,3]"},
                {{"joined.3", 5, 3, 5}, "the model: 1 with another shape: joined.3 [5,3] instead of [4,3]"},
                {{"joined.3", 4, 2, 5}, "the model: 1 with another shape: joined.3 [4,2] instead of [4,3]"},
                {{"joined.3", 12, 0, 5}, "the model: 1 with another shape: joined.3 [12] instead of [4,3]"},
                {{"joined.4", 4, 3, 5}, "the model: 1 missing: joined.3; 1 unexpected: joined.4"}};
    for (size_t i = 0; i < sizeof file / sizeof *file; i++) {
        wf_registry *r = new_registry();
        wf_parameter(wf_sub_at(wf_root(r), "gate", 3), "w", WF_SHAPE(2, 3));
        wf_parameter(wf_sub_at(wf_root(r), "up", 3), "w", WF_SHAPE(2, 3));
        if (file[i].message) {
            ck_fails(load_by(r, &by, &file[i].tensor, 1, error), WF_ERR_FORMAT, file[i].message);
        } else {
            ck_ok(load_by(r, &by, &file[i].tensor, 1, error));
            ck_values(r, "gate.3.w", 6, 5);
            ck_values(r, "up.3.w", 6, 11);
        }
        wf_registry_free(r);
    }
    static const struct wf_load_rule bad[] = {{"w", {"a"}, .part = 2, .parts = 2},
                                              {"w", {"a"}, .part = -1, .parts = 2},
                                              {"w", {"a"}, .part = 1},
                                              {"w", {"a", "b"}, .parts = 2},
                                              {"w", {"a"}, .parts = 2, .transposed = true}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        wf_registry *r = new_registry();
        ck_fails(load_by(r, &(struct wf_load_options){.rule = &bad[i], .rules = 1}, good, 1, error), WF_ERR_ARGUMENT,
                 "a part is from 0 to parts - 1, of one source that is not transposed");
        wf_registry_free(r);
    }
}
END_TEST

static void note(void *ctx, const char *name)
{
    strcat(strcat(ctx, name), " ");
}

/* A registry that has only tables needs no tensor from a file. */
START_TEST(buffers_alone)
{
    wf_registry *registry = new_registry(), *mixed = new_registry();
    wf_tensor *table = wf_parameter(wf_root(registry), "table", WF_SHAPE(3), .init = {WF_INIT_CONSTANT, 2}, .buffer = true);
    wf_real value[3];
    wf_safetensors *file = written(wf_safetensors_writer_new());
    const struct wf_load_options some = {.allow_missing = true};
    ck_ok(wf_registry_load_with(registry, file, &some, error));
    ck_ok(wf_registry_load(registry, file, NULL, error));
    ck_ok(wf_registry_load_with(registry, file, &some, error));
    ck_read(table, value, 3);
    ck_assert(value[0] == 2 && value[2] == 2);
    /* with a parameter beside it, that one is named, and the file */
    wf_parameter(wf_root(mixed), "table", WF_SHAPE(3), .buffer = true);
    wf_parameter(wf_root(mixed), "w", WF_SHAPE(3));
    ck_ok(wf_registry_build(mixed, 1, error));
    char says[256];
    snprintf(says, sizeof says, "%s: the weights do not match the model: the file has none of its parameters, such as 'w'", written_path);
    ck_fails(wf_registry_load_with(mixed, file, &some, error), WF_ERR_FORMAT, says);
    snprintf(says, sizeof says, "%s: the weights do not match the model: 1 missing: w", written_path);
    ck_fails(wf_registry_load(mixed, file, NULL, error), WF_ERR_FORMAT, says);
    wf_safetensors_close(file);
    wf_registry_free(registry);
    wf_registry_free(mixed);
}
END_TEST

/* Parameters that the file lacks keep their values and are named; the rest is as strict as ever. */
START_TEST(missing_ones_keep_their_values)
{
    char names[200] = "";
    struct wf_load_options some = options;
    some.allow_missing = true;
    some.missing = note;
    some.missing_ctx = names;
    wf_registry *r = declare();
    ck_fails(load_by(r, &some, good, 6, error), WF_ERR_STATE,
             "the weights lack 'norm.weight', which has no value to keep: call wf_registry_build");
    ck_ok(wf_registry_build(r, 1, error));
    const wf_real kept[3] = {9, 10, 11};
    ck_ok(wf_parameter_set(wf_registry_find(r, "norm.weight"), kept, 3, error));
    struct tensor held[GOOD];
    int count = 0;
    for (int i = 0; i < GOOD; i++)
        if (strcmp(good[i].name, "m.own") != 0 && strcmp(good[i].name, "m.x.norm.w") != 0)
            held[count++] = good[i];
    ck_ok(load_by(r, &some, held, count, error));
    ck_assert_str_eq(names, "norm.weight own ");
    ck_values(r, "blocks.10.qkv.weight", 18, 28);
    ck_values(r, "norm.weight", 3, 9);
    ck_values(r, "own", 1, 0);

    names[0] = 0;
    /* one of three tensors of blocks.10 */
    ck_fails(load_by(r, &some, good + 1, 5, error), WF_ERR_FORMAT, "2 missing: m.x.layer.10.q, m.x.layer.10.v");
    ck_fails(load_by(r, &some, good + GOOD - 1, 1, error), WF_ERR_FORMAT, "none of its parameters, such as 'm.blocks.9.qkv.weight'");
    ck_assert_str_eq(names, "");
    some.missing = NULL;
    ck_ok(load_by(r, &some, held, count, error));
    wf_registry_free(r);
}
END_TEST

WF_TEST_MAIN("nn/load", buffers_alone, missing_ones_keep_their_values, the_first_rule_counts, tensors_are_stacked, mismatches_are_listed,
             a_source_outside_the_prefix, an_uneven_stack, uneven_and_transposed, parts_of_a_tensor)
