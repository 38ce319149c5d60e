/* SPDX-License-Identifier: MIT */
/* A BERT folder trained further on masked tokens: 20 updates against PyTorch (tests/golden/make_bert_train.py), of tests/golden/bert_train
 * or of the folder that WEFT_BERT_TRAIN names; the folder's head or a new one; what is carried over; folders that cannot be used. */
#include <stdlib.h>

#include <weft/internal/json.h>

#include "pairs_test.h"

enum { STEPS = 20 };

static const char *golden(const char *name)
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
    begin();
    wf_json_init();
    wf_error problem = {0};
    json_t *record = wf_json_load(golden("losses.json"), 1 << 20, &problem);
    ck_assert_msg(record != NULL, "%s", problem.message);
    const char *text[] = {golden(json_string_value(json_object_get(record, "text")))};
    struct curve c = {0};
    struct wf_train_options o = {.out = in_folder("run"),
                                 .train = text,
                                 .train_files = 1,
                                 .valid = text,
                                 .valid_files = 1,
                                 .from = golden(""),
                                 .seed = (uint64_t)json_integer_value(json_object_get(record, "seed")),
                                 .event = take,
                                 .ctx = &c};
    ck_ok(wf_train_from(o.from, &o.config, error));
    ck_ok(wf_config_set_all(&o.config, json_string_value(json_object_get(record, "settings")), error));
    ck_ok(wf_config_set_all(&o.config, "valid_every=0 valid_tokens=2000", error));
    o.config.training.steps = STEPS;
    ck_assert_int_eq(json_integer_value(json_object_get(record, "steps")), STEPS);
    ck_ok(wf_train(&o, NULL, error));
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
    finish();
}
END_TEST

/* --- folders ------------------------------------------------------------------------------------------------------- */

static char told[4][1100];
static int tells;

static void see_tale(void *ctx, const struct wf_event *e)
{
    (void)ctx;
    if ((e->kind == WF_EVENT_WARNING || e->kind == WF_EVENT_DATA) && tells < 4)
        snprintf(told[tells++], sizeof told[0], "%s", e->text);
}

static const char *others(const char *name)
{
    static char path[8][4096];
    static int turn;
    const char *root = getenv("WEFT_SOURCE_ROOT");
    char *out = path[turn++ % 8];
    snprintf(out, sizeof path[0], "%s/tests/golden/%s", root ? root : ".", name);
    return out;
}

static struct wf_train_options few(const char *out, const char *from)
{
    static char text[4096];
    static const char *files[] = {text};
    snprintf(text, sizeof text, "%s", others("story.txt"));
    struct wf_train_options o = {.out = in_folder(out), .train = files, .train_files = 1, .from = from, .seed = 5, .event = see_tale};
    tells = 0;
    ck_ok(wf_config_preset(&o.config, "bert", error));
    ck_ok(wf_train_from(from, &o.config, error));
    ck_ok(wf_config_set_all(&o.config, "crop=12 batch=4 accumulate=2", error));
    o.config.training.steps = 3;
    return o;
}

/* A sentence-transformers folder without an output layer: it is new, and named; how vectors are made goes along, also from the run on. */
START_TEST(a_new_head_is_named)
{
    begin();
    static const char line[] = "The dog sleeps.";
    wf_real before[64], after[64];
    struct wf_run folder_run, run;
    char out[2][16] = {"first", "second"};
    for (int i = 0; i < 2; i++) {
        struct wf_train_options o = few(out[i], i == 0 ? others("bert") : in_folder("first"));
        ck_assert_int_eq(o.config.training.crop, 12);
        ck_ok(wf_config_set(&o.config, "lr", "1e-7", error));
        ck_ok(wf_train(&o, NULL, error));
        ck_assert_msg(tells > 0 && strstr(told[0], "starting from the weights in "), "%s", told[0]);
        bool named = strcmp(told[1], "5 parameters are not in the file and initialised: transform.dense.weight, transform.dense.bias, "
                                     "transform.norm.weight, transform.norm.bias, head.bias") == 0;
        ck_assert_msg(named == (i == 0), "%s", told[1]);
        ck_ok(wf_run_open(&folder_run, others("bert"), NULL, error));
        ck_ok(wf_run_open(&run, in_folder(out[i]), NULL, error));
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
    finish();
}
END_TEST

/* The embedding of the golden folder is padded: the run keeps its size, is opened and evaluated. A resume too. */
START_TEST(a_padded_vocabulary_stays)
{
    begin();
    struct wf_run run;
    struct wf_evaluation e;
    struct wf_train_options o = few("run", others("bert_train"));
    ck_ok(wf_train(&o, NULL, error));
    ck_assert_int_eq(tells, 1);
    o.config.training.steps = 5;
    o.resume = true;
    ck_ok(wf_train(&o, NULL, error));
    ck_ok(wf_run_open(&run, in_folder("run"), NULL, error));
    int64_t types = wf_tokenizer_vocab_size(run.tokenizer), rows = wf_model_shape_of(run.model)->vocab_size;
    ck_assert_msg(types < rows && rows % 8 == 0, "%lld of %lld", (long long)types, (long long)rows);
    wf_error problem = {0};
    wf_tape *tape = wf_tape_new(&problem);
    int32_t ids[40];
    for (int i = 0; i < 40; i++)
        ids[i] = 5 + i;
    ck_ok(wf_evaluate_masked(run.model, run.tokenizer, tape, (struct wf_id_view){.data = ids, .count = 40}, 0, &e, error));
    ck_assert(e.tokens > 0 && e.loss > 0 && e.loss < 20);
    wf_tape_free(tape);
    wf_run_close(&run);
    finish();
}
END_TEST

/* A configuration without the output layer, as wf_config_load reads it. */
START_TEST(without_an_output_layer)
{
    begin();
    struct wf_train_options o = few("run", others("bert_train"));
    ck_ok(wf_config_set(&o.config, "masked_head", "false", error));
    refused(&o, WF_ERR_ARGUMENT, "bert has no output layer, which a training requires: set masked_head=true");
    o = few("run", others("bert_train"));
    o.tokenizer = others("bert/vocab.txt");
    refused(&o, WF_ERR_FORMAT, "vocab.txt");
    finish();
}
END_TEST

static struct wf_train_options swept;
static wf_status sweep_call(wf_error *error)
{
    char command[256];
    snprintf(command, sizeof command, "rm -rf '%s'", swept.out);
    return system(command) != 0 ? WF_ERR_IO : wf_train(&swept, NULL, error);
}

START_TEST(every_allocation_may_fail)
{
    begin();
    static char out[192], from[4096]; /* in_folder's do not last */
    strcpy(out, in_folder("swept"));
    snprintf(from, sizeof from, "%s", others("bert"));
    swept = few("swept", from);
    swept.out = out;
    swept.event = NULL;
    swept.config.training.steps = 1;
    sweep("bert_from", sweep_call, 100);
    finish();
}
END_TEST

WF_TEST_MAIN("bert_from", losses_are_those_of_pytorch, a_new_head_is_named, a_padded_vocabulary_stays, without_an_output_layer,
             every_allocation_may_fail)
