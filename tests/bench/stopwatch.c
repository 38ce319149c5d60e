/* SPDX-License-Identifier: MIT */
/* The cases of stopwatch.h: they run, count what they should, and report it as JSON. */
#include <locale.h>
#include <math.h>

#include <jansson.h>

#include <weft/memory.h>
#include <weft/runtime.h>

#include "check_weft.h"
#include "config_test.h"

#include <weft/internal/stopwatch.h>

START_TEST(cases_have_models)
{
    ck_assert_int_ge(wf_bench_count(), 8);
    ck_assert_ptr_null(wf_bench_at(-1));
    ck_assert_ptr_null(wf_bench_at(wf_bench_count()));
    for (int i = 0; i < wf_bench_count(); i++) {
        const struct wf_bench_case *c = wf_bench_at(i);
        struct wf_config config;
        struct wf_bench_case found;
        ck_ok(wf_bench_find(c->name, &found, error));
        ck_assert(found.preset == c->preset && found.batch == c->batch && found.generate == c->generate);
        ck_ok(wf_bench_config(c, 0.1, &config, error));
        ck_assert_double_eq(real_key(&config, "dropout"), 0.1);
        ck_assert_int_eq(key_of(&config, "vocab_size"), c->vocab_size);
        ck_assert(c->generate || c->length <= (c->pairs ? key_of(&config, "max_length") : key_of(&config, "context")));
        ck_assert(c->shortest >= 0 && c->shortest <= c->length);
    }
}
END_TEST

START_TEST(presets_are_cases)
{
    struct wf_bench_case c;
    struct wf_config config;
    ck_ok(wf_bench_find("gpt2", &c, error)); /* 480 rows in 40 parts */
    ck_assert(c.batch == 12 && c.length == 1024 && c.vocab_size == 50257 && !c.generate && !c.pairs);
    ck_ok(wf_bench_find("transformer-big", &c, error));
    ck_assert(c.batch == 32 && c.length == 32 && c.vocab_size == 37000 && c.pairs);
    ck_ok(wf_bench_config(&c, 0, &config, error));
    ck_ok(wf_bench_find("generate-char-rms", &c, error));
    ck_assert(c.batch == 1 && c.length == 256 && c.vocab_size == 65 && c.generate);
    struct wf_bench_result r;
    const struct wf_bench_options o = {.seconds = 0.01, .steps = 1, .seed = 1};
    ck_ok(wf_bench_run("generate-char-rms", &o, &r, error));
    ck_assert_int_eq(r.tokens, 256);
    ck_fails(wf_bench_find("generate-seq2seq-tiny", &c, error), WF_ERR_ARGUMENT, "seq2seq-tiny is not a language model");
}
END_TEST

static struct wf_bench_case with(const char *name, const char *const *settings, struct wf_config *config)
{
    struct wf_bench_case c;
    ck_ok(wf_bench_find(name, &c, error));
    ck_ok(wf_bench_config(&c, 0, config, error));
    ck_ok(wf_bench_set(&c, config, settings, error));
    return c;
}

START_TEST(other_sizes)
{
    struct wf_config config;
    struct wf_bench_case c =
        with("nanogpt-char-small", (const char *const[]){"layers=2", "batch=5", "context=32", "vocab_size=80", NULL}, &config);
    ck_assert(c.batch == 5 && c.length == 32 && c.vocab_size == 80);
    ck_assert_int_eq(key_of(&config, "layers"), 2);
    c = with("generate-gpt2", (const char *const[]){"context=2000", NULL}, &config); /* no more tokens for that, */
    ck_assert(c.batch == 1 && c.length == 256);
    c = with("generate-gpt2", (const char *const[]){"context=20", NULL}, &config); /* and no more than fit */
    ck_assert(c.batch == 1 && c.length == 20);
    c = with("generate-gpt2", (const char *const[]){"context=20", "context=300", NULL}, &config);
    ck_assert(c.batch == 1 && c.length == 256);
    c = with("gpt2-4x64", (const char *const[]){"context=1024", NULL}, &config); /* it is the preset's, but was asked for */
    ck_assert(c.batch == 4 && c.length == 1024);
    c = with("bert", (const char *const[]){"context=64", NULL}, &config); /* crop, which follows it, is more */
    ck_assert(c.length == 64);
    c = with("multi30k", (const char *const[]){"max_length=6", NULL}, &config);
    ck_assert(c.length == 6 && c.shortest == 6);
    c = with("seq2seq-tiny", (const char *const[]){"encoder_layers=1", "vocab_size=50", "source_vocab_size=40", NULL}, &config);
    ck_assert(c.batch == 6 && c.length == 6 && c.vocab_size == 40);
    c = with("encoder-attention", NULL, &config);
    ck_assert(c.batch == 2 && c.length == 10 && c.vocab_size == 1000);

    struct wf_bench_result r;
    const char *const small[] = {"layers=1", "batch=3", "context=16", NULL};
    ck_ok(wf_bench_run("nanogpt-char-small", &(struct wf_bench_options){.steps = 1, .settings = small}, &r, error));
    ck_assert_int_eq(r.tokens, 48);
    ck_assert_int_eq(r.parameters, 804096 - 3 * (12 * 128 * 128 + 2 * 128) - 48 * 128);
    /* Another optimiser takes other steps, and its keys count in any order. */
    const char *const other[][4] = {{"layers=1"}, {"layers=1", "optimizer=sgd"}, {"layers=1", "sgd.momentum=0.9", "optimizer=sgd"}};
    double loss[3];
    for (int i = 0; i < 3; i++) {
        ck_ok(wf_bench_run("char-rms", &(struct wf_bench_options){.steps = 3, .settings = other[i]}, &r, error));
        loss[i] = r.loss;
    }
    ck_assert(loss[0] != loss[1] && loss[1] != loss[2] && loss[0] != loss[2] && isfinite(loss[2]));
    const char *const large[] = {"batch=1048576", "context=4096", NULL};
    ck_fails(wf_bench_run("char-rms", &(struct wf_bench_options){.settings = large}, &r, error), WF_ERR_ARGUMENT,
             "a step of 1048576 rows of 4096 tokens is too large: at most 2^31 tokens");
    static const struct {
        const char *name, *setting, *message;
    } bad[] = {
        {"char-rms", "lr=3",
         "--set lr=3: lr changes nothing here: a training step takes the keys of rms, batch and optimizer (weft models char-rms)"},
        {"char-rms", "layer=3", "--set layer=3: unknown key \"layer\": did you mean layers?"},
        {"char-rms", "layers", "--set layers: not of the form KEY=VALUE, such as lr=1e-3"},
        {"char-rms", " lr=3", "--set  lr=3: unknown key \" lr\": did you mean lr?"},
        {"char-rms", "layers=2 lr=3", "--set layers=2 lr=3: layers: \"2 lr=3\" is not an integer"},
        {"seq2seq-tiny", "batch=4",
         "--set batch=4: batch changes nothing here: a training step takes the keys of seq2seq, and optimizer (weft models seq2seq-tiny); "
         "the pairs of a step are those of the case"},
        {"char-rms", "d_model=33", "d_model (33) must be a multiple of heads (4)"},
        {"char-rms", "batch=0", "--set batch=0: batch: 0 is out of range: 1 to 1048576"},
        {"char-rms", "vocab_size=0", "vocab_size must be 1 at least: ids are drawn from it"},
        {"seq2seq-tiny", "batch_tokens=4",
         "--set batch_tokens=4: batch_tokens changes nothing here: a training step takes the keys of seq2seq, and optimizer (weft models "
         "seq2seq-tiny); "
         "the pairs of a step are those of the case"},
        {"char-rms", "optimizer=tiger",
         "--set optimizer=tiger: optimizer: \"tiger\" is not one of adamw, sgd, lion, adafactor or muon: choose one of them, or use the "
         "program that registers it "
         "(wf_optimizer_register)"},
        {"char-rms", "sgd.momentum=0.9",
         "--set sgd.momentum=0.9: sgd.momentum is a key of optimizer=sgd, and optimizer is adamw: set optimizer=sgd first"},
        {"generate-char-rms", "optimizer=sgd",
         "--set optimizer=sgd: optimizer changes nothing here: generation takes the keys of rms (weft models char-rms)"},
        {"generate-char-rms", "batch=4",
         "--set batch=4: batch changes nothing here: generation takes the keys of rms (weft models char-rms)"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const struct wf_bench_options options = {.steps = 1, .settings = (const char *const[]){bad[i].setting, NULL}};
        ck_fails(wf_bench_run(bad[i].name, &options, &r, error), WF_ERR_ARGUMENT, bad[i].message);
    }
}
END_TEST

static double number(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);
    ck_assert_msg(json_is_number(v), "there is no number %s", key);
    return json_number_value(v);
}

static struct wf_bench_result run(const char *name, double dropout)
{
    struct wf_bench_result r;
    const struct wf_bench_options o = {.seconds = 0.01, .steps = 4, .dropout = dropout, .seed = 1};
    char text[512];
    ck_ok(wf_bench_run(name, &o, &r, error)); /* threads keep the scratch memory that they made here */
    int64_t live = wf_alloc_live();
    ck_ok(wf_bench_run(name, &o, &r, error));
    ck_assert_int_le(wf_alloc_live(), live + 4); /* a thread that came late in the first */
    ck_assert(r.ms > 0 && r.ms_min <= r.ms && r.ms <= r.ms_max && r.peak_rss_mib > 1);
    ck_assert_int_ge(r.steps, 3);
    ck_assert_int_le(r.steps, 4);
    ck_assert(fabs(r.gflops * r.ms * 1e-3 - r.gflop) < 1e-9 * r.gflop);

    use_comma_locale();
    ck_assert_ptr_eq(wf_bench_json(&r, text, sizeof text), text);
    setlocale(LC_ALL, "C");
    json_error_t where;
    json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, &where);
    ck_assert_msg(object != NULL, "%s: %s", text, where.text);
    ck_assert_str_eq(json_string_value(json_object_get(object, "case")), name);
    ck_assert_str_eq(json_string_value(json_object_get(object, "isa")), wf_isa());
    ck_assert(number(object, "parameters") == (double)r.parameters && number(object, "tokens") == (double)r.tokens);
    ck_assert(number(object, "threads") == wf_threads() && fabs(number(object, "ms") - r.ms) < 1e-3);
    ck_assert(number(object, "ms_min") <= number(object, "ms_max") && number(object, "gflops") >= 0 && number(object, "peak_rss_mib") > 1);
    json_decref(object);
    return r;
}

START_TEST(training_and_generation)
{
    struct wf_bench_result r = run("nanogpt-char-small", 0);
    ck_assert_int_eq(r.parameters, 804096);
    ck_assert_int_eq(r.tokens, 768);
    /* 6 x (4 x 12 d^2 + 65 d) x 768 + 4 x 12 x 12 x 64^2 x d, d = 128 */
    ck_assert(fabs(r.gflop - 3.9642) < 1e-3);
    ck_assert(r.loss > 3.5 && r.loss < 4.5); /* about log 65 */
    double plain = r.loss;
    if (sanitized())
        return; /* the rest is the same code with other numbers, and takes a minute */
    r = run("nanogpt-char-small", 0.2);
    ck_assert(r.loss != plain);
    r = run("char-rms", 0);
    ck_assert_int_eq(r.tokens, 4096);
    ck_assert(fabs(r.gflop - 2.1244) < 0.02);
    r = run("generate-nanogpt-char-small", 0);
    ck_assert_int_eq(r.tokens, 256);
    /* 6 x (36 (2 (4 d^2 + 8 d^2) + 2 x 2 d^2) + 36 (2 (6 d^2 + 8 d^2) + 30 d)) + 12 d (6 x 36)(2 + 2 + 2), d = 32 */
    r = run("seq2seq-tiny", 0);
    ck_assert_int_eq(r.parameters, 62430);
    ck_assert_int_eq(r.tokens, 72);
    ck_assert(fabs(r.gflop - 1e-9 * (6. * 36 * (28 + 28) * 1024 + 6. * 36 * 30 * 32 + 12. * 32 * 6 * 36 * 6)) < 1e-9);
    ck_assert(r.loss > 3 && r.loss < 5); /* about log 30 */
    plain = r.loss;
    r = run("seq2seq-tiny", 0.1);
    ck_assert(r.loss != plain);
    ck_ok(wf_bench_run("seq2seq-tiny", &(struct wf_bench_options){.steps = 1}, &r, error)); /* at most what is asked for */
    ck_assert_int_eq(r.steps, 1);
    r = run("seq2seq-postnorm", 0);
    ck_assert_int_eq(r.parameters, 1182696);
    ck_assert_int_eq(r.tokens, 20);
    struct wf_bench_case base;
    ck_ok(wf_bench_find("transformer-base", &base, error));
    ck_assert_int_eq(base.vocab_size, 37000);
}
END_TEST

static bool at_once(void *ctx)
{
    ++*(int *)ctx;
    return true;
}

START_TEST(errors)
{
    struct wf_bench_result r;
    ck_fails(wf_bench_run("nanogpt-chr-small", &(struct wf_bench_options){0}, &r, error), WF_ERR_ARGUMENT,
             "unknown case \"nanogpt-chr-small\": did you mean nanogpt-char-small?");
    ck_fails(wf_bench_run("char-rms", &(struct wf_bench_options){.dropout = 1.5}, &r, error), WF_ERR_ARGUMENT, "dropout");
    int asked = 0;
    run("char-rms", 0);
    int64_t live = wf_alloc_live();
    ck_fails(wf_bench_run("char-rms", &(struct wf_bench_options){.cancelled = at_once, .ctx = &asked}, &r, error), WF_ERR_CANCELLED, "");
    ck_assert_int_eq(asked, 1);
    ck_assert_int_eq(wf_alloc_live(), live);
}
END_TEST

WF_TEST_MAIN("bench", cases_have_models, presets_are_cases, other_sizes, training_and_generation, errors)
