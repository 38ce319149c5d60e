/* SPDX-License-Identifier: MIT */
/* Families that a program registers, as a stranger writes them: from <weft/weft.h> alone. */
#include <weft/weft.h>

#include "../data/data_test.h"
#include "models_test.h"

/* A bigram model: each next token from the last one. No attention, no layers, no cache. */
struct bigram_config {
    int64_t width, context, vocab_size;
    double temperature_of_logits;
};
static const struct wf_key bigram_keys[] = {
    WF_NUMBER_KEY(struct bigram_config, width, "16", 1, 1024, "width of the embedding", .role = WF_KEY_WIDTH),
    WF_NUMBER_KEY(struct bigram_config, context, "8", 1, 4096, "maximum sequence length in tokens", .role = WF_KEY_CONTEXT),
    WF_NUMBER_KEY(struct bigram_config, vocab_size, "0", 0, 65536, "vocabulary size", .role = WF_KEY_VOCAB),
    WF_NUMBER_KEY(struct bigram_config, temperature_of_logits, "1", 0.01, 100, "what the logits are divided by", .resumable = true,
                  .of_validation = true),
};
struct bigram {
    struct wf_linear head; /* the first member */
    struct wf_embedding embed;
    double scale;
};

static void bigram_init(wf_scope s, void *model, const void *config)
{
    const struct bigram_config *c = config;
    struct bigram *m = model;
    m->scale = 1 / c->temperature_of_logits;
    wf_embedding_init(wf_sub(s, "embed"), &m->embed, c->vocab_size, c->width);
    wf_linear_init(wf_sub(s, "head"), &m->head, c->width, c->vocab_size);
}

static wf_tensor *bigram_forward(const void *model, wf_tensor *ids, struct wf_cache *cache, wf_tensor **weights)
{
    const struct bigram *m = model;
    (void)cache, (void)weights;
    return wf_tanh(wf_embedding_forward(&m->embed, ids)); /* [B,T] -> [B,T,d] */
}

static wf_tensor *bigram_logits(const void *model, wf_tensor *x)
{
    const struct bigram *m = model;
    return wf_scale(wf_linear_forward(&m->head, x), m->scale); /* [..,d] -> [..,V] */
}

static const struct wf_preset bigram_presets[] = {{"bigram-tiny", "counts pairs of tokens", "width=8 steps=3 batch=4 lr=0.1"},
                                                  {"bigram-wide", "the same, wider", "width=64"}};
static const struct wf_family bigram = {
    .abi = WF_FAMILY_ABI,
    .name = "bigram",
    .kind = WF_MODEL_LANGUAGE,
    .config_size = sizeof(struct bigram_config),
    .keys = WF_ROWS(bigram_keys),
    .presets = WF_ROWS(bigram_presets),
    .size = sizeof(struct bigram),
    .init = bigram_init,
    .head = WF_HEAD_AT(struct bigram, head),
    .forward = bigram_forward,
    .no_cache = true,
};

START_TEST(registered_families_are_found)
{
    int before = 0, presets = 0;
    while (wf_family_at(before))
        before++;
    while (wf_preset_at(presets))
        presets++;
    struct wf_config c;
    ck_fails(wf_config_preset(&c, "bigram-tiny", error), WF_ERR_ARGUMENT, "unknown model");
    ck_fails(wf_config_defaults(&c, "bigram", error), WF_ERR_ARGUMENT, "use the program that registers it");
    /* the config.json of another program's family, and a name near to an existing one */
    static const char *const texts[] = {
        "{\"weft_version\": \"0.1.0\", \"model_type\": \"weft-bigram\", \"model\": \"x\", \"family\": \"bigram\"}",
        "{\"weft_version\": \"0.1.0\", \"model_type\": \"weft-gpt2\", \"model\": \"x\", \"family\": \"gpt2\"}"};
    for (int i = 0; i < 2; i++)
        ck_fails(wf_config_load(&c, test_file("config.json", texts[i], strlen(texts[i])), error), WF_ERR_FORMAT,
                 i ? "no family \"gpt2\" is registered here: use the program" : "no family \"bigram\" is registered here: use the program");
    remove_test_files();
    ck_ok(wf_family_register(&bigram, error));
    ck_ok(wf_family_register(&bigram, error)); /* again: the same */
    ck_assert_ptr_eq(wf_family_at(before), &bigram);
    ck_assert_ptr_null(wf_family_at(before + 1));
    ck_assert_ptr_null(wf_family_at(-1));
    ck_assert_ptr_eq(wf_family_find("bigram", NULL), &bigram);
    ck_assert_str_eq(wf_preset_at(presets + 1)->name, "bigram-wide");
    ck_fails(wf_config_preset(&c, "bigram-tny", error), WF_ERR_ARGUMENT, "did you mean bigram-tiny?");
    ck_ok(wf_config_preset(&c, "bigram-wide", error));
    ck_assert_str_eq(wf_config_family(&c), "bigram");
    ck_assert_int_eq(key_of(&c, "width"), 64);
    struct wf_model_shape shape = wf_config_shape(&c);
    ck_assert(shape.layers == 1 && shape.heads == 0 && shape.context == 8 && shape.width == 64);
    set_value_fails(&c, "temperature_of_logits", "0", "temperature_of_logits: 0 is out of range");
    struct wf_config_key key;
    ck_assert(wf_config_section_key("bigram", 3, &key) && key.resumable && key.of_validation && !key.of_batches);
}
END_TEST

/* The argmax of the logits after one token. */
static int32_t best_after(const wf_model *model, wf_tape *tape, int32_t id)
{
    wf_real logits[5];
    wf_tape_reset(tape, WF_INFER);
    read_values(wf_model_next(model, wf_ids(tape, &id, 1, 1), NULL), logits, 5);
    int32_t best = 0;
    for (int32_t i = 1; i < 5; i++)
        best = logits[i] > logits[best] ? i : best;
    return best;
}

START_TEST(they_train_and_generate)
{
    static const int32_t x[] = {0, 1, 2, 3, 4, 0, 1, 2}, y[] = {1, 2, 3, 4, 0, 1, 2, 3};
    struct wf_family with_logits = bigram;
    ck_ok(wf_family_register(&bigram, error));
    with_logits.logits = bigram_logits;
    for (int way = 0; way < 2; way++) {
        struct wf_config c = preset("bigram-tiny");
        wf_config_set_vocab(&c, 5, 0);
        if (way == 1)
            c.family = &with_logits;
        wf_model *m = model_of(&c, 1);
        wf_tape *tape = new_tape();
        struct wf_optimizer optimizer;
        double first = 0, loss = 0;
        ck_ok(wf_adamw_init(&optimizer, wf_model_registry(m), error, .lr = 0.1));
        for (int step = 0; step < 60; step++) {
            wf_tape_reset(tape, WF_TRAIN, .step = (uint64_t)step);
            wf_tensor *l = wf_model_loss(m, wf_ids(tape, x, 1, 8), wf_ids(tape, y, 1, 8));
            loss = item_of(l);
            backward(l);
            ck_ok(wf_optimizer_step(&optimizer, error));
            first = step == 0 ? loss : first;
        }
        ck_assert(loss < 0.1 && first > 1);
        struct wf_cache cache = {0};
        ck_fails(wf_model_cache(m, &cache, 1, error), WF_ERR_STATE, "bigram-tiny takes no cache");
        int32_t prompt = 3, out[12];
        int64_t count = 0;
        const struct wf_generate_options o = {.sampler = {.greedy = true}, .max_tokens = 12};
        ck_ok(wf_generate_with(m, tape, &prompt, 1, &o, out, &count, error));
        ck_assert_int_eq(count, 12); /* beyond the context, too */
        for (int32_t i = 0, last = 3; i < 12; last = out[i++])
            ck_assert_int_eq(out[i], best_after(m, tape, last));
        ck_assert_int_eq(out[0], 4);
        ck_assert_int_eq(out[1], 0);
        wf_optimizer_free(&optimizer);
        wf_tape_free(tape);
        wf_model_free(m);
    }
}
END_TEST

static wf_tensor *forward_of_null(const void *model, wf_tensor *ids, struct wf_cache *cache, wf_tensor **weights)
{
    (void)model, (void)ids, (void)cache, (void)weights;
    return NULL;
}

/* Writes past its struct, like a family with blocks and without a block_size. */
static void init_too_far(wf_scope s, void *model, const void *config)
{
    bigram_init(s, model, config);
    memset((char *)model + sizeof(struct bigram) + 100, 1, 200);
}

static wf_status cache_of_states(const void *model, struct wf_cache *cache, int64_t rows, int64_t capacity, wf_error *error)
{
    (void)model, (void)capacity;
    return wf_cache_init_states(cache, 1, rows, 4, error);
}

static wf_tensor *forward_that_advances(const void *model, wf_tensor *ids, struct wf_cache *cache, wf_tensor **weights)
{
    if (cache)
        wf_cache_advance(cache, wf_dim(ids, 1));
    return bigram.forward(model, ids, cache, weights);
}

static struct wf_config registered(const struct wf_family *family)
{
    struct wf_config c;
    ck_ok(wf_family_register(family, error));
    ck_ok(wf_config_defaults(&c, family->name, error));
    wf_config_set_vocab(&c, 5, 0);
    return c;
}

START_TEST(mistakes_of_functions_are_named)
{
    static struct wf_family silent, null, far, stateless, eager;
    const int32_t prompt = 3;
    int32_t out[4];
    int64_t count;
    wf_tape *tape = new_tape();
    silent = null = far = stateless = eager = bigram;
    eager.name = "eager", eager.no_cache = false, eager.presets.count = 0, eager.forward = forward_that_advances;
    stateless.name = "stateless", stateless.no_cache = false, stateless.presets.count = 0, stateless.cache = cache_of_states;
    silent.name = "silent", silent.no_cache = false, silent.presets.count = 0;
    null.name = "null", null.presets.count = 0, null.forward = forward_of_null;
    far.name = "far", far.presets.count = 0, far.init = init_too_far;
    const struct {
        const struct wf_family *family;
        wf_status status;
        const char *part;
    } rows[] = {{&silent, WF_ERR_STATE, "family silent ignores its cache"},
                {&null, WF_ERR_ARGUMENT, "family null: forward returned NULL"},
                {&eager, WF_ERR_STATE, "family eager: forward called wf_cache_advance, which Weft does afterwards"},
                {&stateless, WF_ERR_STATE, "family stateless ignores its cache: keep states with wf_kv_set_state, or set .no_cache"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct wf_generate_options o = {.sampler.greedy = true, .max_tokens = 4};
        struct wf_config c = registered(rows[i].family);
        wf_model *m = model_of(&c, 1);
        ck_fails(wf_generate_with(m, tape, &prompt, 1, &o, out, &count, error), rows[i].status, rows[i].part);
        wf_model_free(m);
    }
    struct wf_config c = registered(&far);
    ck_fails_null(wf_model_new(&c, error), WF_ERR_ARGUMENT, "family far: init wrote behind its struct");
    wf_tape_free(tape);
}
END_TEST

static void refused(struct wf_family f, const char *text)
{
    int before = 0, after = 0;
    while (wf_family_at(before))
        before++;
    ck_fails(wf_family_register(&f, error), WF_ERR_ARGUMENT, text);
    while (wf_family_at(after))
        after++;
    ck_assert_int_eq(before, after);
}

START_TEST(wrong_descriptors_are_refused)
{
    struct wf_family f = bigram;
    refused((struct wf_family){0}, "struct wf_family has 0 bytes");
    f.name = "big ram";
    refused(f, "letters, digits");
    f.name = NULL;
    refused(f, "it has none");
    f.name = "gpt";
    refused(f, "family gpt: another family has this name");
    f.name = "training";
    refused(f, "the name is that of a section");
    f = bigram, f.head = 0;
    refused(f, "family bigram has no function head or logits");
    f.head = sizeof(struct bigram) + 1;
    refused(f, "WF_HEAD_AT");
    f.head = offsetof(struct bigram, embed); /* without WF_HEAD_AT */
    refused(f, "WF_HEAD_AT");
    f = bigram, f.kind = (enum wf_model_kind)7;
    refused(f, "kind 7");
    f.kind = WF_MODEL_PAIRS;
    refused(f, "family bigram has no function encode");
    f.kind = WF_MODEL_ENCODER;
    refused(f, "family bigram has no function hidden");
    static const struct wf_preset taken[] = {{"nanogpt-char", "", ""}}, twice[] = {{"a", "", ""}, {"a", "", ""}},
                                  wrong[] = {{"a", "", "with=8"}}, nameless[] = {{NULL, "", ""}};
    f = bigram, f.name = "bigrams", f.presets = (struct wf_presets){taken, 1};
    refused(f, "another preset is named nanogpt-char");
    f.presets = (struct wf_presets){twice, 2};
    refused(f, "two presets are named a");
    f.presets = (struct wf_presets){wrong, 1};
    refused(f, "family bigrams: preset a: unknown");
    f.presets = (struct wf_presets){nameless, 1};
    refused(f, "preset 0 lacks a name");
}
END_TEST

START_TEST(the_maximum_of_families)
{
    static struct wf_family many[WF_FAMILIES_MOST + 1];
    static char names[WF_FAMILIES_MOST + 1][16];
    int count = 0;
    for (wf_status status = WF_OK; status == WF_OK && count <= WF_FAMILIES_MOST; count += status == WF_OK) {
        many[count] = bigram;
        snprintf(names[count], sizeof names[count], "many%d", count);
        many[count].name = names[count];
        many[count].presets.count = 0;
        wf_error error = {0};
        status = wf_family_register(&many[count], &error);
        if (status != WF_OK)
            ck_assert_ptr_nonnull(strstr(error.message, "families are registered already"));
    }
    ck_assert_int_ge(count, WF_FAMILIES_MOST - 7); /* other tests register some too, if they run in one process */
    ck_assert_int_le(count, WF_FAMILIES_MOST);
    ck_assert_ptr_eq(wf_family_find(names[count - 1], NULL), &many[count - 1]);
}
END_TEST

static wf_status reader_read(const struct json_t *object, const char *path, void *config, wf_error *error)
{
    (void)object, (void)path, (void)error;
    ((struct bigram_config *)config)->vocab_size = 7;
    return WF_OK;
}

/* A family of another library: it is read, but neither saved nor offered for training. */
START_TEST(families_that_are_only_read)
{
    static struct wf_family reader;
    struct wf_config c;
    static const char typed[] = "{\"model_type\": \"other-reader\"}", own[] = "{\"family\": \"reader\"}";
    const char *path = test_file("config.json", typed, strlen(typed));
    reader = bigram;
    reader.name = "reader";
    reader.presets.count = 0;
    reader.read_only = true;
    reader.model_type = "other-reader";
    reader.read = reader_read;
    ck_ok(wf_family_register(&reader, error));
    ck_ok(wf_config_load(&c, path, error));
    ck_assert(wf_config_read_only(&c) && key_of(&c, "vocab_size") == 7);
    ck_fails(wf_config_save(&c, path, error), WF_ERR_ARGUMENT, "can be read but not written");
    ck_fails(wf_config_preset(&c, "reader", error), WF_ERR_ARGUMENT, "reader is read from a Hugging Face folder, not trained");
    test_file("config.json", own, strlen(own));
    ck_fails(wf_config_load(&c, path, error), WF_ERR_FORMAT, "with \"model_type\": \"other-reader\"");
}
END_TEST

WF_TEST_MAIN("models/family", registered_families_are_found, they_train_and_generate, mistakes_of_functions_are_named,
             wrong_descriptors_are_refused, families_that_are_only_read, the_maximum_of_families)
