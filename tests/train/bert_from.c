/* SPDX-License-Identifier: MIT */
/* A BERT folder trained further on masked tokens: 20 updates against PyTorch (tests/golden/make_bert_train.py), with the folder's output
 * layer or a new one; a padded vocabulary; folders that cannot be used. */
#include <weft/internal/json.h>

#include "scenarios.h"

enum { STEPS = 20 };

/* A file of the golden folder, or of the one that WEFT_BERT_TRAIN names. */
static const char *bert_train(const char *name)
{
    static char path[8][4096];
    static int turn;
    const char *root = getenv("WEFT_SOURCE_ROOT"), *own = getenv("WEFT_BERT_TRAIN");
    char *out = path[turn++ % 8];
    if (name[0] == '/')
        snprintf(out, sizeof path[0], "%s", name);
    else if (own)
        snprintf(out, sizeof path[0], "%s%s%s", own, name[0] ? "/" : "", name);
    else
        snprintf(out, sizeof path[0], "%s/tests/golden/bert_train%s%s", root ? root : ".", name[0] ? "/" : "", name);
    return out;
}

/* --- against PyTorch ----------------------------------------------------------------------------------------------- */

struct curve {
    int count;
    double loss[STEPS], norm[STEPS];
    int64_t tokens;
};

static void take(void *ctx, const struct wf_event *e)
{
    struct curve *c = ctx;
    if (e->kind == WF_EVENT_START)
        c->tokens = e->train_tokens;
    if (e->kind != WF_EVENT_STEP || c->count == STEPS)
        return;
    c->loss[c->count] = e->loss;
    c->norm[c->count++] = e->grad_norm;
}

/* The largest difference; relative: by the reference's size. */
static double farthest(const double *values, const json_t *reference, bool relative)
{
    double worst = 0;
    ck_assert_uint_eq(json_array_size(reference), STEPS);
    for (size_t i = 0; i < STEPS; i++) {
        double r = json_real_value(json_array_get(reference, i));
        worst = fmax(worst, fabs(values[i] - r) / (relative ? r : 1));
    }
    return worst;
}

START_TEST(losses_are_those_of_pytorch)
{
    wf_json_init();
    wf_error problem = {0};
    json_t *record = wf_json_load(bert_train("losses.json"), 1 << 20, &problem);
    ck_assert_msg(record != NULL, "%s", problem.message);
    const char *text[] = {bert_train(json_string_value(json_object_get(record, "text")))};
    struct curve c = {0};
    struct wf_train_options o = {.out = lasting("run"),
                                 .train = text,
                                 .train_files = 1,
                                 .valid = text,
                                 .valid_files = 1,
                                 .from = bert_train(""),
                                 .seed = (uint64_t)json_integer_value(json_object_get(record, "seed")),
                                 .event = take,
                                 .ctx = &c};
    ck_ok(wf_train_from(o.from, &o.config, error));
    ck_ok(wf_config_set_all(&o.config, json_string_value(json_object_get(record, "settings")), error));
    set_keys(&o.config, "valid_every=0 valid_tokens=2000");
    o.config.training.steps = STEPS;
    ck_assert_int_eq(json_integer_value(json_object_get(record, "steps")), STEPS);
    trained(&o);
    ck_assert_int_eq(c.count, STEPS);
    double loss = farthest(c.loss, json_object_get(record, "loss"), false),
           norm = farthest(c.norm, json_object_get(record, "grad_norm"), true);
    const json_t *floats = json_object_get(record, "loss_float32");
    printf("%d losses within %.2g of PyTorch's in float64, gradient norms within %.2g of their size\n", STEPS, loss, norm);
    if (floats)
        printf("within %.2g of PyTorch's in float32\n", farthest(c.loss, floats, false));
    double most = sizeof(wf_real) == sizeof(float) ? 1e-4 : 1e-9;
    ck_assert_msg(loss < most && norm < 10 * most, "losses differ by %g, gradient norms by %g", loss, norm);
    json_decref(record);
}
END_TEST

/* --- folders ------------------------------------------------------------------------------------------------------- */

static const char *others(const char *name)
{
    static char path[8][4096];
    static int turn;
    const char *root = getenv("WEFT_SOURCE_ROOT");
    char *out = path[turn++ % 8];
    snprintf(out, sizeof path[0], "%s/tests/golden/%s", root ? root : ".", name);
    return out;
}

static struct wf_train_options few(const char *out, const char *from, struct seen *seen)
{
    static const char *files[1];
    struct wf_train_options o = preset_options("bert", out, seen, "");
    files[0] = others("story.txt");
    o.train = files;
    o.train_files = 1;
    o.from = from;
    ck_ok(wf_train_from(from, &o.config, error));
    set_keys(&o.config, "crop=12 batch=4 accumulate=2 steps=3");
    return o;
}

/* From a sentence-transformers folder without an output layer: a warning names the new parameters. The settings of sentence vectors are
 * taken over, also from the run into a second one. */
START_TEST(a_new_head_is_named)
{
    static const char line[] = "The dog sleeps.";
    wf_real before[64], after[64];
    static const char *const out[] = {"first", "second"};
    for (int i = 0; i < 2; i++) {
        struct seen seen = {0};
        struct wf_train_options o = few(out[i], i == 0 ? others("bert") : lasting("first"), &seen);
        ck_assert_int_eq(o.config.training.crop, 12);
        set_keys(&o.config, "lr=1e-7");
        trained(&o);
        ck_says(seen.text[WF_EVENT_DATA], "starting from the weights in ");
        static const char named[] = "5 parameters are not in the file and initialised: transform.dense.weight, transform.dense.bias, "
                                    "transform.norm.weight, transform.norm.bias, head.bias\n";
        const char *warning = seen.text[WF_EVENT_WARNING];
        ck_assert_msg(i == 0 ? strncmp(warning, named, strlen(named)) == 0 : !strstr(warning, "not in the file"), "%s", warning);
        struct wf_run folder_run, run = opened(out[i], NULL);
        ck_ok(wf_run_open(&folder_run, others("bert"), NULL, error));
        ck_assert(run.embed.pooling == folder_run.embed.pooling && run.embed.normalize && run.embed.max_length == 20);
        for (int k = 0; k < 2; k++) {
            const struct wf_run *r = k ? &run : &folder_run;
            wf_error e = {0};
            wf_embedder *m = wf_embedder_new(r->model, r->tokenizer, &r->embed, &e);
            ck_assert_msg(m && wf_embedder_width(m) <= 64, "%s", e.message);
            ck_ok(wf_embed(m, &(const char *){line}, &(int64_t){sizeof line - 1}, 1, 1, k ? after : before, NULL, error));
            wf_embedder_free(m);
        }
        bool moved = false;
        for (int64_t k = 0; k < 12; k++) {
            ck_assert_msg(fabs((double)(before[k] - after[k])) < 1e-4, "%g is now %g", (double)before[k], (double)after[k]);
            moved |= before[k] != after[k];
        }
        ck_assert(moved); /* a step of 1e-7 is one */
        wf_run_close(&run);
        wf_run_close(&folder_run);
    }
}
END_TEST

/* The embedding of the golden folder is padded: the run keeps its size, resumes, is opened and evaluated. */
START_TEST(a_padded_vocabulary_stays)
{
    struct wf_evaluation e;
    struct seen seen = {0};
    struct wf_train_options o = few("run", others("bert_train"), &seen);
    trained(&o);
    ck_assert_int_eq(seen.count[WF_EVENT_WARNING] + seen.count[WF_EVENT_DATA], 1);
    o.config.training.steps = 5;
    o.resume = true;
    trained(&o);
    struct wf_run run = opened("run", NULL);
    int64_t types = wf_tokenizer_vocab_size(run.tokenizer), rows = wf_model_shape_of(run.model)->vocab_size;
    ck_assert_msg(types < rows && rows % 8 == 0, "%lld of %lld", (long long)types, (long long)rows);
    wf_error problem = {0};
    wf_tape *tape = wf_tape_new(&problem);
    int32_t ids[40];
    for (int i = 0; i < 40; i++)
        ids[i] = 5 + i;
    ck_ok(wf_evaluate_masked(run.model, run.tokenizer, tape, wf_id_view_of(ids, 40), 0, &e, error));
    ck_assert(e.tokens > 0 && e.loss > 0 && e.loss < 20);
    wf_tape_free(tape);
    wf_run_close(&run);
}
END_TEST

/* A configuration without the output layer, as wf_config_load reads it. */
START_TEST(without_an_output_layer)
{
    struct wf_train_options o = few("run", others("bert_train"), NULL);
    set_keys(&o.config, "masked_head=false");
    refused(&o, WF_ERR_ARGUMENT, "bert has no output layer, which a training requires: set masked_head=true");
    o = few("run", others("bert_train"), NULL);
    o.tokenizer = others("bert/vocab.txt");
    refused(&o, WF_ERR_FORMAT, "vocab.txt");
}
END_TEST

static struct wf_train_options from_bert(const char *out, struct seen *unused)
{
    (void)unused;
    return few(out, others("bert"), NULL);
}

START_TEST(every_allocation_may_fail)
{
    short_of_memory(&(struct trainee){"bert", train_zoo, from_bert, ""});
}
END_TEST

WF_TEST_MAIN("bert_from", losses_are_those_of_pytorch, a_new_head_is_named, a_padded_vocabulary_stays, without_an_output_layer,
             every_allocation_may_fail)
