/* SPDX-License-Identifier: MIT */
/* Families from outside whose loss has a further term: of each kind, however the batch is cut, resumed, bad, and wrong. */
#include <weft/weft.h>

#include "decoder_test.h"
#include "pairs_test.h"

struct squares_config {
    int64_t d_model, context, vocab_size;
    double penalty;
};
#define NUMBER(...) WF_NUMBER_KEY(struct squares_config, __VA_ARGS__)
static const struct wf_key keys[] = {
    NUMBER(d_model, "32", 1, 1024, "model width", .role = WF_KEY_WIDTH),
    NUMBER(context, "16", 1, 1024, "longest sequence in tokens", .role = WF_KEY_CONTEXT),
    NUMBER(vocab_size, "0", 0, 65536, "vocabulary size", .role = WF_KEY_VOCAB),
    NUMBER(penalty, "0.5", 0, 100, "weight of the mean square of the activations", .resumable = true),
};
struct squares {
    struct wf_embedding embed, source;
    struct wf_mha cross;
    struct wf_linear head;
    double penalty;
};
static enum { RIGHT, VECTOR, NOTHING, BAD } kind_of_term;

static void init(wf_scope s, void *model, const struct squares_config *c, bool pairs)
{
    struct squares *m = model;
    m->penalty = c->penalty;
    wf_embedding_init(wf_sub(s, "embed"), &m->embed, c->vocab_size, c->d_model);
    if (pairs) {
        wf_embedding_init(wf_sub(s, "source"), &m->source, c->vocab_size, c->d_model);
        wf_mha_init(wf_sub(s, "cross"), &m->cross, c->d_model, 2, .cross = true);
    }
    wf_linear_init(wf_sub(s, "head"), &m->head, c->d_model, c->vocab_size);
}

static void init_alone(wf_scope s, void *model, const void *config)
{
    init(s, model, config, false);
}

static void init_pairs(wf_scope s, void *model, const void *config)
{
    init(s, model, config, true);
}

/* The mean of the squares of what the embedding gives, which is thus a mean over ids. */
static wf_tensor *embed(const struct squares *m, const struct wf_embedding *e, wf_tensor *ids)
{
    wf_tape *tape = wf_tape_of(ids);
    wf_tensor *x = wf_embedding_forward(e, ids), *square = wf_scale(wf_square(x), m->penalty);
    ck_assert(!wf_loss_term_wanted(tape) || wf_tape_mode(tape) == WF_TRAIN);
    if (m->penalty > 0 && wf_loss_term_wanted(tape))
        wf_loss_term_add(tape, kind_of_term == VECTOR    ? wf_mean_dim(square, -1, false)
                               : kind_of_term == NOTHING ? NULL
                               : kind_of_term == BAD     ? wf_log(wf_scale(wf_mean(square), 0))
                                                         : wf_mean(square));
    wf_loss_term_add(NULL, NULL); /* of no pass: nothing */
    return x;
}

static wf_tensor *forward(const void *model, wf_tensor *ids, struct wf_cache *cache, wf_tensor **weights)
{
    const struct squares *m = model;
    (void)cache, (void)weights;
    return embed(m, &m->embed, ids);
}

static wf_tensor *hidden(const void *model, wf_tensor *ids, const struct wf_encoder_call *call)
{
    const struct squares *m = model;
    (void)call;
    return embed(m, &m->embed, ids);
}

static wf_tensor *encode(const void *model, wf_tensor *ids, const struct wf_packed *source, wf_tensor **weights)
{
    const struct squares *m = model;
    (void)source, (void)weights;
    return embed(m, &m->source, ids);
}

static wf_tensor *memory(const void *model, int64_t layer, wf_tensor *x)
{
    (void)layer;
    return wf_mha_memory(&((const struct squares *)model)->cross, x);
}

static wf_tensor *decode(const void *model, wf_tensor *ids, const struct wf_decoding *d)
{
    const struct squares *m = model;
    return attend_to_sources(&m->cross, embed(m, &m->embed, ids), d);
}

#define FAMILY                                                                                                                             \
    .abi = WF_FAMILY_ABI, .config_size = sizeof(struct squares_config), .keys = WF_ROWS(keys), .size = sizeof(struct squares),             \
    .head = WF_HEAD_AT(struct squares, head), .loss_term = "squares"
static const struct wf_family families[] = {
    {FAMILY, .name = "squares", .kind = WF_MODEL_LANGUAGE, .init = init_alone, .forward = forward, .no_cache = true},
    {FAMILY, .name = "squares-masked", .kind = WF_MODEL_ENCODER, .init = init_alone, .hidden = hidden},
    {FAMILY, .name = "squares-pairs", .kind = WF_MODEL_PAIRS, .init = init_pairs, .encode = encode, .memory = memory, .decode = decode},
};

/* What is minimised besides what is shown. */
struct terms {
    struct seen seen;
    double first, last;
};

static void see_terms(void *ctx, const struct wf_event *e)
{
    struct terms *t = ctx;
    see(&t->seen, e);
    if (e->kind == WF_EVENT_STEP) {
        t->last = e->smoothed - e->loss;
        t->first = t->seen.count[e->kind] == 1 ? t->last : t->first;
    }
}

static bool cancel_terms(void *ctx)
{
    return cancel(&((struct terms *)ctx)->seen);
}

static struct wf_train_options options_of(const struct wf_family *family, const char *out, struct terms *t)
{
    struct wf_train_options o = small(out, NULL);
    *t = (struct terms){0};
    ck_ok(wf_family_register(family, error));
    ck_ok(wf_config_defaults(&o.config, family->name, error));
    ck_ok(wf_config_set_all(&o.config, "steps=12 lr=0.01 eps=1e-3 clip=0 save_every=5 valid_every=6 tokenizer=word", error));
    ck_ok(wf_config_set_all(&o.config, family->kind == WF_MODEL_PAIRS ? "batch_tokens=90 batch_window=32" : "batch=6", error));
    if (family->kind != WF_MODEL_PAIRS)
        o.train_files = o.valid_files = 1;
    o.event = see_terms;
    o.cancelled = cancel_terms;
    o.ctx = t;
    return o;
}

/* The greatest difference of the weights of two runs. */
static double difference(const char *a, const char *b)
{
    struct wf_run x, y;
    double most = 0;
    ck_ok(wf_run_open(&x, a, NULL, error));
    ck_ok(wf_run_open(&y, b, NULL, error));
    const wf_registry *r = wf_model_registry(x.model), *s = wf_model_registry(y.model);
    for (int64_t i = 0; i < wf_registry_slab(r); i++)
        most = fmax(most, fabs((double)wf_registry_values((wf_registry *)r)[i] - (double)wf_registry_values((wf_registry *)s)[i]));
    wf_run_close(&x);
    wf_run_close(&y);
    return most;
}

START_TEST(parts_add_up)
{
    const double tolerance = sizeof(wf_real) == 8 ? 1e-9 : 1e-4;
    begin();
    for (int k = 0; k < 3; k++) {
        struct terms one, four, none;
        struct wf_train_result result, other;
        char path[3][192];
        for (int i = 0; i < 3; i++)
            snprintf(path[i], sizeof path[i], "%s-%d", in_folder(families[k].name), i);
        struct wf_train_options o = options_of(&families[k], path[0], &one);
        ck_ok(wf_train(&o, &result, error));
        o = options_of(&families[k], path[1], &four);
        o.config.training.accumulate = 4;
        ck_ok(wf_train(&o, &other, error));
        o = options_of(&families[k], path[2], &none);
        set_key(&o.config, "penalty", 0);
        ck_ok(wf_train(&o, NULL, error));
        double d = difference(path[0], path[1]);
        ck_assert_msg(d < tolerance, "%s: in parts the weights differ by %g", families[k].name, d);
        ck_assert_msg(difference(path[0], path[2]) > 0.01, "%s: the term does nothing", families[k].name);
        ck_assert(fabs(one.first - four.first) < 1e-5 && fabs(one.last - four.last) < 1e-4 && fabs(result.valid - other.valid) < 1e-4);
        /* Embeddings begin at N(0, 1): their mean square is 1, of source and target 2. */
        ck_assert_msg(fabs(one.first / (k == 2 ? 1 : 0.5) - 1) < 0.4 && one.last < one.first - 0.01, "%s: the term is %g, then %g",
                      families[k].name, one.first, one.last);
        ck_assert(none.last == 0 || isnan(none.last));
        char file[600], *lines;
        snprintf(file, sizeof file, "%s/metrics.jsonl", path[0]);
        ck_assert_ptr_nonnull(lines = wf_file_load(file, 1 << 20, NULL, NULL));
        ck_assert(strstr(lines, "\"squares/train\":") && strstr(lines, "\"loss/train_minimized\":"));
        ck_assert_ptr_null(strstr(lines, "squares/valid"));
        wf_free(lines);
    }
    finish();
}
END_TEST

/* What is measured is the cross-entropy: the validation's loss is the evaluation's, with the penalty or without. */
START_TEST(a_validation_has_no_term)
{
    begin();
    struct terms t;
    struct wf_run run;
    struct wf_evaluation e;
    struct wf_train_result result;
    struct wf_train_options o = options_of(&families[0], in_folder("run"), &t);
    o.config.training.valid_tokens = 0;
    ck_ok(wf_train(&o, &result, error));
    ck_ok(wf_run_open(&run, in_folder("run"), NULL, error));
    wf_tape *tape = wf_tape_new(NULL);
    char *text = wf_file_load(o.valid[0], 1 << 20, NULL, NULL);
    struct wf_tokens ids = {0};
    ck_ok(wf_tokenizer_encode(run.tokenizer, text, (int64_t)strlen(text), &ids, error));
    ck_ok(wf_model_evaluate(run.model, tape, (struct wf_id_view){.data = ids.id, .count = ids.count}, 0, &e, error));
    ck_assert_msg(fabs(e.loss - result.valid) < 1e-5, "%g, %g", e.loss, result.valid);
    wf_tokens_free(&ids);
    wf_free(text);
    wf_tape_free(tape);
    wf_run_close(&run);
    finish();
}
END_TEST

START_TEST(a_resume_gives_the_same_bytes)
{
    begin();
    for (int k = 0; k < 3; k++) {
        struct terms t;
        char path[2][192], name[2][600];
        for (int i = 0; i < 2; i++)
            snprintf(path[i], sizeof path[i], "%s-%d", in_folder(families[k].name), i);
        struct wf_train_options o = options_of(&families[k], path[0], &t);
        ck_ok(wf_train(&o, NULL, error));
        o = options_of(&families[k], path[1], &t);
        t.seen.cancel_at = 7;
        refused(&o, WF_ERR_CANCELLED, "interrupted after step 7");
        o = options_of(&families[k], path[1], &t);
        t.seen.last_step = 7;
        o.resume = true;
        ck_ok(wf_train(&o, NULL, error));
        for (int i = 0; i < 2; i++)
            snprintf(name[i], sizeof name[i], "%s/state.safetensors", path[i]);
        ck_assert_msg(same_file(name[0], name[1]), "%s", families[k].name);
    }
    finish();
}
END_TEST

START_TEST(mistakes_are_named)
{
    begin();
    struct terms t;
    struct wf_train_options o = options_of(&families[0], in_folder("run"), &t);
    kind_of_term = VECTOR;
    refused(&o, WF_ERR_SHAPE, "family squares: the squares of the loss is [6,16], not a real number []: take a mean");
    kind_of_term = NOTHING;
    refused(&o, WF_ERR_SHAPE, "family squares: the squares of the loss is NULL");
    kind_of_term = BAD;
    refused(&o, WF_ERR_NUMERIC, "step 1: the loss is not finite; the first bad tensor: log(");
    kind_of_term = RIGHT;
    static struct wf_family nameless; /* it must stay */
    nameless = families[0];
    nameless.name = "nameless";
    nameless.loss_term = NULL;
    o = options_of(&nameless, in_folder("other"), &t);
    refused(&o, WF_ERR_ARGUMENT, "family nameless: a term of the loss without a name: set .loss_term");
    struct wf_family bad = families[0];
    for (int i = 0; i < 3; i++) {
        wf_error problem = {0};
        bad.loss_term = ((const char *[]){"loss", "a b", ""})[i];
        ck_assert_int_eq(wf_family_check(&bad, &problem), WF_ERR_ARGUMENT);
        ck_assert_msg(strstr(problem.message, "the name of its loss_term must be letters"), "%s", problem.message);
    }
    finish();
}
END_TEST

WF_TEST_MAIN("train/loss_term", parts_add_up, a_validation_has_no_term, a_resume_gives_the_same_bytes, mistakes_are_named)
