/* SPDX-License-Identifier: MIT */
/* A larger vocabulary than that of the weights: the old rows stay to the bit, new rows are the mean of the old tokens', spare rows are used
 * first, and a resume does not need the file. */
#include "scenarios.h"

#include <weft/internal/family.h>

enum { TYPES = 12, PADDED = 16, D = 16 };
static const char letters[] = "abcdefghij \n"; /* TYPES characters */
static struct seen seen;

/* A folder with a random model of `rows` rows of tokens, whose tokenizer has TYPES characters. */
static void make_folder(const char *name, int64_t rows, const char *settings)
{
    struct wf_config c;
    char path[64];
    wf_tokenizer *tokenizer;
    ck_ok(wf_folder_make(in_folder(name), error));
    ck_ok(wf_config_preset(&c, "nanogpt-char-small", error));
    set_keys(&c, "layers=1 d_model=16 heads=2 d_ff=32 context=8 dropout=0");
    set_keys(&c, settings);
    wf_config_set_vocab(&c, rows, 0);
    wf_error problem = {0};
    wf_model *m = wf_model_new(&c, &problem);
    ck_assert_msg(m != NULL, "%s", problem.message);
    ck_ok(wf_registry_build(wf_model_registry(m), 4, error));
    wf_safetensors_writer *w = wf_safetensors_writer_new();
    wf_registry_save(wf_model_registry(m), w, NULL);
    snprintf(path, sizeof path, "%s/model.safetensors", name);
    ck_ok(wf_safetensors_commit(w, in_folder(path), error));
    snprintf(path, sizeof path, "%s/config.json", name);
    ck_ok(wf_config_save(&c, in_folder(path), error));
    ck_ok(wf_tokenizer_train(letters, TYPES, &tokenizer, error));
    snprintf(path, sizeof path, "%s/tokenizer.json", name);
    ck_ok(wf_tokenizer_save(tokenizer, in_folder(path), error));
    wf_tokenizer_free(tokenizer);
    wf_model_free(m);
}

/* A training whose updates are too small to change a weight. */
static struct wf_train_options further(const char *out, const char *from, const char *tokens)
{
    struct wf_train_options o = {.out = lasting(out), .from = lasting(from), .seed = 3, .event = see, .ctx = &seen};
    seen = (struct seen){0};
    ck_ok(wf_train_from(o.from, &o.config, error));
    set_keys(&o.config, "batch=2 steps=4 min_lr=0 warmup=0 schedule=constant lr=1e-30 weight_decay=0 valid_every=0 save_every=2 keep=0");
    o.new_tokens = tokens ? lasting(tokens) : NULL;
    train_on(&o, "text", NULL);
    return o;
}

static void write_corpus(const char *more)
{
    FILE *f = fopen(in_folder("text"), "w");
    for (int i = 0; i < 60; i++)
        fprintf(f, "abc def %c ghij%s\n", 'a' + i % 10, more);
    fclose(f);
}

/* The rows of tokens in `was` and `now`: the first TYPES are the same, those up to `types` are their mean, later ones are as they were. */
static void check_rows(const struct wf_run *was, const struct wf_run *now, const char *name, int64_t types, int64_t rows)
{
    const wf_array *a = &wf_parameter_info(wf_registry_find(wf_model_registry(was->model), name))->value,
                   *b = &wf_parameter_info(wf_registry_find(wf_model_registry(now->model), name))->value;
    const wf_real *x = a->data, *y = b->data;
    ck_assert_int_eq(b->dim[0], rows);
    ck_assert(memcmp(x, y, TYPES * D * sizeof *x) == 0);
    for (int k = 0; k < D; k++) {
        double mean = 0;
        for (int i = 0; i < TYPES; i++)
            mean += (double)x[i * D + k] / TYPES;
        for (int64_t i = TYPES; i < types; i++)
            ck_assert_msg(fabs((double)y[i * D + k] - mean) < 1e-6, "row %lld", (long long)i);
        for (int64_t i = types; i < rows; i++)
            ck_assert(x[i * D + k] == y[i * D + k]);
    }
}

static void check_run(const char *from, const char *out, int64_t types, int64_t rows, bool tied)
{
    struct wf_run was = opened(from, NULL), now = opened(out, NULL);
    const wf_registry *a = wf_model_registry(was.model), *b = wf_model_registry(now.model);
    ck_assert_int_eq(wf_tokenizer_vocab_size(now.tokenizer), types);
    for (int32_t id = 0; id < TYPES; id++)
        ck_assert_str_eq(wf_tokenizer_token(was.tokenizer, id, NULL), wf_tokenizer_token(now.tokenizer, id, NULL));
    check_rows(&was, &now, "embed.weight", types, rows);
    if (!tied)
        check_rows(&was, &now, "head.weight", types, rows);
    for (int i = 0; i < wf_registry_count(a); i++) {
        const struct wf_parameter_info *p = wf_parameter_info(wf_registry_at(a, i)), *q = wf_parameter_info(wf_registry_at(b, i));
        ck_assert_str_eq(p->name, q->name);
        for (int64_t k = 0; k < wf_array_count(&p->value) && !strstr("embed.weight head.weight head.bias", p->name); k++)
            ck_assert_msg(fabs((double)(((wf_real *)p->value.data)[k] - ((wf_real *)q->value.data)[k])) < 1e-20, "%s", p->name);
    }
    wf_run_close(&was);
    wf_run_close(&now);
}

static void told(const char *words)
{
    ck_assert_msg(strstr(seen.text[WF_EVENT_DATA], words), "%s", seen.text[WF_EVENT_DATA]);
}

START_TEST(rows_are_added)
{
    static const char *const settings[] = {"tied=true", "tied=false", "tied=false bias=true"};
    write_corpus("xy\xc3\xa9");
    put_text("tokens", "x\ny\n\na\n\xc3\xa9\nx\n");
    for (int i = 0; i < 3; i++) {
        char from[8], out[8];
        snprintf(from, sizeof from, "from%d", i);
        snprintf(out, sizeof out, "out%d", i);
        make_folder(from, TYPES, settings[i]);
        struct wf_train_options o = further(out, from, NULL);
        refused(&o, WF_ERR_FORMAT, "is not in the vocabulary of 12 tokens");
        o = further(out, from, "tokens");
        trained(&o);
        told("3 tokens added to the vocabulary of 12: \"x\", \"y\", \"\xc3\xa9\"; already there: \"a\", \"x\"");
        ck_assert_int_eq(seen.count[WF_EVENT_WARNING], 0);
        check_run(from, out, TYPES + 3, TYPES + 3, i == 0);
    }
    struct wf_run run = opened("out0", NULL);
    ck_assert_int_eq(wf_tokenizer_id(run.tokenizer, "y", 1), TYPES + 1);
    ck_assert_int_eq(wf_tokenizer_kind_of(run.tokenizer), WF_TOKENIZER_CHAR);
    wf_run_close(&run);
}
END_TEST

/* The lines \t and \\ are a tab and a backslash; other lines are themselves. */
START_TEST(escapes_in_the_file)
{
    write_corpus("\t\\");
    put_text("tokens", "\\t\n\\\\\n\\n\n");
    make_folder("from", TYPES, "tied=true");
    struct wf_train_options o = further("fed", "from", "tokens");
    trained(&o);
    struct wf_run run = opened("fed", NULL);
    ck_assert_int_eq(wf_tokenizer_id(run.tokenizer, "\t", 1), TYPES);
    ck_assert_int_eq(wf_tokenizer_id(run.tokenizer, "\\", 1), TYPES + 1);
    wf_run_close(&run);
    make_folder("words", TYPES, "tied=true");
    put_text("tokens", "\\t\n\\\\\n\\nabla\n\\theta\n");
    o = further("formulas", "words", "tokens");
    seen = (struct seen){0};
    trained(&o);
    run = opened("formulas", NULL);
    ck_assert_int_eq(wf_tokenizer_id(run.tokenizer, "\\nabla", 6), TYPES + 2);
    ck_assert_int_eq(wf_tokenizer_id(run.tokenizer, "\\theta", 6), TYPES + 3);
    wf_run_close(&run);
}
END_TEST

START_TEST(spare_rows_come_first)
{
    write_corpus("xyz");
    put_text("some", "x\ny\nz\n");
    put_text("many", "x\ny\nz\nu\nv\nw\n");
    make_folder("padded", PADDED, "tied=true");
    struct wf_train_options o = further("few", "padded", "some");
    trained(&o);
    check_run("padded", "few", TYPES + 3, PADDED, true);
    o = further("more", "padded", "many");
    trained(&o);
    check_run("padded", "more", TYPES + 6, TYPES + 6, true);
}
END_TEST

START_TEST(a_resume_needs_no_file)
{
    write_corpus("x");
    put_text("tokens", "x\n");
    make_folder("from", TYPES, "tied=true");
    struct wf_train_options o = further("whole", "from", "tokens");
    set_keys(&o.config, "lr=1e-2");
    trained(&o);
    o = further("halves", "from", "tokens");
    set_keys(&o.config, "lr=1e-2 steps=2");
    trained(&o);
    ck_assert_int_eq(remove(in_folder("tokens")), 0);
    set_keys(&o.config, "steps=4");
    o.resume = true;
    seen = (struct seen){0};
    ck_assert_int_eq(trained(&o).step, 4);
    ck_assert_int_eq(seen.count[WF_EVENT_DATA], 0);
    ck_assert(same_file("whole/model.safetensors", "halves/model.safetensors"));
    ck_assert(same_file("whole/tokenizer.json", "halves/tokenizer.json"));
    struct wf_train_texts texts = {0};
    ck_ok(wf_train_texts_load(in_folder("halves/config.json"), &texts, error));
    ck_assert_str_eq(texts.new_tokens, in_folder("tokens"));
    wf_train_texts_free(&texts);
}
END_TEST

START_TEST(errors)
{
    write_corpus("x");
    put_text("tokens", "x\n");
    put_text("empty", "\n\n");
    put_text("bytes", "\xff\n");
    make_folder("from", TYPES, "tied=true");
    struct wf_train_options o = further("out", "from", "nowhere");
    refused(&o, WF_ERR_IO, "nowhere");
    o = further("out", "from", "empty");
    refused(&o, WF_ERR_FORMAT, "empty has no tokens: give one a line");
    o = further("out", "from", "bytes");
    refused(&o, WF_ERR_FORMAT, "not UTF-8");
    o = further("out", "from", "tokens");
    o.from = NULL;
    refused(&o, WF_ERR_ARGUMENT, "adds tokens to the vocabulary of trained weights: give them with --from");
    ck_assert(!exists("out/state.safetensors"));
}
END_TEST

static struct wf_train_options growing(const char *out, struct seen *unused)
{
    (void)unused;
    struct wf_train_options o = further(out, "from", "tokens");
    o.event = NULL;
    return o;
}

START_TEST(every_allocation_may_fail)
{
    write_corpus("x");
    put_text("tokens", "x\n");
    make_folder("from", TYPES, "tied=true");
    short_of_memory(&(struct trainee){"grow", train_zoo, growing, "steps=2"});
}
END_TEST

WF_TEST_MAIN("grow", rows_are_added, escapes_in_the_file, spare_rows_come_first, a_resume_needs_no_file, errors, every_allocation_may_fail)
