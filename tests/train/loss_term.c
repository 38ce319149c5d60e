/* SPDX-License-Identifier: MIT */
/* Families from outside, of each kind of model, whose loss has a further term. */
#include "scenarios.h"

#include "decoder_test.h"

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

static struct wf_train_options options_of(const struct wf_family *family, const char *out, struct seen *seen)
{
    struct wf_train_options o = translation(out, seen);
    ck_ok(wf_family_register(family, error));
    ck_ok(wf_config_defaults(&o.config, family->name, error));
    set_keys(&o.config, "steps=12 lr=0.01 eps=1e-3 clip=0 save_every=5 valid_every=6 tokenizer=word");
    set_keys(&o.config, family->kind == WF_MODEL_PAIRS ? "batch_tokens=90 batch_window=32" : "batch=6");
    if (family->kind != WF_MODEL_PAIRS)
        o.train_files = o.valid_files = 1;
    return o;
}

/* The greatest difference of the weights of two runs. */
static double difference(const char *a, const char *b)
{
    struct wf_run x = opened(a, NULL), y = opened(b, NULL);
    const wf_registry *r = wf_model_registry(x.model), *s = wf_model_registry(y.model);
    double most = 0;
    for (int64_t i = 0; i < wf_registry_slab(r); i++)
        most = fmax(most, fabs((double)wf_registry_values((wf_registry *)r)[i] - (double)wf_registry_values((wf_registry *)s)[i]));
    wf_run_close(&x);
    wf_run_close(&y);
    return most;
}

START_TEST(micro_batches_add_up)
{
    const double tolerance = sizeof(wf_real) == 8 ? 1e-9 : 1e-4;
    for (int k = 0; k < 3; k++) {
        static const char *const out[] = {"whole", "parts", "without"}, *const settings[] = {"", "accumulate=4", "penalty=0"};
        struct seen seen[3] = {0};
        double valid[3], first[3], last[3];
        for (int i = 0; i < 3; i++) {
            struct wf_train_options o = options_of(&families[k], out[i], &seen[i]);
            set_keys(&o.config, settings[i]);
            valid[i] = trained(&o).valid;
            first[i] = seen[i].first_smoothed - seen[i].first_loss;
            last[i] = seen[i].last_smoothed - seen[i].last_loss;
        }
        double d = difference("whole", "parts");
        ck_assert_msg(d < tolerance, "%s: in parts the weights differ by %g", families[k].name, d);
        ck_assert_msg(difference("whole", "without") > 0.01, "%s: the term does nothing", families[k].name);
        ck_assert(fabs(first[0] - first[1]) < 1e-5 && fabs(last[0] - last[1]) < 1e-4 && fabs(valid[0] - valid[1]) < 1e-4);
        /* Embeddings begin at N(0, 1): their mean square is 1, of source and target 2. */
        ck_assert_msg(fabs(first[0] / (k == 2 ? 1 : 0.5) - 1) < 0.4 && last[0] < first[0] - 0.01, "%s: the term is %g, then %g",
                      families[k].name, first[0], last[0]);
        ck_assert(last[2] == 0 || isnan(last[2]));
        ASSERT_HAS(in_folder("whole/metrics.jsonl"), "\"squares/train\":", "\"loss/train_minimized\":");
        char *lines = text_of(in_folder("whole/metrics.jsonl"));
        ck_assert_ptr_null(strstr(lines, "squares/valid"));
        wf_free(lines);
        for (int i = 0; i < 3; i++)
            remove_tree(in_folder(out[i]));
    }
}
END_TEST

/* A validation measures the cross-entropy: its loss is that of an evaluation. */
START_TEST(a_validation_has_no_term)
{
    struct wf_evaluation e;
    struct wf_train_options o = options_of(&families[0], "run", NULL);
    o.config.training.valid_tokens = 0;
    const double valid = trained(&o).valid;
    struct wf_run run = opened("run", NULL);
    wf_tape *tape = wf_tape_new(NULL);
    char *text = text_of(o.valid[0]);
    struct wf_tokens ids = {0};
    ck_ok(wf_tokenizer_encode(run.tokenizer, text, (int64_t)strlen(text), &ids, error));
    ck_ok(wf_model_evaluate(run.model, tape, wf_id_view_of(ids.id, ids.count), 0, &e, error));
    ck_assert_msg(fabs(e.loss - valid) < 1e-5, "%g, %g", e.loss, valid);
    wf_tokens_free(&ids);
    wf_free(text);
    wf_tape_free(tape);
    wf_run_close(&run);
}
END_TEST

static const struct wf_family *interrupted;
static struct wf_train_options of_interrupted(const char *out, struct seen *seen)
{
    return options_of(interrupted, out, seen);
}

START_TEST(a_resume_gives_the_same_bytes)
{
    for (int k = 0; k < 3; k++) {
        interrupted = &families[k];
        cancelled_after_an_update(&(struct trainee){families[k].name, train_zoo, of_interrupted, ""});
    }
}
END_TEST

START_TEST(mistakes_are_named)
{
    struct wf_train_options o = options_of(&families[0], "run", NULL);
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
    o = options_of(&nameless, "other", NULL);
    refused(&o, WF_ERR_ARGUMENT, "family nameless: a term of the loss without a name: set .loss_term");
    struct wf_family bad = families[0];
    for (int i = 0; i < 3; i++) {
        bad.loss_term = ((const char *[]){"loss", "a b", ""})[i];
        ck_fails(wf_family_check(&bad, error), WF_ERR_ARGUMENT, "the name of its loss_term must be letters");
    }
}
END_TEST

WF_TEST_MAIN("train/loss_term", micro_batches_add_up, a_validation_has_no_term, a_resume_gives_the_same_bytes, mistakes_are_named)
